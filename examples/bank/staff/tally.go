package staff

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdall/holdall/trace"
)

// Outcome is what became of a job.
type Outcome string

// Outcomes of jobs.
const (
	Committed Outcome = "committed"
	Refused   Outcome = "refused" // by the bank
	Unknown   Outcome = "unknown" // its owner died, and it had no ID
	Failed    Outcome = "failed"  // by an unexpected error
)

// Way is how a unit came to its end.
type Way string

// Ways of units.
const (
	WithoutLocks  Way = "without locks"
	AfterConflict Way = "under locks, after a conflict without locks"
	LockedFirst   Way = "under locks that they took first"
	Led           Way = "in one transaction with another of their process, which led them"
)

// Ways lists all ways.
var Ways = []Way{WithoutLocks, AfterConflict, LockedFirst, Led}

// lockedFirst is the context key by which hooks know units of Do that take their locks first.
type lockedFirst struct{}

// WayOf returns how the unit of a UnitEnd hook came to its end. It returns false for a unit that was
// begun by Begin, which locks and never commits.
func WayOf(ctx context.Context, e trace.Event) (Way, bool) {
	first, byDo := ctx.Value(lockedFirst{}).(bool)
	switch {
	case !byDo:
		return LockedFirst, false
	case e.Leader != "":
		return Led, true
	case e.Optimistic:
		return WithoutLocks, true
	case first:
		return LockedFirst, true
	default:
		return AfterConflict, true
	}
}

// Event is something that is counted. Its text is the line of the report.
type Event string

// Events.
const (
	// How units came to their end, beside their Ways.
	OnlyLocked Event = "units locked for a statement, and had nothing to commit"
	Aborted    Event = "runs without locks were aborted because of a conflict, and repeated"
	FoundMore  Event = "runs under locks were aborted because they needed more keys than expected, and repeated"
	LeftOut    Event = "runs in a group were aborted, and repeated"
	FailedLed  Event = "units in a group failed by themselves"

	GaveUp     Event = "units gave up waiting"
	HandedOver Event = "locks handed over within an owner, without a place in the table's queue"
	Dropped    Event = "dead units dropped from the head of a queue"

	Died         Event = "owners died, holding what they held"
	DiedInLarge  Event = "owners died within a large unit, or shortly after it"
	Left         Event = "owners left"
	TakenOver    Event = "locks of dead holders taken over"
	Cleaned      Event = "intents of dead holders removed"
	Inherited    Event = "jobs with an ID repeated because their owner died"
	Repeated     Event = "repeated jobs had been committed before, and changed nothing"
	PutBack      Event = "jobs put back, for another teller"
	Raised       Event = "times a token had to be increased"
	StartedOver  Event = "times a unit started over"
	Lost         Event = "lock sets lost by living owners"
	Doubts       Event = "commits in doubt, and resolved"
	LeftToOthers Event = "large units committed whose owner got no more answers: others finished them"

	Paused   Event = "times an owner was paused at a statement, until another had taken over and written a newer one"
	Archived Event = "statements written to the archive"
	Stale    Event = "late statements rejected by the archive"
)

// Tally counts what happens. It is safe for concurrent use, but its fields are to be read only after all
// work has ended.
type Tally struct {
	mu         sync.Mutex
	jobs       int // over
	Events     map[Event]int
	Ways       map[Way]int                // of committed units
	Kinds      map[string]map[Outcome]int // jobs by kind
	Took       map[string][]time.Duration // by committed jobs, by kind
	Refusals   map[string]int
	Requests   map[string]Requests  // by operation
	Large      map[string]LargeUnit // by nonce
	Unexpected map[string][]error   // by what failed and the type of the error
	Waits      []time.Duration      // of units, for locks
	Queue      int                  // the longest that a waiter saw, including itself
}

// Requests counts the requests of one operation of DynamoDB.
type Requests struct {
	Sent, Again, Errors int // Again: not for the first time
	Capacity            float64
}

// LargeUnit is a unit that did not fit into one transaction.
type LargeUnit struct {
	Committed    bool
	Rows, Writes int // of the lock table, and of records
	Took         time.Duration
	// RolledForward and Aborted say that another owner finished the unit of a dead one.
	RolledForward, Aborted bool
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{
		Events: map[Event]int{}, Ways: map[Way]int{}, Kinds: map[string]map[Outcome]int{}, Took: map[string][]time.Duration{},
		Refusals: map[string]int{}, Requests: map[string]Requests{}, Large: map[string]LargeUnit{}, Unexpected: map[string][]error{},
	}
}

func (t *Tally) note(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// Add counts an event n times.
func (t *Tally) Add(e Event, n int) { t.note(func() { t.Events[e] += n }) }

// Over returns the number of jobs that are over.
func (t *Tally) Over() (n int) {
	t.note(func() { n = t.jobs })
	return n
}

// Total returns the number of jobs with an outcome.
func (t *Tally) Total(o Outcome) (n int) {
	t.note(func() {
		for _, jobs := range t.Kinds {
			n += jobs[o]
		}
	})
	return n
}

// Sent returns the number of requests.
func (t *Tally) Sent() (n int) {
	t.note(func() {
		for _, r := range t.Requests {
			n += r.Sent
		}
	})
	return n
}

func (t *Tally) over(kind string, o Outcome, took time.Duration) {
	t.note(func() {
		t.jobs++
		if t.Kinds[kind] == nil {
			t.Kinds[kind] = map[Outcome]int{}
		}
		t.Kinds[kind][o]++
		if took > 0 {
			t.Took[kind] = append(t.Took[kind], took)
		}
	})
}

// unexpected groups errors by type, because errors of one kind differ in names and numbers.
func (t *Tally) unexpected(what string, err error) {
	t.note(func() {
		kind := fmt.Sprintf("%s: %T", what, err)
		t.Unexpected[kind] = append(t.Unexpected[kind], err)
	})
}

func (t *Tally) request(r trace.Event) {
	t.note(func() {
		of := t.Requests[r.Op]
		of.Sent++
		of.Capacity += r.Capacity
		if r.N > 1 {
			of.Again++
		}
		if r.Err != nil {
			of.Errors++
		}
		t.Requests[r.Op] = of
	})
}

func (t *Tally) large(unit string, change func(*LargeUnit)) {
	t.note(func() {
		l := t.Large[unit]
		change(&l)
		t.Large[unit] = l
	})
}

// committed counts a committed unit, and how large it is if it is a large one.
func (t *Tally) committed(e trace.Event, way Way) {
	t.note(func() {
		t.Ways[way]++
		if l, is := t.Large[e.Unit]; is {
			l.Committed, l.Rows, l.Writes, l.Took = true, e.Rows, e.Writes, e.Took
			t.Large[e.Unit] = l
		}
	})
}
