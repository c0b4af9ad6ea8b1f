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

	again Outcome = "" // none yet: the job is to be tried again
)

// Event is something that is counted. Its text is the line of the report.
type Event string

// Events.
const (
	WithoutLocks  Event = "units committed without locks"
	AfterConflict Event = "units committed under locks, after a conflict without locks"
	LockedFirst   Event = "units committed under locks that they took first"
	Led           Event = "units committed in one transaction with another of their process, which led them"
	OnlyLocked    Event = "units locked for a statement, and had nothing to commit"
	Aborted       Event = "runs without locks were aborted because of a conflict, and repeated"
	FoundMore     Event = "runs under locks were aborted because they needed more keys than expected, and repeated"
	LeftOut       Event = "runs in a group were aborted, and repeated"
	FailedLed     Event = "units in a group failed by themselves"

	Large         Event = "units committed that were larger than one transaction"
	RolledForward Event = "of dead owners rolled forward by others"
	RolledBack    Event = "of dead owners aborted by others"
	LeftToOthers  Event = "large units committed whose owner got no more answers: others finished them"

	GaveUp     Event = "units gave up waiting"
	HandedOver Event = "locks handed over within an owner, without a place in the table's queue"
	Dropped    Event = "dead units dropped from the head of a queue"

	Died        Event = "owners died, holding what they held"
	DiedInLarge Event = "owners died within a large unit"
	Left        Event = "owners left"
	TakenOver   Event = "locks of dead holders taken over"
	Cleaned     Event = "intents of dead holders removed"
	Inherited   Event = "jobs with an ID repeated because their owner died"
	Repeated    Event = "repeated jobs had been committed before, and changed nothing"
	Repeats     Event = "times a job was tried again"
	Raised      Event = "times a token had to be increased"
	StartedOver Event = "times a unit started over"
	Lost        Event = "lock sets lost by living owners"
	Doubts      Event = "commits in doubt, and resolved"

	Paused   Event = "times an owner was paused at a statement, for three leases"
	Archived Event = "statements written to the archive"
	Stale    Event = "late statements rejected by the archive"
)

// Paragraphs are the events in the order of the report.
var Paragraphs = [][]Event{
	{WithoutLocks, AfterConflict, LockedFirst, Led, OnlyLocked, Aborted, FoundMore, LeftOut, FailedLed},
	{Large, RolledForward, RolledBack, LeftToOthers},
	{GaveUp, HandedOver, Dropped},
	{Died, DiedInLarge, Left, TakenOver, Cleaned, Inherited, Repeated, Repeats, Raised, StartedOver, Lost, Doubts},
	{Paused, Archived, Stale},
}

// lockedFirst is the context key by which hooks know units of Do that take their locks first.
type lockedFirst struct{}

// WayOf returns how the unit of a UnitEnd hook was committed or aborted: OnlyLocked if it was begun by
// Begin, which locks and never commits.
func WayOf(ctx context.Context, e trace.Event) Event {
	first, byDo := ctx.Value(lockedFirst{}).(bool)
	switch {
	case !byDo:
		return OnlyLocked
	case e.Leader != "":
		return Led
	case e.Optimistic:
		return WithoutLocks
	case first:
		return LockedFirst
	default:
		return AfterConflict
	}
}

// Tally counts what happens. It is safe for concurrent use, but its fields are to be read only after all
// work has ended.
type Tally struct {
	mu         sync.Mutex
	jobs       int             // over
	seen       map[string]bool // units larger than one transaction
	Events     map[Event]int
	Kinds      map[string]map[Outcome]int // jobs by kind
	Took       map[string][]time.Duration // of committed jobs, by kind
	Refusals   map[string]int
	Requests   map[string]Requests // by operation
	Unexpected map[string][]error  // by what failed and the type of the error
	Waits      []time.Duration     // of units, for locks
	Queue      int                 // the longest that a waiter saw, including itself
}

// Requests counts the requests of one operation of DynamoDB.
type Requests struct {
	Sent, Again, Errors int // Again: not for the first time
	Capacity            float64
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{
		seen: map[string]bool{}, Events: map[Event]int{}, Kinds: map[string]map[Outcome]int{}, Took: map[string][]time.Duration{},
		Refusals: map[string]int{}, Requests: map[string]Requests{}, Unexpected: map[string][]error{},
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
		if o == Committed {
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

// recovered counts a large unit that an owner finished for a dead one. Several owners may report it.
func (t *Tally) recovered(r trace.Event) {
	t.note(func() {
		e := map[string]Event{"committed": RolledForward, "not committed": RolledBack}[r.Outcome]
		if finished := string(e) + r.Unit; !t.seen[finished] {
			t.seen[finished] = true
			t.Events[e]++
		}
	})
}
