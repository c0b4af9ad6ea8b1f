package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
)

// pace says how much was done, how fast, and where.
func (c *call) pace(n int, what string, took time.Duration) string {
	where := cmp.Or(c.Endpoint, map[bool]string{false: "the embedded engine", true: "AWS"}[c.AWS])
	return fmt.Sprintf("%d %s in %.1f s (%.0f/s) on %s", n, what, took.Seconds(), float64(n)/max(took.Seconds(), 0.001), where)
}

// reportUnits says what became of each kind of work.
func reportUnits(w io.Writer, t *staff.Tally) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	say(table, "units\tdone\trefused\tunknown\tfailed\tp50\tp95\tp99\tlongest\t\n")
	unknown := 0
	for _, kind := range slices.Sorted(maps.Keys(t.Kinds)) {
		jobs := t.Kinds[kind]
		unknown += jobs[staff.Unknown]
		say(table, "%s\t%d\t%d\t%d\t%d\t", kind, jobs[staff.Committed], jobs[staff.Refused], jobs[staff.Unknown], jobs[staff.Failed])
		for _, share := range []float64{0.5, 0.95, 0.99, 1} {
			say(table, "%s\t", millis(quantile(t.Took[kind], share)))
		}
		say(table, "\n")
	}
	_ = table.Flush()
	for _, reason := range slices.Sorted(maps.Keys(t.Refusals)) {
		say(w, "  refused %d times: %s\n", t.Refusals[reason], reason)
	}
	if unknown > 0 {
		say(w, "  unknown: had no ID, and their owner died at them\n")
	}
}

// paragraph prints a line for each event that occurred.
func paragraph(w io.Writer, t *staff.Tally, events []staff.Event) {
	var lines strings.Builder
	for _, e := range events {
		if t.Events[e] > 0 {
			say(&lines, "%8d %s\n", t.Events[e], e)
		}
	}
	if lines.Len() > 0 {
		say(w, "\n%s", lines.String())
	}
}

// reportRequests says what the work cost.
func reportRequests(w io.Writer, t *staff.Tally) {
	units := max(float64(t.Over()), 1)
	say(w, "\n")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	say(table, "requests\tsent\tper unit\tsent again\trefused or failed\tcapacity units\tper unit\t\n")
	line := func(name string, r staff.Requests) {
		say(table, "%s\t%d\t%.2f\t%d\t%d\t%.0f\t%.1f\t\n", name, r.Sent, float64(r.Sent)/units, r.Again, r.Errors, r.Capacity, r.Capacity/units)
	}
	var all staff.Requests
	for _, op := range slices.Sorted(maps.Keys(t.Requests)) {
		r := t.Requests[op]
		line(op, r)
		all = staff.Requests{Sent: all.Sent + r.Sent, Again: all.Again + r.Again, Errors: all.Errors + r.Errors, Capacity: all.Capacity + r.Capacity}
	}
	line("all", all)
	_ = table.Flush()
}

// reportEvents says how units were committed, what they cost, how long they waited, and what else
// happened.
func reportEvents(w io.Writer, t *staff.Tally) {
	paragraph(w, t, staff.Paragraphs[0])
	reportRequests(w, t)
	if n := len(t.Waits); n > 0 {
		say(w, "\n%8d times a unit waited for others: half of them for at most %s, 95 of 100 for at most %s, the longest for %s\n",
			n, millis(quantile(t.Waits, 0.5)), millis(quantile(t.Waits, 0.95)), millis(quantile(t.Waits, 1)))
		say(w, "%8d waited for one key at once, as far as any of them could see\n", t.Queue)
	}
	for _, events := range staff.Paragraphs[1:] {
		paragraph(w, t, events)
	}
	for _, what := range slices.Sorted(maps.Keys(t.Unexpected)) {
		say(w, "unexpected, %d times: %s: %v\n", len(t.Unexpected[what]), what, t.Unexpected[what][0])
	}
}

// findingsShown limits how many findings of one check are printed.
const findingsShown = 3

// reportAudit returns whether no check found anything.
func (c *call) reportAudit(what, verdict string, results []books.Result) bool {
	say(c.stdout, "\n%s\n", what)
	for _, r := range results {
		say(c.stdout, "%8d %s\n", len(r.Findings), r.Count)
		for _, f := range r.Findings[:min(len(r.Findings), findingsShown)] {
			say(c.stdout, "           %s\n", f)
		}
		if len(r.Findings) > findingsShown {
			say(c.stdout, "           ...\n")
		}
	}
	sound := books.Sound(results)
	say(c.stdout, "%s %s.\n", verdict, map[bool]string{true: "sound", false: "NOT sound"}[sound])
	return sound
}

// quantile returns a duration that a share of all does not exceed, or zero if there are none.
func quantile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[min(int(share*float64(len(all))), len(all)-1)]
}

func millis(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}
