package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOneFault lets one kind of fault happen, often, and nothing else go wrong:
// every promise holds, and most of the work gets done all the same.
// docs/faults.md says of each what that takes.
func TestOneFault(t *testing.T) {
	length, least, most := 5*time.Minute, 8, uint64(30)
	if testing.Short() {
		length, least = 90*time.Second, 1
	}
	for _, name := range Faults() {
		t.Run(strings.NewReplacer(" ", "_", ",", "").Replace(name), func(t *testing.T) {
			t.Parallel()
			var all Counts
			for seed := uint64(1); all.Faults[name] < least; seed++ {
				require.LessOrEqual(t, seed, most, "only %d times in %d courses", all.Faults[name], most)
				s := Settings{Seed: seed, Only: name, Until: length}
				r := take(t, s)
				if len(r.Problems) > 0 {
					explain(t, s)
					return
				}
				for other, n := range r.Counts.Faults {
					require.True(t, other == name || n == 0, "%d times %s", n, other)
				}
				all.Add(r.Counts)
			}
			t.Logf("%d times; of %d that began, %d units of work and %d sets finished, %d were in doubt", all.Faults[name], all.Began, all.Finished, all.Sets, all.Doubts)
			require.Greater(t, all.Finished+all.Sets, all.Began/2)
		})
	}
}

// Who comes late because it was paused, cut off or stalled beyond its lease, and has
// lost its locks to others, is refused by a store downstream that they have written
// to.
func TestALateWriteDownstreamIsRefused(t *testing.T) {
	var all Counts
	first, until := uint64(1), 5*time.Minute
	if testing.Short() {
		first, until = 55, 90*time.Second // which had one, and soon: others are taken where it has none any more
	}
	for seed := first; all.Late < 1; seed++ {
		require.Less(t, seed, first+100, "no late write")
		s := Settings{Seed: seed, Until: until}
		r := take(t, s)
		report(t, s, r)
		all.Add(r.Counts)
	}
	t.Logf("%d writes downstream, %d of them late and refused", all.Deliveries, all.Late)
}

// Where nothing goes wrong nobody loses its place, whatever the lease, the pace
// and the crowd, and nobody is buried.
func TestWhereNothingGoesWrong(t *testing.T) {
	seeds := uint64(24)
	if testing.Short() {
		seeds = 1
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		s := Settings{Seed: seed, Until: 2 * time.Minute, Only: nothing}
		report(t, s, take(t, s))
	}
}
