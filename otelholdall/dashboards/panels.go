package main

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
	"github.com/holdall/holdall/trace"
)

// panel is a graph.
type panel struct {
	title, about string
	unit         string // as Grafana calls it
	lines        []line
}

// line is a query and what its lines are called.
type line struct {
	query
	legend string
}

// row is a row of panels under a heading.
type row struct {
	title  string
	panels []panel
}

// window is how far back a rate looks, as Grafana chooses it by what the data allow.
const window = "$__rate_interval"

// Those that are chosen at the top of the page.
var chosen = []string{`job=~"$job"`, `instance=~"$instance"`}

func points(m instruments.Metric, part string, matchers ...string) query {
	return selected(m, part, append(matchers, chosen...)...)
}

func legend(keys ...attribute.Key) string {
	text := ""
	for i, key := range keys {
		if i > 0 {
			text += ", "
		}
		text += "{{" + instruments.Label(key) + "}}"
	}
	return text
}

// pace is how often something is counted, for each value of these attributes.
func pace(m instruments.Metric, by ...attribute.Key) line {
	part := ""
	if m.Kind == instruments.Duration {
		part = "_count"
	}
	return line{sum(rate(points(m, part), window), by...), legend(by...)}
}

// percentiles are the median and what few exceed.
func percentiles(m instruments.Metric, matchers ...string) []line {
	of := rate(points(m, "_bucket", matchers...), window)
	return []line{{quantile(0.5, of), "p50"}, {quantile(0.95, of), "p95"}, {quantile(0.99, of), "p99"}}
}

// total is what a counter or what is so now adds up to.
func total(m instruments.Metric, called string) line {
	if m.Kind == instruments.Count {
		return line{sum(rise(points(m, ""), window)), called}
	}
	return line{sum(points(m, "")), called}
}

var committed = ended(trace.Committed)

var rows = []row{
	{"Units", []panel{
		{"Units by outcome", "Runs of units that ended, each second. What fell back is followed by another run.", "ops",
			[]line{pace(instruments.Units, instruments.Outcome)}},
		{"Committed units by way", "Without locks, together with another of the process, or under locks.", "ops",
			[]line{{sum(rate(points(instruments.Units, "_count", committed), window), instruments.Way), legend(instruments.Way)}}},
		{"How long committed units took", "", "s", percentiles(instruments.Units, committed)},
		{"Share of runs that fell back", "Without those beside others of a group. A hot key has many.", "percentunit",
			[]line{{shownShare(), "fell back"}}},
		{"Functions, reads and commits: 95 % are faster", "What of a unit's time is spent in which.", "s", []line{
			{quantile(0.95, rate(points(instruments.Functions, "_bucket"), window)), "function"},
			{quantile(0.95, rate(points(instruments.Reads, "_bucket"), window)), "read"},
			{quantile(0.95, rate(points(instruments.Commits, "_bucket"), window)), "commit"},
		}},
		{"In doubt, stuck, unfinished", "Any of these is for somebody to look at.", "short", []line{
			{sum(rise(points(instruments.Units, "_count", ended(trace.InDoubt)), window)), "in doubt"},
			total(instruments.Stuck, "stuck"), total(instruments.Unfinished, "unfinished"),
		}},
		{"Journals", "Units with a journal: being committed or finished now, and those of the dead that were finished.", "short", []line{
			total(instruments.Journals, "open"), total(instruments.Recovered, "recovered"),
		}},
	}},
	{"Locks", []panel{
		{"Sets and keys held", "", "short", []line{total(instruments.SetsHeld, "sets"), total(instruments.KeysHeld, "keys")}},
		{"Waiting now", "Units that wait for others, and the keys that they hold meanwhile.", "short",
			[]line{total(instruments.Waiting, "units waiting"), total(instruments.KeysHeldWaiting, "keys held while waiting")}},
		{"How long units waited at a row", "", "s", percentiles(instruments.Waits)},
		{"How long it took to acquire", "", "s", percentiles(instruments.Acquisitions)},
		{"How long sets were held", "", "s", percentiles(instruments.Holds)},
		{"Heartbeats against the deadline", "The set that is worst off, of each process: how old its last confirmed heartbeat is, and how long until it is lost.", "s", []line{
			{points(instruments.HeartbeatAge, ""), "age, " + legend(instance)}, {points(instruments.HeartbeatLeft, ""), "left, " + legend(instance)},
		}},
		{"Rounds of heartbeats", "By what failed; empty for those that were confirmed.", "ops", []line{pace(instruments.Rounds, instruments.ErrorType)}},
		{"Lost, buried, cleaned, dropped, raised", "What happened to locks of the dead and of the slow.", "short", []line{
			total(instruments.Lost, "sets lost"), total(instruments.Buried, "holders buried"), total(instruments.Cleaned, "intents cleaned"),
			total(instruments.Dropped, "places dropped"), total(instruments.Raised, "tokens raised"),
		}},
		{"Handed over, started over", "Rows that went from unit to unit within a process; attempts of Do under locks after the first.", "short", []line{
			total(instruments.HandedOver, "rows handed over"), total(instruments.Again, "started over"),
		}},
	}},
	{"Requests", []panel{
		{"Requests by operation", "", "ops", []line{pace(instruments.Requests, instruments.Operation)}},
		{"Requests by answer", "What is refused is a condition that did not hold.", "ops", []line{pace(instruments.Requests, instruments.Answer)}},
		{"How long requests took: 99 % are faster", "", "s", []line{
			{quantile(0.99, rate(points(instruments.Requests, "_bucket"), window), instruments.Operation), legend(instruments.Operation)},
		}},
		{"Capacity by operation", "Units of capacity each second, as DynamoDB reports them.", "short", []line{pace(instruments.Capacity, instruments.Operation)}},
		{"Retries by operation", "Throttling, conflicts, or a bad network.", "ops", []line{pace(instruments.Retries, instruments.Operation)}},
	}},
}

// shownShare is zero while no run has fallen back.
func shownShare() query {
	fell := sum(rate(points(instruments.Units, "_count", ended(trace.FellBack), apart()), window))
	return "(" + fell + " or vector(0)) / " + sum(rate(points(instruments.Units, "_count", apart()), window))
}
