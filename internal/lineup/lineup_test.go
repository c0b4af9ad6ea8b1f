package lineup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

// player is a unit of the process as the table's answers drive it. What it may
// count on having is noted here, from what the lineup told it and from nothing else.
type player struct {
	*Claim
	steps    [][]lockrow.Want
	at       int // steps held
	reserved int // and those after them
	waits    bool
	inTable  bool         // and waits there, for all of its process
	came     int          // when it came to its step, by the game's own count; 0 before
	stood    ordering.Key // in which line, before the last move
	headed   bool         // and was in the table then
	had      int          // and how many steps it had
	ended    bool
}

// game plays units against one another, without a table: what the table says is
// drawn.
type game struct {
	t       *testing.T
	lines   *Lineup
	rand    *rand.Rand
	players []*player
	came    int
	granted []*player // by the last move
}

func newGame(t *testing.T, seed uint64) *game {
	return &game{t: t, lines: New(tokens.NewClock(time.Now)), rand: rand.New(rand.NewPCG(seed, 1))}
}

func (g *game) enter(keys ...ordering.Key) *player {
	plan, err := plans.New(keys...)
	require.NoError(g.t, err)
	unit := fmt.Sprint("u", len(g.players))
	p := &player{Claim: &Claim{Unit: unit}}
	for i := range plan {
		p.steps = append(p.steps, lockrow.Wants(unit, plan[i:i+1], i))
	}
	g.players = append(g.players, p)
	return p
}

// has lists the rows that a player counts on.
func (p *player) has() (rows []lockrow.Want) {
	if !p.ended {
		for _, step := range p.steps[:p.at+p.reserved] {
			rows = append(rows, step...)
		}
	}
	return rows
}

// keptOut tells by whom a player would be kept out of a row: who has it in a mode
// that does not go with its own, or stands before it in that row's line.
func (g *game) keptOut(p *player, w lockrow.Want) *player {
	for _, q := range g.players {
		if q == p || q.ended {
			continue
		}
		for _, h := range q.has() {
			if h.Key == w.Key && !(h.Mode == lockrow.Intent && w.Mode == lockrow.Intent) {
				return q
			}
		}
		if q.waits && q.line == w.Key && (q.inTable || !p.inTable && q.came < p.came) {
			return q
		}
	}
	return nil
}

// move lets a player do one of the things that it can do now.
func (g *game) move(p *player) {
	switch {
	case p.waits && g.rand.IntN(60) == 0: // its caller would wait no longer
		if g.rand.IntN(2) == 0 { // long before it has undone the rest
			g.lines.Leave(p.Claim)
		}
		p.waits = false
		g.end(p)
	case p.waits && p.inTable: // the row looks takeable
		p.inTable = false
		if g.lines.Again(p.Claim) {
			g.grant(p, 1)
		}
	case p.waits: // it hears nothing yet
	case p.at == len(p.steps) || p.reserved == 0 && g.rand.IntN(80) == 0:
		g.end(p)
	case p.reserved == 0 || p.reserved == 1 && g.rand.IntN(2) == 0: // alone, as it is after a line
		g.reserve(p)
	case g.rand.IntN(3) == 0:
		g.refuse(p, g.rand.IntN(p.reserved))
	default:
		g.lines.Secured(p.Claim, 0)
		p.at, p.reserved = p.at+p.reserved, 0
	}
}

func (g *game) reserve(p *player) {
	if p.came == 0 {
		g.came++
		p.came = g.came
	}
	n := g.lines.Reserve(p.Claim, p.steps[p.at:min(len(p.steps), p.at+1+g.rand.IntN(4))])
	require.GreaterOrEqual(g.t, n, p.reserved, "what it has it keeps")
	if n == 0 {
		p.waits = true
		return
	}
	g.grant(p, n)
}

// refuse has the table refuse a row of the n-th step that a player reserved.
func (g *game) refuse(p *player, n int) {
	if n > 0 {
		g.lines.GiveBack(p.Claim, p.at+n)
		p.reserved = n
		return
	}
	step := p.steps[p.at]
	p.reserved, p.waits = 0, true
	p.inTable = g.lines.Refused(p.Claim, step, step[g.rand.IntN(len(step))].Key)
}

func (g *game) end(p *player) {
	g.lines.Drop(p.Claim)
	p.ended = true
}

// grant notes that a player has its next n steps.
func (g *game) grant(p *player, n int) {
	p.waits, p.inTable, p.reserved = false, false, n
	g.granted = append(g.granted, p)
}

// checkTurns asserts that nobody has got a row while somebody stands in its line
// who arrived earlier.
func (g *game) checkTurns() {
	for _, p := range g.granted {
		for _, w := range p.has() {
			if w.Step < p.had || p.headed {
				continue
			}
			for _, q := range g.players {
				passed := q.waits && q.line == w.Key && q.stood == w.Key && q.came < p.came
				require.False(g.t, passed, "%s has %q before %s", p.Unit, w.Key, q.Unit)
			}
		}
	}
	g.granted = nil
	for _, p := range g.players {
		p.stood, p.headed, p.had = p.line, p.inTable, p.at+p.reserved
	}
}

// hear lets those who wait hear that they have their step.
func (g *game) hear() {
	for _, p := range g.players {
		if !p.waits || p.inTable {
			continue
		}
		select {
		case <-p.Ready:
			g.grant(p, p.Claim.Got)
		default:
		}
	}
}

// check holds everything against the invariants that Lineup states.
func (g *game) check() {
	lines := map[ordering.Key]int{}
	for _, p := range g.players {
		if p.ended {
			require.Empty(g.t, p.Claim.has)
			continue
		}
		require.Equal(g.t, p.has(), slices.Concat(p.Claim.has), "%s has what it was told", p.Unit)
		for _, w := range p.has() {
			for _, q := range g.players {
				for _, h := range q.has() {
					require.True(g.t, p == q || h.Key != w.Key || h.Mode == lockrow.Intent && w.Mode == lockrow.Intent, "%s and %s both have %q", p.Unit, q.Unit, w.Key)
				}
			}
		}
		if !p.waits {
			require.Empty(g.t, p.line, "%s waits for nothing", p.Unit)
			continue
		}
		require.Zero(g.t, p.reserved, "%s has nothing of its step nor later while it waits", p.Unit)
		i := slices.IndexFunc(p.steps[p.at], func(w lockrow.Want) bool { return w.Key == p.line })
		require.GreaterOrEqual(g.t, i, 0, "%s waits for a row of its step", p.Unit)
		lines[p.line]++
		by := g.keptOut(p, p.steps[p.at][i])
		require.Equal(g.t, p.inTable, by == nil, "%s waits at %q for nobody, or is kept out by %v", p.Unit, p.line, by)
	}
	for key, r := range g.lines.rows {
		require.Len(g.t, r.line, lines[key], "the line of %q has those who wait there, each once", key)
	}
}

// The rules of the local queue, whatever units want, in whatever order things
// happen: who waits is kept out by somebody, so nobody waits for ever; who was
// told to have a row has it in a mode that goes with the others'.
func TestLinesKeepTheirInvariantsWhateverHappens(t *testing.T) {
	universe := []ordering.Key{"a", "a/1", "a/1/x", "a/2", "b", "b/1", "b/2", "c"}
	seeds := uint64(250)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			g := newGame(t, seed)
			wanted := universe
			if seed%4 == 0 { // all want one row, first come, first served
				wanted = universe[:1]
			}
			for range 4 + g.rand.IntN(8) {
				var keys []ordering.Key
				for range 1 + g.rand.IntN(4) {
					keys = append(keys, wanted[g.rand.IntN(len(wanted))])
				}
				g.enter(keys...)
			}
			live := slices.Clone(g.players)
			for moves := 0; len(live) > 0; moves++ {
				require.Less(t, moves, 100_000, "somebody waits for ever")
				g.move(live[g.rand.IntN(len(live))])
				g.hear()
				g.check()
				g.checkTurns()
				live = slices.DeleteFunc(live, func(p *player) bool { return p.ended })
			}
			require.Empty(t, g.lines.rows, "nothing is left of those who ended")
		})
	}
}

// What a unit of this process leaves goes to the next with its name; what the
// table had a part in does not.
func TestLinesTellWhoLeftARow(t *testing.T) {
	g := newGame(t, 0)
	first, second, third := g.enter("a/1"), g.enter("a/1"), g.enter("a/1")
	for _, p := range g.players {
		g.reserve(p)
	}
	require.Equal(t, Blocker{Key: "a/1", Unit: first.Unit, Has: true, Queued: 1}, g.lines.WhoBlocks(third.Claim))
	require.Equal(t, 2, g.lines.Queued("a/1"))
	require.Zero(t, g.lines.Queued("a"), "its intents go together with theirs")

	g.end(first)
	g.hear()
	require.Equal(t, HandOver{"a/1", first.Unit}, g.lines.Secured(second.Claim, 0))
	require.Equal(t, HandOver{}, g.lines.Secured(second.Claim, 0), "told once")

	second.at, second.reserved = 1, 0
	g.end(second)
	g.hear()
	g.refuse(third, 0) // others of other processes wait in the table
	require.True(t, third.inTable)
	require.True(t, g.lines.Again(third.Claim))
	require.Equal(t, HandOver{}, g.lines.Secured(third.Claim, 0))
}

// Of several that have something below a key, who waits for the key is always told of
// the same one.
func TestLinesTellOfTheSameUnitEveryTime(t *testing.T) {
	g := newGame(t, 0)
	least := ""
	for i := range 8 {
		p := g.enter(ordering.Key(fmt.Sprint("a/", i)))
		g.reserve(p)
		if least == "" || p.Unit < least {
			least = p.Unit
		}
	}
	waits := g.enter("a")
	g.reserve(waits)
	for range 50 { // in the order of a map
		require.Equal(t, Blocker{Key: "a", Unit: least, Has: true}, g.lines.WhoBlocks(waits.Claim))
	}
}

// A unit that the table refused keeps nothing of that step from others of its
// process, whose turn the row it waits for is not.
func TestWhoWaitsInTheTableReservesNothing(t *testing.T) {
	g := newGame(t, 0)
	waits, other, coarse := g.enter("c/1", "c/2"), g.enter("c/2"), g.enter("c")
	waits.reserved = g.lines.Reserve(waits.Claim, waits.steps)
	require.Equal(t, 2, waits.reserved)
	g.reserve(other)
	require.True(t, other.waits)

	g.lines.GiveBack(waits.Claim, 1)
	waits.reserved = 1
	g.hear()
	require.False(t, other.waits, "c/2 is free")
	step := waits.steps[0]
	waits.reserved, waits.waits = 0, true
	waits.inTable = g.lines.Refused(waits.Claim, step, "c")
	require.True(t, waits.inTable)

	g.reserve(coarse)
	require.True(t, coarse.waits)
	require.Equal(t, Blocker{Key: "c", Unit: waits.Unit, Queued: 1}, g.lines.WhoBlocks(coarse.Claim))
	g.check()
	g.end(other)
	g.hear()
	require.True(t, coarse.waits, "it stands behind who waits in the table")
}

// Who is given a row is told the highest token that it knows to be there: that of the last
// who had it, and of those who have intents beside it.
func TestLinesTellTheHighestFence(t *testing.T) {
	lines := New(tokens.NewClock(time.Now))
	step := func(unit string, key ordering.Key) (*Claim, [][]lockrow.Want) {
		plan, err := plans.New(key)
		require.NoError(t, err)
		return &Claim{Unit: unit}, [][]lockrow.Want{lockrow.Wants(unit, plan, 0)}
	}
	for name, tokens := range map[string]struct{ beside, before fencing.Token }{
		"beside it": {100, 50},
		"before it": {50, 100},
	} {
		beside, its := step("beside", "c/1")
		require.Equal(t, 1, lines.Reserve(beside, its))
		lines.Secured(beside, tokens.beside)
		before, its := step("before", "c/2")
		require.Equal(t, 1, lines.Reserve(before, its))
		lines.Secured(before, tokens.before)
		next, its := step("next", "c/2")
		require.Zero(t, lines.Reserve(next, its))
		lines.Drop(before)
		<-next.Ready
		require.Equal(t, fencing.Token(100), next.Fence, name)
		lines.Drop(next)
		lines.Drop(beside)
	}
}

func TestLinesAreSafeForConcurrentUse(t *testing.T) {
	lines := New(tokens.NewClock(time.Now))
	var all sync.WaitGroup
	inside := 0 // guarded by the row
	for i := range 64 {
		all.Go(func() {
			unit := fmt.Sprint("u", i)
			plan, _ := plans.New("a", ordering.Join("b", unit))
			for range 20 {
				c := &Claim{Unit: unit}
				for step := range plan {
					for lines.Reserve(c, [][]lockrow.Want{lockrow.Wants(unit, plan[step:step+1], step)}) == 0 {
						<-c.Ready
					}
					lines.Secured(c, 0)
				}
				inside++
				lines.Drop(c)
			}
		})
	}
	all.Wait()
	require.Equal(t, 64*20, inside)
	require.Empty(t, lines.rows)
}

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
