package leases

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// locks is a client of a process's, with a table if there is none.
func locks(t *testing.T, p *holdalltest.Process, lease time.Duration, watch *trace.Trace) *lockset.Client {
	cfg := lockset.Config{Table: "locks", Lease: lease, Trace: watch}
	require.NoError(t, lockset.CreateTable(t.Context(), p, cfg))
	c, err := lockset.New(p, cfg)
	require.NoError(t, err)
	return c
}

func keys(n int) (all []ordering.Key) {
	for i := range n {
		all = append(all, ordering.Join(fmt.Sprintf("account:%d", i)))
	}
	return all
}

func page(t *testing.T) string {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// The rows of the page's table are what a configuration with nothing but its lease has and does.
func TestWhatFollowsFromALease(t *testing.T) {
	all := []time.Duration{time.Minute, 20 * time.Second, 5 * time.Second, 2 * time.Second, time.Second}
	if testing.Short() {
		all = all[:3] // an hour of short ones is many requests
	}
	for _, lease := range all {
		t.Run(lease.String(), func(t *testing.T) {
			c, err := lockset.New(holdalltest.DynamoDB().Client(), lockset.Config{Table: "locks", Lease: lease})
			require.NoError(t, err)
			cfg := c.Config()
			requests, units := held(t, lease)
			crash := afterACrash(t, lease)
			require.GreaterOrEqual(t, crash, lease)
			require.LessOrEqual(t, crash, lease*105/100)
			survives(t, lease, lease/2, true)
			survives(t, lease, lease*9/10, false)
			round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
			require.Contains(t, page(t), fmt.Sprintf("| %v | %v | %v | %v | %v | %v | %v to %v | %d | %.0f |", lease, round(cfg.Heartbeat), round(cfg.Margin), round(cfg.AttemptTimeout),
				round(cfg.Grace), round(lease/2), round(lease), round(lease*105/100), requests, units))
		})
	}
}

// held holds 24 keys for an hour, and returns what was sent for that, and the write units of it.
func held(t *testing.T, lease time.Duration) (requests int, units float64) {
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		c := locks(t, db.Process("holder"), lease, nil)
		set, err := c.Acquire(t.Context(), keys(24))
		require.NoError(t, err)
		before, _, written := db.Requests()
		time.Sleep(time.Hour)
		after, _, all := db.Requests()
		require.NoError(t, set.Release(t.Context()))
		requests, units = after-before, all-written
	})
	return requests, units
}

// afterACrash is how long after the last sign of life of a holder who has died one who waited has its key.
func afterACrash(t *testing.T, lease time.Duration) (after time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		db.SetLatency(5 * time.Millisecond)
		holder := db.Process("holder")
		_, err := locks(t, holder, lease, nil).Acquire(t.Context(), keys(1))
		require.NoError(t, err)
		sign := time.Now()
		go func() {
			time.Sleep(time.Millisecond)
			holder.Crash()
		}()
		set, err := locks(t, db.Process("waiter"), lease, nil).Acquire(t.Context(), keys(1))
		require.NoError(t, err)
		after = time.Since(sign)
		require.NoError(t, set.Release(t.Context()))
		time.Sleep(2 * lease) // the dead one's goroutines have given up
	})
	return after
}

// survives has a holder's process pause at any time between two renewals, and looks whether its set
// is still held afterwards.
func survives(t *testing.T, lease, pause time.Duration, want bool) {
	for from := time.Duration(0); from < lease/3; from += lease / 24 {
		synctest.Test(t, func(t *testing.T) {
			db := holdalltest.DynamoDB()
			p := db.Process("holder")
			set, err := locks(t, p, lease, nil).Acquire(t.Context(), keys(1))
			require.NoError(t, err)
			time.Sleep(3*lease + from)
			p.Pause()
			time.Sleep(pause)
			p.Resume()
			time.Sleep(lease / 10)
			require.Equal(t, want, set.Context().Err() == nil, "a pause of %v, %v after a renewal may be due", pause, from)
			require.Equal(t, want, set.Release(t.Context()) == nil)
		})
	}
}

// The lease that counts is that in the row, its holder's: one process may have a new one before another.
func TestAFleetWithTwoLeases(t *testing.T) {
	const short, long = 2 * time.Second, 10 * time.Second
	for _, lease := range []time.Duration{short, long} {
		synctest.Test(t, func(t *testing.T) {
			db := holdalltest.DynamoDB()
			dead := db.Process("dead")
			_, err := locks(t, dead, lease, nil).Acquire(t.Context(), keys(1))
			require.NoError(t, err)
			dead.Crash()
			other := short + long - lease
			began := time.Now()
			set, err := locks(t, db.Process("waiter"), other, nil).Acquire(t.Context(), keys(1))
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(began), lease)
			require.Less(t, time.Since(began), lease+other/20+time.Second/10) // it looks as often as its own lease says
			require.NoError(t, set.Release(t.Context()))
			time.Sleep(2 * lease)
		})
	}
}

// What Watch says before a set is lost, and that it says nothing of one that is well.
func TestWatch(t *testing.T) {
	const lease = 20 * time.Second
	for pause, want := range map[time.Duration][]string{
		0:                {},
		13 * time.Second: {"a lease is almost over"},
		30 * time.Second: {"a lease is almost over", "locks were lost"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			db := holdalltest.DynamoDB()
			p := db.Process("holder")
			watch := Watch(slog.New(slog.NewTextHandler(&said, nil)), lease)
			set, err := locks(t, p, lease, watch).Acquire(t.Context(), keys(1))
			require.NoError(t, err)
			p.Partition(pause > 0)
			time.Sleep(pause)
			p.Partition(false)
			time.Sleep(time.Minute)
			_ = set.Release(context.WithoutCancel(t.Context()))
			synctest.Wait() // the hooks have returned
			if len(want) == 0 {
				require.Empty(t, said.String())
			}
			for _, line := range want {
				require.Contains(t, said.String(), line)
			}
			require.Equal(t, len(want) == 2, bytes.Contains(said.Bytes(), []byte("locks were lost")))
		})
	}
}
