package lineup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

// step is the rows that a unit wants for a key.
func step(t *testing.T, unit string, key ordering.Key) []lockrow.Want {
	t.Helper()
	plan, err := plans.New(key)
	require.NoError(t, err)
	return lockrow.Wants(unit, plan, 0)
}

func isReady(c *Claim) bool {
	select {
	case <-c.Ready:
		return true
	default:
		return false
	}
}

// A unit that has rows may have more, without waiting for them.
func TestAUnitAddsRows(t *testing.T) {
	lines := New(tokens.NewClock(time.Now))
	a, b := &Claim{Unit: "a"}, &Claim{Unit: "b"}
	require.Equal(t, 1, lines.Reserve(a, [][]lockrow.Want{step(t, "a", "c/f")}))
	require.True(t, lines.Add(a, step(t, "a", "c/g")))
	require.True(t, lines.Add(a, step(t, "a", "c/g")), "what it has it may have")

	require.Equal(t, 1, lines.Reserve(b, [][]lockrow.Want{step(t, "b", "d")}))
	require.False(t, lines.Add(b, step(t, "b", "c/g")), "another has it")
	require.Equal(t, Blocker{}, lines.WhoBlocks(b), "and it stands in no line")
	require.False(t, lines.Add(b, step(t, "b", "c")), "intents are there")
	require.True(t, lines.Add(b, step(t, "b", "c/h")), "beside those of others")
	lines.Drop(b)
	require.True(t, lines.Add(a, step(t, "a", "c")), "nobody else is below")

	late := &Claim{Unit: "late"}
	require.Zero(t, lines.Reserve(late, [][]lockrow.Want{step(t, "late", "c/g")}))
	lines.Drop(a)
	require.True(t, isReady(late), "all that was added is let go of")
}

// Nobody adds a row past those who stand in its line.
func TestNobodyAddsARowOutOfTurn(t *testing.T) {
	lines := New(tokens.NewClock(time.Now))
	a, b, c := &Claim{Unit: "a"}, &Claim{Unit: "b"}, &Claim{Unit: "c"}
	require.Equal(t, 1, lines.Reserve(a, [][]lockrow.Want{step(t, "a", "c/f")}))
	require.Zero(t, lines.Reserve(b, [][]lockrow.Want{step(t, "b", "c")}))
	require.Equal(t, 1, lines.Reserve(c, [][]lockrow.Want{step(t, "c", "d")}))
	require.False(t, lines.Add(c, step(t, "c", "c/g")), "b came first")
}

// Who has a row is told, once, when somebody stands in line for it.
func TestWhoHasARowIsToldThatItIsAwaited(t *testing.T) {
	lines := New(tokens.NewClock(time.Now))
	told := map[string]int{}
	claim := func(unit string) *Claim {
		return &Claim{Unit: unit, Awaited: func() { told[unit]++ }}
	}
	a, b, c, d := claim("a"), claim("b"), claim("c"), claim("d")
	require.Equal(t, 1, lines.Reserve(a, [][]lockrow.Want{step(t, "a", "c/f")}))
	require.Equal(t, 1, lines.Reserve(b, [][]lockrow.Want{step(t, "b", "c/g")}))
	require.Empty(t, told, "they are not in each other's way")
	require.Zero(t, lines.Reserve(c, [][]lockrow.Want{step(t, "c", "c")}))
	require.Equal(t, map[string]int{"a": 1, "b": 1}, told)
	require.Zero(t, lines.Reserve(d, [][]lockrow.Want{step(t, "d", "c/g")}))
	require.Equal(t, map[string]int{"a": 1, "b": 1}, told, "once")
	lines.Drop(a)
	lines.Drop(b)
	require.True(t, isReady(c))
	require.False(t, isReady(d))
}

// Who has ended has nothing, and is given nothing any more.
func TestWhoHasEndedAddsNothing(t *testing.T) {
	lines := New(tokens.NewClock(time.Now))
	a, b := &Claim{Unit: "a"}, &Claim{Unit: "b"}
	require.Equal(t, 1, lines.Reserve(a, [][]lockrow.Want{step(t, "a", "c")}))
	lines.Drop(a)
	require.False(t, lines.Add(a, step(t, "a", "d")))
	require.Equal(t, 1, lines.Reserve(b, [][]lockrow.Want{step(t, "b", "d")}))
}
