package unitofwork_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
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

func readOnly(record unitofwork.Record) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, record) }
}

// Two stand in line for what somebody holds. The first of them gets it, and takes its time
// with it: the second overtakes, even if the first waits for it.
func TestAFunctionThatTakesItsTimeAfterItStoodInLine(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		own, err := c.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		second, first := make(chan error, 1), make(chan error, 1)
		go func() {
			first <- c.freely(ctx, unitofwork.Work{}, readSlowly(accounts.Ref("1", "a"), func(ctx context.Context) error {
				select {
				case err := <-second:
					return err
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}))
		}()
		time.Sleep(time.Second) // longer than a function may take, which has not begun
		go func() { second <- c.freely(ctx, unitofwork.Work{}, readOnly(accounts.Ref("1", "a"))) }()
		time.Sleep(time.Second)
		start := time.Now()
		require.NoError(t, own.Release(t.Context()))
		require.NoError(t, <-first)
		require.Less(t, time.Since(start), 100*time.Millisecond)
	})
}

// A run reads below a key that others of its process wait for as a whole: it overtakes them,
// for it came before, and they overtake it when it takes its time.
func TestAFunctionThatTakesItsTimeBelowAKeyThatIsAwaited(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		read, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			_ = c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				if u.Locked() {
					return nil
				}
				if err := u.Get(ctx, accounts.Ref("2", "a")); err != nil {
					return err
				}
				close(read)
				<-goOn
				if err := u.Get(ctx, accounts.Ref("1", "b")); err != nil {
					return err
				}
				time.Sleep(5 * time.Minute)
				return nil
			})
		}()
		<-read
		own, err := c.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
		require.NoError(t, err)
		whole := make(chan error, 1)
		go func() { whole <- c.freely(t.Context(), unitofwork.Work{}, readOnly(customers.Ref("1"))) }()
		time.Sleep(5 * time.Millisecond)
		close(goOn)
		time.Sleep(5 * time.Millisecond)
		start := time.Now()
		require.NoError(t, own.Release(t.Context()))
		require.NoError(t, <-whole)
		require.Less(t, time.Since(start), time.Second)
		<-done
	})
}

// Who comes while a request is under way waits for it, and not for the function after it.
func TestAFunctionThatTakesItsTimeAfterARequest(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			slow := func(context.Context) error { time.Sleep(5 * time.Minute); return nil }
			_ = c.freely(t.Context(), unitofwork.Work{}, readSlowly(accounts.Ref("1", "a"), slow))
		}()
		time.Sleep(rtt / 4)
		start := time.Now()
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, readOnly(accounts.Ref("1", "a"))))
		require.Less(t, time.Since(start), 100*time.Millisecond)
		<-done
	})
}

// Units that only write line up like those that read.
func TestUnitsOfOneProcessThatOnlyWriteLineUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced)
		var all sync.WaitGroup
		const units = 10
		for i := range units {
			all.Go(func() {
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{Alone: true}, func(ctx context.Context, u *unitofwork.Unit) error {
					if i%2 == 0 {
						if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
							return err
						}
					}
					return addBlindly(1)(ctx, u)
				}))
			})
		}
		all.Wait()
		require.EqualValues(t, 100+units, b.account("1").Balance)
		require.Equal(t, map[string]int{"TransactGetItems": units / 2, "TransactWriteItems": units}, c.requests())
	})
}

// addBlindly adds to an account that it does not read.
func addBlindly(n int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		return u.Update(accounts.Ref("1", "a"), unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": n}})
	}
}

// A Get that waits in line ends with its unit, whatever context it was given.
func TestAGetInLineThatItsFunctionDidNotWaitFor(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		failed := errors.New("failed")
		c := b.client("c", nil)
		own, err := c.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
		require.NoError(t, err)
		ended := make(chan error)
		start := time.Now()
		require.ErrorIs(t, c.freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			go func() { ended <- u.Get(context.Background(), accounts.Ref("1", "a")) }()
			time.Sleep(time.Millisecond)
			return failed
		}), failed)
		require.ErrorIs(t, <-ended, unitofwork.ErrEnded)
		require.Less(t, time.Since(start), time.Second)
		require.NoError(t, own.Release(t.Context()))
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, readOnly(accounts.Ref("1", "a"))))
		b.allFree()
	})
}

// Who has stood in line for long, behind lock sets, has its rows for as long as it needs them,
// also if it does not go on at once.
func TestUnitsThatStandInLineForLong(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Wait, func(context.Context, trace.Event) { time.Sleep(time.Millisecond) }))
		})
		own, err := c.locks.Acquire(t.Context(), transferKeys)
		require.NoError(t, err)
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
