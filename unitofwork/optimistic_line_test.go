package unitofwork_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// readSlowly reads a record, and then takes its time, where it holds no locks.
func readSlowly(record unitofwork.Record, takes func(context.Context) error) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, record); err != nil || u.Locked() {
			return err
		}
		return takes(ctx)
	}
}

func readOnly(records ...unitofwork.Record) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, records...) }
}

// Two stand in line for what somebody holds. The first of them gets it, and takes its time
// with it: the second overtakes, even if the first waits for it, and also if both are to be alone.
func TestAFunctionThatTakesItsTimeAfterItStoodInLine(t *testing.T) {
	for _, alone := range []bool{false, true} {
		runInBed(t, fmt.Sprint("alone: ", alone), func(t *testing.T, b *bed) {
			c, work := b.client("c", nil), unitofwork.Work{Alone: alone}
			own := c.has(t, accountKey("1", "a"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			second, first := make(chan error, 1), make(chan error, 1)
			go func() {
				first <- c.freely(ctx, work, readSlowly(accounts.Ref("1", "a"), func(ctx context.Context) error {
					select {
					case err := <-second:
						return err
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}))
			}()
			time.Sleep(time.Second) // longer than a function may take, which has not begun
			go func() { second <- c.freely(ctx, work, readOnly(accounts.Ref("1", "a"))) }()
			time.Sleep(time.Second)
			start := time.Now()
			require.NoError(t, own.Release(t.Context()))
			require.NoError(t, <-first)
			require.Less(t, time.Since(start), 100*time.Millisecond)
		})
	}
}

// addBlindly adds to an account that it does not read.
func addBlindly(n int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		return u.Update(accounts.Ref("1", "a"), unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": n}})
	}
}

// A Get that waits in line ends with its unit, whatever context it was given: it neither holds up
// the unit's end nor keeps anything from others afterwards.
func TestAGetInLineThatItsFunctionDidNotWaitFor(t *testing.T) {
	for name, failed := range map[string]error{"committed": nil, "failed": errors.New("failed")} {
		for _, own := range []bool{true, false} {
			runInBed(t, fmt.Sprint(name, ", in the unit's context: ", own), func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				set := c.has(t, accountKey("1", "a"))
				ended, start := make(chan error, 1), time.Now()
				require.ErrorIs(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					if !own {
						ctx = context.WithoutCancel(ctx)
					}
					go func() { ended <- u.Get(ctx, accounts.Ref("1", "a")) }()
					time.Sleep(time.Millisecond)
					return failed
				}), failed)
				require.ErrorIs(t, <-ended, unitofwork.ErrEnded)
				require.Less(t, time.Since(start), time.Second)
				require.NoError(t, set.Release(t.Context()))
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(0)}, readOnly(accounts.Ref("1", "a"))))
				b.allFree()
			})
		}
	}
}

// Who has stood in line for long, behind lock sets, has its rows for as long as it needs them,
// also if it does not go on at once.
func TestUnitsThatStandInLineForLong(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", nil, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Wait, func(context.Context, trace.Event) { time.Sleep(time.Millisecond) }))
		})
		own := c.has(t, transferKeys...)
		var all sync.WaitGroup
		const units = 3
		for range units {
			all.Go(func() {
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{Wait: lockset.Forever()}, transfer(1)))
			})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		require.NoError(t, own.Release(t.Context()))
		all.Wait()
		require.Equal(t, slices.Repeat([]string{"free committed"}, units), r.texts())
	})
}

// impatience is processes of two goroutines each whose units want one account again and again.
type impatience struct {
	processes int
	deadline  time.Duration // at most, and uniform; 0 if they wait as long as it takes
	lock      bool          // Work.Lock
	seed      uint64
}

// in returns how many units were committed in a round, and the latest return after a deadline.
func (i impatience) in(b *bed) (committed int, late time.Duration) {
	b.t.Helper()
	takes, round := 10*time.Millisecond, 4*time.Second
	if testing.Short() {
		round = time.Second
	}
	work := unitofwork.Work{}
	if i.lock {
		work = unitofwork.Work{Lock: true, Keys: []ordering.Key{accountKey("1", "a")}}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	all := 0
	began := time.Now()
	for p := range i.processes {
		c := b.client(fmt.Sprint("process", p), nil)
		for g := range 2 {
			random := rand.New(rand.NewPCG(i.seed, uint64(2*p+g)))
			group.Go(func() {
				for time.Since(began) < round {
					ctx, cancel := context.WithCancel(b.t.Context())
					end := began.Add(time.Hour)
					if i.deadline > 0 {
						end = time.Now().Add(time.Duration(random.Int64N(int64(i.deadline))))
						ctx, cancel = context.WithDeadline(ctx, end)
					}
					err := c.Client.Do(ctx, work, change(accounts.Ref("1", "a"), func(a *account) {
						time.Sleep(takes)
						a.Balance++
					}))
					cancel()
					mu.Lock()
					late = max(late, time.Since(end))
					if err == nil {
						if all++; time.Since(began) < round {
							committed++
						}
					}
					mu.Unlock()
					if err != nil && !errors.As(err, new(*lockset.HeldError)) && !errors.Is(err, context.DeadlineExceeded) {
						b.t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	time.Sleep(lease) // places that were not given up at once
	b.t.Logf("%+v: %d committed, at most %v late", i, committed, late)
	require.Equal(b.t, int64(100+all), b.balances()[0])
	return committed, late
}

var impatientRounds = flag.Uint64("impatient", 2, "how many seeds of each kind of impatient callers")

// However little time the callers of a hot account have, as many units are committed as if they had
// all the time in the world, or nearly.
func TestImpatientUnitsAreCommittedAsOftenAsPatientOnes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, lock := range []bool{true, false} {
		for _, processes := range []int{3, 10, 14, 20} {
			if testing.Short() && processes != 20 {
				continue
			}
			var patient int
			inBed(t, func(t *testing.T, b *bed) { patient, _ = impatience{processes: processes, lock: lock}.in(b) })
			for _, deadline := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, time.Second} {
				if deadline > 100*time.Millisecond && (testing.Short() || processes == 10 || processes == 14) {
					continue
				}
				t.Run(fmt.Sprintf("lock %t, %d processes, %v", lock, processes, deadline), func(t *testing.T) {
					rounds, least, all := *impatientRounds, 0.7, 0 // one has a tenth more or less than another
					if testing.Short() {                           // a queue that collapses leaves a tenth
						rounds, least = 1, 0.5
					}
					for n := range rounds {
						inBed(t, func(t *testing.T, b *bed) {
							committed, late := impatience{processes, deadline, lock, seed + n}.in(b)
							all += committed
							require.LessOrEqual(t, late, 100*time.Millisecond)
						})
					}
					require.GreaterOrEqual(t, float64(all)/float64(rounds), least*float64(patient), "of %d", patient)
				})
			}
		}
	}
}

var spells = flag.Uint64("spells", 2, "how many seeds of each service that meets a slow spell")

// spell is a service whose requests to DynamoDB are slow for a while. Each of its calls is a
// process of its own, that is killed when its time is over.
type spell struct {
	every  time.Duration // from one call to the next
	life   time.Duration // of a call
	lease  time.Duration
	slow   time.Duration // how long the spell lasts
	within time.Duration // how long it goes on afterwards
}

// served returns the share of calls that were served, of those from 30 s after the spell on.
func (s spell) served(t *testing.T, seed uint64) (share float64) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 34))
		zero, began := time.Date(2033, 3, 3, 3, 3, 3, 3, time.UTC), time.Now()
		var latency atomic.Int64
		latency.Store(int64(rtt))
		b := &bed{t: t, db: memdynamo.New(memdynamo.Config{
			Latency: func() time.Duration { return time.Duration(latency.Load()) },
			Date:    func() time.Time { return zero.Add(time.Since(began)) },
		})}
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks"}))
		b.createTable("accounts", "Customer", "ID")
		b.put("accounts", account{Customer: "1", ID: "a"})

		begins, ends := 5*time.Second, 5*time.Second+s.slow
		time.AfterFunc(begins, func() { latency.Store(int64(500 * time.Millisecond)) })
		time.AfterFunc(ends, func() { latency.Store(int64(rtt)) })
		var counted, served atomic.Int64
		var calls sync.WaitGroup
		for n := 0; time.Since(began) < ends+30*time.Second+s.within; n++ {
			time.Sleep(time.Duration(float64(s.every) * (0.5 + r.Float64())))
			wrong := time.Duration(r.Int64N(int64(48*time.Hour))) - 24*time.Hour
			counts := time.Since(began) >= ends+30*time.Second
			calls.Go(func() {
				ok := s.call(t, b, fmt.Sprintf("%d.%d", seed, n), wrong)
				if counts {
					counted.Add(1)
				}
				if counts && ok {
					served.Add(1)
				}
			})
		}
		calls.Wait()
		share = float64(served.Load()) / float64(counted.Load())
	})
	return share
}

// call is one call. It reports whether it was served in its life.
func (s spell) call(t *testing.T, b *bed, name string, wrong time.Duration) bool {
	net := faults.Wrap(b.db, faults.Config{Who: name})
	units, err := unitofwork.Open(net, unitofwork.Config{Locks: lockset.Config{
		Table: "locks", Owner: name, Lease: s.lease, Rand: faults.Nonces(name), Now: func() time.Time { return time.Now().Add(wrong) },
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	killed := time.AfterFunc(s.life, func() { net.Crash(); cancel() })
	err = units.Do(ctx, unitofwork.Work{}, change(accounts.Ref("1", "a"), func(a *account) { a.Balance++ }))
	return killed.Stop() && err == nil
}

// A service recovers from a spell of slow requests, although its callers are killed while they
// wait and while they hold: nothing is configured, and no key is named.
func TestAServiceRecoversFromASlowSpell(t *testing.T) {
	for name, s := range map[string]spell{
		"ten calls a second":         {100 * time.Millisecond, 3 * time.Second, 20 * time.Second, 10 * time.Second, 9 * time.Minute},
		"two calls a second":         {500 * time.Millisecond, 3 * time.Second, 20 * time.Second, 10 * time.Second, 9 * time.Minute},
		"a life of 10 s":             {100 * time.Millisecond, 10 * time.Second, 20 * time.Second, 30 * time.Second, 9 * time.Minute},
		"a lease of 5 s, 15 s lives": {100 * time.Millisecond, 15 * time.Second, 5 * time.Second, 30 * time.Second, 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeds, good := *spells, uint64(0)
			if testing.Short() {
				seeds, s.within = 1, 20*time.Second
			}
			for seed := range seeds {
				share := s.served(t, seed)
				t.Logf("seed %d: %.3f", seed, share)
				require.GreaterOrEqual(t, share, 0.85, "seed %d", seed)
				if share >= 0.95 {
					good++
				}
			}
			require.GreaterOrEqual(t, good, seeds*18/20, "of %d seeds", seeds)
		})
	}
}
