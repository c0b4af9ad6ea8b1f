package unitofwork_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A unit whose clock is behind is outrun by others again and again. It raises its token once,
// then its run is void.
func TestATokenIsRaisedOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		ahead := b.client("ahead", nil, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Now = func() time.Time { return time.Now().Add(time.Minute) }
		})
		write := func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 5}))
		}
		outrun := 0
		behind := b.client("behind", func(call faults.Call) faults.Fault {
			if isCommit(call) && outrun < 2 {
				outrun++
				require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, write))
			}
			return faults.Pass()
		}, r.traced)
		require.NoError(t, behind.freely(t.Context(), unitofwork.Work{}, write))
		require.Equal(t, []string{"free fell back", "free committed"}, r.texts())
		require.Equal(t, 2, outrun)
	})
}

// A record was not there when it was read. A holder that has lost its lock writes it late: it
// is not overwritten.
func TestALateWriteOfWhatWasNotThere(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		late, c := b.client("late", nil), b.client("c", nil)
		set, err := late.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "b")})
		require.NoError(t, err)
		require.NoError(t, set.Release(t.Context()))
		calls := 0
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			one := accounts.Ref("1", "b")
			if err := u.Get(ctx, one); err != nil {
				return err
			}
			if calls++; calls == 1 {
				require.False(t, one.Found)
				b.writeLate(set, "1", "b", 500)
			} else {
				require.EqualValues(t, 500, one.T.Balance)
			}
			one.T.Customer, one.T.ID = "1", "b"
			one.T.Balance++
			return u.Put(one)
		}))
		require.Equal(t, 2, calls)
	})
}

// A unit that is too large for one transaction has met nobody: it takes its locks.
func TestAUnitThatIsTooLargeIsNotTriedAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
				return err
			}
			for i := range 120 {
				if err := u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint("n", i)})); err != nil {
					return err
				}
			}
			return nil
		}))
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1)))
		require.Equal(t, []string{"free fell back", "locked committed", "free committed"}, r.texts())
	})
}

// Keys whose rows are too many to be looked at are locked at once.
func TestManyKeysThatAreNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		for rows, want := range map[int]string{50: "free committed", 51: "locked committed"} {
			var r runs
			c := b.client("c", nil, r.traced)
			keys := []ordering.Key{accountKey("1", "a")} // two rows
			for i := range rows - 2 {
				keys = append(keys, ordering.Join(fmt.Sprint("k", i)))
			}
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: keys}, readOnly(accounts.Ref("1", "a"))))
			require.Equal(t, []string{want}, r.texts())
		}
	})
}

// While a commit is on its way, however long, its neighbours wait.
func TestRequestsThatTakeTheirTime(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", atCommits(1, 4, faults.Throttle(faults.InReasons, 1)), r.traced)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(30))) })
		}
		all.Wait()
		require.Equal(t, []string{"free committed", "free committed"}, r.texts())
		require.Equal(t, [2]int64{40, 160}, b.balances())
	})
}

// What a run without locks has waited for its neighbours is not waited for once more.
func TestTheRecordWaitSpansAllRuns(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, next := b.client("c", nil, r.traced), b.client("next", nil)
		own, err := c.locks.Acquire(t.Context(), transferKeys)
		require.NoError(t, err)
		time.AfterFunc(600*time.Millisecond, func() { _ = own.Release(context.WithoutCancel(t.Context())) })
		var has sync.WaitGroup
		has.Go(func() { _, err := next.locks.Acquire(t.Context(), transferKeys); require.NoError(t, err) })
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		err = c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(time.Second)}, transfer(1))
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.InDelta(t, time.Second, time.Since(start), float64(200*time.Millisecond))
		require.Equal(t, inVain("locked not committed"), r.texts())
		has.Wait()
	})
}
