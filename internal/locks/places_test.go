package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// Only who is the head of an earlier row of its step may keep that place.
func TestWhichPlaceIsKept(t *testing.T) {
	plan, err := plans.New("a/1")
	require.NoError(t, err)
	queued := func(key ordering.Key, queue ...lockrow.Waiter) lockrow.Row {
		return lockrow.Row{Key: key, Exists: true, Released: true, Queue: queue}
	}
	turn, holder := lockrow.Judgement{Verdict: lockrow.Await, HeadOnly: true}, lockrow.Judgement{Verdict: lockrow.Await}
	for name, c := range map[string]struct {
		place lockrow.Row
		j     lockrow.Judgement
		moves int
		since time.Duration // it has kept its place for so long; not yet if negative
		kept  ordering.Key
	}{
		"the head, for a turn":                 {queued("a", me, other), turn, 0, -1, "a"},
		"the head, for a turn, for long":       {queued("a", me, other), turn, 0, grace / 2, "a/1"},
		"the head, for a turn, not so long":    {queued("a", me, other), turn, 0, grace/2 - 1, "a"},
		"the head, for a holder":               {queued("a", me, other), holder, 0, -1, "a/1"},
		"the head, for a holder, moved before": {queued("a", me, other), holder, 1, -1, "a"},
		"the second, for a turn":               {queued("a", other, me), turn, 0, -1, "a/1"},
		"the second, moved before":             {queued("a", other, me), holder, 1, -1, "a/1"},
		"the head of the row that blocks":      {queued("a/1", me), turn, 1, -1, "a/1"},
		"nowhere":                              {queued("z", me), turn, 1, -1, "a/1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlaces(me)
			p.saw(c.place)
			p.moves = c.moves
			if c.since >= 0 {
				p.stays = t0.Add(-c.since)
			}
			require.Equal(t, c.kept, p.keeps(lockrow.Wants(me, plan, 0), "a/1", c.j, t0, grace))
			require.Equal(t, c.kept == "a" && c.j.HeadOnly, !p.stays.IsZero(), "it counts from when it first stayed")
		})
	}
}

// A place is expected where the unit asked to join and was not seen since, unless that
// cannot land any more; once it was seen, it is where it was seen.
func TestWherePlacesAreExpected(t *testing.T) {
	plan, err := plans.New("d")
	require.NoError(t, err)
	seen := lockrow.Row{Key: "e", Exists: true, Queue: []lockrow.Waiter{other, me}}
	left := lockrow.Row{Key: "f", Exists: true, Queue: []lockrow.Waiter{other}}
	l := &ledger{attempts: []attempt{
		{at: "a"}, {at: "b", doubts: true}, {at: "c", dead: true, doubts: true}, {at: "d", steps: plan}, {at: "e"}, {at: "f"},
	}}
	p := newPlaces(me)
	p.saw(seen)
	p.saw(left)
	p.expect(l.joined())
	require.Equal(t, []lockrow.Row{
		{Key: "a", Queue: []lockrow.Waiter{me}}, {Key: "b", Queue: []lockrow.Waiter{me}}, seen, {Key: "f", Exists: true, Queue: []lockrow.Waiter{other, me}},
	}, p.all())
}
