package tokens_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/tokens"
)

func TestTokensRiseWhateverTheWallClockDoes(t *testing.T) {
	wall := time.UnixMicro(1_000_000)
	clock := tokens.NewClock(func() time.Time { return wall })
	require.Equal(t, fencing.Token(1_000_000), clock.Next())
	require.Equal(t, fencing.Token(1_000_001), clock.Next(), "a clock that stands still")
	wall = time.UnixMicro(5)
	require.Equal(t, fencing.Token(1_000_002), clock.Next(), "a clock set back")
	clock.Saw(2_000_000)
	require.Equal(t, fencing.Token(2_000_001), clock.Next(), "another owner's clock is ahead")
	clock.Saw(7)
	require.Equal(t, fencing.Token(2_000_002), clock.Next(), "an old token changes nothing")
	wall = time.UnixMicro(3_000_000)
	require.Equal(t, fencing.Token(3_000_000), clock.Next(), "the wall clock caught up")
}

func TestCorruptTokensDoNotPushTheClock(t *testing.T) {
	clock := tokens.NewClock(func() time.Time { return time.UnixMicro(10) })
	for _, corrupt := range []fencing.Token{1<<63 - 1, 1<<53 - 1, tokens.Max + 1, -1, 0} {
		require.False(t, corrupt.Valid())
		clock.Saw(corrupt)
	}
	require.Equal(t, fencing.Token(10), clock.Next())
	clock.Saw(tokens.Max - 1)
	require.Equal(t, tokens.Max, clock.Next())
	require.True(t, tokens.Max.Valid())
	require.True(t, fencing.Token(time.Date(2218, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()).Valid())
}

func TestTheLatestTimeFollowsTokensAndTheWallClock(t *testing.T) {
	wall := time.UnixMicro(1_000_000)
	clock := tokens.NewClock(func() time.Time { return wall })
	require.Equal(t, wall, clock.Latest())
	clock.Saw(2_000_000)
	require.Equal(t, time.UnixMicro(2_000_000), clock.Latest())
	wall = time.UnixMicro(3_000_000)
	require.Equal(t, wall, clock.Latest())
}

func TestConcurrentProposalsAreDistinct(t *testing.T) {
	clock := tokens.NewClock(func() time.Time { return time.UnixMicro(1) })
	var mu sync.Mutex
	seen := map[fencing.Token]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				token := clock.Next()
				mu.Lock()
				seen[token] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 8000)
}

func TestTheClockFollowsNoTokenBeyondTheLast(t *testing.T) {
	for _, corrupt := range []fencing.Token{tokens.Max + 1, 1<<53 - 1, 1 << 62} {
		clock := tokens.NewClock(func() time.Time { return time.UnixMicro(10) })
		clock.Saw(corrupt)
		require.Equal(t, fencing.Token(10), clock.Next(), "after %v", corrupt)
	}
}
