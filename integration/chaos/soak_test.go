package chaos

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var soak = flag.Duration("soak", 0, "how long the bank works in TestSoak")

// A bank works for long, with mishaps every few seconds. Of its branches two are
// neither killed nor restarted: their memory, their goroutines and what a unit costs
// are in the end as they were in the beginning.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("it takes as long as -soak says, which is an hour in make soak")
	}
	s := theSeed(t)
	require.GreaterOrEqual(t, *soak, 20*time.Minute, "-soak: too short to compare anything")
	dir := keptIfFailed(t)
	d, err := open(t.Context(), Day{
		Dir: dir, Archive: filepath.Join(dir, "archive.db"), Engine: engineIn(t, dir).Server, Prefix: "soak-",
		Seed: s, Lease: 4 * time.Second, Branches: 4, Tellers: 4, Think: 50 * time.Millisecond, Rate: 5, Shares: everything, Pace: 8 * time.Second, Steady: 2,
	})
	require.NoError(t, err)
	defer d.quit()
	var resident [2][]uint64
	for start := time.Now(); time.Since(start) < *soak && d.failed() == nil; {
		d.round(t.Context())
		for i := range resident {
			resident[i] = append(resident[i], residentBytes(d.branches[i].child.Pid))
		}
		if n := d.had(); n > 0 && n%50 == 0 {
			t.Logf("%v, %d rounds", time.Since(start).Round(time.Second), n)
			for _, b := range d.branches {
				entries, err := readDiary(b.Diary)
				require.NoError(t, err)
				require.Empty(t, failures(entries))
			}
		}
	}
	all := newReport()
	all.finish(t, d)
	all.took = *soak
	t.Logf("\n%v", all)
	for i := range resident {
		entries, err := readDiary(d.branches[i].Diary)
		require.NoError(t, err)
		before, after, end := compare(entries, resident[i])
		t.Logf("\n%s, of %d jobs in all; averages of the second to the fourth tenth of the time and of the last three, and when the work had ended:\n%v",
			d.branches[i].Name, end.jobs, table(before, after, end))
		require.Less(t, after.heap, 1.25*before.heap+4e6, "the heap grows")
		require.Less(t, after.resident, 1.25*before.resident+16e6, "the process grows")
		require.Less(t, after.goroutines, 1.25*before.goroutines+10, "there are ever more goroutines")
		require.LessOrEqual(t, end.goroutines, 40.0, "goroutines are left when the work has ended")
		require.InEpsilon(t, before.requests, after.requests, 0.2, "a unit costs something else in the end")
	}
}

// health is how a process was, on average over some time.
type health struct {
	heap, resident, goroutines float64
	requests                   float64 // for each job
	jobs                       int
}

// compare returns how a process was in the second to the fourth tenth of the time,
// when it had warmed up, in the last three, and in the end.
func compare(entries []entry, resident []uint64) (before, after, end health) {
	var all []entry
	for _, e := range entries {
		if e.Is == vitals {
			all = append(all, e)
		}
	}
	last := all[len(all)-1]
	all = all[:len(all)-1] // the last is from when the work had ended
	n, m := len(all)/10, len(resident)/10
	end = health{heap: float64(last.Heap), goroutines: float64(last.Goroutines), jobs: last.Jobs}
	return average(all[n:4*n+1], resident[m:4*m+1]), average(all[len(all)-3*n-1:], resident[len(resident)-3*m-1:]), end
}

func average(some []entry, resident []uint64) (h health) {
	for _, v := range some {
		h.heap += float64(v.Heap) / float64(len(some))
		h.goroutines += float64(v.Goroutines) / float64(len(some))
	}
	for _, r := range resident {
		h.resident += float64(r) / float64(len(resident))
	}
	first, last := some[0], some[len(some)-1]
	h.jobs = last.Jobs - first.Jobs
	h.requests = float64(last.Requests-first.Requests) / float64(max(h.jobs, 1))
	return h
}

func table(before, after, end health) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%20s  %8.1f  %8.1f  %8.1f\n", "heap, MB", before.heap/1e6, after.heap/1e6, end.heap/1e6)
	fmt.Fprintf(&b, "%20s  %8.1f  %8.1f\n", "resident, MB", before.resident/1e6, after.resident/1e6)
	fmt.Fprintf(&b, "%20s  %8.1f  %8.1f  %8.1f\n", "goroutines", before.goroutines, after.goroutines, end.goroutines)
	fmt.Fprintf(&b, "%20s  %8.2f  %8.2f\n", "requests a job", before.requests, after.requests)
	return b.String()
}
