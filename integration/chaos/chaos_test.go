package chaos

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/integration/engines"
)

var (
	rounds = flag.Int("rounds", 0, "rounds on dynoxide; one thing goes wrong in each; default 20, with -short 6")
	local  = flag.Int("local", 0, "rounds on DynamoDB Local; default 5, with -short 1")
	aDay   = flag.Int("day", 50, "rounds after which the books are closed and audited, and others begun")
	seed   = flag.Uint64("seed", 0, "what goes wrong is drawn from it (default: one that is drawn, and told)")
)

func TestMain(m *testing.M) {
	runAsBranch()
	flag.Parse()
	short := testing.Short()
	for asked, usual := range map[*int][2]int{rounds: {20, 6}, local: {5, 1}} {
		switch {
		case *asked == 0 && short:
			*asked = usual[1]
		case *asked == 0:
			*asked = usual[0]
		}
	}
	os.Exit(engines.Main(m))
}

// theSeed is the seed that was asked for, or another each time. That of a day is
// drawn from it and the day's number.
func theSeed(t *testing.T) uint64 {
	t.Helper()
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-seed %d", s)
	return s
}

// Processes are killed and stopped, the engine is killed and forgets its request tokens, and the network
// loses, delays and repeats requests: the books, the archive and what every process was told are exact.
func TestChaos(t *testing.T) {
	t.Parallel()
	s := theSeed(t)
	all := newReport()
	for n := 0; all.rounds() < *rounds; n++ {
		dir := keptIfFailed(t)
		archive := filepath.Join(dir, "archive.db")
		if n%2 == 1 {
			archive = engines.Postgres(t)
		}
		server, err := engines.Start(t.Context(), engines.KindDynoxide, filepath.Join(dir, "tables.db"))
		require.NoError(t, err)
		work(t, all, min(*aDay, *rounds-all.rounds()), Day{
			Dir: dir, Archive: archive, Engine: server, Prefix: prefix(n),
			Seed: s ^ uint64(n)<<32, Lease: 2 * time.Second, Branches: 3, Tellers: 6, Think: 200 * time.Millisecond, Shares: everything, Pace: 600 * time.Millisecond,
			Rush: 6, Every: 500 * time.Millisecond,
		})
		server.Kill()
	}
	if *rounds >= 20 { // in fewer not all may come about
		require.Positive(t, all.ways[staff.WithoutLocks], "no unit was committed without locks")
		require.Positive(t, all.ways[staff.AfterConflict], "no unit without locks met a conflict")
		require.Positive(t, all.ways[staff.LockedFirst], "no unit took its locks first")
		require.Greater(t, all.groups.largest, 2, "no unit led several")
		require.Positive(t, all.groups.leftOut, "no member of a group was left out")
		require.Positive(t, all.groups.failed, "no member of a group failed")
		require.Positive(t, all.killed, "no process was killed while it committed a group")
	}
	t.Logf("\ndynoxide %s, with a file: %v", engines.DynoxideVersion, all)
}

// DynamoDB Local loses what it has acknowledged when it is killed, so only its
// clients are.
func TestChaosOnDynamoDBLocal(t *testing.T) {
	t.Parallel()
	s := theSeed(t)
	all := newReport()
	e := engines.DynamoDBLocal(t)
	for n := 0; all.rounds() < *local; n++ {
		dir := keptIfFailed(t)
		work(t, all, min(*aDay, *local-all.rounds()), Day{
			Dir: dir, Archive: filepath.Join(dir, "archive.db"), Engine: e.Server, Prefix: e.Table(prefix(n)),
			Seed: s ^ uint64(n)<<32, Lease: 10 * time.Second, Branches: 3, Tellers: 2, Think: 200 * time.Millisecond, Shares: clientsOnly, Pace: 2 * time.Second,
			Rush: 4, Every: 2 * time.Second,
		})
	}
	t.Logf("\n%s: %v", e.Name, all)
}

func prefix(n int) string { return "day" + string(rune('a'+n/26%26)) + string(rune('a'+n%26)) + "-" }

// work has a bank work for so many rounds, and audits it.
func work(t *testing.T, all *report, rounds int, cfg Day) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := time.Now()
	d, err := open(ctx, cfg)
	require.NoError(t, err)
	defer d.quit()
	for had := 0; had < rounds && d.failed() == nil; had = d.had() {
		d.round(ctx)
	}
	all.finish(t, d)
	all.took += time.Since(start)
	t.Logf("%d rounds, all is exact: %s", all.rounds(), time.Since(start).Round(time.Second))
}

// finish ends a day, audits it, checks that no locks or journals are left when all processes have
// ended, and adds the day to the report.
func (r *report) finish(t *testing.T, d *day) {
	t.Helper()
	require.NoError(t, d.close(patience(d.Lease)))
	results, err := d.audit(t.Context())
	require.NoError(t, err)
	r.audit = inLines(results)
	require.True(t, books.Sound(results), r.audit)

	before, after, err := inherit(t.Context(), engines.Client(d.Engine.Endpoint), d.Prefix, d.Lease)
	require.NoError(t, err)
	require.Empty(t, before.lasts, "what Recover did not find")
	require.Empty(t, after.held, "rows that are held after all processes have ended")
	require.Empty(t, after.marked, "rows that wait for a journal after all processes have ended")
	require.Empty(t, after.places, "rows with a dead waiter in their queue, though they were taken and freed")
	require.Empty(t, after.lasts, "entries, records and journals of units that are done with")
	for _, b := range d.branches {
		entries, err := readDiary(b.Diary)
		require.NoError(t, err)
		calm := heldSince(entries, d.calm)
		for _, unit := range before.units {
			require.False(t, calm[unit], "unit %s of %s left its locks, though nothing went wrong any more: %v", unit, b.Name, before.held)
		}
	}
	begun := sum(r.begun)
	require.NoError(t, r.add(d, before))
	require.Greater(t, sum(r.begun), begun, "no branch worked")
	for _, after := range r.known {
		require.Less(t, after, d.Lease, "a process that was stopped learned late that its locks were lost")
	}
}

// engineIn is a dynoxide for one test, with its tables in a folder.
func engineIn(t *testing.T, dir string) *engines.Engine {
	t.Helper()
	return engines.Own(t, engines.KindDynoxide, filepath.Join(dir, "tables.db"))
}

// keptIfFailed returns a folder for diaries, tables and the archive. It is kept if the test fails.
func keptIfFailed(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdall-chaos-") //nolint:usetesting // that of a test that failed stays
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kept %[1]s; to see what happened: (cd cmd/holdall && go run . timeline %[1]s/*.jsonl -o %[1]s/timeline.html)", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}
