package holdalltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdall/holdall/lockset"
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
}

// Run runs the check. It must not be called in a bubble of testing/synctest.
func (c Check) Run(t *testing.T) {
	t.Helper()
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
	synctest.Test(t, func(t *testing.T) {
		r := &run{Check: c, db: DynamoDB()}
		if failed := c.Setup(t.Context(), r.db); failed != nil {
			err = fmt.Errorf("before the work, Setup: %w", failed)
			return
		}
		first := r.db.Process("first")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		first.disturb(ctx, r, d)
		r.work(ctx, first)
		told := r.told.Work[0]
		sent = first.Requests()
		switch {
		case d.at == 0 && told != nil:
			err = fmt.Errorf("without a fault Work returns %w", told)
			return
		case d.at == 0 && len(sent) == 0:
			err = errors.New("nothing was sent by the process that Work was given")
			return
		case errors.Is(told, ErrCrashed) || told != nil && c.Again:
			r.work(ctx, r.db.Process("second"))
		}
		r.rivals.Wait()
		if ctx.Err() != nil {
			err = fmt.Errorf("after %v Work had not returned; it was told %v", patience, r.told)
			return
		}
		time.Sleep(offline) // what is late has arrived, and what was paused has ended
		if wrong := c.Holds(t.Context(), r.db.Process("audit"), r.told); wrong != nil {
			err = fmt.Errorf("after Work has returned %v: %w", r.told, wrong)
		}
	})
	return sent, err
}

// work does the work by one process. What a process returns that has died, nobody was told.
func (r *run) work(ctx context.Context, p *Process) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	living, dead := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(dead)
		select {
		case <-p.Dead():
			cancel(ErrCrashed)
		case <-living:
		}
	}()
	err := r.Work(ctx, p)
	close(living)
	<-dead
	select {
	case <-p.Dead():
		err = ErrCrashed
	default:
	}
	r.told.Work = append(r.told.Work, err)
}

// disturb plans what happens to a process that has sent nothing yet.
func (p *Process) disturb(ctx context.Context, r *run, d disturbance) {
	if d.do == nil {
		p.Next(At(d.at), d.f)
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
	for row, err := range operator.List(ctx, lockset.ListOptions{}) {
		if err == nil && row.Holder != nil && row.Holder.Prepared == "" {
			keys = append(keys, row.Key)
		}
	}
	slices.Sort(keys)
	return keys
}
