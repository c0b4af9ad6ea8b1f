package unitofwork_test

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

var plainRecords = unitofwork.Table[struct{ ID string }]{Name: "things", PartitionKey: "ID"}

type attributes = map[string]types.AttributeValue

// staged is one action of a caller, as the fuzzer has it.
type staged struct {
	kind, fence            uint8
	late                   bool // the stamp comes when the unit decides, by somebody without its lock
	condition, update      string
	placeholder, attribute string
	value                  []byte
}

var stageWords = []string{"_fence", "a", "b", "s", "text", "#holdallFence", ":holdallToken", "ID", "1", "x"}

// named says that an expression has a name for the fence attribute.
func (s staged) named() bool {
	used := s.condition
	if s.kind%4 == 0 {
		used += " " + s.update
	}
	return s.attribute == "_fence" && strings.Contains(used, "#n")
}

// action is what the caller stages on the record with the ID 1.
func (s staged) action() types.TransactWriteItem {
	names, values := map[string]string{}, attributes{}
	used := s.condition
	if s.kind%4 == 0 {
		used += " " + s.update
	}
	from := arbitrary.New(s.value)
	if strings.Contains(used, "#n") {
		names["#n"] = s.attribute
	}
	if strings.Contains(used, ":v") {
		values[":v"] = from.Value(stageWords)
	}
	if strings.Contains(used, ":n") {
		values[":n"] = number("1")
	}
	switch {
	case s.placeholder == "" || s.placeholder != "#holdallFence" && s.placeholder != ":holdallToken" && !strings.Contains(used, s.placeholder):
		// One that nothing uses is refused by DynamoDB, and no journal has it.
	case strings.HasPrefix(s.placeholder, "#"):
		names[s.placeholder] = s.attribute
	default:
		values[s.placeholder] = from.Value(stageWords)
	}
	key := attributes{"ID": text("1")}
	condition, update := aws.String(s.condition), aws.String(s.update)
	if s.condition == "" {
		condition = nil
	}
	if s.update == "" {
		update = nil
	}
	switch s.kind % 4 {
	case 0:
		return types.TransactWriteItem{Update: &types.Update{TableName: aws.String("things"), Key: key, UpdateExpression: update,
			ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values}}
	case 1:
		put := from.Change(attributes{"ID": text("1"), "a": number("7")}, stageWords, stageWords, "ID")
		return types.TransactWriteItem{Put: &types.Put{TableName: aws.String("things"), Item: put,
			ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values}}
	case 2:
		return types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("things"), Key: key,
			ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: aws.String("things"), Key: key,
			ConditionExpression: condition, ExpressionAttributeNames: names, ExpressionAttributeValues: values}}
	}
}

// stamps are what the record may have in its fence attribute: none, an older
// token, and what no unit's write may touch.
var stamps = []types.AttributeValue{
	nil, number("1"), number(later), number(tokens.Max.String()), number("7881299347898369"), text("1"), text(""),
	&types.AttributeValueMemberBOOL{Value: true}, &types.AttributeValueMemberB{Value: []byte("1")}, &types.AttributeValueMemberNS{Value: []string{"1"}},
}

const firstForbidden = 2

// FuzzStage: whatever a caller's action, expressions, names and values are, it is
// refused when it is staged, or refused by the commit and changes nothing, or done
// and stamped. A record with a newer stamp, or one that is no token, is never
// changed, also if it has it only since the unit decided: then an operator is told,
// and the lock stays. Else a unit with a journal comes to the same as one without.
func FuzzStage(f *testing.F) {
	late := len(stamps)
	for _, fence := range []int{0, 1, 2, 5, late + 1, late + 2, late + 5} {
		add := func(kind uint8, condition, update, placeholder, attribute, value string) {
			f.Add(kind, uint8(fence), condition, update, placeholder, attribute, []byte(value))
		}
		add(0, "", "SET a = a + :n", "", "", "")
		add(0, "a > :n AND (attribute_exists(b[0]) OR size(s) < :n)", "SET #n = :v REMOVE b[0] ADD c :n", "", "fresh", "abc")
		add(0, "a > :n) OR (a < :n", "SET #n = :n", "", "_fence", "")
		add(0, "a > :n) OR (a < :n", "SET a = :n", "", "", "")
		add(0, "attribute_not_exists(_fence)", "REMOVE _fence", "#holdallFence", "a", "")
		add(0, "", "REMOVE #n, b[1]", "", "text", "")
		add(0, "", "REMOVE m.set, b", "", "", "")
		add(0, "", "", ":holdallToken", "", "")
		add(1, "attribute_exists(ID)", "", "", "", "")
		add(1, "", "", "", "", "\x00\x01\x00\x00\x01\x05")
		add(2, "a <> :n OR a = :n", "", "", "", "")
		add(0, "a <> :n OR a = :n", "SET a = :n", "", "", "")
		add(0, "", "SET #n = :n", "", "_fence", "")
		add(3, "attribute_exists(#n)", "", "", "_fence", "")
		add(3, "attribute_exists(a)", "", "", "", "")
	}
	f.Fuzz(func(t *testing.T, kind, fence uint8, condition, update, placeholder, attribute string, value []byte) {
		s := staged{kind, fence % uint8(len(stamps)), fence/uint8(len(stamps))%2 == 1, condition, update, placeholder, attribute, value}
		if len(condition)+len(update) > 500 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			direct, err := s.commit(t, requests.MaxActions)
			journaled, err2 := s.commit(t, 1)
			require.Equal(t, err == nil, err2 == nil, "in one transaction: %v; by a journal: %v", err, err2)
			if !s.late || s.fence < firstForbidden {
				require.Equal(t, direct, journaled)
			}
		})
	})
}

func recordToChange() attributes {
	return attributes{
		"ID": text("1"), "a": number("3"), "b": &types.AttributeValueMemberL{Value: []types.AttributeValue{number("1"), text("x")}},
		"m": &types.AttributeValueMemberM{Value: attributes{"c": number("1"), "set": text("y")}},
		"s": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}, "text": text("hello"),
	}
}

// commit has a unit commit the action, and returns the record without its stamp.
func (s staged) commit(t *testing.T, size int) (attributes, error) {
	b := &bed{t: t, db: memdynamo.New(memdynamo.Config{})}
	require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks"}))
	require.NoError(t, unitofwork.CreateTable(t.Context(), b.db, unitofwork.Config{Table: "units"}))
	b.createTable("things", "ID")
	before, stamped := recordToChange(), false
	put := func(stamp bool) {
		if stamp && stamps[s.fence] != nil {
			before["_fence"] = stamps[s.fence]
		}
		b.putItem("things", before)
		before, stamped = b.db.Items("things")[0], stamp
	}
	put(!s.late)
	var unfinished error
	c := b.client("A", upon(func(c faults.Call) bool { return s.late && phaseOf(c) == decides }, func() {
		put(true)
	}), func(_ *lockset.Config, u *unitofwork.Config) {
		u.TransactionSize = size
		u.Trace = trace.Join(u.Trace, hooks.On(trace.Unfinished, func(_ context.Context, u trace.Event) { unfinished = u.Err }))
	})
	u := c.begins(t, unitofwork.Work{Keys: []ordering.Key{"k/1"}})
	require.NoError(t, u.Get(t.Context(), plainRecords.Ref("2")), "tells a journal which attributes are the key")
	action := s.action()
	err := u.Stage("k/1", action)
	if s.named() {
		require.ErrorAs(t, err, new(*unitofwork.StageError), "it names the fence")
	}
	if err != nil {
		require.ErrorAs(t, err, new(*unitofwork.StageError))
		require.ErrorAs(t, u.Commit(t.Context()), new(*unitofwork.StageError), "the commit says it, too")
	} else if err = u.Commit(t.Context()); err != nil {
		require.ErrorAs(t, err, new(*unitofwork.CommitError))
		require.NotEqual(t, lockset.AskLater, lockset.NextOf(err), "%v", err)
	}
	forbidden := stamped && s.fence >= firstForbidden
	if err == nil && s.late && forbidden && action.ConditionCheck == nil {
		require.ErrorAs(t, unfinished, new(*unitofwork.UnappliedError))
		require.Equal(t, before, b.db.Items("things")[0])
		require.Equal(t, text(u.Nonce()), b.row("k/1")["unit"], "it was freed")
		return nil, nil
	}
	require.NoError(t, unfinished)
	b.allFree()
	items := append(b.db.Items("things"), nil)
	after := items[0]
	if err != nil {
		require.Equal(t, before, after, "%v", err)
		return nil, err
	}
	require.False(t, forbidden && !s.late, "%v was changed to %v", before, after)
	switch {
	case action.ConditionCheck != nil:
		require.Equal(t, before, after)
	case action.Delete != nil:
		require.Nil(t, after)
	default:
		require.Equal(t, number(strconv.FormatInt(int64(tokenOf(u)), 10)), after["_fence"])
	}
	after = maps.Clone(after)
	delete(after, "_fence")
	return after, nil
}
