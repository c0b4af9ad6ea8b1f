package staff

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdall/holdall/trace"
)

// Outcome is what became of a job.
type Outcome int

// What becomes of jobs.
const (
	Committed Outcome = iota
	Refused           // by the bank
	Unknown           // nobody is left who knows
	Failed            // by an error that nobody expected
	outcomes
)

// words are how outcomes are written.
var words = [outcomes]string{"committed", "refused", "unknown", "failed"}

func (o Outcome) String() string { return words[o] }

// MarshalText writes an outcome as String does.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(words[:], string(text))
	if i < 0 {
		return fmt.Errorf("no outcome is called %q", text)
	}
	*o = Outcome(i)
	return nil
}

// Tally counts what happens. It is safe for concurrent use; its maps are to be
// read when everybody is gone.
type Tally struct {
	// Jobs.
	Over      atomic.Int64 // jobs that are over, whatever became of them
	Repeated  atomic.Int64 // committed before, under the same ID
	Inherited atomic.Int64 // done again because their owner had died
	PutBack   atomic.Int64 // waited for too long, lost, or left by an owner
	Doubts    atomic.Int64
	// LeftToOthers are committed units that DynamoDB did not let their owners finish.
	LeftToOthers atomic.Int64
	// Owners.
	Died, Left, Paused atomic.Int64
	// Statements.
	Archived, Stale atomic.Int64 // written, and refused by the archive
	// Locks.
	Raised, TakenOver, Cleaned, Lost, StartedOver atomic.Int64
	// Runs that count for nothing: without locks, because somebody was in the way; the same
	// before anything was sent; and under locks, because the unit needed more keys than it had
	// found before.
	Void, Avoided, FoundMore atomic.Int64
	// OnlyLocked are units that locked, and had nothing to commit: they wrote statements.
	OnlyLocked atomic.Int64
	// Waiting for locks.
	GaveUp     atomic.Int64 // waited for as long as they were willing to
	HandedOver atomic.Int64 // from one unit of an owner to the next, in memory
	Dropped    atomic.Int64 // from the head of a queue, as dead

	mu         sync.Mutex
	Ways       map[Way]int // of the units that were committed
	Groups     Groups
	Large      map[string]*LargeUnit // by nonce
	DiedMidway map[trace.Phase]int   // owners, by what their large unit was at
	Waiting    Waiting
	Kinds      map[string]*Kind
	Refusals   map[string]int
	Requests   map[string]*Requests
	Unexpected map[string]*Failure
}

// Waiting is how long units waited: those that then got their locks, and those without
// locks, which wait for units of the same owner.
type Waiting struct {
	Times          int
	Total, Longest time.Duration
	// Queue is the most that one of them saw wait for one key, itself among them:
	// a process knows who waits in the table, and of its own units the others.
	Queue int
}

// Average is how long each wait was.
func (w Waiting) Average() time.Duration { return w.Total / time.Duration(max(w.Times, 1)) }

// Kind counts the jobs of one kind.
type Kind struct {
	Jobs [outcomes]int
	took []time.Duration // of those committed
}

// Requests counts those of one operation of DynamoDB.
type Requests struct {
	Sent     int
	Again    int // sent, but not for the first time
	Errors   int
	Capacity float64
}

// Failure is an error that nobody expected: how often, and one example.
type Failure struct {
	Times   int
	Example error
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{
		Ways: map[Way]int{}, Groups: Groups{leaders: map[string]bool{}}, Large: map[string]*LargeUnit{}, DiedMidway: map[trace.Phase]int{},
		Kinds: map[string]*Kind{}, Refusals: map[string]int{},
		Requests: map[string]*Requests{}, Unexpected: map[string]*Failure{},
	}
}

func (t *Tally) over(kind string, o Outcome, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := entry(t.Kinds, kind)
	k.Jobs[o]++
	if took > 0 {
		k.took = append(k.took, took)
	}
	t.Over.Add(1)
}

// waited notes how long a unit waited; most do not.
func (t *Tally) waited(d time.Duration) {
	if d <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Waiting.Times++
	t.Waiting.Total += d
	t.Waiting.Longest = max(t.Waiting.Longest, d)
}

// queued notes that so many wait for one key, as a unit saw that joined them.
func (t *Tally) queued(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Waiting.Queue = max(t.Waiting.Queue, n)
}

func (t *Tally) refused(reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Refusals[reason.Error()]++
}

func (t *Tally) unexpected(kind string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Errors of one kind differ in names and numbers: their types tell.
	f := entry(t.Unexpected, fmt.Sprintf("%s: %T", kind, err))
	f.Times++
	if f.Example == nil {
		f.Example = err
	}
}

func (t *Tally) request(r trace.RequestEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := entry(t.Requests, r.Op)
	of.Sent++
	of.Capacity += r.Capacity
	if r.N > 1 {
		of.Again++
	}
	if r.Err != nil {
		of.Errors++
	}
}

// Sent is how many requests were sent, and the capacity units they took.
func (t *Tally) Sent() (n int, capacity float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.Requests {
		n += r.Sent
		capacity += r.Capacity
	}
	return n, capacity
}

func entry[V any](m map[string]*V, key string) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

// Total returns the number of jobs with an outcome.
func (t *Tally) Total(o Outcome) (n int) {
	for _, k := range t.Kinds {
		n += k.Jobs[o]
	}
	return n
}

// Quantiles returns how long the given shares of the committed jobs took at
// most; zero if there are none.
func (k *Kind) Quantiles(shares ...float64) []time.Duration {
	slices.Sort(k.took)
	out := make([]time.Duration, len(shares))
	for i, share := range shares {
		if n := len(k.took); n > 0 {
			out[i] = k.took[min(int(share*float64(n)), n-1)]
		}
	}
	return out
}
