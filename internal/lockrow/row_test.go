package lockrow

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
	require.Equal(t, me, r.CommittedBy())

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
	r := with(freeRow, func(r *Row) { r.Queue = []Waiter{WaiterOf(other, "host", "p"), WaiterOf(me, "host", "q")} })
	require.True(t, r.Queues(other))
	require.False(t, r.Queues("me"))
	require.Equal(t, "queue "+other+" ", r.LastSign(), "the nonce alone")
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

// What is looked at again and again is remembered, however many others are seen, and these are forgotten.
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
	require.LessOrEqual(t, len(s.known), 2*pruneFrom)
}

func TestNotesAreForPeopleAndMakeNoRowAnother(t *testing.T) {
	held := heldItem(item{"acquiredAt": Number(1700000000123), "expiresAt": Number(1700000000)})
	require.Equal(t, Notes{Owner: "host", AcquiredAt: time.UnixMilli(1700000000123), ExpiresAt: time.Unix(1700000000, 0)}, NotesOf(held))

	free := item{"isReleased": Text("1"), "fence": Number(7), "ownerName": Text("who had it last")}
	require.Equal(t, Notes{Owner: "who had it last"}, NotesOf(free))
	require.Equal(t, Notes{}, NotesOf(nil))

	for _, wrong := range []item{
		{"acquiredAt": Text("yesterday"), "expiresAt": Text("never")},
		{"acquiredAt": Number(-1), "expiresAt": Number(-1)},
		{"acquiredAt": Number(latestNoted + 1), "expiresAt": Number(latestNoted/1000 + 1)},
		{"acquiredAt": nil, "expiresAt": nil},
	} {
		row := heldItem(wrong)
		require.Equal(t, Notes{Owner: "host"}, NotesOf(row))
		_, reason := Parse("a", row)
		require.Empty(t, reason)
	}
	_, err := NotesOf(heldItem(item{"acquiredAt": Number(latestNoted), "expiresAt": Number(latestNoted / 1000)})).ExpiresAt.UTC().MarshalText()
	require.NoError(t, err)
}

func TestAPlaceSaysWhoWaitsAndWhatFor(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct{ owner, purpose, hasOwner, hasPurpose string }{
		"both are short":              {"host 7", "payroll", "host 7", "payroll"},
		"there is no purpose":         {"host 7", "", "host 7", ""},
		"a long owner alone":          {"a-host-with-a-name 550e8400-e29b", "", "a-host-with-a-name 550", ""},
		"a long owner leaves room":    {long, "payroll", long[:14], "payroll"},
		"a long purpose leaves room":  {"host 7", long, "host 7", long[:15]},
		"both are long":               {long, long, long[:11], long[:10]},
		"no character is cut":         {strings.Repeat("ä", 20), strings.Repeat("€", 20), strings.Repeat("ä", 5), strings.Repeat("€", 3)},
		"lines are joined":            {"host\n7", "pay\nroll\x00", "host 7", "pay roll "},
		"what is not UTF-8 is marked": {"host\xff", "pay\xffroll", "host?", "pay?roll"},
	} {
		t.Run(name, func(t *testing.T) {
			w := WaiterOf(me, c.owner, c.purpose)
			require.Equal(t, me, w.Unit())
			owner, purpose := w.Who()
			require.Equal(t, c.hasOwner, owner)
			require.Equal(t, c.hasPurpose, purpose)
			require.LessOrEqual(t, len(w), len(me)+1+mostNoted)
			require.True(t, utf8.ValidString(string(w)))
		})
	}
	require.Equal(t, me, Waiter(me).Unit(), "one that says nothing of itself")
	owner, purpose := Waiter(me).Who()
	require.Empty(t, owner+purpose)
}

// What is recorded counts for the sign of life that it names, and for no longer than makes sense.
func TestWhatARowSaysOfASilence(t *testing.T) {
	held := map[string]types.AttributeValue{
		AttrFence: Number(1), AttrUnit: Text("u"), AttrOwner: Text("o"), AttrLease: Text("20000"), AttrRVN: Text("r"),
	}
	free := map[string]types.AttributeValue{AttrFence: Number(1), AttrReleased: Text("1"), AttrRVN: Text("r")}
	queue := &types.AttributeValueMemberL{Value: []types.AttributeValue{Text("q")}}
	for name, c := range map[string]struct {
		row     map[string]types.AttributeValue
		of, ms  types.AttributeValue
		silence time.Duration
	}{
		"of the holder":          {held, Text("r"), Number(1500), 1500 * time.Millisecond},
		"of an earlier RVN":      {held, Text("q"), Number(1500), 0},
		"longer than two leases": {held, Text("r"), Number(1_000_000), 40 * time.Second},
		"for ever":               {held, Text("r"), &types.AttributeValueMemberN{Value: "1e30"}, 0},
		"for less than nothing":  {held, Text("r"), &types.AttributeValueMemberN{Value: "-5"}, 0},
		"of another type":        {held, Number(1), Number(1500), 0},
		"a text":                 {held, Text("r"), Text("1500"), 0},
		"half of it":             {held, Text("r"), nil, 0},
		"the other half":         {held, nil, Number(1500), 0},
		"of a row that is free":  {free, Text("r"), Number(1500), 0},
		"of the head of a queue": {plus(free, AttrQueue, queue), Text("r"), Number(1500), 0},
	} {
		row := c.row
		if c.of != nil {
			row = plus(row, AttrSilentOf, c.of)
		}
		if c.ms != nil {
			row = plus(row, AttrSilentFor, c.ms)
		}
		r, reason := Parse("k", row)
		require.Empty(t, reason, name)
		require.Equal(t, c.silence, r.Silence(), name)
	}
}

func plus(row map[string]types.AttributeValue, name string, v types.AttributeValue) map[string]types.AttributeValue {
	more := map[string]types.AttributeValue{name: v}
	for k, v := range row {
		more[k] = v
	}
	return more
}

func TestWhichSilenceIsWorthNoting(t *testing.T) {
	const whole = 64 * time.Second
	for name, c := range map[string]struct {
		known, recorded int // seconds
		alive, ended    bool
		worth           bool
	}{
		"an eighth":                       {8, 0, false, false, true},
		"less":                            {7, 0, false, false, false},
		"an eighth more than is recorded": {16, 8, false, false, true},
		"less than that":                  {15, 8, false, false, false},
		"at the end an eighth of that":    {1, 0, false, true, true},
		"nothing more than is recorded":   {8, 8, false, true, false},
		"of one that lives":               {31, 0, true, true, false},
		"of one that lived":               {32, 0, true, false, true},
	} {
		require.Equal(t, c.worth, IsWorthNoting(time.Duration(c.known)*time.Second, time.Duration(c.recorded)*time.Second, whole, c.alive, c.ended), name)
	}
}

// A process knows of the longer silence, its own or what is recorded, and not of both together.
func TestSightingsGoOnFromWhatIsRecorded(t *testing.T) {
	s := NewSightings(time.Hour)
	now := time.Now()
	r := Row{Key: "k", Exists: true, Unit: "u", RVN: "1", Lease: 20 * time.Second}
	at := now.Add
	require.Equal(t, at(0), s.See(r, at(0)))
	r.silentOf, r.silentFor = "1", 5*time.Second
	require.Equal(t, at(-4*time.Second), s.See(r, at(time.Second)))
	require.Equal(t, at(-4*time.Second), s.See(r, at(3*time.Second)), "what is recorded is not added once more")
	r.silentFor = 6 * time.Second
	require.Equal(t, at(-4*time.Second), s.See(r, at(3*time.Second)), "a shorter one changes nothing")

	silent, worth := s.WorthNoting(r, at(8*time.Second), false)
	require.Equal(t, 12*time.Second, silent)
	require.True(t, worth)
	r.RVN = "2"
	_, worth = s.WorthNoting(r, at(8*time.Second), false)
	require.False(t, worth, "it has shown another sign of life than this process has seen")
	require.Equal(t, at(9*time.Second), s.See(r, at(9*time.Second)))
	_, worth = s.WorthNoting(r, at(18*time.Second), true)
	require.False(t, worth, "it was seen alive")
	silent, worth = s.WorthNoting(r, at(19*time.Second), true)
	require.Equal(t, 10*time.Second, silent)
	require.True(t, worth)
	r.Unit, r.RVN = "v", "3"
	s.See(r, at(20*time.Second))
	_, worth = s.WorthNoting(r, at(23*time.Second), false)
	require.True(t, worth, "another has it now, who was not seen alive")
}
