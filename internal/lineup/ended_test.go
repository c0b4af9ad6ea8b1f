package lineup

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
)

// A run that leaves its line, and keeps its place for the next one, keeps nobody behind it waiting
// for what it does not have.
func TestWhoStandsBehindAKeptRunIsTold(t *testing.T) {
	p := newParty(t)
	p.stand("holder", "a/1")
	whole := p.stand("whole", "a")
	behind := p.stand("behind", "a/2")
	require.False(t, isReady(behind), "it arrived later")
	p.Keep(whole)
	require.True(t, isReady(behind))
}

// A claim that has ended is given nothing: nobody would let go of it.
func TestAnEndedClaimIsGivenNothing(t *testing.T) {
	for name, end := range map[string]func(*Lineup, *Claim){"dropped": (*Lineup).Drop, "kept": (*Lineup).Keep} {
		t.Run(name, func(t *testing.T) {
			p := newParty(t)
			c := p.stand("c", "a")
			end(p.Lineup, c)
			want := wantsOf(t, "c", "b")
			require.False(t, p.Add(c, want))
			require.Equal(t, 1, p.Reserve(c, [][]lockrow.Want{want}), "it waits for nobody")
			require.Len(t, p.stand("other", "b").has, 1)
		})
	}
}

// A unit that has ended commits nothing, so no other joins it, although its caller keeps its rows.
func TestNobodyComesAlongWithAnEndedClaim(t *testing.T) {
	p := newParty(t)
	lead := p.stand("lead", "a")
	waits := p.stand("waits", "a")
	p.Keep(lead)
	require.Empty(t, p.along(lead, true))
	p.Gone(lead.Caller)
	require.True(t, isReady(waits), "it has the row when the caller is gone")
}

// A claim that ends while it is with another has nothing to go back to: nobody would let go of
// what it were given.
func TestAnEndedClaimIsNotPutBack(t *testing.T) {
	p := newParty(t)
	lead, ended := p.stand("lead", "a"), p.stand("ended", "a")
	require.Equal(t, []string{"ended"}, p.along(lead, false))
	p.Drop(ended)
	p.Drop(lead)
	p.PutBack(ended)
	require.Len(t, p.stand("next", "a").has, 1)
}
