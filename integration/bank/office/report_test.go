package office

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/trace"
)

func TestReportOfWaiting(t *testing.T) {
	report := func(tally *staff.Tally) string {
		var out strings.Builder
		ReportWaiting(&out, tally)
		return out.String()
	}
	tally := staff.NewTally()
	require.Empty(t, report(tally), "nobody met anybody")

	tally.Waiting = staff.Waiting{Times: 4, Total: 2 * time.Second, Longest: 1250 * time.Millisecond, Queue: 3}
	tally.HandedOver.Store(2)
	require.Equal(t, `
       4 times a unit waited for others: 500.0ms on average, 1250.0ms the longest, 2.0 s in all
       3 waited for one key at once, as far as any of them could see
       2 locks handed over within an owner, without a place in the table's queue
`, report(tally))

	tally.Dropped.Store(1)
	tally.GaveUp.Store(5)
	require.Contains(t, report(tally), "       1 dead units dropped from the head of a queue\n       5 units gave up waiting\n")
}

func TestReportOfWays(t *testing.T) {
	report := func(tally *staff.Tally) string {
		var out strings.Builder
		ReportWays(&out, tally)
		return out.String()
	}
	tally := staff.NewTally()
	require.Empty(t, report(tally))
	tally.Ways[staff.LockedFirst] = 4
	tally.OnlyLocked.Store(5)
	require.Equal(t, `
       4 units committed under locks that they took first
       5 units locked for a statement, and had nothing to commit
`, report(tally))
	tally.Ways[staff.WithoutLocks], tally.Ways[staff.AfterVoid] = 9, 2
	tally.Void.Store(3)
	tally.Avoided.Store(6)
	tally.FoundMore.Store(1)
	require.Equal(t, `
       9 units committed without locks
       2 units committed under locks, after a run without locks that was void
       4 units committed under locks that they took first
       5 units locked for a statement, and had nothing to commit
       3 runs without locks were void, because somebody was in the way
       6 runs without locks were void before they sent anything
       1 runs under locks were void, because they needed more keys than had been found before
`, report(tally))
}

func TestReportOfLargeUnits(t *testing.T) {
	report := func(tally *staff.Tally) string {
		var out strings.Builder
		reportLarge(&out, tally)
		return out.String()
	}
	tally := staff.NewTally()
	require.Empty(t, report(tally))

	tally.Large["a"] = &staff.LargeUnit{Committed: true, Rows: 41, Writes: 120, Took: 500 * time.Millisecond}
	tally.Large["b"] = &staff.LargeUnit{Committed: true, Rows: 61, Writes: 180, Took: time.Second}
	require.Equal(t, `
       2 units committed that were larger than one transaction
      51 lock rows and 150 writes on average, 61 and 180 the most; 750.0ms on average, 1000.0ms the longest
`, report(tally))

	tally.Large = map[string]*staff.LargeUnit{"a": {Committed: true, RolledForward: true}, "b": {Aborted: true}}
	tally.DiedMidway[trace.Journaling] = 1
	tally.DiedMidway[trace.Applying] = 2
	require.Equal(t, `
       1 units committed that were larger than one transaction
       1 owners died while they journaled one
       2 owners died while they decided on one, or applied it
       1 of dead owners rolled forward by others
       1 of dead owners aborted by others
`, report(tally))
}

func TestReportOfEvents(t *testing.T) {
	var out strings.Builder
	tally := staff.NewTally()
	ReportEvents(&out, tally)
	require.Empty(t, out.String(), "no empty line either")

	tally.Left.Store(2)
	tally.Raised.Store(7)
	ReportEvents(&out, tally)
	require.Equal(t, "\n       2 owners left\n       7 times a token had to be raised\n", out.String())
}
