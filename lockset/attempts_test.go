package lockset

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// Which attempts are burned when a unit gives up: each write costs a request, and each
// that is left out may land.
func TestWhatIsBurned(t *testing.T) {
	at := func(rvn string, key ordering.Key, token int64) attempt {
		return attempt{rvn: rvn, at: key, token: fencing.Token(token)}
	}
	doubted := func(a attempt) attempt { a.doubts = true; return a }
	dead := func(a attempt) attempt { a.dead = true; return a }
	for name, c := range map[string]struct {
		tried  []attempt
		burned []string
	}{
		"nothing":                          {nil, nil},
		"one that was refused":             {[]attempt{at("1", "a", 5)}, []string{"1"}},
		"a higher token later":             {[]attempt{at("1", "a", 5), at("2", "a", 6)}, []string{"2"}},
		"the same token later":             {[]attempt{at("1", "a", 5), at("2", "a", 5)}, []string{"2"}},
		"a lower token later":              {[]attempt{at("1", "a", 6), at("2", "a", 5)}, []string{"1", "2"}},
		"a higher token at another row":    {[]attempt{at("1", "a", 5), at("2", "b", 6)}, []string{"1", "2"}},
		"one of many later ones":           {[]attempt{at("1", "a", 5), at("2", "b", 6), at("3", "a", 7)}, []string{"2", "3"}},
		"without an answer, and covered":   {[]attempt{doubted(at("1", "a", 5)), at("2", "a", 6)}, []string{"1", "2"}},
		"dead":                             {[]attempt{dead(at("1", "a", 5))}, nil},
		"dead, and without an answer":      {[]attempt{dead(doubted(at("1", "a", 5)))}, nil},
		"dead, and others after it":        {[]attempt{dead(at("1", "a", 5)), at("2", "b", 5)}, []string{"2"}},
		"without an answer, the last also": {[]attempt{at("1", "a", 5), doubted(at("2", "a", 6))}, []string{"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var burned []string
			for _, b := range (&acquisition{attempts: c.tried}).toBurn() {
				burned = append(burned, b.rvn)
			}
			require.Equal(t, c.burned, burned)
		})
	}
}

func TestTheAttemptThatWroteAnRVN(t *testing.T) {
	a := &acquisition{attempts: []attempt{{rvn: "1", first: 1}, {rvn: "2", first: 2}, {rvn: "3", first: 3}}}
	for i, rvn := range []string{"1", "2", "3"} {
		won, ok := a.attempted(rvn)
		require.True(t, ok)
		require.Equal(t, i+1, won.first)
	}
	_, ok := a.attempted("4")
	require.False(t, ok)
}

// Looks at a row come soon after it has changed for the unit, and more and more seldom
// while it stays as it is.
func TestAChangeOfTheRowIsFollowedByQuickLooks(t *testing.T) {
	one, two := entry{"one", "a/1"}, entry{"two", "a/2"}
	was := with(heldRow, func(r *row) { r.queue, r.below = []string{"first", "second", me, "behind"}, []entry{one} })
	for name, c := range map[string]struct {
		change func(*row)
		quiet  int
	}{
		"nothing":               {func(*row) {}, 5},
		"its RVN":               {func(r *row) { r.rvn = "other.h1" }, 5},
		"its fence":             {func(r *row) { r.fence++ }, 5},
		"who is behind":         {func(r *row) { r.queue = r.queue[:3] }, 5},
		"the holder":            {func(r *row) { r.unit = "another" }, 1},
		"no holder":             {func(r *row) { r.unit = "" }, 1},
		"the head":              {func(r *row) { r.queue = []string{"another", "second", me, "behind"} }, 1},
		"the place":             {func(r *row) { r.queue = []string{"first", me, "behind"} }, 1},
		"one intent more":       {func(r *row) { r.below = []entry{one, two} }, 1},
		"one intent less":       {func(r *row) { r.below = nil }, 1},
		"another, not how many": {func(r *row) { r.below = []entry{two} }, 5},
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
	other := observed{want: want{key: "b"}}
	for name, d := range map[string]decision{
		"another is waited for": {verdict: await, raise: true, at: observed{want: want{key: "a"}}, low: other},
		"it landed":             {verdict: mine, raise: true, at: observed{want: want{key: "a"}}, low: other},
		"it is free":            {verdict: admits},
	} {
		for range 2 * mostRaises {
			require.Equal(t, d, a.weighRaise(d), name)
		}
	}
	d := decision{verdict: admits, raise: true, low: other}
	for range mostRaises {
		require.Equal(t, d, a.weighRaise(d))
	}
	now := a.weighRaise(d)
	require.Equal(t, await, now.verdict)
	require.Equal(t, other, now.at)
}

// Only who is the head of an earlier row of its step may keep that place.
func TestWhichPlaceIsKept(t *testing.T) {
	plan, err := ordering.NewPlan("a/1")
	require.NoError(t, err)
	blocked := observed{want: wants(me, plan, 0)[1], row: with(heldRow, func(r *row) { r.key = "a/1" })}
	queued := func(key ordering.Key, queue ...string) row {
		return row{key: key, exists: true, released: true, queue: queue}
	}
	turn, holder := judgement{verdict: await, turn: true}, judgement{verdict: await}
	for name, c := range map[string]struct {
		place row
		j     judgement
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
			synctest.Test(t, func(t *testing.T) {
				a := &acquisition{
					c: &Client{cfg: Config{Grace: grace}}, unit: &unit{nonce: me}, plan: plan,
					places: map[ordering.Key]row{c.place.key: c.place}, moves: c.moves,
				}
				if c.since >= 0 {
					a.stays = time.Now().Add(-c.since)
				}
				require.Equal(t, c.kept, a.keepsPlace(blocked, c.j))
				require.Equal(t, c.kept == "a" && c.j.turn, !a.stays.IsZero(), "it counts from when it first stayed")
			})
		})
	}
}

// The dead that are buried together: those that follow the first that blocks, and have no
// journal.
func TestDecideBuriesNobodyWhoHasAJournal(t *testing.T) {
	at := func(key ordering.Key, pending string) observed {
		r := with(heldRow, func(r *row) { r.key, r.pending = key, pending })
		return observed{want: want{key: key, entry: entry{unit: me, witness: key}}, row: r, since: t0}
	}
	now := t0.Add(heldRow.lease)
	dead := func(d decision) (keys []ordering.Key) {
		for _, r := range d.dead {
			keys = append(keys, r.key)
		}
		return keys
	}
	d := decide([]observed{at("a", "units"), at("b", ""), at("c", "units"), at("d", "")}, 51, now, grace)
	require.Equal(t, settle, d.judgment.verdict)
	require.Equal(t, ordering.Key("a"), d.at.key)
	require.Equal(t, []ordering.Key{"b", "d"}, dead(d))
	d = decide([]observed{at("a", ""), at("b", "units"), at("c", "")}, 51, now, grace)
	require.Equal(t, bury, d.judgment.verdict)
	require.Equal(t, []ordering.Key{"c"}, dead(d))
}

// A place is expected where the unit asked to join and was not seen since, unless that
// cannot land any more; once it was seen, it is where it was seen.
func TestWherePlacesAreExpected(t *testing.T) {
	plan, err := ordering.NewPlan("d")
	require.NoError(t, err)
	seen := row{key: "e", exists: true, queue: []string{other, me}}
	a := &acquisition{
		unit: &unit{nonce: me}, places: map[ordering.Key]row{"e": seen},
		attempts: []attempt{{at: "a"}, {at: "b", doubts: true}, {at: "c", dead: true, doubts: true}, {at: "d", steps: plan}, {at: "e"}},
	}
	a.expectPlaces()
	require.Equal(t, map[ordering.Key]row{
		"a": {key: "a", queue: []string{me}}, "b": {key: "b", queue: []string{me}}, "e": seen,
	}, a.places)
}

// What a secured attempt says of those before it: with its fence on the rows none of
// them can land that has one of these and a token no higher. What had an answer is
// forgotten then; what had none may have landed before, and is remembered.
func TestWhatASecuredAttemptSaysOfOthers(t *testing.T) {
	plan, err := ordering.NewPlan("a", "b", "c", "d")
	require.NoError(t, err)
	c, err := New(struct{ DynamoDB }{}, Config{Table: "locks"})
	require.NoError(t, err)
	a := c.newAcquisition(t.Context(), plan, Options{})
	defer func() { _, _ = a.group.Stop() }()
	a.secured = 1 // a
	a.stamps = append(a.stamps, 4)
	a.attempts = []attempt{
		{rvn: "refused", token: 5, first: 1, steps: plan[1:2]},
		{rvn: "unheard", token: 5, first: 1, steps: plan[1:2], doubts: true},
		{rvn: "higher", token: 7, first: 1, steps: plan[1:2]},
		{rvn: "the same token", token: 6, first: 1, steps: plan[1:3]},
		{rvn: "of steps before", token: 5, first: 0, steps: plan[:1]},
		{rvn: "from before into these", token: 5, first: 0, steps: plan[:2], doubts: true},
		{rvn: "dead before", token: 7, first: 0, steps: plan[:1], doubts: true, dead: true},
		{token: 5, first: 1, at: "joins", doubts: true},
		{token: 5, first: 0, at: "joined before", doubts: true},
	}
	require.NoError(t, a.secure(attempt{rvn: "won", token: 6, first: 1, steps: plan[1:3], since: time.Now()}))
	left := map[string]bool{}
	for _, old := range a.attempts {
		left[old.rvn+string(old.at)] = old.dead
	}
	require.Equal(t, map[string]bool{
		"unheard": true, "higher": false, "of steps before": false, "from before into these": true, "dead before": true,
		"joins": true, "joined before": false,
	}, left)
	require.Equal(t, 3, a.secured)
	require.Equal(t, []fencing.Token{4, 6, 6}, a.stamps)
}
