package lockrow

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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
	heldRow = Row{
		Key: "a", Exists: true, Unit: other, Owner: "host", Lease: 10 * time.Second,
		RVN: "other.a1", Fence: 50,
	}
	freeRow = Row{Key: "a", Exists: true, Released: true, Fence: 50}
)

const grace = 3 * time.Second

var patience = Patience{Turn: time.Second, Step: time.Second / 2, Grace: grace}

func with(r Row, change func(*Row)) Row {
	change(&r)
	return r
}

func queued(r Row, units ...Waiter) Row { return with(r, func(r *Row) { r.Queue = units }) }

var (
	exclusive = Want{Key: "a", Entry: Entry{Unit: me, Witness: "a"}}
	intent    = Want{Key: "a", Mode: Intent, Entry: Entry{Unit: me, Witness: "a/b"}}
)

// What a row comes to for who wants it, case by case.
func TestJudge(t *testing.T) {
	full := with(freeRow, func(r *Row) {
		for range maxBelow {
			r.Below = append(r.Below, Entry{Unit: other, Witness: "a/x"})
		}
	})
	oneBelow := with(freeRow, func(r *Row) { r.Below = []Entry{{Unit: other, Witness: "a/x"}} })

	for _, c := range []struct {
		name     string
		row      Row
		want     Want
		token    fencing.Token
		seen     time.Duration // how long ago the RVN was first seen
		verdict  Verdict
		untilRel time.Duration
	}{
		{"absent", Row{Key: "a"}, exclusive, 1, 0, Admits, 0},
		{"absent, for an intent", Row{Key: "a"}, intent, 1, 0, Admits, 0},
		{"free with an older fence", freeRow, exclusive, 51, 0, Admits, 0},
		{"free, the fence is ours", freeRow, exclusive, 50, 0, Raise, 0},
		{"free, the fence is newer", freeRow, intent, 49, 0, Raise, 0},
		{"held by me", with(heldRow, func(r *Row) { r.Unit = me }), exclusive, 51, 0, Mine, 0},
		{"held by me, silent for long", with(heldRow, func(r *Row) { r.Unit = me }), exclusive, 51, time.Hour, Mine, 0},
		{"my intent is there", with(oneBelow, func(r *Row) { r.Below = append(r.Below, intent.Entry) }), intent, 51, 0, Mine, 0},
		{"my unit's entry, another witness", with(freeRow, func(r *Row) { r.Below = []Entry{{Unit: me, Witness: "a/c"}} }), intent, 51, 0, Admits, 0},
		{"held, never seen before", heldRow, exclusive, 51, 0, Await, 10 * time.Second},
		{"held, for an intent", heldRow, intent, 51, 0, Await, 10 * time.Second},
		{"held, lease still running", heldRow, exclusive, 51, 9 * time.Second, Await, time.Second},
		{"held, one nanosecond to go", heldRow, exclusive, 51, 10*time.Second - 1, Await, 1},
		{"held, silent for a full lease", heldRow, exclusive, 51, 10 * time.Second, Bury, 0},
		{"the row's own lease counts", with(heldRow, func(r *Row) { r.Lease = time.Minute }), exclusive, 51, 30 * time.Second, Await, 30 * time.Second},
		{"with a journal, lease still running", with(heldRow, func(r *Row) { r.Prepared = "units" }), exclusive, 51, 9 * time.Second, Await, time.Second},
		{"silent for a full lease, with a journal", with(heldRow, func(r *Row) { r.Prepared = "units" }), exclusive, 51, 10 * time.Second, Recover, 0},
		{"intents below a coarse lock", oneBelow, exclusive, 51, 0, Witnesses, 0},
		{"intents beside an intent", oneBelow, intent, 51, 0, Admits, 0},
		{"intents beside an intent, token too low", oneBelow, intent, 50, 0, Raise, 0},
		{"too many intents", full, intent, 51, 0, Witnesses, 0},
		{"one intent fewer", with(full, func(r *Row) { r.Below = r.Below[1:] }), intent, 51, 0, Admits, 0},
		{"my turn", queued(freeRow, me, other), exclusive, 51, 0, Admits, 0},
		{"my turn, however late I am", queued(freeRow, me), exclusive, 51, time.Hour, Admits, 0},
		{"my turn, the fence is newer", queued(freeRow, me, other), exclusive, 50, 0, Raise, 0},
		{"my turn at an intent beside others", queued(oneBelow, me, other), intent, 51, 0, Admits, 0},
		{"my turn, with intents below", queued(oneBelow, me), exclusive, 51, 0, Witnesses, 0},
		{"another's turn", queued(freeRow, other, me), exclusive, 51, 0, Await, grace},
		{"another's turn, and I have no place", queued(freeRow, other), exclusive, 51, 0, Await, grace},
		{"another's turn, for an intent", queued(freeRow, other), intent, 51, time.Second, Await, grace - time.Second},
		{"another's turn, one nanosecond to go", queued(freeRow, other, me), exclusive, 51, grace - 1, Await, 1},
		{"another's turn, for too long", queued(freeRow, other, me), exclusive, 51, grace, Pass, 0},
		{"another's turn for too long, the fence is newer", queued(freeRow, other, me), exclusive, 50, grace, Pass, 0},
		{"another's turn beside intents", queued(oneBelow, other, me), intent, 51, time.Hour, Witnesses, 0},
		{"held, and another's turn", queued(heldRow, other, me), exclusive, 51, grace, Await, 10*time.Second - grace},
		{"held by the dead, and another's turn", queued(heldRow, other, me), exclusive, 51, 10 * time.Second, Bury, 0},
		{"held by me, and still in its queue", queued(with(heldRow, func(r *Row) { r.Unit = me }), me), exclusive, 51, 0, Mine, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := Judge(c.row, c.want, c.token, Watch{Since: t0.Add(-c.seen), Now: t0, Patience: patience})
			require.Equal(t, c.verdict, j.Verdict)
			if c.verdict == Await {
				require.Equal(t, c.untilRel, j.Until.Sub(t0))
			}
		})
	}
}

func TestJudgeWitness(t *testing.T) {
	e := Entry{Unit: other, Witness: "a/x"}
	witness := with(heldRow, func(r *Row) { r.Key = "a/x" })

	stale, j := JudgeWitness(e, witness, Watch{Since: t0, Now: t0})
	require.False(t, stale)
	require.Equal(t, Await, j.Verdict)

	stale, j = JudgeWitness(e, witness, Watch{Since: t0.Add(-10 * time.Second), Now: t0})
	require.False(t, stale, "dead, but its row still names it: bury first")
	require.Equal(t, Bury, j.Verdict)

	for name, gone := range map[string]Row{
		"absent":       {Key: "a/x"},
		"free":         with(freeRow, func(r *Row) { r.Key = "a/x" }),
		"another unit": with(witness, func(r *Row) { r.Unit = me }),
	} {
		stale, _ = JudgeWitness(e, gone, Watch{Since: t0, Now: t0})
		require.True(t, stale, name)
	}
}

func TestDecideTakesWhatLandedThenTheFirstBlockThenTheToken(t *testing.T) {
	at := func(step int, r Row) Observed {
		return Observed{Want: Want{Key: r.Key, Step: step, Entry: Entry{Unit: me, Witness: r.Key}}, Row: r, Since: t0}
	}
	blocked, low := heldRow, freeRow
	landed := with(heldRow, func(r *Row) { r.Unit = me })

	require.Equal(t, Admits, Decide(nil, 51, Watch{Now: t0, Patience: patience}).Verdict)

	d := Decide([]Observed{at(1, low), at(2, with(low, func(r *Row) { r.Fence = 70 }))}, 50, Watch{Now: t0, Patience: patience})
	require.Equal(t, Admits, d.Verdict)
	require.True(t, d.Raise)

	d = Decide([]Observed{at(1, low), at(2, blocked), at(3, with(blocked, func(r *Row) { r.Key = "z" }))}, 50, Watch{Now: t0, Patience: patience})
	require.Equal(t, Await, d.Verdict)
	require.Equal(t, 2, d.At.Step, "the first that blocks, not the last")
	require.True(t, d.Raise)

	d = Decide([]Observed{at(1, blocked), at(2, landed)}, 50, Watch{Now: t0, Patience: patience})
	require.Equal(t, Mine, d.Verdict)
	require.Equal(t, 2, d.At.Step)
}

// Others before me are in the way of a chunk as a holder is, wherever its row
// stands in it.
func TestDecideWaitsForItsTurn(t *testing.T) {
	o := Observed{Want: Want{Key: "a", Step: 3, Entry: Entry{Unit: me, Witness: "a"}}, Since: t0.Add(-grace)}
	o.Row = with(freeRow, func(r *Row) { r.Queue = []Waiter{other, me} })
	d := Decide([]Observed{o}, 51, Watch{Now: t0.Add(-1), Patience: patience})
	require.Equal(t, Await, d.Verdict)
	require.Equal(t, 3, d.At.Step)
	require.Equal(t, Judgement{Verdict: Await, Until: t0, HeadOnly: true}, d.Judgment)
	d = Decide([]Observed{o}, 51, Watch{Now: t0, Patience: patience})
	require.Equal(t, Await, d.Verdict, "to be told what to do by its judgement")
	require.Equal(t, Pass, d.Judgment.Verdict)

	o.Row.Queue = []Waiter{me, other}
	require.Equal(t, Admits, Decide([]Observed{o}, 51, Watch{Now: t0, Patience: patience}).Verdict, "it knows now that it has a place")
}

func TestFateOf(t *testing.T) {
	const token = 50
	ours := Row{Exists: true, Unit: me, Owner: "o", RVN: "r", Lease: 1, Fence: token}
	marked := Row{Exists: true, Released: true, committedBy: me, Fence: token}
	markedThenTaken := Row{Exists: true, Unit: other, committedBy: me, Fence: 60}
	freed := Row{Exists: true, Released: true, Fence: token, committedBy: other}
	taken := Row{Exists: true, Unit: other, Fence: 60}
	takenAndCommitted := Row{Exists: true, Released: true, committedBy: other, Fence: 60}
	absent := Row{}
	for _, c := range []struct {
		name string
		rows []Row
		fate Fate
	}{
		{"all ours", []Row{ours, ours}, FateHeld},
		{"our mark", []Row{marked, marked}, FateCommitted},
		{"our mark survives the next holder", []Row{taken, markedThenTaken}, FateCommitted},
		{"freed without the mark, untouched since", []Row{freed}, FateNever},
		{"one lost, one still ours", []Row{ours, taken}, FateNever},
		{"another's mark proves nothing", []Row{takenAndCommitted, taken}, FateUnknown},
		{"rows vanished", []Row{absent, absent}, FateUnknown},
	} {
		require.Equal(t, c.fate, FateOf(c.rows, me, token), c.name)
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
		require.Equal(t, c.both, FateOfBoth(c.first, c.second), "%v and %v", c.first, c.second)
		require.Equal(t, c.both, FateOfBoth(c.second, c.first), "%v and %v", c.second, c.first)
	}
}

// Of several remnants with one witness one is cleaned, for a transaction has one action
// on a row: that whose unit is to be buried, if it is one of them.
func TestOneRemnantOfEachWitness(t *testing.T) {
	stale := func(unit string, witness ordering.Key) Remnant { return Remnant{Entry: Entry{unit, witness}} }
	dead := func(unit string, witness ordering.Key) Remnant {
		return Remnant{Entry{unit, witness}, Row{Unit: unit}, true}
	}
	require.Empty(t, OneEach(nil))
	require.Equal(t,
		[]Remnant{dead("2", "a/1"), dead("3", "a/2"), stale("5", "a/3"), stale("7", "a/4")},
		OneEach([]Remnant{
			stale("1", "a/1"), dead("2", "a/1"), dead("3", "a/2"), stale("4", "a/2"), stale("5", "a/3"), stale("6", "a/3"), stale("7", "a/4"),
		}))
}

// The dead that are buried together: those that follow the first that blocks, and have no
// journal.
func TestDecideBuriesNobodyWhoHasAJournal(t *testing.T) {
	at := func(key ordering.Key, pending string) Observed {
		r := with(heldRow, func(r *Row) { r.Key, r.Prepared = key, pending })
		return Observed{Want: Want{Key: key, Entry: Entry{Unit: me, Witness: key}}, Row: r, Since: t0}
	}
	now := t0.Add(heldRow.Lease)
	dead := func(d Decision) (keys []ordering.Key) {
		for _, r := range d.Dead {
			keys = append(keys, r.Key)
		}
		return keys
	}
	d := Decide([]Observed{at("a", "units"), at("b", ""), at("c", "units"), at("d", "")}, 51, Watch{Now: now, Patience: patience})
	require.Equal(t, Recover, d.Judgment.Verdict)
	require.Equal(t, ordering.Key("a"), d.At.Key)
	require.Equal(t, []ordering.Key{"b", "d"}, dead(d))
	d = Decide([]Observed{at("a", ""), at("b", "units"), at("c", "")}, 51, Watch{Now: now, Patience: patience})
	require.Equal(t, Bury, d.Judgment.Verdict)
	require.Equal(t, []ordering.Key{"c"}, dead(d))
}

func TestModes(t *testing.T) {
	for m := range modes {
		for other := range modes {
			require.Equal(t, m.Compatible(other), other.Compatible(m), "one of two cannot be in the other's way alone")
			var n Modes
			require.False(t, n.Exclude(m), "nobody is there")
			n[other] = 2
			require.Equal(t, !m.Compatible(other), n.Exclude(m))
		}
	}
	require.False(t, Exclusive.Compatible(Exclusive))
	require.False(t, Exclusive.Compatible(Intent))
	require.True(t, Intent.Compatible(Intent))

	require.Equal(t, Modes{}, freeRow.has())
	require.Equal(t, Modes{Exclusive: 1}, heldRow.has())
	require.Equal(t, Modes{Intent: 2}, with(freeRow, func(r *Row) { r.Below = make([]Entry, 2) }).has())
}

// What the rows of its keys say of a commit without locks.
func TestFateOfAPass(t *testing.T) {
	const token = fencing.Token(100)
	ours := Row{Exists: true, Released: true, Fence: token, committedBy: me}
	burned := Row{Exists: true, Released: true, Fence: token, committedBy: other}
	untouched := Row{Exists: true, Released: true, Fence: token - 1, committedBy: other}
	overtaken := Row{Exists: true, Released: true, Fence: token + 1, committedBy: other}
	heldLater := Row{Exists: true, Unit: other, Fence: token + 1, committedBy: me}
	for name, c := range map[string]struct {
		row        Row
		dead, open Fate // when its token was made unusable on some key, and when nobody knows
	}{
		"its stamp":                     {ours, FateCommitted, FateCommitted},
		"its stamp, and another has it": {heldLater, FateCommitted, FateCommitted},
		"its token without its stamp":   {burned, FateNever, FateNever},
		"a lower fence":                 {untouched, FateNever, FateOpen},
		"a later fence":                 {overtaken, FateUnknown, FateUnknown},
		"no row":                        {Row{}, FateUnknown, FateOpen},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.dead, FateOfPass([]Row{c.row}, me, token))
			require.Equal(t, c.open, FateOfOpen(c.row, me, token))
			require.Equal(t, c.dead, FateOfPass([]Row{overtaken, c.row, overtaken}, me, token), "one that tells is enough")
		})
	}
	require.Equal(t, FateUnknown, FateOfPass(nil, me, token))
	require.Equal(t, FateCommitted, FateOfPass([]Row{untouched, ours}, me, token), "a stamp tells more than a fence")
	require.Equal(t, "open", FateOpen.String())
}

func TestWorthJoining(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		expected, left time.Duration
		worth          bool
	}{
		"next, with time":             {0, 100 * ms, true},
		"next, with little time":      {0, 99 * ms, false},
		"short turns before":          {25 * ms, 100 * ms, true},
		"a little longer ones":        {26 * ms, 100 * ms, false},
		"four times as long":          {250 * ms, time.Second, true},
		"not quite":                   {251 * ms, time.Second, false},
		"the time that it takes only": {time.Second, time.Second, false},
		"no time":                     {0, 0, false},
		"a deadline in the past":      {0, -time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.worth, WorthJoining(c.expected, c.left)) })
	}
}

func TestTurnsBefore(t *testing.T) {
	queue := []Waiter{"u1", "u2", "u3"}
	held := Row{Exists: true, Unit: "h"}
	free := Row{Exists: true, Released: true}
	for name, c := range map[string]struct {
		row    Row
		unit   string
		before int
	}{
		"absent":                {Row{}, "x", 0},
		"held":                  {held, "x", 1},
		"free":                  {free, "x", 0},
		"intents below":         {Row{Exists: true, Released: true, Below: []Entry{{}, {}}}, "x", 1},
		"held, behind three":    {Row{Exists: true, Unit: "h", Queue: queue}, "x", 4},
		"held, at the third":    {Row{Exists: true, Unit: "h", Queue: queue}, "u3", 3},
		"free, behind three":    {Row{Exists: true, Released: true, Queue: queue}, "x", 3},
		"free, head":            {Row{Exists: true, Released: true, Queue: queue}, "u1", 0},
		"held, and it is ahead": {Row{Exists: true, Unit: "h", Queue: queue}, "u1", 1},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.before, c.row.TurnsBefore(c.unit)) })
	}
}

// tableNow is a time by the table's clock that has nothing to do with that of the process.
var tableNow = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

func TestJudgeByTheTablesClock(t *testing.T) {
	// The holder's lease is 10 s: by the table's clock it is dead after 50 s.
	renewed := func(before time.Duration) Row {
		return with(heldRow, func(r *Row) { r.RenewedAt = tableNow.Add(-before) })
	}
	// Free for its queue; for a process that looks once the time is 2 × 3 s + 2 s.
	since := func(r Row, before time.Duration) Row {
		return with(r, func(r *Row) { r.TurnAt = tableNow.Add(-before) })
	}
	second, third := queued(freeRow, other, me), queued(freeRow, other, "them", me)
	unknown := Now{}
	exactly := Now{Low: tableNow, High: tableNow}
	for _, c := range []struct {
		name    string
		row     Row
		want    Want
		seen    time.Duration // for how long this process has seen it so
		table   Now
		verdict Verdict
		left    time.Duration
		turn    Turn
	}{
		{"a holder renewed just now", renewed(0), exclusive, 0, exactly, Await, 10 * time.Second, Turn{}},
		{"one nanosecond before two leases and 30 s", renewed(50*time.Second - 1), exclusive, 0, exactly, Await, 1, Turn{}},
		{"two leases and 30 s later", renewed(50 * time.Second), exclusive, 0, exactly, Bury, 0, Turn{}},
		{"the same, as late as can be", renewed(50 * time.Second), exclusive, 0, Now{Low: tableNow.Add(-time.Second), High: tableNow}, Await, time.Second, Turn{}},
		{"the same, with a journal", with(renewed(50*time.Second), func(r *Row) { r.Prepared = "units" }), exclusive, 0, exactly, Recover, 0, Turn{}},
		{"the same, the time is not known", renewed(50 * time.Second), exclusive, 0, unknown, Await, 10 * time.Second, Turn{}},
		{"it renews in the future, within what headers differ by", renewed(-30 * time.Second), exclusive, 0, exactly, Await, 10 * time.Second, Turn{}},
		{"a lease that was watched is enough", renewed(0), exclusive, 10 * time.Second, exactly, Bury, 0, Turn{}},

		{"the head's turn begins", since(second, 0), exclusive, 0, exactly, Await, time.Second, Turn{}},
		{"seen free for almost so long", since(second, 0), exclusive, time.Second - 1, exactly, Await, 1, Turn{}},
		{"seen free for so long", since(second, 0), exclusive, time.Second, exactly, Admits, 0, Turn{true, tableNow, 1}},
		{"the same, another place behind", since(third, 0), exclusive, time.Second, exactly, Await, time.Second / 2, Turn{}},
		{"for longer, another place behind", since(third, 0), exclusive, time.Second * 3 / 2, exactly, Admits, 0, Turn{true, tableNow, 2}},
		{"the same, the time is not known", since(third, 0), exclusive, time.Second * 3 / 2, unknown, Admits, 0, Turn{true, tableNow, 2}},
		{"the same, and the fence is newer", with(since(third, 0), func(r *Row) { r.Fence = 51 }), exclusive, time.Second * 3 / 2, exactly, Raise, 0, Turn{true, tableNow, 2}},
		{"the same, without a place", since(queued(freeRow, other, "them"), 0), exclusive, time.Second * 3 / 2, exactly, Admits, 0, Turn{false, tableNow, 2}},
		{"free for almost two Grace and 2 s", since(third, 8*time.Second-1), exclusive, 0, exactly, Await, 1, Turn{}},
		{"free for two Grace and 2 s", since(third, 8*time.Second), exclusive, 0, exactly, Admits, 0, Turn{true, tableNow.Add(-8 * time.Second), 2}},
		{"the same, for an intent", since(third, 8*time.Second), intent, 0, exactly, Admits, 0, Turn{true, tableNow.Add(-8 * time.Second), 2}},
		{"the same, but there are intents below", with(since(third, time.Hour), func(r *Row) { r.Below = []Entry{{"them", "a/b"}} }), intent, 0, exactly, Witnesses, 0, Turn{}},
		{"the head itself", since(queued(freeRow, me, other), time.Hour), exclusive, time.Hour, exactly, Admits, 0, Turn{Queued: true}},
		{"nobody waits", since(freeRow, time.Hour), exclusive, time.Hour, exactly, Admits, 0, Turn{}},
		{"free since the future", since(third, -31*time.Second), exclusive, time.Second, exactly, Await, 2 * time.Second, Turn{}},
		{"the same for all of Grace", since(third, -31*time.Second), exclusive, 3 * time.Second, exactly, Pass, 0, Turn{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := Watch{Since: t0.Add(-c.seen), Now: t0, Table: c.table, Patience: patience}
			j := Judge(c.row, c.want, 51, at)
			require.Equal(t, c.verdict, j.Verdict)
			require.Equal(t, c.turn, j.Turn)
			if c.verdict == Await {
				require.Equal(t, c.left, j.Until.Sub(t0))
			}
		})
	}
}

// A row says since when it is free as of the earliest moment at which anyone could have freed it.
func TestSinceWhenADeadHoldersRowIsFree(t *testing.T) {
	held := with(heldRow, func(r *Row) { r.RenewedAt = tableNow.Add(-time.Hour) })
	now := Now{Low: tableNow.Add(-time.Second), High: tableNow}
	require.Equal(t, Number(tableNow.Add(50*time.Second-time.Hour).UnixNano()), held.Freed(now))
	held.RenewedAt = tableNow.Add(-49 * time.Second)
	require.Equal(t, Number(tableNow.Add(time.Millisecond).UnixNano()), held.Freed(now), "watched, it was found dead sooner")
	held.RenewedAt = time.Time{}
	require.Equal(t, Number(tableNow.Add(time.Millisecond).UnixNano()), held.Freed(now))
	require.Equal(t, Number(0), held.Freed(Now{}))
}

func TestRowsAreDated(t *testing.T) {
	table, now := Table{Name: "locks", HashKey: "key"}, Now{Low: tableNow.Add(-time.Minute), High: tableNow}
	waits := with(queued(freeRow, other), func(r *Row) { r.Exists = true })
	for name, c := range map[string]struct {
		row   Row
		now   Now
		dates string
	}{
		"a holder that does not say when it renewed": {heldRow, now, AttrRenewed},
		"the same, the time is not known":            {heldRow, Now{}, ""},
		"a holder that says so":                      {with(heldRow, func(r *Row) { r.RenewedAt = tableNow }), now, ""},
		"a holder of the future":                     {with(heldRow, func(r *Row) { r.RenewedAt = tableNow.Add(31 * time.Second) }), now, AttrRenewed},
		"a queue that does not say since when":       {waits, now, AttrTurn},
		"a queue that says so":                       {with(waits, func(r *Row) { r.TurnAt = tableNow }), now, ""},
		"nobody waits":                               {freeRow, now, ""},
		"intents below":                              {with(waits, func(r *Row) { r.Below = []Entry{{"them", "a/b"}} }), now, ""},
	} {
		write := table.Date(c.row, c.now)
		if c.dates == "" {
			require.Nil(t, write, name)
			continue
		}
		require.NotNil(t, write, name)
		require.Equal(t, "SET #"+c.dates+" = :now", aws.ToString(write.UpdateExpression), name)
		require.Equal(t, Number(tableNow.Add(time.Millisecond).UnixNano()), write.ExpressionAttributeValues[":now"], name)
	}
}

func TestATimeThatMakesNoSenseIsNotKnown(t *testing.T) {
	for _, v := range []types.AttributeValue{
		nil, Text("1"), Number(0), Number(-1), Text(""),
		&types.AttributeValueMemberN{Value: "1.5"}, &types.AttributeValueMemberN{Value: "1e99"},
	} {
		require.Zero(t, tableTime(map[string]types.AttributeValue{AttrTurn: v}, AttrTurn))
	}
	require.Equal(t, tableNow, tableTime(map[string]types.AttributeValue{AttrTurn: Number(tableNow.UnixNano())}, AttrTurn).UTC())
}
