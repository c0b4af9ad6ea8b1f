package fencing_test

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

var words = []string{"_fence", "fence", "ID", "a", "b", "1", "900", "1000", "1001", "#holdallFence", ":holdallToken", "my fence"}

// tokenOf is the token that an attribute is: a whole number from 1 to the last
// token.
func tokenOf(v types.AttributeValue) (token int64, is bool) {
	n, is := v.(*types.AttributeValueMemberN)
	if !is {
		return 0, false
	}
	i, ok := new(big.Int).SetString(n.Value, 10)
	return i64(i), ok && i.Sign() > 0 && i.Cmp(big.NewInt(int64(tokens.Max))) <= 0
}

func i64(i *big.Int) int64 {
	if i == nil || !i.IsInt64() {
		return 0
	}
	return i.Int64()
}

// FuzzOf: of any record, what is read as a token is one.
func FuzzOf(f *testing.F) {
	for i := range byte(40) {
		f.Add([]byte{1, 8, 0, i, 1, i, 5, 3}, "_fence")
		f.Add([]byte{0, 1, i, 0, 8, 3}, "fence")
	}
	f.Fuzz(func(t *testing.T, input []byte, attribute string) {
		from := arbitrary.New(input)
		record := from.Change(item{"ID": text("1"), attribute: from.Value(words)}, words, words)
		token, ok := fencing.Fence{Attribute: attribute}.Of(record)
		value, there := record[attribute]
		want, is := tokenOf(value)
		require.Equal(t, !there || is, ok, "%v", value)
		switch {
		case !there:
			require.Zero(t, token)
		case ok:
			require.Equal(t, fencing.Token(want), token)
			require.True(t, token.Valid())
			clock := tokens.NewClock(func() time.Time { return time.UnixMicro(0) })
			clock.Saw(token)
			require.Equal(t, token+1, clock.Next())
		}
	})
}

// FuzzFence: whatever a caller asks beside a fence, it is refused before it is sent,
// or the record that it leaves has the token, and one with a later token, or one
// that is none, is as it was.
func FuzzFence(f *testing.F) {
	for i := range byte(12) {
		for kind := range uint8(3) {
			f.Add(kind, int64(1000), "", "a > :n", "SET #n = :n", "a", []byte{i, i})
			f.Add(kind, int64(1000), "my fence", "attribute_exists(ID) OR a = :v", "REMOVE #n SET a = :v", "_fence", []byte{0, i, 3, i})
			f.Add(kind, int64(1000), "", "a <> :n OR a = :n", "SET a = :n", "a", []byte{i, i})
			f.Add(kind, int64(1000), "", "", "SET #n = :n", "_fence", []byte{i, i})
			f.Add(kind, int64(-1), "_fence", "", "ADD a :n", "_fence", []byte{i})
			f.Add(kind, int64(1000), "a", "a = :n) OR (a <> :n", "SET a = :n", "b", []byte{i, 1})
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, token int64, attribute, condition, update, name string, input []byte) {
		from := arbitrary.New(input)
		fence := fencing.Fence{Token: fencing.Token(token), Attribute: attribute}
		if attribute == "" {
			attribute = "_fence"
		}
		if attribute == "ID" {
			return // a record without its key
		}
		db := records(t, nil)
		record := item{"ID": text("1"), "a": &types.AttributeValueMemberN{Value: "3"}, "b": text("x")}
		delete(record, attribute)
		switch from.Below(5) {
		case 0: // none
		case 1:
			record[attribute] = from.Value(words)
		default:
			record[attribute] = &types.AttributeValueMemberN{Value: arbitrary.Pick(from, "1", "999", "1000", "1001", "7881299347898368", "0", "-1")}
		}
		if _, err := db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: record}); err != nil {
			return
		}
		before := db.Items("records")[0]
		found, there := tokenOf(before[attribute])
		err := send(t, db, fence, kind%3, condition, update, name, from)
		items := db.Items("records")
		if kind%3 == 0 && strings.Contains(condition+" "+update, "#n") && name == attribute {
			require.ErrorContains(t, err, "fence: ", "it is not sent")
		}
		if err != nil {
			require.Equal(t, []item{before}, items, "%v", err)
			var stale *fencing.StaleError
			if errors.As(fence.Stale(err), &stale) {
				require.True(t, there && found > token)
				require.Equal(t, fencing.Token(found), stale.Found)
			}
			return
		}
		require.True(t, fence.Token.Valid())
		if old, has := before[attribute].(*types.AttributeValueMemberN); has {
			n, ok := new(big.Rat).SetString(old.Value)
			require.True(t, ok && n.Cmp(new(big.Rat).SetInt64(token)) <= 0, "%v was written over %s", token, old.Value)
		} else {
			require.NotContains(t, before, attribute, "%v", before)
		}
		if kind%3 == 2 {
			require.Empty(t, items)
			return
		}
		require.Equal(t, &types.AttributeValueMemberN{Value: fence.Token.String()}, items[0][attribute])
	})
}

// send sends one write with a fence; the error is the fence's or the table's.
func send(t *testing.T, db *memdynamo.DB, fence fencing.Fence, kind uint8, condition, update, name string, from *arbitrary.Source) error {
	t.Helper()
	used := condition
	if kind == 0 {
		used += " " + update
	}
	names, values := map[string]string{}, item{}
	if strings.Contains(used, "#n") {
		names["#n"] = name
	}
	if strings.Contains(used, ":n") {
		values[":n"] = &types.AttributeValueMemberN{Value: "5"}
	}
	if strings.Contains(used, ":v") {
		values[":v"] = from.Value(words)
	}
	var own *string
	if condition != "" {
		own = &condition
	}
	key, table := item{"ID": text("1")}, aws.String("records")
	var err error
	switch kind {
	case 0:
		in := &dynamodb.UpdateItemInput{TableName: table, Key: key, ConditionExpression: own, UpdateExpression: &update, ExpressionAttributeNames: names, ExpressionAttributeValues: values}
		if err = fence.Update(in); err == nil {
			_, err = db.UpdateItem(t.Context(), in)
		}
	case 1:
		in := &dynamodb.PutItemInput{TableName: table, Item: from.Change(key, words, words, "ID"), ConditionExpression: own, ExpressionAttributeNames: names, ExpressionAttributeValues: values}
		if err = fence.Put(in); err == nil {
			_, err = db.PutItem(t.Context(), in)
		}
	default:
		in := &dynamodb.DeleteItemInput{TableName: table, Key: key, ConditionExpression: own, ExpressionAttributeNames: names, ExpressionAttributeValues: values}
		if err = fence.Delete(in); err == nil {
			_, err = db.DeleteItem(t.Context(), in)
		}
	}
	return err
}

// rows are what a database returned.
type rows struct {
	all []met
	at  int
	err error
}

type met struct {
	key          string
	token, below int64
}

func (r *rows) Next() bool { r.at++; return r.at <= len(r.all) }
func (r *rows) Err() error { return r.err }
func (r *rows) Scan(dest ...any) error {
	m := r.all[r.at-1]
	*dest[0].(*string), *dest[1].(*int64), *dest[2].(*int64) = m.key, m.token, m.below
	return nil
}

// hasZero tells a step that SQL has no text for.
func hasZero(step plans.Step) bool { return strings.ContainsRune(string(step.Key), 0) }

// FuzzAdmission: for any keys, and whatever a database returns for their rows, a
// token is admitted only if every row is there and none has met a later one.
func FuzzAdmission(f *testing.F) {
	f.Add(int64(1000), uint8(1), "t", "a/b\na/c\nd", []byte{3, 3, 3, 3})
	f.Add(int64(1000), uint8(2), "a.\"b\"", "a/b\na", []byte{0, 1, 2, 3, 4, 5})
	for i := range byte(5) {
		f.Add(int64(1000), uint8(1), "t", "a/b", []byte{0, i, 0, 1, 0, 0, 0, i, 0, 0, 0})
		f.Add(int64(1000), uint8(2), "t", "a", []byte{0, i, 0, 0, 0, 0, 0, 0, 0, 0, i, 7 * (i % 2)})
		f.Add(int64(1000), uint8(2), "t", "a", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0})
		f.Add(int64(1000), uint8(2), "t", "a", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7})
	}
	f.Add(int64(0), uint8(0), "", "", []byte{})
	f.Add(int64(5), uint8(2), "x\x00", "a\x00", []byte{})
	f.Fuzz(func(t *testing.T, token int64, dialect uint8, table, lines string, input []byte) {
		newGate := fencing.NewPostgreSQLGate
		if dialect%2 == 0 {
			newGate = fencing.NewSQLiteGate
		}
		gate, err := newGate(table)
		if err != nil {
			require.Nil(t, gate)
			return
		}
		require.Zero(t, strings.Count(gate.DDL(), `"`)%2, "what is quoted is closed")
		var keys []ordering.Key
		for _, line := range strings.Split(lines, "\n") {
			keys = append(keys, ordering.Key(line))
		}
		_, _, judge, err := gate.Admission(fencing.Token(token), keys...)
		plan, noPlan := plans.New(keys...)
		possible := fencing.Token(token).Valid() && noPlan == nil && !slices.ContainsFunc(plan, hasZero)
		require.Equal(t, possible, err == nil, "%v", err)
		if err != nil {
			return
		}
		from := arbitrary.New(input)
		answer, admitted := &rows{}, true
		for _, step := range plan {
			for i, key := range append(step.Intents[:len(step.Intents):len(step.Intents)], step.Key) {
				m := met{string(key), arbitrary.Pick(from, token, 0, token-1, token+1, from.Int64()), arbitrary.Pick(from, token, 0, token-1, token+1)}
				if from.Below(8) == 7 {
					admitted = false // its row is not there
					continue
				}
				answer.all = append(answer.all, m)
				exclusive := i == len(step.Intents)
				admitted = admitted && m.token <= token && (!exclusive || m.below <= token)
			}
		}
		if from.Below(8) == 7 {
			answer.err, admitted = fmt.Errorf("the connection broke"), false
		}
		err = judge(answer)
		require.Equal(t, admitted, err == nil, "%v: %v", answer.all, err)
		var stale *fencing.StaleError
		if errors.As(err, &stale) {
			require.Greater(t, stale.Found, stale.Token)
			require.Equal(t, fencing.Token(token), stale.Token)
		}
	})
}

// docs/fencing.md shows nothing but code that is compiled here.
func TestTheCodeInTheDocumentIsCompiled(t *testing.T) {
	document, err := os.ReadFile("../docs/fencing.md")
	require.NoError(t, err)
	files, err := filepath.Glob("example*_test.go")
	require.NoError(t, err)
	files = append(files, "../integration/gate/gate_test.go") // needs a driver that the library does not
	var compiled strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		compiled.Write(text)
	}
	blocks := strings.Split(string(document), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		code, _, ended := strings.Cut(b, "```")
		require.True(t, ended)
		require.Contains(t, compiled.String(), code)
	}
}
