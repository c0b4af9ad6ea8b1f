package staff

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Owners die at random instants, and in the midst of months' interest. All is
// done in the end, once, by whoever comes later, or by Recover.
func TestOwnersDieInTheMidstOfLargeUnits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		cfg, tables := newConfig(t)
		cfg.Owners, cfg.Tellers, cfg.Churn, cfg.Crash, cfg.Seed = 4, 2, lease, true, seed
		const customers, months = 60, 40
		ids := openAll(t, cfg, customers)
		n := 0
		desk := NewDesk(func() (Job, bool) {
			n++
			month := books.Month{ID: fmt.Sprint("month-", n), Customers: ids}
			return Job{Kind: "month", Once: true, Do: func(ctx context.Context, b *books.Bank) error {
				return b.CloseMonth(ctx, month)
			}}, n <= months
		})
		tally := NewTally()
		require.NoError(t, Run(cfg, desk, tally))
		require.Empty(t, tally.Unexpected)
		require.Equal(t, months, tally.Total(Committed))
		require.NotEmpty(t, tally.DiedMidway)
		t.Logf("died at %v; %+v", tally.DiedMidway, tally.LargeUnits())

		locks, err := lockset.New(cfg.DB, cfg.Locks)
		require.NoError(t, err)
		units, err := unitofwork.New(locks, cfg.Units)
		require.NoError(t, err)
		found, err := units.Recover(t.Context())
		require.NoError(t, err)
		require.Empty(t, found.Alive)
		for _, unit := range found.Committed {
			tally.recovered(unit, true)
		}
		require.Len(t, sound(t, tables).History, months*(customers+1))
		require.Equal(t, months, tally.LargeUnits().Committed)
	})
}

// openAll opens customers with one account each.
func openAll(t *testing.T, cfg Config, customers int) (ids []string) {
	t.Helper()
	teller := newTeller(t, cfg, list(), NewTally(), 0)
	for n := range customers {
		id := fmt.Sprintf("c%d", n)
		require.NoError(t, teller.owner.bank.Open(t.Context(), books.Opening{Balance: 100_00, Customer: books.Customer{
			ID: id, Accounts: []books.Child{{ID: "a" + id, Home: id}},
			Addresses: []books.Child{{ID: "at-" + id, Home: id}}, Contacts: []books.Child{{ID: "to-" + id, Home: id}},
		}}))
		ids = append(ids, id)
	}
	return ids
}

func TestAmbush(t *testing.T) {
	at := func(unit string, phase trace.Phase, done, of int) trace.Progress {
		return trace.Progress{Unit: unit, Phase: phase, Done: done, Of: of}
	}
	course := func(unit string) []trace.Progress {
		return []trace.Progress{
			at(unit, trace.Journaling, 1, 0), at(unit, trace.Journaling, 2, 0),
			at(unit, trace.Preparing, 50, 90), at(unit, trace.Preparing, 90, 90),
			at(unit, trace.Applying, 50, 90), at(unit, trace.Applying, 90, 90),
		}
	}
	a := &ambush{draw: rand.New(rand.NewPCG(1, 1))}
	// strikesAt is at which point of its course a unit is struck; 0 if it is not.
	strikesAt := func(unit string, begun int) int {
		for i, p := range course(unit)[begun:] {
			if phase, later, ok := a.strikes(p); ok {
				require.Equal(t, a.phase, phase)
				require.Equal(t, phase == trace.Applying, later > 0)
				require.LessOrEqual(t, later, farthest)
				return begun + i + 1
			}
		}
		return 0
	}
	require.Zero(t, strikesAt("a", 0), "it is not laid")
	struck := map[int]bool{}
	for n := range 50 {
		a.lay()
		require.Zero(t, strikesAt("begun before", 2))
		struck[strikesAt(fmt.Sprint(n), 0)] = true
		require.Zero(t, strikesAt(fmt.Sprint("after ", n), 0), "it strikes once")
	}
	require.Equal(t, map[int]bool{1: true, 3: true, 4: true}, struck)
}

// So many requests get through, and then none.
func TestAConnectionThatIsCutLater(t *testing.T) {
	cfg, _ := newConfig(t)
	o := newTeller(t, cfg, list(), NewTally(), 1).owner
	o.line.cutAfter(2)
	for range 2 {
		require.True(t, o.line.passes())
		require.NoError(t, o.ctx.Err())
	}
	require.False(t, o.dead())
	require.False(t, o.line.passes())
	require.True(t, o.dead())
	require.Error(t, o.ctx.Err())
}

func TestLargeUnits(t *testing.T) {
	tally := NewTally()
	require.Zero(t, tally.LargeUnits())
	for _, unit := range []string{"done", "longer", "refused", "left", "finished", "undone"} {
		tally.large(unit, func(*LargeUnit) {})
	}
	tally.committed(trace.UnitEnd{Unit: "small", Rows: 2, Writes: 2, Took: time.Hour}, LockedFirst, false)
	tally.committed(trace.UnitEnd{Unit: "done", Rows: 10, Writes: 200, Took: 2 * time.Second}, LockedFirst, false)
	tally.committed(trace.UnitEnd{Unit: "longer", Rows: 30, Writes: 100, Took: 4 * time.Second}, LockedFirst, false)
	tally.committed(trace.UnitEnd{Unit: "left", Rows: 99, Writes: 99, Took: time.Hour}, LockedFirst, true)
	for range 2 { // by two who waited
		tally.recovered("left", true)
		tally.recovered("finished", true)
		tally.recovered("undone", false)
	}
	require.Equal(t, LargeUnits{
		Committed: 4, RolledForward: 2, Aborted: 1,
		Rows: 20, Writes: 150, MostRows: 30, MostWrites: 200, Average: 3 * time.Second, Longest: 4 * time.Second,
	}, tally.LargeUnits())
}

// A committed unit that a living owner could not finish is for somebody to mend.
func TestAnUnfinishedUnitIsUnexpected(t *testing.T) {
	cfg, _ := newConfig(t)
	tally := NewTally()
	o := newTeller(t, cfg, list(), tally, 1).owner
	o.unfinished(errors.New("a newer stamp"))
	require.Len(t, tally.Unexpected, 1)
	o.die()
	o.unfinished(&lockset.NoAnswerError{})
	require.Len(t, tally.Unexpected, 1, "others finish what the dead left")
}
