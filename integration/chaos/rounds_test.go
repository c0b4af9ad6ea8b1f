package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/staff"
)

func planOf(seed uint64, shares []share) *plan {
	return &plan{shares: shares, branches: 3, lease: time.Second, pace: 100 * time.Millisecond, draws: rand.New(rand.NewPCG(seed, 0))}
}

// The seed decides what goes wrong.
func TestAPlanIsDrawnFromItsSeed(t *testing.T) {
	one, same, other := planOf(1, everything), planOf(1, everything), planOf(2, everything)
	seen, differs := map[mishap]bool{}, false
	for n := range 200 {
		r := one.next()
		if n < len(first) {
			require.Equal(t, first[n], r.mishap, "which does not depend on luck")
			require.Less(t, r.branch, locksFirst-1)
		}
		require.Equal(t, r, same.next())
		differs = differs || r != other.next()
		seen[r.mishap] = true
		switch r.mishap {
		case killGroup:
			require.Less(t, r.branch, locksFirst-1, "the others have no groups")
		case stopBranch:
			require.Greater(t, r.length, time.Second, "longer than a lease")
		case stopShortly:
			require.Less(t, r.length, time.Second-100*time.Millisecond, "shorter than a lease without its margin")
		}
	}
	require.True(t, differs)
	require.Len(t, seen, len(everything), "each of them comes about")
	for range 200 {
		require.NotEqual(t, killEngine, planOf(1, clientsOnly).next().mishap)
	}
}

// A loss counts that was known after SIGCONT, of a set that was held at SIGSTOP.
func TestKnown(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	holds := func(s int, name string) entry { return entry{At: at(s), Is: "holds", Unit: name} }
	loses := func(s int, name string) entry { return entry{At: at(s), Is: "loses", Unit: name} }
	stops := []stop{{at(10), at(20)}, {at(40), at(45)}}
	require.Equal(t, []time.Duration{3 * time.Second, time.Second}, known([]entry{
		holds(1, "early"), loses(5, "early"), // for another reason
		holds(6, "first"), holds(7, "kept"), holds(22, "between"), loses(23, "first"),
		loses(39, "between"), // for another reason
		holds(39, "second"), loses(46, "second"),
		holds(47, "late"), loses(60, "late"),
	}, stops, 4*time.Second))
	require.Equal(t, []time.Duration{11 * time.Second}, known([]entry{holds(6, "first"), loses(31, "first")}, stops, time.Second), "late")
	require.Empty(t, known([]entry{holds(6, "first"), loses(21, "first")}, stops, time.Minute), "it need not have been lost by a short stop")
	require.Empty(t, known([]entry{loses(21, "nobody's")}, stops, time.Second))
}

func TestOutcomes(t *testing.T) {
	entries := diarySaying(t, `{"is":"began","n":1,"job":"b/1","kind":"move"}
{"is":"told","job":"b/1","outcome":"committed"}
{"is":"began","n":2,"job":"b/2","kind":"payment"}
{"is":"began","n":2,"job":"b/

{"is":"began","n":2,"job":"b/2","kind":"payment"}
{"is":"told","job":"b/2","outcome":"refused"}
{"is":"began","n":3,"job":"b/3","kind":"move"}
{"is":"vitals","heap":5,"goroutines":6,"jobs":2,"requests":7}
`)
	begun, told := outcomes(entries)
	require.Equal(t, map[string]int{"move": 2, "payment": 1}, begun)
	require.Equal(t, map[string]map[string]int{"committed": {"move": 1}, "refused": {"payment": 1}}, told)
	require.Equal(t, entry{Is: vitals, Heap: 5, Goroutines: 6, Jobs: 2, Requests: 7}, entries[len(entries)-1])
}

func TestWaysAreCounted(t *testing.T) {
	entries := diarySaying(t, `{"is":"tries","unit":"u"}
{"is":"ended","unit":"u","outcome":"fell back","way":"units committed without locks"}
{"is":"ended","unit":"v","outcome":"fell back","way":"units committed under locks, after a conflict without locks"}
{"is":"ended","unit":"w","outcome":"committed","way":"units committed under locks, after a conflict without locks"}
{"is":"ended","unit":"x","outcome":"committed","way":"units committed without locks"}
{"is":"ended","unit":"y","outcome":"not committed","way":"units committed without locks"}
{"is":"ended","unit":"z","outcome":"committed","way":"units committed under locks that they took first"}
`)
	committed, aborted := ways(entries)
	require.Equal(t, map[staff.Event]int{staff.WithoutLocks: 1, staff.AfterConflict: 1, staff.LockedFirst: 1}, committed)
	require.Equal(t, 1, aborted)
}

func TestGroupsAreCounted(t *testing.T) {
	entries := diarySaying(t, `{"is":"ended","unit":"a","outcome":"committed","leader":"l"}
{"is":"ended","unit":"b","outcome":"fell back","leader":"l"}
{"is":"ended","unit":"c","outcome":"committed","leader":"l"}
{"is":"ended","unit":"l","outcome":"not committed"}
{"is":"ended","unit":"d","outcome":"fell back","leader":"m"}
{"is":"ended","unit":"m","outcome":"committed"}
{"is":"ended","unit":"e","outcome":"fell back","leader":"n"}
{"is":"ended","unit":"n","outcome":"fell back"}
{"is":"ended","unit":"f","outcome":"committed","leader":"o"}
{"is":"ended","unit":"g","outcome":"not committed","leader":"o"}
{"is":"ended","unit":"h","outcome":"committed before","leader":"o"}
{"is":"ended","unit":"i","outcome":"in doubt","leader":"p"}
`)
	require.Equal(t, groups{led: 2, along: 3, largest: 3, failed: 1, before: 1, doubt: 1, leftOut: 2, aborted: 1}, groupsOf(entries))
}

func diarySaying(t *testing.T, text string) []entry {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	entries, err := readDiary(name)
	require.NoError(t, err)
	return entries
}
