package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// A commit was refused as too large, and its unit goes on under locks. The network has a copy
// of it, which comes when the records are smaller, and before the locks are taken.
func TestACopyOfACommitWithoutLocksThatWasTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putLarge()
		var r runs
		c := b.client("c", copied(2*time.Second), r.traced, inOneTransaction, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
				if e.Outcome == hooks.FellBack {
					b.shrink()
					time.Sleep(3 * time.Second)
				}
			}))
		})
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count))
		c.net.Wait()
		require.Equal(t, 1, c.net.Counts()[faults.Duplicated])
		require.Equal(t, []string{"free fell back", "locked committed"}, r.texts())
		require.Equal(t, once, b.seen())
		b.allFree()
	})
}

// Records that no key guards are read at any time, however long the function has run.
func TestUnguardedReadsALeaseApart(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		plain := unitofwork.Table[customer]{Name: "customers", PartitionKey: "ID"}
		var r runs
		c := b.client("c", nil, r.traced)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := u.Get(ctx, plain.Ref("1"))
			time.Sleep(2 * lease)
			return errors.Join(err, u.Get(ctx, plain.Ref("2")))
		}))
		require.Equal(t, []string{"free committed"}, r.texts())
	})
}

// What was looked at is good for a lease: then others may have come and gone without leaving
// a row.
func TestWhatWasLookedAtALeaseAgo(t *testing.T) {
	for name, late := range map[string]func(context.Context, *unitofwork.Unit) error{
		"a read":   func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, accounts.Ref("2", "a")) },
		"a commit": func(context.Context, *unitofwork.Unit) error { return nil },
	} {
		for _, after := range []time.Duration{lease - 100*time.Millisecond, lease + 100*time.Millisecond} {
			t.Run(name+" "+after.String(), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					var r runs
					c := b.client("c", nil, r.traced)
					require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
						one := accounts.Ref("1", "a")
						if err := u.Get(ctx, one); err != nil {
							return err
						}
						if !u.Locked() {
							time.Sleep(after)
						}
						one.T.Balance++
						err := late(ctx, u)
						if !u.Locked() && name == "a read" {
							require.Equal(t, after > lease, err != nil, "%v", err)
						}
						return errors.Join(err, u.Put(one))
					}))
					want := []string{"free committed"}
					if after > lease {
						want = []string{"free fell back", "locked committed"}
					}
					require.Equal(t, want, r.texts())
					require.EqualValues(t, 101, b.account("1").Balance)
				})
			})
		}
	}
}

// A function that was overtaken by somebody of its process keeps nobody else of it waiting:
// neither with what it had read by then, nor with what it reads later.
func TestAFunctionThatTakesItsTimeTwice(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		write := func(customer string) {
			start := time.Now()
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
				return u.Replace(accounts.Of(account{Customer: customer, ID: "a", Balance: 5}))
			}))
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				return u.Get(ctx, accounts.Ref(customer, "a"))
			}))
			require.Less(t, time.Since(start), 100*time.Millisecond, "customer %s", customer)
		}
		read, again, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			_ = c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				if u.Locked() {
					return errors.New("enough")
				}
				err := u.Get(ctx, accounts.Ref("3", "a"))
				close(read)
				time.Sleep(time.Second)
				err = errors.Join(err, u.Get(ctx, accounts.Ref("4", "a")))
				close(again)
				time.Sleep(time.Second)
				return err
			})
		}()
		<-read
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			return u.Get(ctx, accounts.Ref("3", "a")) // it has to wait, and overtakes
		}))
		<-again
		write("4")
		<-done
	})
}

// A Get that its function did not wait for ends with the unit, and the unit with it.
func TestAGetThatItsFunctionDidNotWaitFor(t *testing.T) {
	failed := errors.New("failed")
	for name, result := range map[string]error{"committed": nil, "failed": failed} {
		for _, pause := range []time.Duration{0, time.Second} {
			for _, id := range []string{"", "p1"} {
				t.Run(fmt.Sprint(name, pause, id), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
							u.Trace = trace.Join(u.Trace, hooks.OnStart(trace.Read, func(ctx context.Context, _ trace.Event) context.Context {
								time.Sleep(pause)
								return ctx
							}))
						})
						const gets = 3
						ended := make(chan error, gets)
						err := c.freely(t.Context(), unitofwork.Work{ID: id}, func(_ context.Context, u *unitofwork.Unit) error {
							for i := range gets {
								go func() { ended <- u.Get(t.Context(), accounts.Ref("1", fmt.Sprint(i))) }()
							}
							time.Sleep(rtt / 2)
							return result
						})
						require.ErrorIs(t, err, result)
						for range gets {
							if err := <-ended; err != nil {
								require.ErrorIs(t, err, unitofwork.ErrEnded)
							}
						}
					})
				})
			}
		}
	}
}

// Conflicts with what is read are waited for while no key is known for which locks could be
// taken.
func TestConflictsBeforeAKeyIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		first, last int // reads that conflict
		runs        []string
	}{
		"no key is known":        {1, 5, []string{"free committed"}},
		"one is, of what it was": {3, 5, []string{"free fell back", "free committed"}},
	} {
		t.Run(name, func(t *testing.T) {
			inLinks(t, func(t *testing.T, b *bed) {
				n := 0
				var r runs
				client := b.client("c", func(call faults.Call) faults.Fault {
					if call.Op == "TransactGetItems" {
						if n++; n >= c.first && n <= c.last {
							return faults.Conflict(0)
						}
					}
					return faults.Pass()
				}, r.traced)
				require.NoError(t, client.freely(t.Context(), unitofwork.Work{}, follow("0", 1)))
				require.Equal(t, c.runs, r.texts())
			})
		})
	}
}

// A record is read twice by one run. Somebody whose lock was lost writes it late, in between:
// the function is not told both.
func TestALateWriteBetweenTwoReadsOfARecord(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		late, c := b.client("late", nil), b.client("c", nil, r.traced)
		set, err := late.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
		require.NoError(t, err)
		require.NoError(t, set.Release(t.Context()))
		calls := 0
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			first, again := accounts.Ref("1", "a"), accounts.Ref("1", "a")
			if err := u.Get(ctx, first); err != nil {
				return err
			}
			if calls++; calls == 1 {
				b.writeLate(set, "1", "a", 500)
			}
			if err := u.Get(ctx, again); err != nil {
				return err
			}
			require.Equal(t, first.T.Balance, again.T.Balance)
			first.T.Balance++
			return u.Put(first)
		}))
		require.EqualValues(t, 501, b.account("1").Balance)
		require.Equal(t, []string{"free fell back", "locked committed"}, r.texts())
	})
}

// A function fails with its own error, and what became of its ID cannot be asked: both are told.
func TestAFunctionThatFailsBeforeItsIDIsKnown(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		failed := errors.New("not enough money")
		c := b.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		err := c.freely(ctx, unitofwork.Work{ID: "p"}, func(context.Context, *unitofwork.Unit) error { cancel(); return failed })
		require.ErrorIs(t, err, failed)
		require.ErrorIs(t, err, context.Canceled)
	})
}
