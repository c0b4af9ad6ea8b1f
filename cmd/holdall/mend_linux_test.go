package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// On a terminal it asks about one thing after another, and asks again if it is not understood.
func TestMendAsks(t *testing.T) {
	t.Parallel()
	b := newStuckBed(t, engines.Dynoxide(t))
	unit := b.decided(t, decidesUpdates, "a/1", "a/2", "b")
	newerFence(t, b)
	b.write(t, map[string]any{"key": "a/2", "N": 3, "_fence": laterFence})

	// begins starts mend at a terminal; wait returns its code when it ends.
	begins := func() (types func(string), sees func(string), wait func() int) {
		master, slave := terminal(t)
		cmd := exec.CommandContext(t.Context(), program, "mend", "--", unit)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.environ(), slave, slave, slave
		require.NoError(t, cmd.Start())
		slave.Close()
		lines := linesOf(master)
		return func(answer string) { fmt.Fprintln(master, answer) }, func(text string) {
				t.Helper()
				for !strings.Contains(next(t, lines), text) {
				}
			}, func() int {
				_ = cmd.Wait()
				return cmd.ProcessState.ExitCode()
			}
	}

	types, sees, wait := begins()
	sees(`record key="a/2"`) // what is freed first
	sees("apply        does the unit's write")
	sees("keep         leaves the record")
	types("what?")
	sees("what?") // the answer, behind the question
	types("keep")
	sees("keep: done")
	sees(`record key="a/1"`)
	types("")
	sees("still")
	require.Equal(t, exitFound, wait())
	require.Equal(t, 3.0, b.read(t, "a/2")["N"])
	require.Equal(t, 5.0, b.read(t, "a/1")["N"])

	types, sees, wait = begins()
	sees(`record key="a/1"`)
	types("APPLY")
	sees("nothing is left to mend")
	require.Equal(t, exitDone, wait())
	require.Equal(t, 12.0, b.read(t, "a/1")["N"])
}
