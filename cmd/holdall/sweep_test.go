package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// sweptBy are the lines of a sweep, by what was done.
func (r ran) sweptBy(t *testing.T) map[string][]sweptJSON {
	t.Helper()
	all := map[string][]sweptJSON{}
	for line := range strings.Lines(r.stdout) {
		var one sweptJSON
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&one), r.stdout)
		all[one.Did] = append(all[one.Did], one)
	}
	return all
}

func keysSwept(all []sweptJSON) (keys []string) {
	for _, one := range all {
		keys = append(keys, one.Key)
	}
	return keys
}

// Real processes: one is dead, one is stopped and goes on later, one lives.
func TestSweepFreesTheDeadAlone(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		dead := b.actor(t, "watches", "the dead", "c/a", "d").ready(t)
		stopped := b.actor(t, "watches", "the stopped", "s").ready(t)
		living := b.actor(t, "watches", "the living", "c/z", "l").ready(t)
		dead.Kill()
		require.NoError(t, stopped.Signal(syscall.SIGSTOP))

		var would map[string][]sweptJSON
		for start := time.Now(); len(would["freed"]) < 3; { // a renewal of theirs may land late
			require.Less(t, time.Since(start), aLongTime)
			dry := b.run(t, "sweep", "--dry-run", "-o", "json")
			require.Equal(t, exitDone, dry.code, dry)
			would = dry.sweptBy(t)
		}
		require.ElementsMatch(t, []string{"c/a", "d", "s"}, keysSwept(would["freed"]))
		for _, one := range would["freed"] {
			require.True(t, one.DryRun)
		}
		require.Equal(t, []string{"c"}, keysSwept(would["cleaned"]))
		require.Equal(t, "c/a", would["cleaned"][0].Witness)

		dry := b.run(t, "sweep", "--dry-run")
		require.True(t, strings.HasSuffix(dry.stdout, "would be: 3 freed, 1 cleaned; 2 alive; nothing was written\n"), dry.stdout)
		r := b.run(t, "sweep")
		require.Equal(t, exitDone, r.code, r)
		require.Contains(t, r.stdout, `d: freed; unit `+dead.nonce+` of "the dead" for "payment" is dead, silent for `)
		require.Contains(t, r.stdout, `c/a: freed; unit `+dead.nonce)
		require.Contains(t, r.stdout, `s: freed; unit `+stopped.nonce+` of "the stopped" for "payment" is dead`)
		require.Contains(t, r.stdout, "c: cleared of what unit "+dead.nonce+" has left for c/a\n")
		require.True(t, strings.HasSuffix(r.stdout, "3 freed, 1 cleaned; 2 alive\n"), r.stdout)
		require.NotContains(t, r.stdout, living.nonce)

		require.NoError(t, stopped.Signal(syscall.SIGCONT))
		stopped.says(t, "lost ")
		require.True(t, living.Alive())
		require.NotContains(t, living.Output(), "lost")
		again := b.run(t, "sweep", "--dry-run")
		require.Equal(t, "nobody is dead; 3 alive; nothing was written\n", again.stdout)
		set, err := b.client(t).Locks().TryAcquire(t.Context(), []ordering.Key{"c/a", "d", "s"})
		require.NoError(t, err)
		require.NoError(t, set.Release(t.Context()))
	})
}

// A dead unit with a journal is finished with the unit table, and kept without.
func TestSweepSettlesByTheJournal(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		e.CreateTable(t, "locks-records", "key", "")
		dead := b.actor(t, "prepares", "the dead", "p/1", "p/2", "p/3").ready(t)
		dead.Kill()
		r := b.run(t, "sweep", "--units", "", "p")
		for start := time.Now(); strings.Contains(r.stdout, "4 alive"); r = b.run(t, "sweep", "--units", "", "p") { // a renewal landed late
			require.Less(t, time.Since(start), aLongTime)
		}
		require.Equal(t, exitFound, r.code, r)
		require.Contains(t, r.stdout, "p/1: kept: unit \""+dead.nonce+"\" has its journal in table \""+b.units+"\", which this client does not know\n")
		require.True(t, strings.HasSuffix(r.stdout, "4 kept; 0 alive\n"), r.stdout)

		r = b.run(t, "sweep", "-o", "json")
		require.Equal(t, exitDone, r.code, r)
		did := r.sweptBy(t)
		require.ElementsMatch(t, []string{"p/1", "p/2", "p/3"}, keysSwept(did["settled"]))
		require.Equal(t, ran{0, "nobody is dead; 0 alive\n", ""}, b.run(t, "sweep"))
	})
}

// Sweeps that are told to end before a lease is over leave what they know behind.
func TestShortSweepsFindOutTheDeadTogether(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	long := max(8*time.Second, 2*b.lease) // of which a process sees a quarter
	net := faults.Wrap(b.Client, faults.Config{})
	c, err := lockset.New(net, lockset.Config{Table: b.locks, Lease: long, Owner: "the dead"})
	require.NoError(t, err)
	_, err = c.Acquire(t.Context(), []ordering.Key{"a"})
	require.NoError(t, err)
	net.Crash()
	for n := 1; ; n++ {
		require.Less(t, n, 20)
		cmd := b.command("sweep")
		var out bytes.Buffer
		cmd.Stdout = &out
		require.NoError(t, cmd.Start())
		end := time.AfterFunc(long/4, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		_ = cmd.Wait()
		end.Stop()
		if cmd.ProcessState.ExitCode() == exitDone {
			require.Greater(t, n, 2)
			require.Contains(t, out.String(), "a: freed; ")
			return
		}
		require.Equal(t, exitSignal+int(syscall.SIGTERM), cmd.ProcessState.ExitCode())
		require.Empty(t, out.String())
	}
}

// With --every it goes on until it is stopped.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	sweeps := b.begin(t, "sweep", "--every", "10ms")
	require.Equal(t, "nobody is dead; 0 alive", next(t, sweeps.lines))
	b.actor(t, "holds", "the dead", "k").ready(t).Kill()
	for !strings.HasPrefix(next(t, sweeps.lines), "k: freed; ") {
	}
	sweeps.interrupted(t, syscall.SIGTERM)
}

func TestSweepKeepsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	b.put(t, b.locks, map[string]any{"key": "x", "unit": "another's"})
	r := b.run(t, "sweep")
	require.Equal(t, exitFound, r.code, r)
	require.Contains(t, r.stdout, "x: kept: table ")
	require.Empty(t, r.stderr)
}
