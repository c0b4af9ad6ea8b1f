package office

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/trace"
)

// ReportWork says what became of the work, and what it cost; done is what it is
// called when it is.
func ReportWork(w io.Writer, t *staff.Tally, done string) {
	ReportUnits(w, t, done)
	ReportWays(w, t)
	ReportRequests(w, t)
	reportLarge(w, t)
	ReportWaiting(w, t)
	ReportEvents(w, t)
	ReportFailures(w, t.Unexpected)
}

// Pace is how much was done in which time, and where.
func Pace(n int64, what string, took time.Duration, where store.Where) string {
	return fmt.Sprintf("%d %s in %.1f s (%.0f/s) on %v", n, what, took.Seconds(), perSecond(n, took), where)
}

// perSecond is for people.
func perSecond(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 0.001) }

// ReportUnits says what became of each kind of work; done is what it is called
// when it is.
func ReportUnits(w io.Writer, t *staff.Tally, done string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	Say(table, "units\t%s\trefused\tunknown\tfailed\tp50\tp95\tp99\tlongest\t\n", done)
	for _, kind := range slices.Sorted(maps.Keys(t.Kinds)) {
		k := t.Kinds[kind]
		q := k.Quantiles(0.5, 0.95, 0.99, 1)
		Say(table, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t\n", kind,
			k.Jobs[staff.Committed], k.Jobs[staff.Refused], k.Jobs[staff.Unknown], k.Jobs[staff.Failed],
			millis(q[0]), millis(q[1]), millis(q[2]), millis(q[3]))
	}
	_ = table.Flush()
	for _, reason := range slices.Sorted(maps.Keys(t.Refusals)) {
		Say(w, "  refused %d times: %s\n", t.Refusals[reason], reason)
	}
	if n := t.Total(staff.Unknown); n > 0 {
		Say(w, "  unknown: had no ID, and their owner died at it\n")
	}
}

// ReportWays says how the units came to their commits, and which runs of theirs were void.
func ReportWays(w io.Writer, t *staff.Tally) {
	if len(t.Ways) == 0 && t.OnlyLocked.Load() == 0 {
		return
	}
	Say(w, "\n")
	ReportAll(w, []Event{
		{int64(t.Ways[staff.WithoutLocks]), "units committed without locks"},
		{int64(t.Ways[staff.AfterVoid]), "units committed under locks, after a run without locks that was void"},
		{int64(t.Ways[staff.LockedFirst]), "units committed under locks that they took first"},
		{int64(t.Ways[staff.Led]), "units committed in one transaction with another of their process, which led them"},
		{int64(t.Groups.Led), "groups committed of such units and their leaders"},
		{int64(t.Groups.Failed), "units came along with another, and failed"},
		{int64(t.Groups.Void), "runs came along with another, and were left out, or their group came to nothing"},
		{t.OnlyLocked.Load(), "units locked for a statement, and had nothing to commit"},
		{t.Void.Load(), "runs without locks were void, because somebody was in the way"},
		{t.Avoided.Load(), "runs without locks were void before they sent anything"},
		{t.FoundMore.Load(), "runs under locks were void, because they needed more keys than had been found before"},
	})
}

// reportLarge says what became of units larger than one transaction, if there
// were any.
func reportLarge(w io.Writer, t *staff.Tally) {
	sum := t.LargeUnits()
	if len(t.Large) == 0 {
		return
	}
	Say(w, "\n%8d units committed that were larger than one transaction\n", sum.Committed)
	if sum.Longest > 0 {
		Say(w, "%8d lock rows and %d writes on average, %d and %d the most; %s on average, %s the longest\n",
			sum.Rows, sum.Writes, sum.MostRows, sum.MostWrites, millis(sum.Average), millis(sum.Longest))
	}
	ReportAll(w, []Event{
		{int64(t.DiedMidway[trace.Journaling]), "owners died while they journaled one"},
		{int64(t.DiedMidway[trace.Preparing]), "owners died while they marked the locks of one"},
		{int64(t.DiedMidway[trace.Applying]), "owners died while they decided on one, or applied it"},
		{int64(sum.RolledForward), "of dead owners rolled forward by others"},
		{int64(sum.Aborted), "of dead owners aborted by others"},
	})
}

// ReportRequests says what the work cost.
func ReportRequests(w io.Writer, t *staff.Tally) {
	units := max(float64(t.Over.Load()), 1)
	Say(w, "\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	Say(table, "requests\tsent\tper unit\tsent again\trefused or failed\tcapacity units\tper unit\t\n")
	line := func(name string, r staff.Requests) {
		Say(table, "%s\t%d\t%.2f\t%d\t%d\t%.0f\t%.1f\t\n", name, r.Sent, float64(r.Sent)/units, r.Again, r.Errors, r.Capacity, r.Capacity/units)
	}
	var all staff.Requests
	for _, op := range slices.Sorted(maps.Keys(t.Requests)) {
		r := *t.Requests[op]
		line(op, r)
		all.Sent += r.Sent
		all.Again += r.Again
		all.Errors += r.Errors
		all.Capacity += r.Capacity
	}
	line("all", all)
	_ = table.Flush()
}

// ReportWaiting says how long units waited for each other, if any did.
func ReportWaiting(w io.Writer, t *staff.Tally) {
	if t.Waiting.Queue == 0 {
		return // nobody met anybody
	}
	Say(w, "\n%8d times a unit waited for others: %s on average, %s the longest, %.1f s in all\n",
		t.Waiting.Times, millis(t.Waiting.Average()), millis(t.Waiting.Longest), t.Waiting.Total.Seconds())
	Say(w, "%8d waited for one key at once, as far as any of them could see\n", t.Waiting.Queue)
	ReportAll(w, []Event{
		{t.HandedOver.Load(), "locks handed over within an owner, without a place in the table's queue"},
		{t.Dropped.Load(), "dead units dropped from the head of a queue"},
		{t.GaveUp.Load(), "units gave up waiting"},
	})
}

// Event is what happened so often.
type Event struct {
	Times int64
	What  string
}

// ReportAll says nothing of what did not happen.
func ReportAll(w io.Writer, events []Event) {
	for _, e := range events {
		if e.Times > 0 {
			Say(w, "%8d %s\n", e.Times, e.What)
		}
	}
}

// ReportEvents says what happened besides, where it did.
func ReportEvents(w io.Writer, t *staff.Tally) {
	events := []Event{
		{t.Died.Load(), "owners died, holding what they held"},
		{t.Left.Load(), "owners left"},
		{t.TakenOver.Load(), "locks of dead holders taken over"},
		{t.Cleaned.Load(), "intents of dead holders removed"},
		{t.Inherited.Load(), "jobs with an ID done again because their owner died at them"},
		{t.Repeated.Load(), "of what was done again had been committed, and was not repeated"},
		{t.PutBack.Load(), "jobs put back, for another teller"},
		{t.Raised.Load(), "times a token had to be raised"},
		{t.StartedOver.Load(), "times a unit started over"},
		{t.Lost.Load(), "lock sets lost by living owners"},
		{t.Doubts.Load(), "commits in doubt, asked about"},
		{t.LeftToOthers.Load(), "large units committed that got no answers any more: others finished them"},
	}
	if slices.ContainsFunc(events, func(e Event) bool { return e.Times > 0 }) {
		Say(w, "\n")
	}
	ReportAll(w, events)
}

// ReportFailures says what nobody expected.
func ReportFailures(w io.Writer, failures map[string]*staff.Failure) {
	for _, kind := range slices.Sorted(maps.Keys(failures)) {
		Say(w, "unexpected, %d times: %s: %v\n", failures[kind].Times, kind, failures[kind].Example)
	}
}

// findingsShown is how many findings of one check are printed.
const findingsShown = 3

// ReportAudit returns whether the audit of the books holds.
func ReportAudit(w io.Writer, results []audit.Result) bool {
	return ReportChecks(w, "audit of the books, after all work", "The books are", results)
}

// ReportArchive is ReportAudit for the archive.
func ReportArchive(w io.Writer, results []audit.Result) bool {
	return ReportChecks(w, "audit of the archive, against the books", "The archive is", results)
}

// ReportChecks returns whether no check found anything.
func ReportChecks(w io.Writer, what, verdict string, results []audit.Result) bool {
	Say(w, "\n%s\n", what)
	for _, r := range results {
		Say(w, "%8d %s\n", len(r.Findings), r.Count)
		for i, f := range r.Findings {
			if i == findingsShown {
				Say(w, "           ...\n")
				break
			}
			Say(w, "           %s\n", f)
		}
	}
	sound := audit.Sound(results)
	Say(w, "%s %s.\n", verdict, map[bool]string{true: "sound", false: "NOT sound"}[sound])
	return sound
}

func millis(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}
