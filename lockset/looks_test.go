package lockset

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
)

// Looks at a row come soon after it has changed for the unit, and more and more seldom
// while it stays as it is.
func TestAChangeOfTheRowIsFollowedByQuickLooks(t *testing.T) {
	one, two := lockrow.Entry{Unit: "one", Witness: "a/1"}, lockrow.Entry{Unit: "two", Witness: "a/2"}
	was := with(heldRow, func(r *lockrow.Row) {
		r.Queue, r.Below = []string{"first", "second", me, "behind"}, []lockrow.Entry{one}
	})
	for name, c := range map[string]struct {
		change func(*lockrow.Row)
		quiet  int
	}{
		"nothing":               {func(*lockrow.Row) {}, 5},
		"its RVN":               {func(r *lockrow.Row) { r.RVN = "other.h1" }, 5},
		"its fence":             {func(r *lockrow.Row) { r.Fence++ }, 5},
		"who is behind":         {func(r *lockrow.Row) { r.Queue = r.Queue[:3] }, 5},
		"the holder":            {func(r *lockrow.Row) { r.Unit = "another" }, 1},
		"no holder":             {func(r *lockrow.Row) { r.Unit = "" }, 1},
		"the head":              {func(r *lockrow.Row) { r.Queue = []string{"another", "second", me, "behind"} }, 1},
		"the place":             {func(r *lockrow.Row) { r.Queue = []string{"first", me, "behind"} }, 1},
		"one intent more":       {func(r *lockrow.Row) { r.Below = []lockrow.Entry{one, two} }, 1},
		"one intent less":       {func(r *lockrow.Row) { r.Below = nil }, 1},
		"another, not how many": {func(r *lockrow.Row) { r.Below = []lockrow.Entry{two} }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			l := &looks{unit: me}
			for n := range 4 {
				l.next(was)
				require.Equal(t, n+1, l.quiet)
				require.Equal(t, n+1, l.n)
			}
			l.next(with(was, c.change))
			require.Equal(t, c.quiet, l.quiet)
			require.Equal(t, 5, l.n)
			l.next(with(was, c.change))
			require.Equal(t, c.quiet+1, l.quiet, "that is how it is now")
		})
	}
}

// The pause of one who is so far back, after so many looks without a change.
func TestThePausesBetweenLooks(t *testing.T) {
	const poll = 200 * time.Millisecond
	for _, c := range []struct {
		place, quiet int
		most         time.Duration
	}{
		{0, 1, 10 * time.Millisecond}, {0, 2, 20 * time.Millisecond}, {0, 5, 160 * time.Millisecond}, {0, 6, poll}, {0, 1000, poll},
		{1, 1, 20 * time.Millisecond}, {1, 3, 80 * time.Millisecond}, {1, 100, 2 * poll},
		{3, 1, 40 * time.Millisecond}, {3, 100, 4 * poll},
		{4, 100, 5 * poll}, {5, 100, 5 * poll}, {31, 100, 5 * poll},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			least, most := c.most, time.Duration(0)
			for n := range 1000 {
				pause := (&looks{unit: me, quiet: c.quiet, n: n}).pause(poll, c.place)
				least, most = min(least, pause), max(most, pause)
			}
			require.InDelta(t, c.most/2, least, float64(c.most)/50)
			require.InDelta(t, c.most, most, float64(c.most)/50)
			require.LessOrEqual(t, most, c.most)
		})
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
