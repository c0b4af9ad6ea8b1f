package simulation

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	recording "github.com/holdall/holdall/record"
)

// One seed takes one course: the same events at the same nanoseconds, whatever
// runs them.
func TestTheSameSeedTakesTheSameCourse(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	seeds, until := []uint64{1, 2, 3, 77}, 2*time.Minute // in the last, units of one process write at one instant
	if testing.Short() {
		seeds, until = seeds[:1], time.Minute
	}
	for _, seed := range seeds {
		s := Settings{Seed: seed, Until: until, Story: true}
		var first *Result
		for _, n := range []int{1, 2, 8} {
			runtime.GOMAXPROCS(n)
			r := take(t, s)
			if first == nil {
				first = r
				require.Greater(t, len(r.Story), 100)
				continue
			}
			if one, other := first.Story, r.Story; !slices.Equal(one, other) {
				at := 0
				for at < min(len(one), len(other))-1 && one[at] == other[at] {
					at++
				}
				t.Fatalf("seed %d takes another course with GOMAXPROCS %d:\n%v\n%v\nafter\n%v", seed, n, one[at], other[at], one[max(at-10, 0):at])
			}
			require.Equal(t, first.Counts, r.Counts)
			require.Equal(t, first.Instants, r.Instants)
		}
		quiet := s
		quiet.Story = false
		require.Equal(t, first.Counts, take(t, quiet).Counts, "telling its story changes nothing")
		var out bytes.Buffer
		quiet.Record = recording.New(&out)
		require.Equal(t, first.Counts, take(t, quiet).Counts, "recording it changes nothing")
		seen := map[string]bool{}
		for e, err := range recording.Read(&out) {
			require.NoError(t, err)
			seen[e.Name] = true
		}
		for _, name := range []string{"Started", "UnitStart", "UnitEnd", "AcquireEnd", "Renewed", "RequestEnd"} {
			require.True(t, seen[name], "seed %d: no %s", seed, name)
		}
	}
}
