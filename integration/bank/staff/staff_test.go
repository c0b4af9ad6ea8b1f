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
	"github.com/holdall/holdall/trace"
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
	t.Cleanup(func() {
		o.leave()
		_ = o.locks.Close(o.ctx) // a dead owner's cleanup in the background ends before the test
	})
	return teller{owner: o, desk: desk, tally: tally, wait: cfg.Wait}
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

// An owner that dies at a payment leaves nothing behind, or, if it has locked first, keeps
// its locks until a lease is over. Then another makes the payment, once.
func TestADeadOwnersPayment(t *testing.T) {
	// Each request is carried out half-way through. Without locks there are two: a look,
	// and the commit. With them there are four: locks, the ID, the accounts, the commit.
	for name, c := range map[string]struct {
		lock      bool
		dieAt     time.Duration
		held      bool // the two locks
		committed bool
	}{
		"while it looks":                      {dieAt: latency / 4},
		"when it has looked":                  {dieAt: 3 * latency / 4},
		"while the commit is sent":            {dieAt: latency + latency/4},
		"while the answer comes back":         {dieAt: latency + 3*latency/4, committed: true},
		"before the locks are held":           {lock: true, dieAt: latency / 4},
		"locked, while it reads":              {lock: true, dieAt: 2*latency + latency/4, held: true},
		"locked, while the commit is sent":    {lock: true, dieAt: 3*latency + latency/4, held: true},
		"locked, while the answer comes back": {lock: true, dieAt: 3*latency + 3*latency/4, committed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, tables := newConfig(t)
				cfg.Lock = c.lock
				tally := NewTally()
				desk := list(Job{Kind: "row", Once: true, Do: func(ctx context.Context, b *books.Bank) error {
					return b.Record(ctx, books.Entry{ID: "1", Account: "7", Partner: "YZ/5", Amount: 200})
				}})
				dies, heir := newTeller(t, cfg, desk, tally, 1), newTeller(t, cfg, desk, tally, 2)
				time.AfterFunc(c.dieAt, dies.owner.die)
				dies.work()
				require.Equal(t, int64(1), tally.Inherited.Load())
				heir.work()
				require.Equal(t, 1, tally.Total(Committed))
				records := sound(t, tables)
				require.Len(t, records.History, 2)
				require.Equal(t, c.committed, tally.Repeated.Load() == 1, "it had been committed")
				require.Equal(t, c.held, tally.TakenOver.Load() == 2, "taken over: %d", tally.TakenOver.Load())
			})
		})
	}
}

// How units come to their commits: without locks, or after a run that was void because
// somebody had the account meanwhile, or under locks that are taken first.
func TestWays(t *testing.T) {
	for name, c := range map[string]struct {
		lock, inTheWay bool
		void           int64
		want           Way
	}{
		"nobody in the way":   {want: WithoutLocks},
		"somebody in the way": {inTheWay: true, void: 5, want: AfterVoid},
		"locked first":        {lock: true, want: LockedFirst},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, tables := newConfig(t)
				cfg.Lock = c.lock
				var tried []string
				ended := map[string]Way{}
				cfg.Tries = func(unit string) { tried = append(tried, unit) }
				cfg.Ended = func(e trace.UnitEnd, way Way) { ended[e.Unit] = way }
				if c.inTheWay {
					time.AfterFunc(lease/2, holdAccount(t, cfg, tables))
				}
				tally := NewTally()
				require.NoError(t, Run(cfg, list(cash(1)), tally))
				require.Equal(t, map[Way]int{c.want: 1}, tally.Ways)
				require.Equal(t, c.void, tally.Void.Load())
				require.Equal(t, c.want == WithoutLocks, len(tried) == 1, "nothing to try if somebody is in the way")
				require.Len(t, ended, 1+int(c.void))
				require.Equal(t, ended[sound(t, tables).History[0].Unit], c.want)
			})
		})
	}
}

// Owners come and go while work is done; all of it is done, each row once.
func TestOwnersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { ownersComeAndGo(t, false) })
	synctest.Test(t, func(t *testing.T) {
		tally := ownersComeAndGo(t, true)
		require.Positive(t, tally.TakenOver.Load())
	})
}

func ownersComeAndGo(t *testing.T, lock bool) *Tally {
	t.Helper()
	cfg, tables := newConfig(t)
	cfg.Owners, cfg.Tellers, cfg.Churn, cfg.Lock = 3, 4, lease/2, lock
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
	require.Len(t, sound(t, tables).History, 2*rows)
	require.Equal(t, lock, tally.Ways[WithoutLocks] == 0)
	return tally
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
