package locks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

func TestReleaseIsCutFromTheEndBetweenSteps(t *testing.T) {
	var keys []ordering.Key
	for i := range 120 {
		keys = append(keys, ordering.Join("p"+string(rune('a'+i/26))+string(rune('a'+i%26)), "x"))
	}
	plan, err := plans.New(keys...)
	require.NoError(t, err)
	rest, chunk := lastChunk(plan, 100)
	require.Len(t, chunk, 50, "two rows a step, 100 actions")
	require.Equal(t, plan[70:], chunk)
	require.Len(t, rest, 70)
}

func TestAnIntentStaysAsLongAsItCoversAKeyThatMayBeHeld(t *testing.T) {
	plan, err := plans.New("a/1", "a/2", "b/1")
	require.NoError(t, err)
	now, waits := independent(plan[:1], plan[1:2]) // a/2 could not be released
	require.Empty(t, now)
	require.Equal(t, plan[:1], waits)
	now, waits = independent(plan[:1], plan[2:]) // b/1 is another family
	require.Equal(t, plan[:1], now)
	require.Empty(t, waits)
}
