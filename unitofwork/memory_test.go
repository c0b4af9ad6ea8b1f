package unitofwork

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/recent"
	"github.com/holdall/holdall/ordering"
)

func remembering(t *testing.T, test func(*testing.T, *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &memory{keep: 10 * time.Second}) })
}

// skipped is how many units in a row take their locks at once.
func (m *memory) skipped(rows ...ordering.Key) (n int) {
	for !m.pays(rows) {
		n++
	}
	return n
}

// Each void run on a row has twice as many units take their locks at once, up to a bound.
func TestVoidRunsAreFollowedByLocks(t *testing.T) {
	remembering(t, func(t *testing.T, m *memory) {
		require.True(t, m.pays(nil))
		require.True(t, m.pays([]ordering.Key{"a"}), "nothing is known of it")
		for _, want := range []int{1, 3, 7, 15, 31, 63, 64, 64} {
			m.met("a", false)
			require.Equal(t, want, m.skipped("a"))
		}
		require.True(t, m.pays([]ordering.Key{"b"}), "what is known is of one row")
	})
}

// Who was overtaken where nobody else was lately is tried again without locks, once; who finds
// somebody there is not.
func TestWhoMeetsByChanceIsTriedAgain(t *testing.T) {
	remembering(t, func(t *testing.T, m *memory) {
		require.True(t, m.met("a", true))
		require.True(t, m.pays([]ordering.Key{"a"}), "others need not take their locks")
		require.True(t, m.met("b", true), "what is known is of one row")
		require.False(t, m.met("a", true))
		require.Equal(t, 1, m.skipped("a"))
		require.False(t, m.met("a", true), "it was met before")
		require.Equal(t, 3, m.skipped("a"))
		require.False(t, m.met("c", false), "somebody is there")
		require.Equal(t, 1, m.skipped("c"))

		m.paid([]ordering.Key{"b"})
		require.True(t, m.met("b", true), "a run has committed since")
		time.Sleep(m.keep + 1)
		require.True(t, m.met("b", true), "that is long ago")
	})
}

// However often a unit is overtaken at one row or another, it takes its locks in the end.
func TestAUnitIsNotTriedForEverWithoutLocks(t *testing.T) {
	r := newRuns(Work{})
	r.locked = false
	for range mostRetried {
		require.NoError(t, r.again(&voidError{again: true}))
		require.False(t, r.locked)
	}
	require.NoError(t, r.again(&voidError{again: true}))
	require.True(t, r.locked)
}

// A run without locks that commits halves what the next void one costs.
func TestRunsThatCommitAreRemembered(t *testing.T) {
	remembering(t, func(t *testing.T, m *memory) {
		m.paid([]ordering.Key{"a"})
		for range 4 {
			m.met("a/b", false)
		}
		require.Equal(t, 15, m.skipped("a/b"))
		m.paid([]ordering.Key{"a/b"})
		m.paid([]ordering.Key{"c"})
		m.met("a/b", false)
		require.Equal(t, 15, m.skipped("a/b"), "7 and 7 and 1")
		for range 4 {
			m.paid([]ordering.Key{"a/b/c"}) // which needs that row, too
		}
		require.Zero(t, m.rows.Size(), "nothing is left to remember")
		m.met("a/b", false)
		require.Equal(t, 1, m.skipped("a/b"))
	})
}

// A unit is held against each of its rows, and is told the first.
func TestAUnitOfManyRowsCountsForAll(t *testing.T) {
	remembering(t, func(t *testing.T, m *memory) {
		m.met("b", false)
		m.met("b", false)
		m.met("a", false)
		first, busy := m.busy([]ordering.Key{"c", "a", "b"})
		require.True(t, busy)
		require.Equal(t, ordering.Key("a"), first)
		require.Equal(t, 2, m.skipped("c", "a", "b"))
		require.Equal(t, 0, m.skipped("b"))
	})
}

// What is old says nothing any more.
func TestVoidRunsAreForgotten(t *testing.T) {
	remembering(t, func(t *testing.T, m *memory) {
		for range 3 {
			m.met("a", false)
		}
		time.Sleep(m.keep)
		require.False(t, m.pays([]ordering.Key{"a"}))
		time.Sleep(time.Nanosecond)
		require.True(t, m.pays([]ordering.Key{"a"}))
		m.met("a", false)
		require.Equal(t, 1, m.skipped("a"), "as for a row of which nothing is known")
	})
}

// It does not grow with the rows that there are; a row that units ask for stays in it.
func TestTheMemoryIsBounded(t *testing.T) {
	remembering(t, func(t *testing.T, m *memory) {
		for range 7 {
			m.met("hot", false)
		}
		for i := range 3 * recent.Generation / 2 {
			m.met(ordering.Key(fmt.Sprint("row", i)), false)
			if i%recent.Generation == recent.Generation/2 {
				require.False(t, m.pays([]ordering.Key{"hot"}), "%d", i)
			}
			require.LessOrEqual(t, m.rows.Size(), 2*recent.Generation)
		}
		require.False(t, m.pays([]ordering.Key{"hot"}))
		for i := range 2 * recent.Generation {
			m.met(ordering.Key(fmt.Sprint("other", i)), false)
		}
		require.True(t, m.pays([]ordering.Key{"hot"}), "nobody has asked for it")
	})
}

// The rows of a key are its own, and those above it.
func TestRowsOfKeys(t *testing.T) {
	require.Equal(t, []ordering.Key{"a", "a/b", "a/b/c", "d"}, rowsOf([]ordering.Key{"a/b/c", "d"}))
}
