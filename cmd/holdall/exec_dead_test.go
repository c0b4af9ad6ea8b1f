//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// deadWaiters is how many waiters are killed. Removing them one after the other, each after its own
// Grace, would take longer than the tests below allow.
const deadWaiters = 15

// killWaiters has deadWaiters processes wait for the key k, and kills all of them.
func (b *bed) killWaiters(t *testing.T) {
	t.Helper()
	waiters := make([]*engines.Child, deadWaiters)
	for i := range waiters {
		child, err := engines.StartChild(b.command("exec", "k", "--", "true"))
		require.NoError(t, err)
		t.Cleanup(child.Kill)
		waiters[i] = child
	}
	for began := time.Now(); b.queued(t, "k") < deadWaiters; time.Sleep(10 * time.Millisecond) {
		for _, w := range waiters {
			require.True(t, w.Alive(), "a waiter has ended: %s", w.Output())
		}
		require.Less(t, time.Since(began), aLongTime, "%d wait", b.queued(t, "k"))
	}
	for _, w := range waiters {
		w.Kill()
	}
	require.Equal(t, deadWaiters, b.queued(t, "k"), "a killed waiter keeps its place")
}

// A command that waits for nobody watches nobody. The dates in the row tell it that the holder and the
// waiters are dead.
func TestExecWithoutWaitingAfterAKill(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		call := func() ran { return b.run(t, "exec", "k", "--wait", "0s", "--lease", b.lease.String(), "--", "true") }

		// The dead waiters are passed once the key has been free for two Grace and the precision of the
		// clock. If the holder is dead, the key counts as free two leases and 30 s after its last renewal.
		free := 2*b.lease/4 + 5*time.Second
		var release func()
		if testing.Short() {
			holder := b.start(t, b.environ(), `echo ready; sleep 1000`)
			release = func() { holder.interrupted(t, syscall.SIGTERM) }
		} else {
			release = b.actor(t, "holds", "the holder", "k").ready(t).Kill
			free += 2*b.lease + 30*time.Second
		}
		b.killWaiters(t)
		release()
		began := time.Now()

		call().oneError(t, exitNotGot, `key "k"`)
		require.Less(t, time.Since(began), free, "the machine is too slow for this test")
		time.Sleep(time.Until(began.Add(free)))
		require.Equal(t, ran{}, call(), "%v after the key was left", time.Since(began))
		require.Zero(t, b.queued(t, "k"))
	})
}
