// Package instruments is the one list of what otelholdall measures. The page, the dashboard and the
// alert rules are made of it, too.
package instruments

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Attributes of metrics.
const (
	System    = attribute.Key("db.system.name")
	Operation = attribute.Key("db.operation.name")
	ErrorType = attribute.Key("error.type")
	Outcome   = attribute.Key("holdall.outcome")
	Way       = attribute.Key("holdall.way")    // without locks, together with another, under locks
	Answer    = attribute.Key("holdall.answer") // what an answer proves: done, refused, busy, …
)

// Ways in which a unit is committed.
const (
	Freely   = "without locks"
	Together = "together with another"
	Locked   = "under locks"
)

// Kind is how a metric is made.
type Kind int

// The kinds of metrics.
const (
	Duration Kind = iota // a histogram of seconds
	Count                // a sum that only rises
	Now                  // a sum that rises and falls: what is so now
	Observed             // a gauge: what is so now, and cannot be added up
)

// Metric is one of those that are recorded.
type Metric struct {
	Kind
	Name, Unit, Description string
	Attributes              []attribute.Key // that its points may have
}

// What takes time.
var (
	Units        = duration("holdall.unit.duration", "How long runs of units took, by outcome and way.", Outcome, Way)
	Acquisitions = duration("holdall.acquire.duration", "How long it took until a lock set was held as a whole, or given up.", ErrorType)
	Waits        = duration("holdall.wait.duration", "How long units waited for others at one row.", ErrorType)
	Holds        = duration("holdall.hold.duration", "How long lock sets were held.")
	Functions    = duration("holdall.function.duration", "How long functions took that Do called, with their reads.", ErrorType)
	Reads        = duration("holdall.read.duration", "How long reads of records took.", ErrorType)
	Commits      = duration("holdall.commit.duration", "How long commits took.", ErrorType)
	Requests     = duration("holdall.request.duration", "How long sendings of requests took, by operation and what the answer proved.", System, Operation, Answer)
)

// What is so now.
var (
	SetsHeld        = now("holdall.sets.held", "{set}", "Lock sets that this process holds.")
	KeysHeld        = now("holdall.keys.held", "{key}", "Keys that this process holds.")
	KeysHeldWaiting = now("holdall.keys.held_while_waiting", "{key}", "Keys that units of this process hold while they wait for more.")
	Waiting         = now("holdall.units.waiting", "{unit}", "Units of this process that wait for others.")
	Journals        = now("holdall.journals.open", "{journal}", "Units with a journal that this process is committing or finishing.")
	HeartbeatAge    = observed("holdall.heartbeat.age", "How long ago the last confirmed heartbeat was sent, of the set for which that is longest; 0 if none is held.")
	HeartbeatLeft   = observed("holdall.heartbeat.left", "How long until a set is lost unless a heartbeat is confirmed, of the set for which that is soonest; absent if none is held.")
)

// What is counted.
var (
	Capacity   = count("holdall.request.capacity", "{capacity_unit}", "Capacity that requests consumed, as DynamoDB reported it.", System, Operation)
	Retries    = count("holdall.request.retries", "{request}", "Sendings of requests that had been sent before.", System, Operation)
	Rounds     = count("holdall.heartbeat.rounds", "{round}", "Rounds of heartbeats; one of which a key was not confirmed has a type of error.", ErrorType)
	Lost       = count("holdall.sets.lost", "{set}", "Lock sets that were lost while they were held.", ErrorType)
	Buried     = count("holdall.holders.buried", "{holder}", "Rows that were taken from dead holders.")
	Cleaned    = count("holdall.intents.cleaned", "{intent}", "Intents of dead units that were removed.")
	Dropped    = count("holdall.places.dropped", "{place}", "Waiters that lost their place, because the key stayed free.")
	Raised     = count("holdall.tokens.raised", "{token}", "Tokens that were too low for a row.")
	Again      = count("holdall.units.started_over", "{unit}", "Attempts of Do that followed another.")
	HandedOver = count("holdall.rows.handed_over", "{row}", "Rows that went from one unit of this process to the next.")
	Stuck      = count("holdall.units.stuck", "{unit}", "Times that a committed unit was met that somebody must mend.")
	Unfinished = count("holdall.units.unfinished", "{unit}", "Times that a committed unit was not applied to its end.")
	Recovered  = count("holdall.units.recovered", "{unit}", "Dead units that were finished, by whether they had committed.", Outcome)
)

var all []Metric

// All are all metrics, by name.
func All() []Metric {
	return slices.SortedFunc(slices.Values(all), func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
}

func listed(m Metric) Metric {
	all = append(all, m)
	return m
}

func duration(name, of string, attributes ...attribute.Key) Metric {
	return listed(Metric{Duration, name, "s", of, attributes})
}

func now(name, unit, of string) Metric { return listed(Metric{Now, name, unit, of, nil}) }

func observed(name, of string) Metric { return listed(Metric{Observed, name, "s", of, nil}) }

func count(name, unit, of string, attributes ...attribute.Key) Metric {
	return listed(Metric{Count, name, unit, of, attributes})
}

// Prometheus is what Prometheus calls the metric. A histogram is that with _bucket, _sum and _count.
func (m Metric) Prometheus() string {
	name := Label(attribute.Key(m.Name))
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == Count {
		name += "_total"
	}
	return name
}

// Label is what Prometheus calls an attribute.
func Label(key attribute.Key) string { return strings.ReplaceAll(string(key), ".", "_") }
