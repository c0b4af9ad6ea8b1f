package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A key is taken from a process that lives, and from one that stands still: others have it after a lease, or
// at once.
func TestFree(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{"after a lease": false, "now": true}
	eachCase(t, cases, func(t *testing.T, e *engines.Engine, _ string, now bool) {
		b := newBed(t, e)
		holder := b.actor(t, "holds", "holder", "k").ready(t)
		args := []string{"free", "k", "--unit", holder.nonce, "--yes", "--lease", b.lease.String(), "--reason", "a test"}
		if now {
			args = append(args, "--now")
			require.NoError(t, holder.Signal(syscall.SIGSTOP))
		}
		start := time.Now()
		got := b.run(t, args...)
		require.Equal(t, exitDone, got.code, "%+v", got)
		require.Contains(t, got.stdout, "key k was taken from unit "+holder.nonce)
		require.Regexp(t, `^time=\S+ level=WARN msg="holdall: an operator took a key" key=k unit=`+holder.nonce+` .* reason="a test" now=`, got.stderr)
		b.run(t, args...).oneError(t, exitError, "was not taken from unit "+holder.nonce) // it has it no more
		if !now {
			_, by, named := strings.Cut(got.stdout, "Until then show names as the holder a unit of ")
			require.True(t, named, got.stdout)
			b.run(t, "show", "k", "--no-watch").has(t, " of "+strings.TrimSpace(by))
		}
		set, err := b.client(t).Locks().Acquire(t.Context(), []ordering.Key{"k"})
		require.NoError(t, err)
		if !now {
			require.Greater(t, time.Since(start), b.lease)
		}
		require.NoError(t, set.Release(t.Context()))
	})
}

func (r ran) has(t *testing.T, text string) {
	t.Helper()
	require.Equal(t, exitDone, r.code, "%+v", r)
	require.Contains(t, r.stdout, text)
}

// What has a journal is finished by that, if its process is dead: recover's tests say how. A unit
// that is alive keeps its key, which the exit code says; the table with its journal is the one that
// the row names; and nothing is recovered on behalf of a unit that has the key no more.
func TestFreeOfAKeyThatAJournalKeeps(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	b.recordsTable(t)
	unit := b.actor(t, "prepares", "unit", "a", "b", "c").ready(t)
	free := func(unit string) ran {
		return b.run(t, "free", "a", "--unit", unit, "--yes", "--lease", b.lease.String(), "--units", b.locks+"-other")
	}
	free("another").oneError(t, exitError, "unit "+unit.nonce+` of owner "unit" has it`)
	got := free(unit.nonce)
	require.Equal(t, exitFound, got.code, "%+v", got)
	require.Contains(t, got.stdout, unit.nonce+": alive")
	require.Contains(t, got.stderr, "which says what becomes of the key")
	require.Contains(t, got.stderr, `key "a" stays with unit `+unit.nonce)
	unit.Kill()
	got = free(unit.nonce)
	require.Equal(t, exitDone, got.code, "%+v", got)
	require.Contains(t, got.stdout, unit.nonce+": aborted")
	b.free(t, "a")
}

func TestFreeRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	b.run(t, "free", "a", "--unit", "u", "--yes").oneError(t, exitError, "it is free")
	set, err := b.client(t).Locks().Acquire(t.Context(), []ordering.Key{"a"})
	require.NoError(t, err)
	b.run(t, "free", "a", "--unit", "u", "--yes").oneError(t, exitError, `unit `+set.Nonce()+` of owner "the test" has it`)
	var said freed
	b.run(t, "free", "a", "--unit", set.Nonce(), "--yes", "-o", "json").json(t, exitDone, &said)
	require.Equal(t, freed{"a", set.Nonce(), false}, said)
	require.Eventually(t, func() bool { return set.Context().Err() != nil }, time.Minute, 10*time.Millisecond)
	require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
}
