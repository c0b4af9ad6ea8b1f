package lineup

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

// party is a lineup and units that want keys, each in one step.
type party struct {
	t *testing.T
	*Lineup
}

func newParty(t *testing.T) *party { return &party{t, New(tokens.NewClock(time.Now))} }

// stand has a unit want keys. It comes along, if it is asked.
func (p *party) stand(unit string, keys ...ordering.Key) *Claim {
	c := &Claim{Unit: unit, With: unit}
	p.Reserve(c, [][]lockrow.Want{wantsOf(p.t, unit, keys...)})
	return c
}

// wantsOf are the rows of keys, as one step.
func wantsOf(t *testing.T, unit string, keys ...ordering.Key) (all []lockrow.Want) {
	for _, key := range keys {
		for _, w := range step(t, unit, key) {
			if !slices.ContainsFunc(all, func(s lockrow.Want) bool { return s.Key == w.Key }) {
				all = append(all, w)
			}
		}
	}
	return all
}

// along are those who come along with c.
func (p *party) along(c *Claim, more bool, stay ...string) (came []string) {
	p.TakeAlong(c, more, func(with any) bool {
		if slices.Contains(stay, with.(string)) {
			return false
		}
		came = append(came, with.(string))
		return true
	})
	return came
}

func TestWhoWaitsForTheSameComesAlong(t *testing.T) {
	p := newParty(t)
	lead := p.stand("lead", "a")
	second, third := p.stand("second", "a"), p.stand("third", "a")
	other := p.stand("other", "b")

	require.Equal(t, []string{"second", "third"}, p.along(lead, false))
	require.True(t, isReady(second) && isReady(third))
	require.True(t, p.Came(second))
	require.False(t, p.Came(second), "it was asked")
	require.False(t, p.Came(lead) || p.Came(other))
	require.Empty(t, second.has)

	p.Drop(lead)
	next := p.stand("next", "a")
	require.NotEmpty(t, next.has, "those who came along keep nobody out")
	require.Empty(t, p.along(lead, true), "who has ended takes nobody along")
}

func TestAllComesBelowWhatIsHadAsAWhole(t *testing.T) {
	p := newParty(t)
	lead := p.stand("lead", "a")
	p.stand("below", "a/1")
	require.Equal(t, []string{"below"}, p.along(lead, false))
}

func TestWhoWantsTheWholeDoesNotComeAlongWithAPart(t *testing.T) {
	p := newParty(t)
	lead := p.stand("lead", "a/1")
	whole := p.stand("whole", "a")
	p.stand("after", "a/1")
	require.Empty(t, p.along(lead, true), "the one after it would overtake it")
	p.Drop(lead)
	require.True(t, isReady(whole))
}

func TestWhatElseIsWantedIsGivenOrNot(t *testing.T) {
	p := newParty(t)
	lead := p.stand("lead", "a")
	p.stand("both", "a", "b")
	require.Empty(t, p.along(lead, false), "it may have no more")
	require.Equal(t, []string{"both"}, p.along(lead, true))
	free := p.stand("free", "b")
	require.False(t, isReady(free), "the one that leads has it now")
	p.Drop(lead)
	require.True(t, isReady(free))
}

func TestWhoIsKeptOutElsewhereKeepsNobodyFromComing(t *testing.T) {
	p := newParty(t)
	lead, _ := p.stand("lead", "a"), p.stand("elsewhere", "b")
	p.stand("both", "a", "b")
	p.stand("one", "a")
	require.Equal(t, []string{"one"}, p.along(lead, true))
}

func TestWhoStaysIsNotOvertaken(t *testing.T) {
	p := newParty(t)
	lead := p.stand("lead", "a")
	p.stand("first", "a")
	p.stand("stays", "a")
	p.stand("last", "a")
	require.Equal(t, []string{"first"}, p.along(lead, true, "stays"))
}

func TestWhoIsPutBackStandsWhereItStood(t *testing.T) {
	p := newParty(t)
	lead := p.stand("lead", "a")
	first, second := p.stand("first", "a"), p.stand("second", "a")
	require.Len(t, p.along(lead, false), 2)
	late := p.stand("late", "a")
	p.PutBack(second)
	p.PutBack(first)
	require.True(t, p.Came(first), "though it was put back since")
	p.Drop(lead)
	require.True(t, isReady(first))
	require.False(t, isReady(second) || isReady(late))
	p.Drop(first)
	require.True(t, isReady(second))
	require.False(t, isReady(late))
}

func TestWhoIsPutBackHasItAtOnceIfNobodyIsInTheWay(t *testing.T) {
	p := newParty(t)
	lead, first := p.stand("lead", "a"), p.stand("first", "a")
	p.along(lead, false)
	p.Drop(lead)
	p.PutBack(first)
	require.True(t, isReady(first))
	require.NotEmpty(t, first.has)
	p.PutBack(first)
	require.NotEmpty(t, first.has, "it was not taken")
}

func TestACallerKeepsItsPlace(t *testing.T) {
	p := newParty(t)
	caller := &Caller{}
	once := &Claim{Unit: "once", Caller: caller}
	p.Reserve(once, [][]lockrow.Want{wantsOf(t, "once", "a")})
	holder := p.stand("holder", "b")
	early := p.stand("early", "b")
	p.Drop(once)
	again := &Claim{Unit: "again", Caller: caller}
	p.Reserve(again, [][]lockrow.Want{wantsOf(t, "again", "b")})
	p.Drop(holder)
	require.True(t, isReady(again), "it arrived before the one that stood in line before it")
	require.False(t, isReady(early))
}

func TestWhatACallerKeepsIsForItsNextClaim(t *testing.T) {
	p := newParty(t)
	caller := &Caller{}
	once := &Claim{Unit: "once", Caller: caller}
	p.Reserve(once, [][]lockrow.Want{wantsOf(t, "once", "a", "b")})
	forA, forB := p.stand("for a", "a"), p.stand("for b", "b")
	p.Keep(once)
	p.Drop(once)
	require.False(t, isReady(forA) || isReady(forB), "there may be a next one")
	next := &Claim{Unit: "next", Caller: caller}
	require.Equal(t, 1, p.Reserve(next, [][]lockrow.Want{wantsOf(t, "next", "a")}))
	require.False(t, isReady(forA))
	require.True(t, isReady(forB), "the next one does not want it")
	p.Keep(next)
	p.Gone(caller)
	require.True(t, isReady(forA))
}
