package locks

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
)

const ms = time.Millisecond

// looking is at a row that shows was, since a while ago, with what is known of its turns.
func looking(was lockrow.Row, known ...turn) (*looks, *turns, time.Time) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ts := &turns{}
	for _, t := range known {
		ts.rows.Set("a", learned{t, time.Now()})
	}
	l := &looks{unit: me, key: "a", turns: ts, n: 1, last: now, took: usualLook, changed: now, turn: now, shows: shownBy(was, me, false)}
	return l, ts, now
}

var queued = with(heldRow, func(r *lockrow.Row) {
	r.Queue, r.Below = []lockrow.Waiter{"first", "second", me, "behind"}, []lockrow.Entry{{Unit: "one", Witness: "a/1"}}
})

// What is expected counts from the last change of the row that is one for the unit.
func TestAChangeOfTheRowForAUnit(t *testing.T) {
	one, two := queued.Below[0], lockrow.Entry{Unit: "two", Witness: "a/2"}
	for name, c := range map[string]struct {
		change func(*lockrow.Row)
		is     bool
	}{
		"nothing":               {func(*lockrow.Row) {}, false},
		"its RVN":               {func(r *lockrow.Row) { r.RVN = "other.h1" }, false},
		"its fence":             {func(r *lockrow.Row) { r.Fence++ }, false},
		"who is behind":         {func(r *lockrow.Row) { r.Queue = r.Queue[:3] }, false},
		"the holder":            {func(r *lockrow.Row) { r.Unit = "another" }, true},
		"no holder":             {func(r *lockrow.Row) { r.Unit = "" }, true},
		"the head":              {func(r *lockrow.Row) { r.Queue = []lockrow.Waiter{"another", "second", me, "behind"} }, true},
		"the place":             {func(r *lockrow.Row) { r.Queue = []lockrow.Waiter{"first", me, "behind"} }, true},
		"one intent more":       {func(r *lockrow.Row) { r.Below = []lockrow.Entry{one, two} }, true},
		"one intent less":       {func(r *lockrow.Row) { r.Below = nil }, true},
		"another, not how many": {func(r *lockrow.Row) { r.Below = []lockrow.Entry{two} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, began := looking(queued)
			now := began.Add(100 * ms)
			l.next(with(queued, c.change), false, now.Add(-3*ms), now)
			require.Equal(t, 2, l.n)
			require.Equal(t, 3*ms, l.took)
			changed := began
			if c.is {
				changed = now.Add(-usualTurn / 2) // some time since the look before, but no longer ago than a turn
			}
			require.Equal(t, changed, l.changed)
			later := now.Add(20 * ms)
			l.next(with(queued, c.change), false, now, later)
			require.Equal(t, changed, l.changed, "that is how it is now")
		})
	}
}

// at are the row's states when the unit has such a place, -1 when it is its turn.
func at(place int) (r lockrow.Row, itsTurn bool) {
	r = heldRow
	for i := range place {
		r.Queue = append(r.Queue, lockrow.Waiter(fmt.Sprint("before", i)))
	}
	r.Queue = append(r.Queue, me)
	return r, place < 0
}

// seeing tells what looks after so much time each showed.
func seeing(t *testing.T, l *looks, began time.Time, looks ...[2]int) {
	t.Helper()
	for _, look := range looks {
		began = began.Add(time.Duration(look[0]) * ms)
		r, itsTurn := at(look[1])
		l.next(r, itsTurn, began, began)
	}
}

func TestTurnsAreLearnedFromPlaces(t *testing.T) {
	row, _ := at(4)
	for name, c := range map[string]struct {
		known []turn
		looks [][2]int // milliseconds since the one before, and the place
		want  turn
	}{
		"nothing has passed":           {[]turn{{mean: 50 * ms}}, [][2]int{{500, 4}}, turn{mean: 50 * ms}},
		"the end of a turn":            {[]turn{{mean: 100 * ms, deviation: 8 * ms}}, [][2]int{{100, 3}}, turn{100 * ms, 8 * ms}},
		"the end of one that is long":  {nil, [][2]int{{30, 4}, {20, 3}}, turn{21875 * time.Microsecond, 12500 * time.Microsecond}},
		"of one that is much longer":   {nil, [][2]int{{9000, 4}, {20, 3}}, turn{26250 * time.Microsecond, 16875 * time.Microsecond}},
		"a whole turn":                 {[]turn{{mean: 100 * ms, deviation: 8 * ms}}, [][2]int{{100, 3}, {60, 2}}, turn{95 * ms, 11 * ms}},
		"several between two looks":    {[]turn{{mean: 20 * ms, deviation: 4 * ms}}, [][2]int{{90, 0}}, turn{20 * ms, 3 * ms}},
		"several after the end of one": {[]turn{{mean: 20 * ms, deviation: 4 * ms}}, [][2]int{{500, 4}, {60, 0}}, turn{20 * ms, 3 * ms}},
		"the last one":                 {[]turn{{mean: 50 * ms}}, [][2]int{{190, 0}, {20, 0}, {10, -1}}, turn{48360 * time.Microsecond, 2190 * time.Microsecond}},
	} {
		t.Run(name, func(t *testing.T) {
			l, ts, began := looking(row, c.known...)
			seeing(t, l, began, c.looks...)
			got := ts.of("a")
			require.InDelta(t, c.want.mean, got.mean, float64(ms)/10, "%v", got.mean)
			require.InDelta(t, c.want.deviation, got.deviation, float64(ms)/10, "%v", got.deviation)
		})
	}
}

// Who finds that its turn had begun, nobody knows when, expects shorter turns: those that
// last because everybody sleeps become short again.
func TestWhoSleptExpectsShorterTurns(t *testing.T) {
	for known, want := range map[time.Duration]time.Duration{
		100 * ms:  87500 * time.Microsecond,
		time.Hour: 175 * ms, // two of them took no longer than that
	} {
		row, _ := at(2)
		l, ts, began := looking(row, turn{mean: known})
		seeing(t, l, began, [2]int{400, -1})
		require.Equal(t, want, ts.of("a").mean)
	}
}

// However fast they go, longer ones are noticed.
func TestTurnsThatTakeNoTime(t *testing.T) {
	ts := &turns{}
	for range 100 {
		ts.slept("a", 0)
	}
	for range 20 {
		ts.passed("a", 100*ms)
	}
	require.InDelta(t, 100*ms, ts.of("a").mean, float64(5*ms))
}

// A row at which one waits at a time, and sees the end of turns only: what is expected follows
// them up and down.
func TestTurnsOfWhichOnlyTheEndIsSeen(t *testing.T) {
	row, _ := at(0)
	ts := &turns{}
	for range 20 {
		l, _, began := looking(row)
		l.turns = ts
		seeing(t, l, began, [2]int{1000, 0}, [2]int{100, -1})
	}
	long := ts.of("a").mean
	require.Greater(t, long, 500*ms)
	for range 40 {
		l, _, began := looking(row)
		l.turns = ts
		seeing(t, l, began, [2]int{5, 0}, [2]int{5, -1})
	}
	require.Less(t, ts.of("a").mean, 25*ms)
}

// What a process has learned at one row says nothing of another.
func TestTurnsAreThoseOfARow(t *testing.T) {
	ts := &turns{}
	usual := ts.of("b")
	ts.passed("a", 60*ms)
	ts.slept("a", 20*ms)
	require.NotEqual(t, usual, ts.of("a"))
	require.Equal(t, usual, ts.of("b"))
}

func TestThePausesBetweenLooks(t *testing.T) {
	const poll = 200 * ms
	regular := turn{mean: 60 * ms, deviation: 2 * ms}
	for name, c := range map[string]struct {
		known       []turn
		place       int
		after       time.Duration // since the row has changed
		least, most time.Duration // with jitter
	}{
		"nothing is known, soon":               {nil, 0, 0, 2500 * time.Microsecond, 5 * ms},
		"nothing is known, later":              {nil, 0, 55 * ms, 17500 * time.Microsecond, 20 * ms},
		"nothing is known, at most":            {nil, 0, time.Minute, 197500 * time.Microsecond, poll},
		"nothing is known, further back":       {nil, 3, 0, 35 * ms, 37500 * time.Microsecond},
		"nothing is known, far back":           {nil, 31, time.Minute, 997500 * time.Microsecond, 5 * poll},
		"shortly before the turn is over":      {[]turn{regular}, 0, 0, 47500 * time.Microsecond, 55 * ms},
		"about when it is over":                {[]turn{regular}, 0, 58 * ms, 7500 * time.Microsecond, 15 * ms},
		"it takes longer":                      {[]turn{regular}, 0, 160 * ms, 42500 * time.Microsecond, 50 * ms},
		"it takes much longer":                 {[]turn{regular}, 0, time.Minute, 192500 * time.Microsecond, poll},
		"several turns before":                 {[]turn{regular}, 3, 0, 217500 * time.Microsecond, 225 * ms},
		"many turns before":                    {[]turn{regular}, 59, 0, 992500 * time.Microsecond, 5 * poll},
		"turns of any length, so it asks":      {[]turn{{mean: 60 * ms, deviation: 45 * ms}}, 0, 0, 7500 * time.Microsecond, 15 * ms},
		"turns of any length, several before":  {[]turn{{mean: 60 * ms, deviation: 20 * ms}}, 3, 0, 172500 * time.Microsecond, 180 * ms},
		"turns are short":                      {[]turn{{mean: ms, deviation: ms}}, 0, 0, 2500 * time.Microsecond, 5 * ms},
		"all turns are as long, so it is late": {[]turn{{mean: 60 * ms}}, 0, 0, 47500 * time.Microsecond, 55 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, began := looking(queued, c.known...)
			least, most := time.Hour, time.Duration(0)
			for n := range 1000 {
				l.n = n
				pause := l.pause(poll, c.place, began.Add(c.after))
				least, most = min(least, pause), max(most, pause)
			}
			require.InDelta(t, c.least, least, float64(ms), "%v", least)
			require.InDelta(t, c.most, most, float64(ms), "%v", most)
			require.LessOrEqual(t, most, c.most)
		})
	}
}

// A look takes as long as the engine needs, and about so long is it to the next at least.
func TestTheShortestPauseFollowsHowLongALookTakes(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: ms, 300 * time.Microsecond: ms, 7 * ms: 7 * ms, time.Second: 10 * ms} {
		l, _, began := looking(heldRow, turn{mean: ms})
		l.next(heldRow, false, began, began.Add(took))
		least, most := time.Second, time.Duration(0)
		for n := range 1000 {
			l.n = n
			pause := l.pause(time.Second, 0, began)
			least, most = min(least, pause), max(most, pause)
		}
		require.InDelta(t, want, most, float64(ms)/20, "%v", took)
		require.InDelta(t, want/2, least, float64(ms)/20, "%v", took)
	}
}

// A token is raised so often; what blocks the unit otherwise does not count.
func TestOnlyRaisesAreCounted(t *testing.T) {
	a := &acquisition{}
	other := lockrow.Observed{Want: lockrow.Want{Key: "b"}}
	for name, d := range map[string]lockrow.Decision{
		"another is waited for": {Verdict: lockrow.Await, Raise: true, At: lockrow.Observed{Want: lockrow.Want{Key: "a"}}, Low: other},
		"it landed":             {Verdict: lockrow.Mine, Raise: true, At: lockrow.Observed{Want: lockrow.Want{Key: "a"}}, Low: other},
		"it is free":            {Verdict: lockrow.Admits},
	} {
		for range 2 * mostRaises {
			require.Equal(t, d, a.weighRaise(d), name)
		}
	}
	d := lockrow.Decision{Verdict: lockrow.Admits, Raise: true, Low: other}
	for range mostRaises {
		require.Equal(t, d, a.weighRaise(d))
	}
	now := a.weighRaise(d)
	require.Equal(t, lockrow.Await, now.Verdict)
	require.Equal(t, other, now.At)
}
