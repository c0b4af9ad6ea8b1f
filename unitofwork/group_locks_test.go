package unitofwork_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// Under locks a member that needs what is not held runs again, and what the others write has
// the token of the locks.
func TestAMemberThatNeedsMoreThanIsHeld(t *testing.T) {
	for name, more := range map[string]func(context.Context, *unitofwork.Unit) error{
		"writes": insertAccount(account{Customer: "3", ID: "a"}),
		"reads":  readOnly(customers.Ref("3")),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				c, other := b.client("c", nil, r.traced), b.client("other", nil)
				needs := come{unitofwork.Work{ID: "needs"}, after(transfer(1), more)}
				errs := b.behind(other, c, come{unitofwork.Work{ID: "lead"}, transfer(1)}, needs, come{unitofwork.Work{ID: "last"}, transfer(1)})
				noErrors(t, errs)
				alone := map[string]bool{}
				for _, e := range r.ends {
					if e.Outcome == hooks.Committed {
						alone[e.ID] = e.Leader == ""
					}
				}
				require.Equal(t, map[string]bool{"lead": true, "needs": true, "last": false}, alone)
				require.EqualValues(t, 97, b.account("1").Balance)
			})
		})
	}
}

// What members write under locks has the token of these.
func TestWhatMembersWriteUnderLocksIsStamped(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		noErrors(t, b.behind(other, c, come{fn: transfer(1)}, come{fn: transfer(1)}))
		require.Len(t, r.leaders(), 2)
		require.NotZero(t, b.account("1").Fence)
	})
}

// A call that ends before its next run keeps nobody from what it had.
func TestWhatIsKeptForACallThatEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		b.hold(other, 100*time.Millisecond, transferKeys...)
		ctx, end := context.WithCancel(t.Context())
		require.ErrorIs(t, c.freely(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(50)(ctx, u)
			end()
			return err
		}), context.Canceled)
		after, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, c.freely(after, unitofwork.Work{}, transfer(1)))
	})
}

// Units whose keys another process has do not take their locks one by one, if others of their own
// process want them, too.
func TestWhoComesWhileOthersWaitComesAlong(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		b.hold(other, 300*time.Millisecond, transferKeys...)
		var done sync.WaitGroup
		for i := range 10 {
			done.Go(func() {
				time.Sleep(time.Duration(i) * 2 * time.Millisecond)
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
			})
		}
		done.Wait()
		require.Equal(t, [2]int64{90, 110}, b.balances())
		require.Equal(t, 1, r.leaders()[""], "who led the others")
	})
}

// A leader that only reads, and loses its locks meanwhile, may not have seen one state: it is
// not committed, although it has nothing to write.
func TestALeaderThatOnlyReadsAndHasLostItsLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		var once sync.Once
		var sum int64
		reads := func(ctx context.Context, u *unitofwork.Unit) error {
			from, to := accounts.Ref("1", "a"), accounts.Ref("2", "a")
			if err := u.Get(ctx, from); err != nil {
				return err
			}
			if u.Locked() {
				once.Do(func() {
					b.bury(accountKey("1", "a"))
					b.bury(accountKey("2", "a"))
					require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(50)))
				})
			}
			if err := u.Get(ctx, to); err != nil {
				return err
			}
			sum = from.T.Balance + to.T.Balance
			return nil
		}
		lead := come{unitofwork.Work{Keys: transferKeys}, reads}
		errs := b.behind(other, c, lead, come{fn: transfer(1)}, come{fn: transfer(1)})
		noErrors(t, errs[1:])
		require.True(t, errs[0] != nil || sum == 200, sum)
	})
}

// Somebody else is in a leader's way: those who came along do so again once it has its locks, after
// one look at the rows.
func TestFollowersWaitWithTheirLeader(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		b.hold(c, 301*time.Millisecond, transferKeys...)
		var done sync.WaitGroup
		done.Go(func() { b.hold(other, 301*time.Millisecond, transferKeys...) })
		time.Sleep(51 * time.Millisecond) // it waits for them, too
		c.requests()
		errs := make([]error, 5)
		for i := range errs {
			done.Go(func() { errs[i] = c.freely(t.Context(), unitofwork.Work{}, transfer(1)) })
		}
		done.Wait()
		noErrors(t, errs)
		require.Equal(t, [2]int64{95, 105}, b.balances())
		require.Equal(t, 1, r.leaders()[""])
		require.Equal(t, freeRuns+1, c.requests()["TransactGetItems"])
	})
}

// A leader whose function has failed is told that, also when nothing is heard of what its
// followers wrote; its locks may stay until others take over, which the log says.
func TestALeaderThatFailsLeavesLocksInDoubt(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var silent atomic.Bool // its units send beside each other
		log := &logbook{}
		other := b.client("other", nil)
		c := b.client("c", func(call faults.Call) faults.Fault {
			if isCommit(call) {
				silent.Store(true)
			}
			if silent.Load() {
				return faults.LoseRequest(faults.Hang)
			}
			return faults.Pass()
		}, func(l *lockset.Config, _ *unitofwork.Config) { l.Logger = log.logger() })
		mine := errors.New("no")
		fails := func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
				return err
			}
			if !u.Locked() {
				return nil
			}
			return mine
		}
		errs := b.behind(other, c, come{unitofwork.Work{Keys: transferKeys}, fails}, come{fn: transfer(1)})
		require.Equal(t, mine, errs[0])
		require.ErrorIs(t, errs[1], unitofwork.ErrInDoubt)
		require.Contains(t, log.text(), "the locks of a group are in doubt")
	})
}
