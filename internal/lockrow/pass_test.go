package lockrow_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/ordering"
)

type item = map[string]types.AttributeValue

const (
	passer = "AAAAAAAAAAAAAAAAAAAAAA"
	holder = "BBBBBBBBBBBBBBBBBBBBBB"
	token  = fencing.Token(100)
	row    = ordering.Key("a")
)

// left is a row that its last holder has left, and with some change.
func left(change item) item {
	return changed(item{
		"key": lockrow.Text("a"), "ownerName": lockrow.Text("host"), "leaseDuration": lockrow.Text("10000"), "isReleased": lockrow.Text("1"),
		"recordVersionNumber": lockrow.Text("v1"), "fence": lockrow.Number(50), "acquiredAt": lockrow.Number(1), "expiresAt": lockrow.Number(2),
	}, change)
}

// above is a row that had nothing but intents.
func above(change item) item {
	return changed(item{"key": lockrow.Text("a"), "isReleased": lockrow.Text("1"), "fence": lockrow.Number(50), "expiresAt": lockrow.Number(2)}, change)
}

func changed(i, change item) item {
	i = maps.Clone(i)
	for name, v := range change {
		if v == nil {
			delete(i, name)
		} else {
			i[name] = v
		}
	}
	return i
}

var (
	held    = item{"isReleased": nil, "unit": lockrow.Text(holder)}
	awaited = item{"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{lockrow.Text(holder)}}}
	emptied = item{"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{}}}
	below   = item{"below": &types.AttributeValueMemberSS{Value: []string{holder + " b"}}}
	later   = item{"fence": lockrow.Number(60)}
	had     = item{"fence": lockrow.Number(60), "recordVersionNumber": lockrow.Text("v2")}
	ahead   = item{"fence": lockrow.Number(100)}
)

func parsed(t *testing.T, i item) lockrow.Row {
	t.Helper()
	r, reason := lockrow.Parse(row, i)
	require.Empty(t, reason)
	return r
}

func needs(t *testing.T, mode lockrow.Mode, same lockrow.Same, seen item) lockrow.Need {
	t.Helper()
	return lockrow.Need{Key: row, Mode: mode, Same: same, Seen: parsed(t, seen)}
}

// pass sends the write that passes a row, which is as given, and returns what is there
// then, or what refused it.
func pass(t *testing.T, before item, n lockrow.Need) (after item, refused bool) {
	t.Helper()
	ctx, db := t.Context(), memdynamo.New(memdynamo.Config{})
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("locks"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	if before != nil {
		_, err = db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("locks"), Item: before})
		require.NoError(t, err)
	}
	vs := lockrow.UnitValues(passer, passer, token, time.Unix(1000, 0), time.Unix(2000, 0), time.Unix(3000, 0), lockrow.Now{}).With(lockrow.Values{":rvn": lockrow.Text("new")})
	err = send(ctx, db, lockrow.Table{Name: "locks", HashKey: "key"}.Pass(n, vs))
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return canceled.CancellationReasons[0].Item, true
	}
	require.NoError(t, err)
	for _, after = range db.Items("locks") { // one at most
	}
	return after, false
}

func send(ctx context.Context, db *memdynamo.DB, write types.TransactWriteItem) error {
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{write}})
	return err
}

// What a row that refuses says.
const (
	passing = "is another's, or waited for"
	final   = "was another's since it was looked at"
	tooLow  = "has had a later token"
)

// roles are what a row is to a commit without locks.
var roles = map[string]struct {
	mode lockrow.Mode
	same lockrow.Same
	seen item
}{
	"key looked at":                  {lockrow.Exclusive, lockrow.Fence, left(nil)},
	"key that was not there":         {lockrow.Exclusive, lockrow.Fence, nil},
	"key not looked at":              {lockrow.Exclusive, lockrow.Nothing, nil},
	"key looked at as one above":     {lockrow.Exclusive, lockrow.RVN, left(nil)},
	"key above without an RVN":       {lockrow.Exclusive, lockrow.RVN, above(nil)},
	"row above looked at":            {lockrow.Intent, lockrow.RVN, left(nil)},
	"row above without an RVN":       {lockrow.Intent, lockrow.RVN, above(nil)},
	"row above that was not there":   {lockrow.Intent, lockrow.RVN, nil},
	"row above that nobody looks at": {lockrow.Intent, lockrow.Nothing, nil},
}

// What lets a commit without locks pass a row, and what each row that does not says of it.
func TestPass(t *testing.T) {
	for name, c := range map[string]struct {
		now  item
		want map[string]string // by role; others pass
	}{
		"as it was seen": {left(nil), map[string]string{
			"key that was not there": final, "key above without an RVN": final, "row above without an RVN": final, "row above that was not there": final,
		}},
		"a queue that has emptied": {left(emptied), map[string]string{
			"key that was not there": final, "key above without an RVN": final, "row above without an RVN": final, "row above that was not there": final,
		}},
		"no row": {nil, map[string]string{
			"key looked at": final, "key looked at as one above": final, "row above looked at": final,
		}},
		"only intents have been there": {above(nil), map[string]string{
			"key that was not there": final, "key looked at as one above": final, "row above looked at": final,
		}},
		"held": {left(held), map[string]string{
			"key looked at": passing, "key that was not there": final, "key not looked at": passing,
			"key looked at as one above": passing, "key above without an RVN": final,
			"row above looked at": passing, "row above without an RVN": final, "row above that was not there": final, "row above that nobody looks at": passing,
		}},
		"waited for": {left(awaited), map[string]string{
			"key looked at": passing, "key that was not there": final, "key not looked at": passing,
			"key looked at as one above": passing, "key above without an RVN": final,
			"row above looked at": passing, "row above without an RVN": final, "row above that was not there": final, "row above that nobody looks at": passing,
		}},
		"something is below": {left(below), map[string]string{
			"key looked at": passing, "key that was not there": final, "key not looked at": passing,
			"key looked at as one above": passing, "key above without an RVN": final,
			"row above without an RVN": final, "row above that was not there": final,
		}},
		"a later fence": {left(later), map[string]string{
			"key looked at": final, "key that was not there": final, "key above without an RVN": final,
			"row above without an RVN": final, "row above that was not there": final,
		}},
		"another has had it": {left(had), map[string]string{
			"key looked at": final, "key that was not there": final,
			"key looked at as one above": final, "key above without an RVN": final,
			"row above looked at": final, "row above without an RVN": final, "row above that was not there": final,
		}},
		"the fence is the token": {left(ahead), map[string]string{
			"key looked at": final, "key that was not there": final, "key not looked at": tooLow,
			"key looked at as one above": tooLow, "key above without an RVN": final,
			"row above looked at": tooLow, "row above without an RVN": final, "row above that was not there": final, "row above that nobody looks at": tooLow,
		}},
		"others have been below it, with a later token": {above(ahead), map[string]string{
			"key looked at": final, "key that was not there": final, "key not looked at": tooLow,
			"key looked at as one above": final, "key above without an RVN": tooLow,
			"row above looked at": final, "row above without an RVN": tooLow, "row above that was not there": tooLow, "row above that nobody looks at": tooLow,
		}},
		"held with a later token": {changed(left(held), ahead), map[string]string{
			"key looked at": final, "key that was not there": final, "key not looked at": final,
			"key looked at as one above": final, "key above without an RVN": final,
			"row above looked at": final, "row above without an RVN": final, "row above that was not there": final, "row above that nobody looks at": final,
		}},
	} {
		for role, is := range roles {
			t.Run(name+", "+role, func(t *testing.T) {
				judges(t, c.now, needs(t, is.mode, is.same, is.seen), c.want[role])
				checked, want := needs(t, is.mode, is.same, is.seen), c.want[role]
				checked.Checked = true
				if now := parsed(t, c.now); is.mode == lockrow.Intent && checked.Unchanged(now) && is.same == lockrow.RVN { // whatever its fence
					want = map[bool]string{false: passing}[checked.Open(now)]
				}
				judges(t, c.now, checked, want)
			})
		}
	}
}

// judges has a commit need a row, and compares what the row says of it with what is wanted; empty if the
// commit is carried out. A row that is only checked stays as it is.
func judges(t *testing.T, now item, n lockrow.Need, want string) {
	t.Helper()
	after, refused := pass(t, now, n)
	if refused || n.Checked {
		require.Equal(t, changed(now, nil), changed(after, nil), "the row that refused is shown")
	}
	if !refused {
		require.Empty(t, want)
		require.True(t, n.Open(parsed(t, now)) && n.Unchanged(parsed(t, now)))
		return
	}
	require.Equal(t, want, n.Refuses(parsed(t, after), token).String())
}

// What a row shows that a commit without locks has passed.
func TestWhatPassingLeaves(t *testing.T) {
	key := item{
		"key": lockrow.Text("a"), "isReleased": lockrow.Text("1"), "fence": lockrow.Number(100), "recordVersionNumber": lockrow.Text("new"),
		"committedBy": lockrow.Text(passer), "expiresAt": lockrow.Number(2000),
	}
	after, _ := pass(t, nil, needs(t, lockrow.Exclusive, lockrow.Fence, nil))
	require.Equal(t, key, after)
	after, _ = pass(t, left(item{"committedBy": lockrow.Text(holder)}), needs(t, lockrow.Exclusive, lockrow.Fence, left(nil)))
	require.Equal(t, left(key), after)

	after, _ = pass(t, nil, needs(t, lockrow.Intent, lockrow.RVN, nil))
	require.Equal(t, item{"key": lockrow.Text("a"), "isReleased": lockrow.Text("1"), "fence": lockrow.Number(100), "expiresAt": lockrow.Number(3000)}, after)
	after, _ = pass(t, left(nil), needs(t, lockrow.Intent, lockrow.Nothing, nil))
	require.Equal(t, changed(left(nil), item{"fence": lockrow.Number(100), "expiresAt": lockrow.Number(3000)}), after)
	stamped := item{"committedBy": lockrow.Text(holder)}
	after, _ = pass(t, changed(left(stamped), below), needs(t, lockrow.Intent, lockrow.RVN, left(nil)))
	want := changed(changed(left(stamped), below), item{"fence": lockrow.Number(100), "expiresAt": lockrow.Number(3000)})
	require.Equal(t, want, after, "what is below stays, and the RVN, and the stamp of who committed last")

	ofJournal := item{"pendingBelow": below["below"]}
	after, _ = pass(t, changed(left(ofJournal), below), needs(t, lockrow.Intent, lockrow.RVN, left(nil)))
	want = changed(changed(left(ofJournal), below), item{"fence": lockrow.Number(100), "expiresAt": below["below"]})
	require.Equal(t, want, after, "a row above a unit with a journal gets no expiry that is a number")
	after, _ = pass(t, changed(left(ofJournal), below), needs(t, lockrow.Intent, lockrow.Nothing, nil))
	require.Equal(t, want, after)
}

// A commit without locks passes those who leave a row free for too long, if nobody has had it
// since it was looked at, and removes their places.
func TestPassingThoseWhoWait(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
	at := time.Unix(0, 1_000_000_000_000)
	free := func(turn string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"key": text(string(row)), "isReleased": text("1"), "fence": number("5"), "recordVersionNumber": text("r"), "turnAt": number(turn),
			"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("one"), text("two")}},
		}
	}
	watch := lockrow.Watch{
		Now: at, Since: at, Table: lockrow.Now{Low: at.Add(time.Minute), High: at.Add(time.Minute)},
		Patience: lockrow.Patience{Turn: time.Second, Grace: time.Second},
	}
	for _, mode := range []lockrow.Mode{lockrow.Exclusive, lockrow.Intent} {
		same := map[lockrow.Mode]lockrow.Same{lockrow.Exclusive: lockrow.Fence, lockrow.Intent: lockrow.RVN}[mode]
		seen, reason := lockrow.Parse(row, free("1000000000000"))
		require.Empty(t, reason)
		need := lockrow.Need{Key: row, Mode: mode, Same: same, Seen: seen}
		require.False(t, need.Open(seen), "it is another's turn")
		seen = seen.WithTurn(watch)
		need.Seen = seen
		require.True(t, need.Open(seen))

		item, refused := pass(t, free("1000000000000"), need)
		require.False(t, refused)
		require.NotContains(t, item, "queue")
		_, refused = pass(t, free("1000000000001"), need)
		require.True(t, refused, "it was another's meanwhile")
	}
}
