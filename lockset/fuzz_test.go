package lockset_test

import (
	"errors"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	row := from.Change(arbitrary.Pick(from, rowsToChange()...), rowAttributes, words, "key")
	row["key"] = s(string(key))
	return row
}

// rowAttributes are the attributes of a row.
var rowAttributes = []string{
	lockrow.AttrOwner, lockrow.AttrLease, lockrow.AttrRVN, lockrow.AttrReleased, lockrow.AttrUnit, lockrow.AttrFence,
	lockrow.AttrPrepared, lockrow.AttrCommittedBy, lockrow.AttrBelow, lockrow.AttrQueue, lockrow.AttrExpires,
	"acquiredAt", "data",
}

// understood says whether holdall can have written an item of the lock table: by the
// table of attributes and the invariants in docs/protocol.md, and not as lockrow.Parse
// goes about it. It writes no empty text.
func understood(key ordering.Key, item map[string]types.AttributeValue) bool {
	texts := map[string]string{}
	for _, name := range []string{
		lockrow.AttrOwner, lockrow.AttrLease, lockrow.AttrRVN, lockrow.AttrReleased,
		lockrow.AttrUnit, lockrow.AttrPrepared, lockrow.AttrCommittedBy,
	} {
		if v, there := item[name]; there {
			s, is := v.(*types.AttributeValueMemberS)
			if !is || s.Value == "" {
				return false
			}
			texts[name] = s.Value
		}
	}
	fence, is := item[lockrow.AttrFence].(*types.AttributeValueMemberN)
	if !is || !isWhole(fence.Value, 1, int64(tokens.Max)) {
		return false
	}
	below, is := wellBelow(key, item[lockrow.AttrBelow])
	if !is || !wellQueued(item[lockrow.AttrQueue]) {
		return false
	}
	if lease := texts[lockrow.AttrLease]; lease != "" && !isWhole(lease, 0, math.MaxInt64/1_000_000) {
		return false
	}
	if texts[lockrow.AttrPrepared] != "" && !nonce.MatchString(texts[lockrow.AttrUnit]) {
		return false
	}
	switch texts[lockrow.AttrReleased] {
	case "1":
		return texts[lockrow.AttrUnit] == "" && texts[lockrow.AttrPrepared] == ""
	case "":
		return texts[lockrow.AttrUnit] != "" && texts[lockrow.AttrOwner] != "" && texts[lockrow.AttrRVN] != "" &&
			isWhole(texts[lockrow.AttrLease], 1, math.MaxInt64) && below == 0
	}
	return false
}

var nonce = regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`)

func isWhole(digits string, least, most int64) bool {
	n, ok := new(big.Int).SetString(digits, 10)
	return ok && n.Cmp(big.NewInt(least)) >= 0 && n.Cmp(big.NewInt(most)) <= 0
}

func wellBelow(key ordering.Key, v types.AttributeValue) (entries int, understood bool) {
	if v == nil {
		return 0, true
	}
	set, is := v.(*types.AttributeValueMemberSS)
	if !is {
		return 0, false
	}
	for _, text := range set.Value {
		at := strings.IndexByte(text, ' ')
		if at < 1 || (key+"/"+ordering.Key(text[at+1:])).Validate() != nil {
			return 0, false
		}
	}
	return len(set.Value), true
}

func wellQueued(v types.AttributeValue) bool {
	if v == nil {
		return true
	}
	list, is := v.(*types.AttributeValueMemberL)
	if !is {
		return false
	}
	for _, place := range list.Value {
		if _, is := place.(*types.AttributeValueMemberS); !is {
			return false
		}
	}
	return true
}

// takenUnread tells rows that holdall did not write and takes all the same: they say
// that they are free, in its words, and no more is asked of them.
func takenUnread(key ordering.Key, row item) bool {
	_, fenced := row["fence"].(*types.AttributeValueMemberN)
	return fenced && lockrow.TextOf(row["isReleased"]) == "1" && !understood(key, row)
}

// FuzzRow: of any item, what a unit makes of it and what the table does with the
// unit's write agree, and what is no row is not touched.
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
		look := lookAt(key, row, unit, witness, fencing.Token(token), time.Duration(since))
		require.Equal(t, understood(key, row), look.reason == "", "%v: %s", row, look.reason)
		took := b.applies(look.take(fencing.Token(token)))
		after := b.row(key)
		if look.reason != "" {
			require.False(t, took, "%v: it was taken: %v", look.reason, row)
			require.Equal(t, row, after)
			return
		}
		b.checkLook(look, row, after, took, fencing.Token(token), unit)
	})
}

// look is what a unit that wants a row makes of an item of the lock table.
type look struct {
	row     lockrow.Row
	reason  string // why it is no row
	want    lockrow.Want
	verdict lockrow.Verdict
	since   time.Duration // the row has been as it is for so long
	behind  bool          // others are before the unit in the queue
}

// lookAt looks at the row of key, for a unit that wants to lock it, or witness below it.
func lookAt(key ordering.Key, item item, unit string, witness ordering.Key, token fencing.Token, since time.Duration) look {
	r, reason := lockrow.Parse(key, item)
	place, queued := r.Place(unit)
	w := lockrow.Want{Key: key, Entry: lockrow.Entry{Unit: unit, Witness: witness}, Turn: lockrow.Turn{Queued: queued && place == 0}}
	if witness != key {
		w.Mode = lockrow.Intent
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	patience := lockrow.Patience{Turn: time.Second, Grace: time.Second}
	j := lockrow.Judge(r, w, token, lockrow.Watch{Since: now.Add(-since), Now: now, Patience: patience})
	if j.Verdict == lockrow.Admits || j.Verdict == lockrow.Raise {
		w.Turn = j.Turn
	}
	return look{r, reason, w, j.Verdict, since, place > 0}
}

// values are those of a unit's writes.
func (l look) values(token fencing.Token) lockrow.Values {
	now, unit := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), l.want.Entry.Unit
	return lockrow.UnitValues(unit, lockrow.Waiter(unit), token, now, now, now, lockrow.Now{})
}

// take takes the row.
func (l look) take(token fencing.Token) *types.Update {
	vs := l.values(token).With(lockrow.Values{":owner": lockrow.Text("me"), ":lease": lockrow.Text("1000"), ":rvn": lockrow.Text("first")})
	return lockrow.Table{Name: table, HashKey: "key"}.Acquire(l.want, vs)
}

// bury frees it.
func (l look) bury() *types.Update {
	vs := l.values(1).With(lockrow.Values{":rvn": lockrow.Text(l.row.RVN)})
	return lockrow.Table{Name: table, HashKey: "key"}.Update(l.want.Key, lockrow.BuryIf, lockrow.Free, vs)
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
func (b *bed) checkLook(l look, row, after item, took bool, token fencing.Token, unit string) {
	t := b.t
	again := l.verdict == lockrow.Mine && row["below"] != nil // an intent may be left twice
	require.True(t, took == (l.verdict == lockrow.Admits) || again, "%v: %v", l.verdict, row)
	if took {
		require.True(t, understood("a", after), "%v became %v", row, after)
		require.Greater(t, token, l.row.Fence)
		require.Equal(t, n(int64(token)), after["fence"])
		require.Equal(t, lockrow.Mine, lookAt("a", after, unit, witnessOf(after), token, 0).verdict, "%v became %v", row, after)
		return
	}
	require.Equal(t, row, after, "what is refused changes nothing")
	silent, held, marked := l.since >= l.row.Lease, !l.row.Free(), l.row.Prepared != ""
	switch l.verdict {
	case lockrow.Raise:
		require.GreaterOrEqual(t, l.row.Fence, token)
		if l.row.Fence < tokens.Max {
			require.True(t, b.applies(l.take(l.row.Fence+1)), "%v", row)
		}
	case lockrow.Bury:
		require.True(t, held && silent && !marked, "%v", row)
		require.True(t, b.applies(l.bury()), "%v", row)
		buried := b.row("a")
		require.True(t, understood("a", buried), "%v became %v", row, buried)
		require.Equal(t, row["fence"], buried["fence"])
		require.NotContains(t, buried, "unit")
	case lockrow.Recover:
		require.True(t, held && silent && marked, "%v", row)
		require.False(t, b.applies(l.bury()), "%v", row)
	case lockrow.Await:
		require.True(t, held && !silent || !held && l.behind && l.since < time.Second, "%v", row)
	case lockrow.Pass:
		require.True(t, !held && l.behind && l.since >= time.Second, "%v", row)
	case lockrow.Witnesses:
		require.True(t, !held && len(l.row.Below) > 0, "%v", row)
	case lockrow.Mine:
		below, _ := row["below"].(*types.AttributeValueMemberSS)
		require.True(t, lockrow.TextOf(row["unit"]) == unit || below != nil && slices.Contains(below.Value, unit+" x"), "%v", row)
	default:
		t.Fatalf("%v of %v", l.verdict, row)
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
				if !understood(key, was) {
					require.Equal(t, was, is, "it was touched")
					require.False(t, err == nil && needs(keys, key), "it was in the way: %v", was)
					continue
				}
				require.True(t, understood(key, is), "%v became %v", was, is)
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
		require.False(t, understood(row.Key, planted[row.Key]), "%v: %v", err, planted[row.Key])
	case errors.As(err, &config): // a token beyond the last: a fence there is as high as fences are
		atTheEnd := false
		for key, row := range planted {
			atTheEnd = atTheEnd || understood(key, row) && fenceOf(t, row) > int64(tokens.Max)-10
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
		if !understood(key, row) {
			continue
		}
		if r, _ := lockrow.Parse(key, row); !r.Free() && (r.Lease > lease || r.Prepared != "" || len(planted) > 1) {
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
		require.NotContains(t, rowAttributes, c.HashKey)
		// What is computed of them later is not to wrap around.
		require.Positive(t, 10*c.Lease, "%v: how long a sighting is remembered", c.Lease)
		require.Positive(t, c.MaxAge+c.Retention, "when a row expires")
	})
}
