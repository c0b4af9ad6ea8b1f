package lockrow

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
)

type item = map[string]types.AttributeValue

func heldItem(change item) item {
	i := item{
		"key": Text("a"), "unit": Text(other), "ownerName": Text("host"), "leaseDuration": Text("10000"),
		"recordVersionNumber": Text("v1"), "fence": Number(50), "acquiredAt": Number(1), "expiresAt": Number(2),
	}
	for name, v := range change {
		if v == nil {
			delete(i, name)
		} else {
			i[name] = v
		}
	}
	return i
}

func TestParseRow(t *testing.T) {
	r, reason := Parse("a", nil)
	require.Empty(t, reason)
	require.True(t, r.Free())

	r, reason = Parse("a", heldItem(item{"pending": Text("units"), "committedBy": Text(me)}))
	require.Empty(t, reason)
	require.Equal(t, Row{
		Key: "a", Exists: true, Unit: other, Owner: "host", Lease: 10 * time.Second, RVN: "v1",
		Fence: 50, Prepared: "units", committedBy: me,
	}, r)

	r, reason = Parse("a", item{
		"key": Text("a"), "isReleased": Text("1"), "fence": Number(7), "ownerName": Text("who had it last"),
		"below": &types.AttributeValueMemberSS{Value: []string{other + " x/y", me + " b"}},
		"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{Text(me), Text(other)}},
	})
	require.Empty(t, reason)
	require.True(t, r.Free())
	require.Equal(t, []Entry{{me, "a/b"}, {other, "a/x/y"}}, r.Below)
	require.Equal(t, []Waiter{me, other}, r.Queue)
	require.Empty(t, r.Owner, "nobody has it")

	_, reason = Parse("a", item{"isReleased": Text("1"), "fence": Number(7), "leaseDuration": Text("0")})
	require.Empty(t, reason, "nobody has it, so it has no lease")

	r, reason = Parse("a", item{"isReleased": Text("1"), "fence": Number(7), "queue": &types.AttributeValueMemberL{}})
	require.Empty(t, reason, "a queue that has emptied")
	require.Empty(t, r.Queue)

	r, reason = Parse("a", heldItem(item{"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{Text(me)}}}))
	require.Empty(t, reason)
	require.Equal(t, []Waiter{me}, r.Queue)
}

func TestAPlaceIsWhereAUnitStandsOrWould(t *testing.T) {
	r := with(freeRow, func(r *Row) { r.Queue = []Waiter{other, me} })
	for _, c := range []struct {
		row    Row
		unit   string
		place  int
		queued bool
	}{
		{r, other, 0, true},
		{r, me, 1, true},
		{r, "third", 2, false},
		{freeRow, me, 0, false},
	} {
		place, queued := c.row.Place(c.unit)
		require.Equal(t, c.place, place)
		require.Equal(t, c.queued, queued)
	}
}

// Any item of DynamoDB may be in the table. What holdall did not write is named
// and left alone.
func TestForeignRowsAreNotUnderstood(t *testing.T) {
	for name, foreign := range map[string]item{
		"held by the Java client":     heldItem(item{"unit": nil, "fence": nil}),
		"no fence":                    heldItem(item{"fence": nil}),
		"fence beyond 2^53":           heldItem(item{"fence": Number(1 << 53)}),
		"negative fence":              heldItem(item{"fence": Number(-1)}),
		"fraction":                    heldItem(item{"fence": &types.AttributeValueMemberN{Value: "1.5"}}),
		"fence as text":               heldItem(item{"fence": Text("50")}),
		"released and held":           heldItem(item{"isReleased": Text("1")}),
		"neither":                     heldItem(item{"unit": nil}),
		"released otherwise":          heldItem(item{"isReleased": Text("true"), "unit": nil}),
		"released as a number":        heldItem(item{"isReleased": Number(1), "unit": nil}),
		"lease is not a number":       heldItem(item{"leaseDuration": Text("10s")}),
		"lease of zero":               heldItem(item{"leaseDuration": Text("0")}),
		"lease beyond all durations":  heldItem(item{"leaseDuration": Text("99999999999999")}),
		"no version":                  heldItem(item{"recordVersionNumber": nil}),
		"unit is a list":              heldItem(item{"unit": &types.AttributeValueMemberL{}}),
		"pending is a truth value":    heldItem(item{"pending": &types.AttributeValueMemberBOOL{Value: true}}),
		"pending for no unit":         heldItem(item{"pending": Text("units"), "unit": Text("id:payment-1")}),
		"pending for nothing":         heldItem(item{"pending": Text("")}),
		"held with intents":           heldItem(item{"below": &types.AttributeValueMemberSS{Value: []string{me + " b"}}}),
		"intents are a list":          {"isReleased": Text("1"), "fence": Number(1), "below": &types.AttributeValueMemberL{}},
		"an intent without a witness": {"isReleased": Text("1"), "fence": Number(1), "below": &types.AttributeValueMemberSS{Value: []string{me}}},
		"an intent with a bad key":    {"isReleased": Text("1"), "fence": Number(1), "below": &types.AttributeValueMemberSS{Value: []string{me + " b//c"}}},
		"an intent of nobody":         {"isReleased": Text("1"), "fence": Number(1), "below": &types.AttributeValueMemberSS{Value: []string{" b"}}},
		"queue of numbers":            {"isReleased": Text("1"), "fence": Number(1), "queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{Number(1)}}},
		"queue is a set":              {"isReleased": Text("1"), "fence": Number(1), "queue": &types.AttributeValueMemberSS{Value: []string{me}}},
		"something else altogether":   {"key": Text("a"), "colour": Text("red")},
	} {
		t.Run(name, func(t *testing.T) {
			_, reason := Parse("a", foreign)
			require.NotEmpty(t, reason)
		})
	}
}

func TestSightingsMeasureFromTheFirst(t *testing.T) {
	s := NewSightings(time.Minute)
	require.Equal(t, t0, s.See(heldRow, t0))
	require.Equal(t, t0, s.See(heldRow, t0.Add(time.Second)), "later waiters inherit it")
	renewed := with(heldRow, func(r *Row) { r.RVN = "v2" })
	require.Equal(t, t0.Add(2*time.Second), s.See(renewed, t0.Add(2*time.Second)), "a new RVN is a sign of life")
	s.See(freeRow, t0.Add(3*time.Second))
	require.Equal(t, t0.Add(4*time.Second), s.See(renewed, t0.Add(4*time.Second)), "what was free is new")
}

// Of a row that waits for the head of its queue, the head is watched, from when
// it could have taken the row.
func TestSightingsOfTheHeadOfAQueue(t *testing.T) {
	s := NewSightings(time.Minute)
	next := 0
	see := func(r Row) time.Duration { // returns how long the one who is watched has been
		now := t0.Add(time.Duration(next) * time.Second)
		next++
		return now.Sub(s.See(r, now))
	}
	waits := with(freeRow, func(r *Row) { r.Queue = []Waiter{other, me} })
	require.Zero(t, see(waits))
	require.Equal(t, time.Second, see(waits))
	require.Equal(t, 2*time.Second, see(with(waits, func(r *Row) { r.Fence++ })), "a burned token is no sign of life of the head")
	require.Equal(t, 3*time.Second, see(with(waits, func(r *Row) { r.Queue = r.Queue[:1] })), "nor is who gave up behind it")
	require.Zero(t, see(with(waits, func(r *Row) { r.Queue = []Waiter{me} })), "another head")
	require.Zero(t, see(waits), "and the first anew, since it was not the head meanwhile")

	require.Equal(t, time.Second, see(waits))
	next += 10
	require.Equal(t, 12*time.Second, see(with(waits, func(r *Row) { r.Fence += 5 })), "however long ago the last look was")
	require.Zero(t, see(with(waits, func(r *Row) { r.Fence, r.RVN = r.Fence+7, "other.a9" })), "somebody has held it")
	require.Zero(t, see(waits))

	below := with(waits, func(r *Row) { r.Below = []Entry{{Unit: me, Witness: "a/x"}} })
	require.Zero(t, see(below), "it could not have taken that")
	require.Zero(t, see(below), "and is not watched")
	require.Zero(t, see(waits))

	held := with(heldRow, func(r *Row) { r.Queue = waits.Queue })
	require.Zero(t, see(held))
	require.Equal(t, time.Second, see(with(held, func(r *Row) { r.Queue = nil })), "of a held row its holder is watched")
	require.Zero(t, see(waits))
	require.Equal(t, time.Second, see(waits))
	require.Zero(t, see(freeRow))
	require.Zero(t, see(waits), "there was nobody to wait for")
	require.Zero(t, see(Row{Key: "a"}), "deleted")
	require.Zero(t, see(waits))
}

func TestSightingsForgetWhatNobodyLooksAt(t *testing.T) {
	s := NewSightings(time.Minute)
	for i := range 10 * pruneFrom {
		r := with(heldRow, func(r *Row) { r.Key = ordering.Key(fmt.Sprintf("k%d", i)) })
		s.See(r, t0.Add(time.Duration(i)*time.Second))
	}
	require.LessOrEqual(t, len(s.known), 2*pruneFrom)
}

// What is looked at again and again is remembered, however many others are seen.
func TestSightingsKeepWhatIsLookedAt(t *testing.T) {
	s := NewSightings(time.Minute)
	require.Equal(t, t0, s.See(heldRow, t0))
	for i := range 10 * pruneFrom {
		now := t0.Add(time.Duration(i) * time.Second)
		s.See(with(heldRow, func(r *Row) { r.Key = ordering.Key(fmt.Sprintf("k%d", i)) }), now)
		if i%50 == 0 {
			require.Equal(t, t0, s.See(heldRow, now), "it has been silent for %v", now.Sub(t0))
		}
	}
}
