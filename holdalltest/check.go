package holdalltest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// Check runs a piece of work again and again, each time on tables of its own, with another fault at
// another of its requests, in virtual time. A failed test names the fault, the request, what Work
// returned, and what Holds says of it.
type Check struct {
	// Setup makes the tables and what is in them.
	Setup func(ctx context.Context, db *DB) error
	// Work is what is tested: what a process of the program does, from opening its clients on p. It
	// must return when ctx ends, and without faults it must return nil.
	Work func(ctx context.Context, p *Process) error
	// Holds returns what is wrong with what the tables have then, if anything, by a process of its
	// own on which nothing goes wrong.
	Holds func(ctx context.Context, p *Process, told Told) error
	// Again has another process do the work again also after an error, as a caller does who repeats
	// what may not have been done. After a crash that is always so.
	Again bool
	// Rival, if set, is the work of another process, which begins at one of Work's requests.
	Rival func(ctx context.Context, p *Process) error
	// Locks is the configuration of Work's locks. If it is set, its locks are lost at each request; and
	// are lost to somebody who has the same keys then, so that its token is stale.
	Locks lockset.Config
	// Faults that happen. Default all.
	Faults []Fault
}

// Told is what those who did the work were told.
type Told struct {
	// Work has what Work returned, in order: of a process that died, ErrCrashed.
	Work []error
	// Rival is what Rival returned, if it ran.
	Rival error
	// Rivalled says that it ran.
	Rivalled bool
}

// String is for messages.
func (t Told) String() string {
	var all []string
	for _, err := range t.Work {
		if err == nil {
			all = append(all, "nil")
			continue
		}
		all = append(all, fmt.Sprintf("%q", err))
	}
	said := strings.Join(all, ", then ")
	if t.Rivalled {
		said += fmt.Sprintf(" (its rival %v)", t.Rival)
	}
	return said
}

// OK reports whether the work is done, as far as its callers know: one was told so.
func (t Told) OK() bool { return slices.Contains(t.Work, nil) }

// patience is how long, in virtual time, a piece of work may take: longer than any fault lasts.
const patience = 15 * time.Minute

// farewell is how long a piece of work may take to return when its context has ended.
const farewell = 10 * time.Minute

// head is how long a request waits for what begins at it.
const head = 2 * time.Second

// disturbance is what happens at one request.
type disturbance struct {
	name string
	at   int
	f    Fault
	do   func(r *run, ctx context.Context) // beside the request
}

// run is one run of the work.
type run struct {
	Check
	db     *DB
	told   Told
	rivals sync.WaitGroup
	bubble string // in which it runs
}

// Run runs the check. It must not be called in a bubble of testing/synctest.
func (c Check) Run(t *testing.T) {
	t.Helper()
	c.validate()
	var sent []Request
	ok := t.Run("no fault", func(t *testing.T) {
		var err error
		if sent, err = c.try(t, disturbance{}); err != nil {
			t.Error(err)
		}
	})
	if !ok {
		return // what follows would say the same
	}
	for _, request := range sent {
		for _, d := range c.disturbances(request) {
			t.Run(fmt.Sprintf("%s/request %d, %s", d.name, request.N, request.Op), func(t *testing.T) {
				if _, err := c.try(t, d); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// validate stops a program whose check could not be run, or would not try what it says.
func (c Check) validate() {
	const call = "Check.Run"
	switch {
	case c.Setup == nil:
		misuse.Of("holdalltest", call, "nil Setup")
	case c.Work == nil:
		misuse.Of("holdalltest", call, "nil Work")
	case c.Holds == nil:
		misuse.Of("holdalltest", call, "nil Holds")
	case c.Locks.Lease >= offline:
		misuse.Of("holdalltest", call, fmt.Sprintf("Locks.Lease is %v: no pause is beyond it, for they last %v; take a shorter one", c.Locks.Lease, offline))
	}
	for _, f := range c.Faults {
		f.validate(call)
	}
}

func (c Check) disturbances(to Request) (all []disturbance) {
	faults := c.Faults
	if faults == nil {
		faults = Faults()
	}
	for _, f := range faults {
		if f.happensTo(to) {
			all = append(all, disturbance{name: string(f), at: to.N, f: f})
		}
	}
	if c.Rival != nil {
		all = append(all, disturbance{name: "a rival", at: to.N, do: (*run).rival})
	}
	if c.Locks.Table != "" {
		all = append(all,
			disturbance{name: "its locks are lost", at: to.N, do: (*run).loseLocks},
			disturbance{name: "its token is stale", at: to.N, do: (*run).overtake})
	}
	return all
}

// try runs the work with one disturbance. It returns what was sent, and what is wrong.
func (c Check) try(t *testing.T, d disturbance) (sent []Request, err error) {
	var bubble string
	defer func() {
		stuck := recover()
		said := fmt.Sprint(stuck)
		switch {
		case stuck == nil:
		case !strings.HasPrefix(said, "deadlock: "): // which synctest says of goroutines that will never go on
			panic(stuck)
		case err != nil: // it has been told already
		case strings.Contains(said, "has exited"):
			err = fmt.Errorf("Work and its rival have returned, and what they have started goes on; have it end with their ctx:\n%s", left(bubble)) //nolint:staticcheck // a field's name
		default:
			err = fmt.Errorf("everything waits, and nothing is to come:\n%s", left(bubble))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		bubble = ownBubble()
		sent, err = c.inBubble(t.Context(), d, bubble)
	})
	return sent, err
}

// inBubble is try in a bubble of its own.
func (c Check) inBubble(outer context.Context, d disturbance, bubble string) (sent []Request, err error) {
	r := &run{Check: c, db: DynamoDB(), bubble: bubble}
	if err := c.Setup(outer, r.db); err != nil {
		return nil, fmt.Errorf("before the work, Setup: %w", err)
	}
	first := r.db.Process("first")
	ctx, cancel := context.WithTimeout(outer, patience)
	defer cancel()
	first.disturb(ctx, r, d)
	if err := r.work(ctx, first); err != nil {
		return nil, err
	}
	told := r.told.Work[0]
	sent = first.Requests()
	switch {
	case d.at == 0 && told != nil:
		return nil, fmt.Errorf("without a fault Work returns %w", told)
	case d.at == 0 && len(sent) == 0:
		return nil, errors.New("nothing was sent by the process that Work was given")
	case errors.Is(told, ErrCrashed) || told != nil && c.Again:
		if err := r.work(ctx, r.db.Process("second")); err != nil {
			return nil, err
		}
	}
	if err := r.finish(ctx, "Rival", r.rivals.Wait); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("after %v Work had not returned; it was told %v", patience, r.told)
	}
	time.Sleep(offline) // what is late has arrived, and what was paused has ended
	if wrong := c.Holds(outer, r.db.Process("audit"), r.told); wrong != nil {
		return sent, fmt.Errorf("after Work has returned %v: %w", r.told, wrong)
	}
	return sent, nil
}

// work does the work by one process, and returns an error if that does not come to an end. What a
// process returns that has died, nobody was told.
func (r *run) work(outer context.Context, p *Process) error {
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	living, dead := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(dead)
		watch(p, cancel, living)
	}()
	var told error
	if err := r.finish(ctx, "Work", func() { told = r.Work(ctx, p) }); err != nil {
		return err
	}
	close(living)
	<-dead
	select {
	case <-p.Dead():
		told = ErrCrashed
	default:
	}
	r.told.Work = append(r.told.Work, told)
	return nil
}

// watch ends a context with its process.
func watch(p *Process, cancel context.CancelCauseFunc, living <-chan struct{}) {
	select {
	case <-p.Dead():
		cancel(ErrCrashed)
	case <-living:
	}
}

// finish does something, and says what is wrong if it has not returned some time after its context
// has ended, or has ended its goroutine instead. name is its field.
func (r *run) finish(ctx context.Context, name string, do func()) error {
	done, returned := make(chan struct{}), false
	go func() {
		defer close(done)
		do()
		returned = true
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(farewell):
			return fmt.Errorf("%v after its ctx has ended (%w), %s has not returned:\n%s", farewell, context.Cause(ctx), name, left(r.bubble))
		}
	}
	if !returned {
		return fmt.Errorf("%s has ended its goroutine, as t.FailNow does: have it return an error instead", name)
	}
	return nil
}

// disturb plans what happens to a process that has sent nothing yet.
func (p *Process) disturb(ctx context.Context, r *run, d disturbance) {
	if d.do == nil {
		if d.at > 0 {
			p.Next(func(r Request) bool { return r.N == d.at }, d.f)
		}
		return
	}
	p.beside = func(request Request) {
		if request.N == d.at {
			d.do(r, ctx)
		}
	}
}

// rival begins the rival's work, and gives it a head start.
func (r *run) rival(ctx context.Context) {
	r.rivals.Go(func() {
		err := r.Rival(ctx, r.db.Process("rival"))
		r.told.Rival, r.told.Rivalled = err, true
	})
	time.Sleep(head)
}

// loseLocks takes away whatever is locked.
func (r *run) loseLocks(ctx context.Context) {
	for _, key := range r.held(ctx) {
		_, _ = r.db.LoseLocks(ctx, r.Locks, key) // it may have been let go of meanwhile
	}
}

// overtake has somebody else have, for a moment, whatever is locked.
func (r *run) overtake(ctx context.Context) {
	for _, key := range r.held(ctx) {
		_, _ = r.db.Overtake(ctx, r.Locks, key)
	}
}

// held are the keys that are locked, but for those of units that are committed.
func (r *run) held(ctx context.Context) (keys []ordering.Key) {
	operator, err := r.db.operator(r.Locks)
	if err != nil {
		return nil // nor has Work any locks then
	}
	for row, err := range operator.List(ctx, inspect.ListOptions{}) {
		if err == nil && row.Holder != nil && row.Holder.Prepared == "" {
			keys = append(keys, row.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

var inBubble = regexp.MustCompile(`^goroutine \d+ \[.*(synctest bubble \d+)\]`)

// ownBubble names the bubble of this goroutine, as stacks do; it is empty if they do not.
func ownBubble() string {
	text := make([]byte, 1<<10)
	found := inBubble.FindSubmatch(text[:runtime.Stack(text, false)])
	if found == nil {
		return ""
	}
	return string(found[1])
}

// ours are in the stacks of goroutines that are this package's own.
var ours = []string{"internal/synctest.Run(", "testing.testingSynctestTest(", "synctest.testingSynctestTest(", "holdalltest.watch("}

// left are the stacks of the goroutines of a bubble, but for our own: of the program under test.
func left(bubble string) string {
	text := make([]byte, 4<<20)
	text = text[:runtime.Stack(text, true)]
	var stacks []string
	for stack := range strings.SplitSeq(string(text), "\n\n") {
		found := inBubble.FindStringSubmatch(stack)
		isOurs := func(s string) bool { return strings.Contains(stack, s) }
		if len(found) > 1 && found[1] == bubble && !slices.ContainsFunc(ours, isOurs) {
			stacks = append(stacks, stack)
		}
	}
	return strings.Join(stacks, "\n\n")
}
