package lockset

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

const (
	me    = "me-me-me-me-me-me-me-m"
	other = "other-other-other-othe"
)

var (
	t0      = time.Unix(1_000_000, 0)
	heldRow = row{
		key: "a", exists: true, unit: other, owner: "host", lease: 10 * time.Second,
		rvn: "other.a1", fence: 50,
	}
	freeRow = row{key: "a", exists: true, released: true, fence: 50}
)

const grace = 3 * time.Second

func with(r row, change func(*row)) row {
	change(&r)
	return r
}

// What a row comes to for who wants it, case by case.
func TestJudge(t *testing.T) {
	exclusive := want{key: "a", entry: entry{unit: me, witness: "a"}}
	intent := want{key: "a", intent: true, entry: entry{unit: me, witness: "a/b"}}
	full := with(freeRow, func(r *row) {
		for range maxBelow {
			r.below = append(r.below, entry{unit: other, witness: "a/x"})
		}
	})
	oneBelow := with(freeRow, func(r *row) { r.below = []entry{{unit: other, witness: "a/x"}} })
	queued := func(r row, units ...string) row { return with(r, func(r *row) { r.queue = units }) }

	for _, c := range []struct {
		name     string
		row      row
		want     want
		token    fencing.Token
		seen     time.Duration // how long ago the RVN was first seen
		verdict  verdict
		untilRel time.Duration
	}{
		{"absent", row{key: "a"}, exclusive, 1, 0, admits, 0},
		{"absent, for an intent", row{key: "a"}, intent, 1, 0, admits, 0},
		{"free with an older fence", freeRow, exclusive, 51, 0, admits, 0},
		{"free, the fence is ours", freeRow, exclusive, 50, 0, raise, 0},
		{"free, the fence is newer", freeRow, intent, 49, 0, raise, 0},
		{"held by me", with(heldRow, func(r *row) { r.unit = me }), exclusive, 51, 0, mine, 0},
		{"held by me, silent for long", with(heldRow, func(r *row) { r.unit = me }), exclusive, 51, time.Hour, mine, 0},
		{"my intent is there", with(oneBelow, func(r *row) { r.below = append(r.below, intent.entry) }), intent, 51, 0, mine, 0},
		{"my unit's entry, another witness", with(freeRow, func(r *row) { r.below = []entry{{unit: me, witness: "a/c"}} }), intent, 51, 0, admits, 0},
		{"held, never seen before", heldRow, exclusive, 51, 0, await, 10 * time.Second},
		{"held, for an intent", heldRow, intent, 51, 0, await, 10 * time.Second},
		{"held, lease still running", heldRow, exclusive, 51, 9 * time.Second, await, time.Second},
		{"held, one nanosecond to go", heldRow, exclusive, 51, 10*time.Second - 1, await, 1},
		{"held, silent for a full lease", heldRow, exclusive, 51, 10 * time.Second, bury, 0},
		{"the row's own lease counts", with(heldRow, func(r *row) { r.lease = time.Minute }), exclusive, 51, 30 * time.Second, await, 30 * time.Second},
		{"with a journal, lease still running", with(heldRow, func(r *row) { r.pending = "units" }), exclusive, 51, 9 * time.Second, await, time.Second},
		{"silent for a full lease, with a journal", with(heldRow, func(r *row) { r.pending = "units" }), exclusive, 51, 10 * time.Second, settle, 0},
		{"intents below a coarse lock", oneBelow, exclusive, 51, 0, witnesses, 0},
		{"intents beside an intent", oneBelow, intent, 51, 0, admits, 0},
		{"intents beside an intent, token too low", oneBelow, intent, 50, 0, raise, 0},
		{"too many intents", full, intent, 51, 0, witnesses, 0},
		{"one intent fewer", with(full, func(r *row) { r.below = r.below[1:] }), intent, 51, 0, admits, 0},
		{"my turn", queued(freeRow, me, other), exclusive, 51, 0, admits, 0},
		{"my turn, however late I am", queued(freeRow, me), exclusive, 51, time.Hour, admits, 0},
		{"my turn, the fence is newer", queued(freeRow, me, other), exclusive, 50, 0, raise, 0},
		{"my turn at an intent beside others", queued(oneBelow, me, other), intent, 51, 0, admits, 0},
		{"my turn, with intents below", queued(oneBelow, me), exclusive, 51, 0, witnesses, 0},
		{"another's turn", queued(freeRow, other, me), exclusive, 51, 0, await, grace},
		{"another's turn, and I have no place", queued(freeRow, other), exclusive, 51, 0, await, grace},
		{"another's turn, for an intent", queued(freeRow, other), intent, 51, time.Second, await, grace - time.Second},
		{"another's turn, one nanosecond to go", queued(freeRow, other, me), exclusive, 51, grace - 1, await, 1},
		{"another's turn, for too long", queued(freeRow, other, me), exclusive, 51, grace, pass, 0},
		{"another's turn for too long, the fence is newer", queued(freeRow, other, me), exclusive, 50, grace, pass, 0},
		{"another's turn beside intents", queued(oneBelow, other, me), intent, 51, time.Hour, witnesses, 0},
		{"held, and another's turn", queued(heldRow, other, me), exclusive, 51, grace, await, 10*time.Second - grace},
		{"held by the dead, and another's turn", queued(heldRow, other, me), exclusive, 51, 10 * time.Second, bury, 0},
		{"held by me, and still in its queue", queued(with(heldRow, func(r *row) { r.unit = me }), me), exclusive, 51, 0, mine, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := judge(c.row, c.want, c.token, watch{t0.Add(-c.seen), t0, grace})
			require.Equal(t, c.verdict, j.verdict)
			if c.verdict == await {
				require.Equal(t, c.untilRel, j.until.Sub(t0))
			}
		})
	}
}

func TestJudgeWitness(t *testing.T) {
	e := entry{unit: other, witness: "a/x"}
	witness := with(heldRow, func(r *row) { r.key = "a/x" })

	stale, j := judgeWitness(e, witness, watch{since: t0, now: t0})
	require.False(t, stale)
	require.Equal(t, await, j.verdict)

	stale, j = judgeWitness(e, witness, watch{since: t0.Add(-10 * time.Second), now: t0})
	require.False(t, stale, "dead, but its row still names it: bury first")
	require.Equal(t, bury, j.verdict)

	for name, gone := range map[string]row{
		"absent":       {key: "a/x"},
		"free":         with(freeRow, func(r *row) { r.key = "a/x" }),
		"another unit": with(witness, func(r *row) { r.unit = me }),
	} {
		stale, _ = judgeWitness(e, gone, watch{since: t0, now: t0})
		require.True(t, stale, name)
	}
}

func TestDecideTakesWhatLandedThenTheFirstBlockThenTheToken(t *testing.T) {
	at := func(step int, r row) observed {
		return observed{want: want{key: r.key, step: step, entry: entry{unit: me, witness: r.key}}, row: r, since: t0}
	}
	blocked, low := heldRow, freeRow
	landed := with(heldRow, func(r *row) { r.unit = me })

	require.Equal(t, admits, decide(nil, 51, t0, grace).verdict)

	d := decide([]observed{at(1, low), at(2, with(low, func(r *row) { r.fence = 70 }))}, 50, t0, grace)
	require.Equal(t, admits, d.verdict)
	require.True(t, d.raise)

	d = decide([]observed{at(1, low), at(2, blocked), at(3, with(blocked, func(r *row) { r.key = "z" }))}, 50, t0, grace)
	require.Equal(t, await, d.verdict)
	require.Equal(t, 2, d.at.step, "the first that blocks, not the last")
	require.True(t, d.raise)

	d = decide([]observed{at(1, blocked), at(2, landed)}, 50, t0, grace)
	require.Equal(t, mine, d.verdict)
	require.Equal(t, 2, d.at.step)
}

// Others before me are in the way of a chunk as a holder is, wherever its row
// stands in it.
func TestDecideWaitsForItsTurn(t *testing.T) {
	o := observed{want: want{key: "a", step: 3, entry: entry{unit: me, witness: "a"}}, since: t0.Add(-grace)}
	o.row = with(freeRow, func(r *row) { r.queue = []string{other, me} })
	d := decide([]observed{o}, 51, t0.Add(-1), grace)
	require.Equal(t, await, d.verdict)
	require.Equal(t, 3, d.at.step)
	require.Equal(t, judgement{verdict: await, until: t0, turn: true}, d.judgment)
	d = decide([]observed{o}, 51, t0, grace)
	require.Equal(t, await, d.verdict, "to be told what to do by its judgement")
	require.Equal(t, pass, d.judgment.verdict)

	o.row.queue = []string{me, other}
	require.Equal(t, admits, decide([]observed{o}, 51, t0, grace).verdict, "it knows now that it has a place")
}

func TestFateOf(t *testing.T) {
	const token = 50
	ours := row{exists: true, unit: me, owner: "o", rvn: "r", lease: 1, fence: token}
	marked := row{exists: true, released: true, committedBy: me, fence: token}
	markedThenTaken := row{exists: true, unit: other, committedBy: me, fence: 60}
	freed := row{exists: true, released: true, fence: token, committedBy: other}
	taken := row{exists: true, unit: other, fence: 60}
	takenAndCommitted := row{exists: true, released: true, committedBy: other, fence: 60}
	absent := row{}
	for _, c := range []struct {
		name string
		rows []row
		fate Fate
	}{
		{"all ours", []row{ours, ours}, FateHeld},
		{"our mark", []row{marked, marked}, FateCommitted},
		{"our mark survives the next holder", []row{taken, markedThenTaken}, FateCommitted},
		{"freed without the mark, untouched since", []row{freed}, FateNever},
		{"one lost, one still ours", []row{ours, taken}, FateNever},
		{"another's mark proves nothing", []row{takenAndCommitted, taken}, FateUnknown},
		{"rows vanished", []row{absent, absent}, FateUnknown},
	} {
		require.Equal(t, c.fate, fateOf(c.rows, me, token), c.name)
	}
}

// What is read at two moments proves less than what is read at one: that one part is
// held and nothing is known of the other may be a commit in between.
func TestFateOfTwoMoments(t *testing.T) {
	for _, c := range []struct{ first, second, both Fate }{
		{FateHeld, FateHeld, FateHeld},
		{FateHeld, FateUnknown, FateHeld},
		{FateHeld, FateCommitted, FateCommitted},
		{FateHeld, FateNever, FateNever},
		{FateUnknown, FateUnknown, FateUnknown},
		{FateUnknown, FateCommitted, FateCommitted},
		{FateUnknown, FateNever, FateNever},
	} {
		require.Equal(t, c.both, fateOfBoth(c.first, c.second), "%v and %v", c.first, c.second)
		require.Equal(t, c.both, fateOfBoth(c.second, c.first), "%v and %v", c.second, c.first)
	}
}

func TestReleaseIsCutFromTheEndBetweenSteps(t *testing.T) {
	var keys []ordering.Key
	for i := range 120 {
		keys = append(keys, ordering.Join("p"+string(rune('a'+i/26))+string(rune('a'+i%26)), "x"))
	}
	plan, err := ordering.NewPlan(keys...)
	require.NoError(t, err)
	rest, chunk := lastChunk(plan, 100)
	require.Len(t, chunk, 50, "two rows a step, 100 actions")
	require.Equal(t, plan[70:], chunk)
	require.Len(t, rest, 70)
}

func TestAnIntentStaysAsLongAsItCoversAKeyThatMayBeHeld(t *testing.T) {
	plan, err := ordering.NewPlan("a/1", "a/2", "b/1")
	require.NoError(t, err)
	now, waits := independent(plan[:1], plan[1:2]) // a/2 could not be released
	require.Empty(t, now)
	require.Equal(t, plan[:1], waits)
	now, waits = independent(plan[:1], plan[2:]) // b/1 is another family
	require.Equal(t, plan[:1], now)
	require.Empty(t, waits)
}

// Of several remnants with one witness one is cleaned, for a transaction has one action
// on a row: that whose unit is to be buried, if it is one of them.
func TestOneRemnantOfEachWitness(t *testing.T) {
	stale := func(unit string, witness ordering.Key) remnant { return remnant{entry: entry{unit, witness}} }
	dead := func(unit string, witness ordering.Key) remnant {
		return remnant{entry{unit, witness}, &row{unit: unit}}
	}
	require.Empty(t, oneEach(nil))
	require.Equal(t,
		[]remnant{dead("2", "a/1"), dead("3", "a/2"), stale("5", "a/3"), stale("7", "a/4")},
		oneEach([]remnant{
			stale("1", "a/1"), dead("2", "a/1"), dead("3", "a/2"), stale("4", "a/2"), stale("5", "a/3"), stale("6", "a/3"), stale("7", "a/4"),
		}))
}
