//go:build unix

package main

import (
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// shortLives is how many of the processes that want what an actor has live as long as its lease.
const shortLives = 4

// generations has one process after another ask for the key k until one has it, or most of them had
// their time; with several at a time, all of them ask once each generation. It returns which
// generation had the key, 0 if none, and how long they all lived, not counting the time between two.
func (b *bed) generations(t *testing.T, most, atOnce int, process func(lease time.Duration) *exec.Cmd) (nth int, lived time.Duration) {
	t.Helper()
	for n := 1; n <= most; n++ {
		codes, began := make([]int, atOnce), time.Now()
		var all sync.WaitGroup
		for i := range codes {
			cmd := process(b.lease)
			cmd.Env = append(b.environ(), cmd.Env...)
			all.Go(func() {
				_ = cmd.Run()
				codes[i] = cmd.ProcessState.ExitCode()
			})
		}
		all.Wait()
		lived += time.Since(began)
		for _, code := range codes {
			if code == exitDone {
				return n, lived
			}
			require.Equal(t, exitNotGot, code)
		}
	}
	return 0, lived
}

// waiter is a process that waits for as long as it lives.
func waiter(lease time.Duration) *exec.Cmd {
	return exec.Command(program, "exec", "k", "--wait", (lease / shortLives).String(), "--", "true")
}

// poller is one that asks again and again.
func poller(lease time.Duration) *exec.Cmd {
	cmd := exec.Command(actorProgram)
	cmd.Env = append(playing("polls", "short-lived", lease, "k"), "LIFE="+(lease/shortLives).String())
	return cmd
}

// Real processes: a holder dies or stands still, and those who want its key live for a quarter of its
// lease. One of a few has it, and none before somebody was there for a lease in all.
func TestShortLivedProcessesFindOutTheDead(t *testing.T) {
	t.Parallel()
	kill, stop := func(a *actor) { a.Kill() }, func(a *actor) { _ = a.Signal(syscall.SIGSTOP) }
	type want struct {
		befalls func(*actor)
		process func(time.Duration) *exec.Cmd
		atOnce  int
	}
	cases := map[string]want{
		"killed, they wait":               {kill, waiter, 1},
		"killed, they poll":               {kill, poller, 1},
		"killed, they wait two at a time": {kill, waiter, 2},
		"stopped, they wait":              {stop, waiter, 1},
	}
	eachCase(t, cases, func(t *testing.T, e *engines.Engine, _ string, c want) {
		b := newBed(t, e)
		holder := b.actor(t, "watches", "the holder", "k").ready(t)
		c.befalls(holder)
		nth, lived := b.generations(t, 2*shortLives, c.atOnce, c.process) // twice as many as it takes, for a busy machine
		require.Positive(t, nth, "nobody ever has it")
		require.GreaterOrEqual(t, lived, b.lease)
		t.Logf("generation %d has it, %v in all", nth, lived)
		if holder.Alive() {
			require.NoError(t, holder.Signal(syscall.SIGCONT))
			holder.says(t, "lost ")
		}
	})
}

// However many short-lived processes want the key of a holder that lives, it keeps it.
func TestShortLivedProcessesLeaveTheLivingAlone(t *testing.T) {
	t.Parallel()
	cases := map[string]func(time.Duration) *exec.Cmd{"they wait": waiter, "they poll": poller}
	eachCase(t, cases, func(t *testing.T, e *engines.Engine, _ string, process func(time.Duration) *exec.Cmd) {
		b := newBed(t, e)
		for most := 8 * b.lease; ; b = b.slower(t) {
			holder := b.actor(t, "watches", "the holder", "k").ready(t)
			nth, lived := b.generations(t, 2*shortLives, 2, process)
			if strings.Contains(holder.Output(), "lost") && b.lease < most {
				continue // the machine kept it from renewing its lock: this shows nothing
			}
			require.Zero(t, nth, "after %v", lived)
			require.True(t, holder.Alive())
			return
		}
	})
}
