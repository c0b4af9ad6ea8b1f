package main

import (
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

	x := b.onTerminal(t, "mend", "--", unit)
	x.shows(t, `record key="a/2"`) // what is freed first
	x.shows(t, "apply        does the unit's write")
	x.shows(t, "keep         leaves the record")
	x.types(t, "what?")
	x.types(t, "keep") // it has asked again
	x.shows(t, "keep: done")
	x.shows(t, `record key="a/1"`)
	x.types(t, "")
	require.Contains(t, x.ends(t, exitFound), "still")
	require.Equal(t, 3.0, b.read(t, "a/2")["N"])
	require.Equal(t, 5.0, b.read(t, "a/1")["N"])

	x = b.onTerminal(t, "mend", "--", unit)
	x.shows(t, `record key="a/1"`)
	x.types(t, "APPLY")
	require.Contains(t, x.ends(t, exitDone), "nothing is left to mend")
	require.Equal(t, 12.0, b.read(t, "a/1")["N"])
}
