package lockset

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
		"key": str("a"), "unit": str(other), "ownerName": str("host"), "leaseDuration": str("10000"),
		"recordVersionNumber": str("v1"), "fence": num(50), "acquiredAt": num(1), "expiresAt": num(2),
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
	r, reason := parseRow("a", nil)
	require.Empty(t, reason)
	require.True(t, r.free())

	r, reason = parseRow("a", heldItem(item{"pending": str("units"), "committedBy": str(me)}))
	require.Empty(t, reason)
	require.Equal(t, row{
		key: "a", exists: true, unit: other, owner: "host", lease: 10 * time.Second, rvn: "v1",
		fence: 50, pending: "units", committedBy: me,
	}, r)

	r, reason = parseRow("a", item{
		"key": str("a"), "isReleased": str("1"), "fence": num(7), "ownerName": str("who had it last"),
		"below": &types.AttributeValueMemberSS{Value: []string{other + " x/y", me + " b"}},
		"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{str(me), str(other)}},
	})
	require.Empty(t, reason)
	require.True(t, r.free())
	require.Equal(t, []entry{{me, "a/b"}, {other, "a/x/y"}}, r.below)
	require.Equal(t, []string{me, other}, r.queue)
	require.Empty(t, r.owner, "nobody has it")

	_, reason = parseRow("a", item{"isReleased": str("1"), "fence": num(7), "leaseDuration": str("0")})
	require.Empty(t, reason, "nobody has it, so it has no lease")

	r, reason = parseRow("a", item{"isReleased": str("1"), "fence": num(7), "queue": &types.AttributeValueMemberL{}})
	require.Empty(t, reason, "a queue that has emptied")
	require.Empty(t, r.queue)

	r, reason = parseRow("a", heldItem(item{"queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{str(me)}}}))
	require.Empty(t, reason)
	require.Equal(t, []string{me}, r.queue)
}

func TestAPlaceIsWhereAUnitStandsOrWould(t *testing.T) {
	r := with(freeRow, func(r *row) { r.queue = []string{other, me} })
	for _, c := range []struct {
		row    row
		unit   string
		place  int
		queued bool
	}{
		{r, other, 0, true},
		{r, me, 1, true},
		{r, "third", 2, false},
		{freeRow, me, 0, false},
	} {
		place, queued := c.row.place(c.unit)
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
		"fence beyond 2^53":           heldItem(item{"fence": num(1 << 53)}),
		"negative fence":              heldItem(item{"fence": num(-1)}),
		"fraction":                    heldItem(item{"fence": &types.AttributeValueMemberN{Value: "1.5"}}),
		"fence as text":               heldItem(item{"fence": str("50")}),
		"released and held":           heldItem(item{"isReleased": str("1")}),
		"neither":                     heldItem(item{"unit": nil}),
		"released otherwise":          heldItem(item{"isReleased": str("true"), "unit": nil}),
		"released as a number":        heldItem(item{"isReleased": num(1), "unit": nil}),
		"lease is not a number":       heldItem(item{"leaseDuration": str("10s")}),
		"lease of zero":               heldItem(item{"leaseDuration": str("0")}),
		"lease beyond all durations":  heldItem(item{"leaseDuration": str("99999999999999")}),
		"no version":                  heldItem(item{"recordVersionNumber": nil}),
		"unit is a list":              heldItem(item{"unit": &types.AttributeValueMemberL{}}),
		"pending is a truth value":    heldItem(item{"pending": &types.AttributeValueMemberBOOL{Value: true}}),
		"pending for no unit":         heldItem(item{"pending": str("units"), "unit": str("id:payment-1")}),
		"pending for nothing":         heldItem(item{"pending": str("")}),
		"held with intents":           heldItem(item{"below": &types.AttributeValueMemberSS{Value: []string{me + " b"}}}),
		"intents are a list":          {"isReleased": str("1"), "fence": num(1), "below": &types.AttributeValueMemberL{}},
		"an intent without a witness": {"isReleased": str("1"), "fence": num(1), "below": &types.AttributeValueMemberSS{Value: []string{me}}},
		"an intent with a bad key":    {"isReleased": str("1"), "fence": num(1), "below": &types.AttributeValueMemberSS{Value: []string{me + " b//c"}}},
		"an intent of nobody":         {"isReleased": str("1"), "fence": num(1), "below": &types.AttributeValueMemberSS{Value: []string{" b"}}},
		"queue of numbers":            {"isReleased": str("1"), "fence": num(1), "queue": &types.AttributeValueMemberL{Value: []types.AttributeValue{num(1)}}},
		"queue is a set":              {"isReleased": str("1"), "fence": num(1), "queue": &types.AttributeValueMemberSS{Value: []string{me}}},
		"something else altogether":   {"key": str("a"), "colour": str("red")},
	} {
		t.Run(name, func(t *testing.T) {
			_, reason := parseRow("a", foreign)
			require.NotEmpty(t, reason)
		})
	}
}

func TestSightingsMeasureFromTheFirst(t *testing.T) {
	s := newSightings(time.Minute)
	require.Equal(t, t0, s.see(heldRow, t0))
	require.Equal(t, t0, s.see(heldRow, t0.Add(time.Second)), "later waiters inherit it")
	renewed := with(heldRow, func(r *row) { r.rvn = "v2" })
	require.Equal(t, t0.Add(2*time.Second), s.see(renewed, t0.Add(2*time.Second)), "a new RVN is a sign of life")
	s.see(freeRow, t0.Add(3*time.Second))
	require.Equal(t, t0.Add(4*time.Second), s.see(renewed, t0.Add(4*time.Second)), "what was free is new")
}

// Of a row that waits for the head of its queue, the head is watched, from when
// it could have taken the row.
func TestSightingsOfTheHeadOfAQueue(t *testing.T) {
	s := newSightings(time.Minute)
	next := 0
	see := func(r row) time.Duration { // returns how long the one who is watched has been
		now := t0.Add(time.Duration(next) * time.Second)
		next++
		return now.Sub(s.see(r, now))
	}
	waits := with(freeRow, func(r *row) { r.queue = []string{other, me} })
	require.Zero(t, see(waits))
	require.Equal(t, time.Second, see(waits))
	require.Equal(t, 2*time.Second, see(with(waits, func(r *row) { r.fence++ })), "a burned token is no sign of life of the head")
	require.Equal(t, 3*time.Second, see(with(waits, func(r *row) { r.queue = r.queue[:1] })), "nor is who gave up behind it")
	require.Zero(t, see(with(waits, func(r *row) { r.queue = []string{me} })), "another head")
	require.Zero(t, see(waits), "and the first anew, since it was not the head meanwhile")

	require.Equal(t, time.Second, see(waits))
	next += 10
	require.Equal(t, 12*time.Second, see(with(waits, func(r *row) { r.fence += 5 })), "however long ago the last look was")
	require.Zero(t, see(with(waits, func(r *row) { r.fence, r.rvn = r.fence+7, "other.a9" })), "somebody has held it")
	require.Zero(t, see(waits))

	below := with(waits, func(r *row) { r.below = []entry{{unit: me, witness: "a/x"}} })
	require.Zero(t, see(below), "it could not have taken that")
	require.Zero(t, see(below), "and is not watched")
	require.Zero(t, see(waits))

	held := with(heldRow, func(r *row) { r.queue = waits.queue })
	require.Zero(t, see(held))
	require.Equal(t, time.Second, see(with(held, func(r *row) { r.queue = nil })), "of a held row its holder is watched")
	require.Zero(t, see(waits))
	require.Equal(t, time.Second, see(waits))
	require.Zero(t, see(freeRow))
	require.Zero(t, see(waits), "there was nobody to wait for")
	require.Zero(t, see(row{key: "a"}), "deleted")
	require.Zero(t, see(waits))
}

func TestSightingsForgetWhatNobodyLooksAt(t *testing.T) {
	s := newSightings(time.Minute)
	for i := range 10 * pruneFrom {
		r := with(heldRow, func(r *row) { r.key = ordering.Key(fmt.Sprintf("k%d", i)) })
		s.see(r, t0.Add(time.Duration(i)*time.Second))
	}
	require.LessOrEqual(t, len(s.known), 2*pruneFrom)
}

// What is looked at again and again is remembered, however many others are seen.
func TestSightingsKeepWhatIsLookedAt(t *testing.T) {
	s := newSightings(time.Minute)
	require.Equal(t, t0, s.see(heldRow, t0))
	for i := range 10 * pruneFrom {
		now := t0.Add(time.Duration(i) * time.Second)
		s.see(with(heldRow, func(r *row) { r.key = ordering.Key(fmt.Sprintf("k%d", i)) }), now)
		if i%50 == 0 {
			require.Equal(t, t0, s.see(heldRow, now), "it has been silent for %v", now.Sub(t0))
		}
	}
}
