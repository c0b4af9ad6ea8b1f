package main

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/internal/local"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

func TestMainInVirtualTime(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer func(stdout *os.File) { os.Stdout = stdout }(os.Stdout)
	os.Stdout = out
	synctest.Test(t, func(*testing.T) { main() })
	require.NoError(t, out.Close())
	said, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	require.Equal(t, `host-1 is at work
host-2 waits for host-1 with its reports
host-1 is done: <nil>
host-2 is at work
host-2 is done: <nil>
`, string(said))
}

// client is one of a host whose network fails when cut is set.
func client(t *testing.T, db lockset.DynamoDB, name string, cut *atomic.Bool) *lockset.Client {
	t.Helper()
	line := faults.Wrap(db, faults.Config{Script: func(faults.Call) faults.Fault {
		if cut.Load() {
			return faults.CrashHere(false)
		}
		return faults.Pass()
	}})
	locks, err := lockset.New(line, lockset.Config{Table: "locks", Owner: name, Lease: 2 * time.Second})
	require.NoError(t, err)
	return locks
}

// A host that loses its network is told to stop before another begins.
func TestTheContextEndsBeforeAnotherBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := local.DynamoDB(t.Context())
		require.NoError(t, err)
		var cut, never atomic.Bool
		var stopped time.Time
		first := make(chan error, 1)
		begun := make(chan fencing.Token, 1)
		go func() {
			first <- exclusively(t.Context(), client(t, db, "host-1", &cut), time.Second, func(ctx context.Context, token fencing.Token) error {
				begun <- token
				cut.Store(true)
				<-ctx.Done()
				stopped = time.Now()
				return context.Cause(ctx)
			})
		}()
		older := <-begun
		err = exclusively(t.Context(), client(t, db, "host-2", &never), time.Minute, func(_ context.Context, token fencing.Token) error {
			require.False(t, stopped.IsZero(), "both are at work")
			require.Greater(t, token, older)
			return nil
		})
		require.NoError(t, err)
		require.ErrorIs(t, <-first, lockset.ErrLost)
	})
}

func TestTheWorkEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, err := local.DynamoDB(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		locks := client(t, db, "host-1", new(atomic.Bool))
		err = exclusively(ctx, locks, time.Second, func(ctx context.Context, _ fencing.Token) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		set, err := locks.TryAcquire(t.Context(), []ordering.Key{"job:x"})
		require.NoError(t, err, "the lock was released")
		require.NoError(t, set.Release(t.Context()))
	})
}

// exclusively is how the example works.
func exclusively(ctx context.Context, locks *lockset.Client, wait time.Duration, work func(context.Context, fencing.Token) error) error {
	return locks.With(ctx, []ordering.Key{"job:x"}, work, func(o *lockset.Options) { o.Wait = lockset.For(wait) })
}
