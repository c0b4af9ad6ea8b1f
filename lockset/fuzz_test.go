package lockset_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/arbitrary"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

type item = map[string]types.AttributeValue

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}
func ss(v ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: v} }
func l(v ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: v}
}

// dead is a unit that is not there any more.
const (
	deadUnit  = "aaaaaaaaaaaaaaaaaaaaaa"
	otherUnit = "bbbbbbbbbbbbbbbbbbbbbb"
	oldFence  = 900_000_000_000_000 // microseconds: of 1998, before any clock in virtual time
)

// rowsToChange are what an arbitrary row begins as: what holdall writes, and what
// other lock clients do.
func rowsToChange() []item {
	held := item{"ownerName": s("dead"), "leaseDuration": s("10000"), "recordVersionNumber": s("v1"), "unit": s(deadUnit), "fence": n(oldFence),
		"acquiredAt": n(1), "expiresAt": n(1)}
	with := func(of item, more item) item { of = maps.Clone(of); maps.Copy(of, more); return of }
	free := item{"isReleased": s("1"), "fence": n(oldFence), "expiresAt": n(1)}
	return []item{
		{},
		free,
		held,
		with(held, item{"pending": s("units")}),
		with(free, item{"below": ss(deadUnit+" x", otherUnit+" b/c")}),
		with(free, item{"queue": l(s(deadUnit), s(otherUnit)), "committedBy": s(otherUnit)}),
		with(held, item{"queue": l(s(otherUnit))}),
		// The Amazon DynamoDB Lock Client, held and released; cirello's dynamolock;
		// dynamodb-lease; a table of something else.
		{"ownerName": s("java"), "leaseDuration": s("10000"), "recordVersionNumber": s("8d5b3f8e"), "data": &types.AttributeValueMemberB{Value: []byte("x")}},
		{"ownerName": s("java"), "leaseDuration": s("10000"), "recordVersionNumber": s("8d5b3f8e"), "isReleased": s("1")},
		{"ownerName": s("go"), "leaseDuration": s("20s"), "recordVersionNumber": s("v"), "isReleased": s("1"), "data": &types.AttributeValueMemberB{Value: []byte{}}},
		{"lease_expiry": n(1_700_000_000), "lease_version": s("8d5b3f8e")},
		{"colour": s("red"), "unit": n(5), "queue": s("of people")},
	}
}

var words = []string{
	"", "1", "0", "10000", "-5", "9223372036854", "9223372036855", "20s", "v1", "units", "locks", deadUnit, otherUnit, deadUnit + " x", deadUnit + " b/c",
	otherUnit + " b//c", deadUnit + " ", " x", "a", "a/b", "a/b/c", "é", "true",
}

// arbitraryRow is any item under a key, above all one that is almost a row.
func arbitraryRow(from *arbitrary.Source, key ordering.Key) item {
	row := from.Change(arbitrary.Pick(from, rowsToChange()...), lockset.RowAttributes, words, "key")
	row["key"] = s(string(key))
	return row
}

// takenUnread tells rows that holdall did not write and takes all the same: they say
// that they are free, in its words, and no more is asked of them.
func takenUnread(key ordering.Key, row item) bool {
	_, fenced := row["fence"].(*types.AttributeValueMemberN)
	return fenced && lockrow.TextOf(row["isReleased"]) == "1" && !lockset.Understood(key, row)
}

// FuzzRow: of any item, what a unit makes of it and what the table does with the
// unit's write agree, and what is no row is not touched. See LookAt.
func FuzzRow(f *testing.F) {
	for i := range rowsToChange() {
		f.Add([]byte{byte(i)}, int64(time.Minute), int64(oldFence+1), false)
		f.Add([]byte{byte(i)}, int64(time.Second), int64(oldFence), true)
		// Around the end of the lease that the rows have, and well within it.
		for _, since := range []time.Duration{lease / 2, lease - 1, lease, lease + 1} {
			f.Add([]byte{byte(i)}, int64(since), int64(oldFence+1), i%2 == 0)
			f.Add([]byte{byte(i)}, int64(since), int64(oldFence+1), i%2 == 1)
		}
	}
	f.Add([]byte{2, 1, 1, 5, 4, 0}, int64(time.Minute), int64(oldFence+1), false) // a fence as text
	db := memdynamo.New(memdynamo.Config{})
	require.NoError(f, lockset.CreateTable(f.Context(), db, lockset.Config{Table: table}))
	f.Fuzz(func(t *testing.T, input []byte, since, token int64, intent bool) {
		b := &bed{t: t, db: db}
		from := arbitrary.New(input)
		key, witness := ordering.Key("a"), ordering.Key("a")
		if intent {
			witness = "a/x"
		}
		row := arbitraryRow(from, key)
		unit := arbitrary.Pick(from, "cccccccccccccccccccccc", deadUnit, otherUnit)
		if !fencing.Token(token).Valid() {
			token = oldFence + 1
		}
		_, err := b.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: row})
		if err != nil {
			return // an item that no table has
		}
		row = b.row(key) // as the table writes numbers
		if takenUnread(key, row) {
			return
		}
		look := lockset.LookAt(key, row, unit, witness, fencing.Token(token), time.Duration(since))
		require.Equal(t, lockset.Understood(key, row), look.Reason == "", "%v: %s", row, look.Reason)
		took := b.applies(look.Take(fencing.Token(token)))
		after := b.row(key)
		if look.Reason != "" {
			require.False(t, took, "%v: it was taken: %v", look.Reason, row)
			require.Equal(t, row, after)
			return
		}
		b.checkLook(look, row, after, took, fencing.Token(token), unit)
	})
}

// applies sends a write and reports whether its condition held.
func (b *bed) applies(u *types.Update) bool {
	_, err := b.db.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, ConditionExpression: u.ConditionExpression, UpdateExpression: u.UpdateExpression,
		ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
	})
	if err != nil {
		require.ErrorAs(b.t, err, new(*types.ConditionalCheckFailedException), "any other is an expression that cannot be")
	}
	return err == nil
}

// checkLook holds a judgement of a row against what the table has done.
func (b *bed) checkLook(look lockset.Look, row, after item, took bool, token fencing.Token, unit string) {
	t := b.t
	again := look.Verdict == "mine" && row["below"] != nil // an intent may be left twice
	require.True(t, took == (look.Verdict == "admits") || again, "%s: %v", look.Verdict, row)
	if took {
		require.True(t, lockset.Understood("a", after), "%v became %v", row, after)
		require.Greater(t, token, look.Fence)
		require.Equal(t, n(int64(token)), after["fence"])
		require.Equal(t, "mine", lockset.LookAt("a", after, unit, witnessOf(after), token, 0).Verdict, "%v became %v", row, after)
		return
	}
	require.Equal(t, row, after, "what is refused changes nothing")
	silent := look.Since >= look.Lease
	switch look.Verdict {
	case "raise":
		require.GreaterOrEqual(t, look.Fence, token)
		if look.Fence < tokens.Max {
			require.True(t, b.applies(look.Take(look.Fence+1)), "%v", row)
		}
	case "bury":
		require.True(t, look.Held && silent && !look.Pending, "%v", row)
		require.True(t, b.applies(look.Bury), "%v", row)
		buried := b.row("a")
		require.True(t, lockset.Understood("a", buried), "%v became %v", row, buried)
		require.Equal(t, row["fence"], buried["fence"])
		require.NotContains(t, buried, "unit")
	case "settle":
		require.True(t, look.Held && silent && look.Pending, "%v", row)
		require.False(t, b.applies(look.Bury), "%v", row)
	case "await":
		require.True(t, look.Held && !silent || !look.Held && look.Behind && look.Since < time.Second, "%v", row)
	case "pass":
		require.True(t, !look.Held && look.Behind && look.Since >= time.Second, "%v", row)
	case "witnesses":
		require.True(t, !look.Held && look.Below > 0, "%v", row)
	case "mine":
		below, _ := row["below"].(*types.AttributeValueMemberSS)
		require.True(t, lockrow.TextOf(row["unit"]) == unit || below != nil && slices.Contains(below.Value, unit+" x"), "%v", row)
	default:
		t.Fatalf("%q of %v", look.Verdict, row)
	}
}

// witnessOf is what the unit of a row that was taken wanted.
func witnessOf(row item) ordering.Key {
	if row["unit"] == nil {
		return "a/x"
	}
	return "a"
}

// FuzzLockTable: whatever is in the rows that a unit needs, a whole client takes
// them, or says who has them, or what is no row; and leaves that alone.
func FuzzLockTable(f *testing.F) {
	for i := range rowsToChange() {
		f.Add([]byte{0, 0, byte(i), 0}, uint8(i), uint8(i))
		f.Add([]byte{1, 1, byte(i), 0, 3, byte(i + 3), 0}, uint8(i+1), uint8(i+2))
		f.Add([]byte{0, 0, byte(i), 0}, uint8(0), uint8(2))
	}
	f.Fuzz(func(t *testing.T, input []byte, which, how uint8) {
		inBed(t, func(t *testing.T, b *bed) {
			from := arbitrary.New(input)
			planted := b.plant(from)
			before := b.db.Items(table)
			keys := [][]ordering.Key{{"a"}, {"a/b"}, {"a/b/c", "a/x"}, {"a/b", "0", "z"}, {"0"}, {"a/x", "a/b/c/d", "b"}}[which%6]
			set, err := b.askFor(b.owner("o", nil), keys, how)
			if err != nil {
				b.refusedWell(err, planted, how)
			} else {
				require.NoError(t, set.Release(t.Context()))
			}
			for _, was := range before {
				key := ordering.Key(was["key"].(*types.AttributeValueMemberS).Value)
				is := b.row(key)
				if !lockset.Understood(key, was) {
					require.Equal(t, was, is, "it was touched")
					require.False(t, err == nil && needs(keys, key), "it was in the way: %v", was)
					continue
				}
				require.True(t, lockset.Understood(key, is), "%v became %v", was, is)
				require.GreaterOrEqual(t, fenceOf(t, is), fenceOf(t, was))
				if err == nil && needs(keys, key) {
					require.NotContains(t, is, "unit")
				}
			}
			b.nobodyNew(before)
		})
	})
}

// plant puts up to three arbitrary rows into the table.
func (b *bed) plant(from *arbitrary.Source) (planted map[ordering.Key]item) {
	planted = map[ordering.Key]item{}
	for range 1 + from.Below(3) {
		key := arbitrary.Pick[ordering.Key](from, "a", "a/b", "a/b/c", "a/x", "z")
		row := arbitraryRow(from, key)
		if takenUnread(key, row) {
			continue
		}
		if _, err := b.db.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: row}); err == nil {
			planted[key] = b.row(key)
		}
	}
	return planted
}

// askFor acquires keys in one of the ways in which that ends by itself.
func (b *bed) askFor(o *owner, keys []ordering.Key, how uint8) (*lockset.Set, error) {
	switch how % 3 {
	case 0:
		return o.TryAcquire(b.t.Context(), keys)
	case 1:
		return o.Acquire(b.t.Context(), keys, wait(6*lease))
	default:
		ctx := b.lasting(6 * lease)
		return o.Acquire(ctx, keys)
	}
}

// needs reports whether who takes keys writes the row of another.
func needs(keys []ordering.Key, row ordering.Key) bool {
	for _, k := range keys {
		if row.Covers(k) {
			return true
		}
	}
	return false
}

func fenceOf(t *testing.T, row item) int64 {
	t.Helper()
	v, ok := row["fence"].(*types.AttributeValueMemberN)
	require.True(t, ok, "%v", row)
	fence := must(strconv.ParseInt(v.Value, 10, 64))(t)
	return fence
}

// refusedWell: the error is one that Acquire may return, and says what is there.
func (b *bed) refusedWell(err error, planted map[ordering.Key]item, how uint8) {
	var held *lockset.HeldError
	var row *lockrow.RowError
	var config *locks.ConfigError
	switch t := b.t; {
	case errors.As(err, &row):
		require.Contains(t, planted, row.Key)
		require.False(t, lockset.Understood(row.Key, planted[row.Key]), "%v: %v", err, planted[row.Key])
	case errors.As(err, &config): // a token beyond the last: a fence there is as high as fences are
		atTheEnd := false
		for key, row := range planted {
			atTheEnd = atTheEnd || lockset.Understood(key, row) && fenceOf(t, row) > int64(tokens.Max)-10
		}
		require.True(t, atTheEnd, "%v", err)
	case errors.As(err, &held):
		b.heldForGood(held, planted, how)
	default:
		t.Fatalf("%T: %v", err, err)
	}
}

// heldForGood: nobody lives here, so who waited is refused for a row whose lease is
// longer than that, or which has a journal that this process does not know, or for
// too many of the dead, one after the other.
func (b *bed) heldForGood(held *lockset.HeldError, planted map[ordering.Key]item, how uint8) {
	if how%3 == 0 {
		return
	}
	for key, row := range planted {
		if !lockset.Understood(key, row) {
			continue
		}
		look := lockset.LookAt(key, row, "nobody", key, 1, 0)
		if look.Held && (look.Lease > lease || look.Pending) {
			return
		}
		if len(planted) > 1 && look.Held {
			return
		}
	}
	b.t.Fatalf("%v: of %v", held, planted)
}

// nobodyNew: who has given up, or released, is shown by no row: not as a holder, nor
// by an intent, nor in a queue. Nobody else came by, so all who are shown were before.
func (b *bed) nobodyNew(before []item) {
	shown := map[string][]string{}
	for _, row := range before {
		shown[lockrow.TextOf(row["key"])] = shownBy(row)
	}
	for _, row := range b.db.Items(table) {
		require.Subset(b.t, shown[lockrow.TextOf(row["key"])], shownBy(row), "%v", row)
	}
}

// shownBy are the units that a row, understood or not, names as its holder, below it
// and in its queue.
func shownBy(row item) (units []string) {
	if unit := lockrow.TextOf(row["unit"]); unit != "" {
		units = append(units, "holds: "+unit)
	}
	if below, is := row["below"].(*types.AttributeValueMemberSS); is {
		for _, entry := range below.Value {
			units = append(units, "below: "+entry)
		}
	}
	if queue, is := row["queue"].(*types.AttributeValueMemberL); is {
		for _, place := range queue.Value {
			units = append(units, "waits: "+lockrow.TextOf(place))
		}
	}
	return units
}

// FuzzConfig: whatever a configuration says, it is refused with the name of a field,
// or what a client makes of it leaves room for what must be between two renewals.
func FuzzConfig(f *testing.F) {
	second := int64(time.Second)
	f.Add("key", 10*second, 6*second, second, 3*second, int64(0), int64(0), int64(0), int64(0), 1)
	for _, d := range []int64{0, 1, -1, int64(lease), int64(time.Hour), math.MaxInt64, math.MaxInt64 / 2, math.MaxInt64 / 5, math.MinInt64} {
		f.Add("key", int64(lease), int64(0), int64(0), int64(0), d, int64(0), int64(0), int64(0), 24)
		f.Add("key", d, int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), d, 0)
		f.Add("unit", int64(0), d, d, d, int64(0), d, d, int64(0), 99)
	}
	f.Fuzz(func(t *testing.T, hash string, lease, beat, margin, attempt, poll, grace, age, retention int64, chunk int) {
		given := lockset.Config{
			Table: "t", HashKey: hash, Lease: time.Duration(lease), Heartbeat: time.Duration(beat), Margin: time.Duration(margin),
			AttemptTimeout: time.Duration(attempt), Poll: time.Duration(poll), Grace: time.Duration(grace), MaxAge: time.Duration(age),
			Retention: time.Duration(retention), ChunkSize: chunk,
		}
		client, err := lockset.New(struct{ lockset.DynamoDB }{}, given)
		if err != nil {
			config := as[*locks.ConfigError](t, err)
			require.NotEmpty(t, config.Field)
			require.NotEmpty(t, config.Reason)
			return
		}
		c := client.Config()
		for _, d := range []time.Duration{c.Heartbeat, c.Margin, c.AttemptTimeout, c.Poll, c.Grace, c.MaxAge, c.Retention} {
			require.Positive(t, d)
		}
		whole := float64(c.Heartbeat) + 2*float64(c.AttemptTimeout) + float64(c.Margin) // floats do not overflow
		require.LessOrEqual(t, whole, 1.001*float64(c.Lease), "%+v", given)
		require.GreaterOrEqual(t, float64(c.Grace)*1.001, 5*float64(c.Poll))
		require.GreaterOrEqual(t, c.Lease, locks.MinLease)
		require.LessOrEqual(t, c.Lease, c.MaxAge)
		require.Less(t, c.MaxAge, c.Retention)
		require.True(t, c.ChunkSize >= 1 && c.ChunkSize <= locks.MaxChunkSize)
		require.NotContains(t, lockset.RowAttributes, c.HashKey)
		// What is computed of them later is not to wrap around.
		require.Positive(t, 10*c.Lease, "%v: how long a sighting is remembered", c.Lease)
		require.Positive(t, c.MaxAge+c.Retention, "when a row expires")
	})
}
