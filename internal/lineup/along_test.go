package lineup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
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

// standBriefly has a brief unit want keys. It comes along, if it is asked.
func (p *party) standBriefly(unit string, keys ...ordering.Key) *Claim {
	c := &Claim{Unit: unit, With: unit, Brief: true}
	p.Reserve(c, [][]lockrow.Want{wantsOf(p.t, unit, keys...)})
	return c
}

func TestWhoIsBriefKeepsWhatComesBefore(t *testing.T) {
	p := newParty(t)
	b := p.standBriefly("b", "b")
	both := p.standBriefly("both", "a", "b")
	after := p.standBriefly("after", "a")
	p.Drop(b)
	require.True(t, isReady(both))
	require.False(t, isReady(after), "both came first, and kept it")
	p.Drop(both)
	require.True(t, isReady(after))
}

func TestNobodyIsKeptWaitingForWhoIsNotBrief(t *testing.T) {
	t.Run("when it comes", func(t *testing.T) {
		p := newParty(t)
		p.stand("slow", "b")
		p.standBriefly("both", "a", "b")
		require.NotEmpty(t, p.standBriefly("after", "a").has)
	})
	t.Run("when another is before it in line", func(t *testing.T) {
		p := newParty(t)
		p.standBriefly("b", "b")
		p.stand("slow", "b")
		p.standBriefly("both", "a", "b")
		require.NotEmpty(t, p.standBriefly("after", "a").has)
	})
	t.Run("when another comes before it in line", func(t *testing.T) {
		p := newParty(t)
		early := &Claim{Unit: "early"}
		p.Reserve(early, [][]lockrow.Want{wantsOf(t, "early", "c")})
		p.Secured(early, 1)
		p.standBriefly("b", "b")
		p.standBriefly("both", "a", "b")
		after := p.standBriefly("after", "a")
		require.Empty(t, after.has)
		p.Reserve(early, [][]lockrow.Want{{{Key: "b", Step: 1}}})
		require.True(t, isReady(after))
	})
}

func TestAllWhoWaitForWhatOnesThatComeAlongKeepComeAlong(t *testing.T) {
	p := newParty(t)
	lead := p.standBriefly("lead", "c")
	p.standBriefly("both", "a", "c")
	p.standBriefly("a", "a")
	p.standBriefly("more", "a", "b")
	require.Equal(t, []string{"both", "a", "more"}, p.along(lead, true))
	for _, key := range []ordering.Key{"a", "b", "c"} {
		require.Len(t, p.rows[key].has, 1)
		require.True(t, p.rows[key].has[lead], "%s", key)
	}
	p.Drop(lead)
	require.Empty(t, p.rows)
}

// Whatever brief units and others want, in whatever order things happen: nobody waits for ever,
// nobody has what another has, and who waits keeps only what comes before.
func TestBriefAndOthersInAnyOrder(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			p := &party{t, New(tokens.NewClock(time.Now))}
			var waiting, had, taken []*Claim
			hear := func() {
				waiting = slices.DeleteFunc(waiting, func(c *Claim) bool {
					if !isReady(c) {
						return false
					}
					if !p.Came(c) {
						had = append(had, c)
					}
					return true
				})
			}
			for n := 0; n < 60 || len(waiting)+len(had) > 0; n++ {
				require.Less(t, n, 10_000, "somebody waits for ever")
				switch {
				case n < 60 && r.IntN(2) == 0:
					if c, has := p.anybody(r, fmt.Sprint("u", n)); has {
						had = append(had, c)
					} else {
						waiting = append(waiting, c)
					}
				case len(had) > 0 && r.IntN(3) == 0 && had[0].Brief:
					var came []*Claim
					p.TakeAlong(had[0], r.IntN(3) > 0, func(with any) bool {
						if r.IntN(4) == 0 {
							return false
						}
						came = append(came, with.(*Claim))
						return true
					})
					hear()
					for _, c := range came {
						require.Empty(t, c.has)
						if r.IntN(3) == 0 {
							p.PutBack(c)
							p.Came(c)
							waiting = append(waiting, c)
						} else {
							taken = append(taken, c)
						}
					}
				case len(had) > 0:
					i := r.IntN(len(had))
					p.Drop(had[i])
					had = slices.Delete(had, i, i+1)
				}
				hear()
				p.check(waiting)
			}
			for _, c := range taken {
				p.Drop(c)
			}
			require.Empty(t, p.rows)
		})
	}
}

// anybody has a unit want some keys, and reports whether it has them at once.
func (p *party) anybody(r *rand.Rand, unit string) (c *Claim, has bool) {
	universe := []ordering.Key{"a", "a/1", "a/2", "b", "c", "d"}
	var keys []ordering.Key
	for range 1 + r.IntN(3) {
		keys = append(keys, universe[r.IntN(len(universe))])
	}
	c = &Claim{Unit: unit, Brief: r.IntN(3) > 0}
	if c.Brief && r.IntN(3) > 0 {
		c.With = c
	}
	keys, _ = plans.Canonical(keys...)
	return c, p.Reserve(c, [][]lockrow.Want{sorted(wantsOf(p.t, unit, keys...))}) > 0
}

func sorted(step []lockrow.Want) []lockrow.Want {
	slices.SortFunc(step, func(a, b lockrow.Want) int { return ordering.Compare(a.Key, b.Key) })
	return step
}

// check holds rows and those who wait against the invariants that Lineup states.
func (p *party) check(waiting []*Claim) {
	for key, r := range p.rows {
		exclusive := 0
		for c := range r.has {
			for _, w := range c.has {
				if w.Key == key && w.Mode == lockrow.Exclusive {
					exclusive++
				}
			}
		}
		require.True(p.t, exclusive == 0 || len(r.has) == 1, "%s has several", key)
	}
	for _, c := range waiting {
		require.NotEmpty(p.t, c.line, "%s waits for something", c.Unit)
		at := p.rows[c.line]
		require.True(p.t, len(at.has) > 0 || at.line[0] != c, "%s is next, and nobody has %s", c.Unit, c.line)
		if len(c.has) == 0 {
			continue
		}
		require.True(p.t, c.Brief)
		for _, w := range c.has {
			require.Negative(p.t, ordering.Compare(w.Key, c.line), "%s keeps what comes later", c.Unit)
		}
		for other := range at.has {
			require.True(p.t, other.Brief, "%s keeps others waiting for %s, which takes its time", c.Unit, other.Unit)
		}
	}
}
