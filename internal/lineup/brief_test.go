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
