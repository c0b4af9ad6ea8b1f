package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/audit"
	"github.com/holdall/holdall/examples/bank/internal/staff"
	"github.com/holdall/holdall/unitofwork"
)

func reportDemo(w io.Writer, o *options, t *staff.Tally, took time.Duration) {
	locks := fmt.Sprintf("lease %v", o.lease)
	if o.unsafe {
		locks = "WITHOUT LOCKS"
	}
	say(w, "%d units in %.1f s (%.0f/s) on %v\n", t.Over.Load(), took.Seconds(), perSecond(t.Over.Load(), took), o.where)
	say(w, "%d owners with %d tellers each, %d customers, %s, seed %d\n\n", o.owners, o.tellers, o.customers, locks, o.seed)

	reportUnits(w, t, "committed")
	reportRequests(w, t)
	reportLarge(w, t)
	reportWaiting(w, t)
	reportEvents(w, t)
	reportFailures(w, t.Unexpected)
}

// reportUnits says what became of each kind of work; done is what it is called
// when it is.
func reportUnits(w io.Writer, t *staff.Tally, done string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	say(table, "units\t%s\trefused\tunknown\tfailed\tp50\tp95\tp99\tlongest\t\n", done)
	for _, kind := range slices.Sorted(maps.Keys(t.Kinds)) {
		k := t.Kinds[kind]
		q := k.Quantiles(0.5, 0.95, 0.99, 1)
		say(table, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t\n", kind,
			k.Jobs[staff.Committed], k.Jobs[staff.Refused], k.Jobs[staff.Unknown], k.Jobs[staff.Failed],
			millis(q[0]), millis(q[1]), millis(q[2]), millis(q[3]))
	}
	_ = table.Flush()
	for _, reason := range slices.Sorted(maps.Keys(t.Refusals)) {
		say(w, "  refused %d times: %s\n", t.Refusals[reason], reason)
	}
	if n := t.Total(staff.Unknown); n > 0 {
		say(w, "  unknown: had no ID, and their owner died at it\n")
	}
}

// reportArchiving says what was done, and who was overtaken at it.
func reportArchiving(w io.Writer, o *options, arch fmt.Stringer, t *staff.Tally, took time.Duration) {
	guard := "behind a guard"
	if o.unguarded {
		guard = "WITHOUT A GUARD"
	}
	say(w, "%d units in %.1f s (%.0f/s) on %v\n", t.Over.Load(), took.Seconds(), perSecond(t.Over.Load(), took), o.where)
	say(w, "%d owners with %d tellers each, %d customers, lease %v, seed %d\n", o.owners, o.tellers, o.customers, o.lease, o.seed)
	say(w, "archive: %v, %s\n\n", arch, guard)
	reportUnits(w, t, "done")
	reportWaiting(w, t)
	reportEvents(w, t)
	say(w, "\n")
	reportAll(w, []event{
		{t.Paused.Load(), "times an owner was paused at a statement, until another had taken over and written a newer one"},
		{t.Archived.Load(), "statements written to the archive"},
		{t.Stale.Load(), "late statements refused by the archive"},
	})
	reportFailures(w, t.Unexpected)
}

// reportLarge says what became of units larger than one transaction, if there
// were any.
func reportLarge(w io.Writer, t *staff.Tally) {
	sum := t.LargeUnits()
	if len(t.Large) == 0 {
		return
	}
	say(w, "\n%8d units committed that were larger than one transaction\n", sum.Committed)
	if sum.Longest > 0 {
		say(w, "%8d lock rows and %d writes on average, %d and %d the most; %s on average, %s the longest\n",
			sum.Rows, sum.Writes, sum.MostRows, sum.MostWrites, millis(sum.Average), millis(sum.Longest))
	}
	reportAll(w, []event{
		{int64(t.DiedMidway[unitofwork.Journaling]), "owners died while they journaled one"},
		{int64(t.DiedMidway[unitofwork.Marking]), "owners died while they marked the locks of one"},
		{int64(t.DiedMidway[unitofwork.Applying]), "owners died while they decided on one, or applied it"},
		{int64(sum.RolledForward), "of dead owners rolled forward by others"},
		{int64(sum.Aborted), "of dead owners aborted by others"},
	})
}

// reportRequests says what the work cost.
func reportRequests(w io.Writer, t *staff.Tally) {
	units := max(float64(t.Over.Load()), 1)
	say(w, "\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	say(table, "requests\tsent\tper unit\tsent again\trefused or failed\tcapacity units\tper unit\t\n")
	line := func(name string, r staff.Requests) {
		say(table, "%s\t%d\t%.2f\t%d\t%d\t%.0f\t%.1f\t\n", name, r.Sent, float64(r.Sent)/units, r.Again, r.Errors, r.Capacity, r.Capacity/units)
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

// reportWaiting says how long units waited for each other's locks, if any did.
func reportWaiting(w io.Writer, t *staff.Tally) {
	if t.Waiting.Queue == 0 {
		return // nobody met anybody
	}
	say(w, "\n%8d units waited for others' locks: %s on average, %s the longest, %.1f s in all\n",
		t.Waiting.Units, millis(t.Waiting.Average()), millis(t.Waiting.Longest), t.Waiting.Total.Seconds())
	say(w, "%8d waited for one key at once, as far as any of them could see\n", t.Waiting.Queue)
	reportAll(w, []event{
		{t.HandedOver.Load(), "locks handed over within an owner, without a place in the table's queue"},
		{t.Dropped.Load(), "dead units dropped from the head of a queue"},
		{t.GaveUp.Load(), "units gave up waiting"},
	})
}

// event is what happened so often.
type event struct {
	n    int64
	what string
}

// reportAll says nothing of what did not happen.
func reportAll(w io.Writer, events []event) {
	for _, e := range events {
		if e.n > 0 {
			say(w, "%8d %s\n", e.n, e.what)
		}
	}
}

// reportEvents says what happened besides, where it did.
func reportEvents(w io.Writer, t *staff.Tally) {
	events := []event{
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
	if slices.ContainsFunc(events, func(e event) bool { return e.n > 0 }) {
		say(w, "\n")
	}
	reportAll(w, events)
}

func reportFailures(w io.Writer, failures map[string]*staff.Failure) {
	for _, kind := range slices.Sorted(maps.Keys(failures)) {
		say(w, "unexpected, %d times: %s: %v\n", failures[kind].Times, kind, failures[kind].Example)
	}
}

// findingsShown is how many findings of one check are printed.
const findingsShown = 3

// reportAudit returns whether the audit of the books holds.
func reportAudit(w io.Writer, results []audit.Result) bool {
	return reportChecks(w, "audit of the books, after all work", "The books are", results)
}

// reportArchive is reportAudit for the archive.
func reportArchive(w io.Writer, results []audit.Result) bool {
	return reportChecks(w, "audit of the archive, against the books", "The archive is", results)
}

func reportChecks(w io.Writer, what, verdict string, results []audit.Result) bool {
	say(w, "\n%s\n", what)
	for _, r := range results {
		say(w, "%8d %s\n", len(r.Findings), r.Count)
		for i, f := range r.Findings {
			if i == findingsShown {
				say(w, "           ...\n")
				break
			}
			say(w, "           %s\n", f)
		}
	}
	sound := audit.Sound(results)
	say(w, "%s %s.\n", verdict, map[bool]string{true: "sound", false: "NOT sound"}[sound])
	return sound
}

func millis(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}
