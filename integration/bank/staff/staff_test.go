package staff

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

const (
	lease   = time.Second
	latency = 8 * time.Millisecond
)

// newConfig is a staff of one owner with one teller, on an engine whose
// requests take a while.
func newConfig(t *testing.T) (Config, *store.Tables) {
	t.Helper()
	db := memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return latency }})
	tables, err := store.Create(t.Context(), db, "test-")
	require.NoError(t, err)
	tables.Locks.Lease = lease
	return Config{
		DB: db, Tables: tables.Books, Locks: tables.Locks, Units: tables.Units,
		Owners: 1, Tellers: 1, Wait: 5 * lease,
	}, tables
}

// sound fails the test unless the books are.
func sound(t *testing.T, tables *store.Tables) audit.Records {
	t.Helper()
	records, err := tables.Load(t.Context())
	require.NoError(t, err)
	results := audit.Check(records)
	require.True(t, audit.Sound(results), "%+v", results)
	return records
}

func newTeller(t *testing.T, cfg Config, desk *Desk, tally *Tally, n int) teller {
	t.Helper()
	o, err := newOwner(cfg, tally, n)
	require.NoError(t, err)
	t.Cleanup(o.leave)
	return teller{o, desk, tally, cfg.Wait}
}

// list hands out jobs.
func list(jobs ...Job) *Desk {
	return NewDesk(func() (Job, bool) {
		if len(jobs) == 0 {
			return Job{}, false
		}
		job := jobs[0]
		jobs = jobs[1:]
		return job, true
	})
}

// What a teller does with a job is decided by the error.
func TestTheErrorDecides(t *testing.T) {
	cfg, _ := newConfig(t)
	canceled := fmt.Errorf("get: %w", context.Canceled)
	for _, c := range []struct {
		name string
		err  error
		once bool
		went string // how its owner went meanwhile
		back bool
		over Outcome
	}{
		{name: "no error", over: Committed},
		{name: "refused by the bank", err: fmt.Errorf("pay: %w", books.ErrFunds), over: Refused},
		{name: "lost", err: &lockset.LostError{Reason: errors.New("late")}, back: true},
		{name: "held", err: &lockset.HeldError{Err: context.DeadlineExceeded}, back: true},
		{name: "no answer", err: &lockset.NoAnswerError{Last: errors.New("timeout"), End: errors.New("for too long")}, back: true},
		{name: "stale", err: &unitofwork.CommitError{Next: unitofwork.StartOver, Err: fencing.ErrStale}, back: true},
		{name: "children changed", err: books.ErrChanged, back: true},
		{name: "a look that took too long", err: context.DeadlineExceeded, back: true},
		{name: "in doubt, with an ID", err: &unitofwork.InDoubtError{ID: "p"}, once: true, back: true},
		{name: "in doubt, nobody can be asked", err: unitofwork.ErrInDoubt, over: Failed},
		{name: "a wrong call", err: &ordering.KeyError{Reason: "is empty"}, over: Failed},
		{name: "another error", err: errors.New("surprise"), over: Failed},
		{name: "committed before the owner died", went: "dead", over: Committed},
		{name: "an error of a dead owner, with an ID", err: canceled, once: true, went: "dead", back: true},
		{name: "an error of a dead owner, without", err: canceled, went: "dead", over: Unknown},
		{name: "an error of an owner that left", err: canceled, went: "left", back: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tally := NewTally()
			desk := list(Job{Kind: "x", Once: c.once})
			teller := newTeller(t, cfg, desk, tally, 1)
			job, ok := desk.take(t.Context())
			require.True(t, ok)
			job.Do = func(context.Context, *books.Bank) error {
				switch c.went {
				case "dead":
					teller.owner.die()
				case "left":
					teller.owner.leave()
				}
				return c.err
			}
			teller.do(job)
			if c.back {
				require.Len(t, desk.back, 1)
				require.Zero(t, tally.Over.Load())
				return
			}
			require.Empty(t, desk.back)
			require.Equal(t, 1, tally.Kinds["x"].Jobs[c.over])
			require.Equal(t, c.over == Failed, len(tally.Unexpected) == 1)
			_, ok = desk.take(t.Context())
			require.False(t, ok, "all is done")
		})
	}
}

// A job that nobody can bring to an end is not tried for ever.
func TestAJobIsNotTriedForEver(t *testing.T) {
	cfg, _ := newConfig(t)
	tally := NewTally()
	tries := 0
	desk := list(Job{Kind: "x", Do: func(context.Context, *books.Bank) error {
		tries++
		return &lockset.HeldError{Err: context.DeadlineExceeded}
	}})
	require.NoError(t, Run(cfg, desk, tally))
	require.Equal(t, maxTries, tries)
	require.Equal(t, 1, tally.Total(Failed))
	require.Len(t, tally.Unexpected, 1)
}

// An owner that dies at a payment keeps its locks until a lease is over; then
// another makes the payment, once.
func TestADeadOwnersPayment(t *testing.T) {
	// Four requests: locks, the ID, the accounts, the commit. Each is carried out
	// half-way through.
	for name, dieAt := range map[string]time.Duration{
		"before the locks are held":   latency / 4,
		"while it reads":              2*latency + latency/4,
		"while the commit is sent":    3*latency + latency/4,
		"while the answer comes back": 3*latency + 3*latency/4,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, tables := newConfig(t)
				tally := NewTally()
				desk := list(Job{Kind: "row", Once: true, Do: func(ctx context.Context, b *books.Bank) error {
					return b.Record(ctx, books.Entry{ID: "1", Account: "7", Partner: "YZ/5", Amount: 200})
				}})
				dies, heir := newTeller(t, cfg, desk, tally, 1), newTeller(t, cfg, desk, tally, 2)
				time.AfterFunc(dieAt, dies.owner.die)
				dies.work()
				require.Equal(t, int64(1), tally.Inherited.Load())
				heir.work()
				require.Equal(t, 1, tally.Total(Committed))
				records := sound(t, tables)
				require.Len(t, records.History, 2)
				require.Equal(t, dieAt > 3*latency+latency/2, tally.Repeated.Load() == 1, "it had been committed")
				held := dieAt > latency/2 && dieAt < 3*latency+latency/2
				require.Equal(t, held, tally.TakenOver.Load() == 2, "taken over: %d", tally.TakenOver.Load())
			})
		})
	}
}

// Owners come and go while work is done; all of it is done, each row once.
func TestOwnersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, tables := newConfig(t)
		cfg.Owners, cfg.Tellers, cfg.Churn = 3, 4, lease/2
		const rows = 600
		n := 0
		desk := NewDesk(func() (Job, bool) {
			if n == rows {
				return Job{}, false
			}
			n++
			entry := books.Entry{ID: fmt.Sprint(n), Account: fmt.Sprint(n % 40), Partner: fmt.Sprintf("YZ/%d", n%37), Amount: 1}
			return Job{Kind: "row", Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.Record(ctx, entry) }}, true
		})
		tally := NewTally()
		require.NoError(t, Run(cfg, desk, tally))
		require.Equal(t, rows, tally.Total(Committed))
		require.Empty(t, tally.Unexpected)
		require.Positive(t, tally.Died.Load())
		require.Positive(t, tally.TakenOver.Load())
		require.Len(t, sound(t, tables).History, 2*rows)
	})
}

// A closed desk hands out nothing new, but what comes back.
func TestAClosedDesk(t *testing.T) {
	desk := NewDesk(func() (Job, bool) { return Job{}, true })
	job, ok := desk.take(t.Context())
	require.True(t, ok)
	desk.Close()
	require.True(t, desk.quiet())

	got := make(chan bool)
	go func() {
		_, ok := desk.take(context.Background())
		got <- ok
	}()
	desk.putBack(job)
	require.True(t, <-got)
	go func() {
		_, ok := desk.take(context.Background())
		got <- ok
	}()
	desk.done()
	require.False(t, <-got)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok = NewDesk(func() (Job, bool) { return Job{}, true }).take(ctx)
	require.False(t, ok, "an owner that went takes nothing")
}

func TestQuantiles(t *testing.T) {
	k := Kind{}
	require.Equal(t, []time.Duration{0, 0}, k.Quantiles(0.5, 1))
	for n := range 100 {
		k.took = append(k.took, time.Duration(100-n))
	}
	require.Equal(t, []time.Duration{51, 96, 100, 100}, k.Quantiles(0.5, 0.95, 0.99, 1))
}
