package simulation

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	recording "github.com/holdall/holdall/record"
)

var (
	hoursFlag  = flag.Float64("hours", 0, "simulated hours of hosts to run; default 4, with -short half an hour in short courses")
	fromFlag   = flag.Uint64("from", 1, "first seed")
	seedFlag   = flag.Uint64("seed", 0, "take the course of this seed alone, and tell its story")
	untilFlag  = flag.Duration("until", 0, "end the course of -seed then")
	onlyFlag   = flag.String("only", "", "the one fault that happens")
	briefFlag  = flag.Bool("brief", false, "stop at the first course that fails, and do not make it short")
	recordFlag = flag.String("record", "", "file to record the course of -seed in, for holdall timeline")
	storyFlag  = flag.String("story", "", "file to write the whole story to")
	without    []string
)

func init() {
	flag.Func("without", "a fault that stays away; may be repeated", func(name string) error {
		if !slices.Contains(Faults(), name) {
			return fmt.Errorf("no such fault; there are: %s", strings.Join(Faults(), ", "))
		}
		without = append(without, name)
		return nil
	})
}

// TestMain gives the collector less to do: a course lives for a moment only.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// take takes a course in a bubble of its own.
func take(t *testing.T, s Settings) (r *Result) {
	synctest.Test(t, func(*testing.T) { r = Run(s) })
	return r
}

// density that a run has to have, per simulated hour of a host.
const (
	unitsPerHour  = 200
	faultsPerHour = 10
	readsPerHour  = 5   // that met a unit in the way
	manyHours     = 100 // that say what is usual
)

// TestSimulation takes course after course until so many hours of hosts have
// gone by.
func TestSimulation(t *testing.T) {
	require.True(t, *onlyFlag == "" || *onlyFlag == nothing || slices.Contains(Faults(), *onlyFlag),
		"-only: no such fault; there are %q, and %q", Faults(), nothing)
	require.NotZero(t, *fromFlag, "-from: seeds begin at 1")
	require.True(t, *seedFlag != 0 || *untilFlag == 0 && *storyFlag == "" && *recordFlag == "", "-until, -story and -record are for the course of one -seed")
	if *seedFlag != 0 {
		s := Settings{Seed: *seedFlag, Until: *untilFlag, Without: without, Only: *onlyFlag, Story: true}
		if *recordFlag != "" {
			file, err := os.Create(*recordFlag)
			require.NoError(t, err)
			out := bufio.NewWriter(file)
			s.Record = recording.New(out)
			defer func() { require.NoError(t, errors.Join(s.Record.Close(), out.Flush(), file.Close())) }()
		}
		r := take(t, s)
		tellAll(t, r)
		report(t, s, r)
		return
	}
	hours, until := *hoursFlag, time.Duration(0)
	if hours == 0 {
		hours = 4
		if testing.Short() {
			hours, until = 0.1, 4*time.Minute
		}
	}
	all := runHours(t, hours, until)
	if t.Failed() || hours < manyHours || *onlyFlag != "" || len(without) > 0 {
		return
	}
	require.Greater(t, all.PerHour(all.Finished), float64(unitsPerHour), "units per hour")
	require.Greater(t, all.PerHour(all.AllFaults()), float64(faultsPerHour), "faults per hour")
	require.Greater(t, all.PerHour(all.ReadsAgain), float64(readsPerHour), "reads that met a unit, per hour")
}

// runHours takes courses on all cores; those that fail are made short and told.
func runHours(t *testing.T, hours float64, until time.Duration) *Counts {
	began := time.Now()
	var (
		mu     sync.Mutex
		all    Counts
		failed []Settings
		next   atomic.Uint64
		shown  time.Time
		wg     sync.WaitGroup
	)
	next.Store(*fromFlag)
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return all.HostTime.Hours() >= hours || len(failed) >= 3 || len(failed) > 0 && *briefFlag
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !enough() {
				s := Settings{Seed: next.Add(1) - 1, Until: until, Only: *onlyFlag, Without: without}
				ended := hangs(s)
				r := take(t, s)
				ended()
				mu.Lock()
				all.Add(r.Counts)
				if len(r.Problems) > 0 {
					failed = append(failed, s)
				}
				if time.Since(shown) > 10*time.Second {
					shown = time.Now()
					t.Log(summary(&all, time.Since(began)))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Log(summary(&all, time.Since(began)))
	for _, name := range slices.SortedFunc(maps.Keys(all.Faults), func(a, b string) int { return cmp.Compare(all.Faults[b], all.Faults[a]) }) {
		t.Logf("%9d  %s", all.Faults[name], name)
	}
	for _, s := range failed {
		explain(t, s)
	}
	return &all
}

func summary(c *Counts, took time.Duration) string {
	cores := float64(runtime.GOMAXPROCS(0))
	return fmt.Sprintf("%.1f host-hours, %.0f s: %d units of work finished (%.0f an hour), %d of them committed (%d without locks, %d together with others, after %d runs without locks in vain; %d by a journal, %d decided or finished by others), %d in doubt; %d sets of locks alone; "+
		"%d writes downstream, %d of them late and refused; %d reads without locks (%d in parts, %d looked again, %d ended by their callers); %d sweeps, which did something %d times; %d faults (%.0f an hour); %d requests; a second and core: %.0f units and sets, %.0f requests",
		c.HostTime.Hours(), took.Seconds(), c.Finished, c.PerHour(c.Finished), c.Commits, c.Free, c.Grouped, c.FellBack, c.Journals, c.Rescues, c.Doubts, c.Sets,
		c.Deliveries, c.Late, c.Reads, c.ReadsInParts, c.ReadsAgain, c.ReadsEnded, c.Faults[swept], c.Swept,
		c.AllFaults(), c.PerHour(c.AllFaults()), c.Requests,
		float64(c.Finished+c.Sets)/took.Seconds()/cores, float64(c.Requests)/took.Seconds()/cores)
}

// hangs ends the program, saying which seed it was, if a course takes too long
// in real time.
func hangs(s Settings) (ended func()) {
	timer := time.AfterFunc(5*time.Minute, func() {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "seed %d hangs\n%s\n", s.Seed, buf[:runtime.Stack(buf, true)])
		os.Exit(3)
	})
	return func() { timer.Stop() }
}

// explain makes a failure short and tells it.
func explain(t *testing.T, s Settings) {
	r := take(t, s)
	report(t, s, r)
	if *briefFlag {
		return
	}
	until := time.Now().Add(time.Minute)
	s, _ = Shrink(s, r, func(s Settings) *Result { return take(t, s) }, func() bool { return time.Now().Before(until) })
	s.Story = true
	r = take(t, s)
	t.Logf("the shortest course found that fails: %d events, %v, without %q", len(r.Instants), r.Length, s.Without)
	tellAll(t, r)
	report(t, s, r)
}

// report fails the test for the problems of a course.
func report(t *testing.T, s Settings, r *Result) {
	t.Logf("seed %d: %v", s.Seed, &r.Plan)
	if len(r.Problems) == 0 {
		return
	}
	t.Errorf("seed %d: %d promises did not hold; again: %s", s.Seed, len(r.Problems), s.Replay())
	t.Logf("seen from nearby: %s && (cd cmd/holdall && go run . timeline /tmp/course.jsonl -o /tmp/course.html)", s.Recorded("/tmp/course.jsonl"))
	for _, p := range r.Problems[:min(len(r.Problems), 12)] {
		t.Log("  ", p)
	}
}

// told is how many lines of a story fit a terminal.
const told = 250

func tellAll(t *testing.T, r *Result) {
	lines := r.Story
	if *storyFlag != "" {
		require.NoError(t, os.WriteFile(*storyFlag, []byte(lined(lines)), 0o644))
		t.Logf("the story is in %s", *storyFlag)
		return
	}
	if !testing.Verbose() && len(r.Problems) == 0 {
		return
	}
	lines = Abridged(lines)
	from, to := max(len(lines)-told, 0), len(lines)
	if at, known := pivot(r.Problems); known { // what led to it is of more interest than what followed
		to = sort.Search(len(lines), func(i int) bool { return lines[i].At > at }) // of the moment itself, too
		from, to = max(to-told, 0), min(to+told/10, len(lines))
	}
	if to-from < len(lines) {
		t.Logf("%d events of %d; -story FILE has all", to-from, len(lines))
	}
	t.Log("the story:\n" + lined(lines[from:to]))
}

func lined(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// pivot is the moment of the first problem: the latest one that it names.
func pivot(problems []string) (at time.Duration, known bool) {
	if len(problems) == 0 {
		return 0, false
	}
	for word := range strings.FieldsFuncSeq(problems[0], func(r rune) bool { return strings.ContainsRune("[] ,()", r) }) {
		if d, err := time.ParseDuration(word); err == nil && d > at {
			at, known = d, true
		}
	}
	return at, known
}
