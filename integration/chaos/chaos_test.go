package chaos

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/bank/diary"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/integration/engines"
)

var (
	rounds = flag.Int("rounds", 0, "rounds on dynoxide; one thing goes wrong in each; default 20, with -short 6")
	local  = flag.Int("local", 0, "rounds on DynamoDB Local; default 5, with -short 1")
	aDay   = flag.Int("day", 50, "rounds after which the books are closed and audited, and others begun")
	seed   = flag.Uint64("seed", 0, "what goes wrong is drawn from it (default: one that is drawn, and told)")
)

// binaries is the folder of the program, which all tests have.
var binaries string

func TestMain(m *testing.M) {
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
	var err error
	if binaries, err = os.MkdirTemp("", "holdall-chaos-bank-"); err != nil {
		panic(err)
	}
	code := engines.Main(m)
	_ = os.RemoveAll(binaries)
	os.Exit(code)
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

// bank builds the program, once.
func bank(t *testing.T) string {
	t.Helper()
	program, err := built()
	require.NoError(t, err)
	return program
}

var built = sync.OnceValues(func() (string, error) {
	root, err := engines.Root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(binaries, "bank")
	build := exec.Command("go", "build", "-o", program, "./integration/bank") //nolint:noctx // not of one test's context
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// Processes that are killed and stopped, an engine that is killed and forgets its
// request tokens, a network that does what it likes: the books, the archive and
// what everybody was told are exact.
func TestChaos(t *testing.T) {
	t.Parallel()
	program, s := bank(t), theSeed(t)
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
			Bank: program, Dir: dir, Archive: archive, Engine: server, Prefix: prefix(n),
			Seed: s ^ uint64(n)<<32, Lease: 2 * time.Second, Branches: 3, Tellers: 6, Think: 200 * time.Millisecond, Shares: everything, Pace: 600 * time.Millisecond,
			Rush: 6, Every: 500 * time.Millisecond,
		})
		server.Kill()
	}
	if *rounds >= 20 { // in fewer not all may come about
		require.Positive(t, all.ways[staff.WithoutLocks], "nobody committed without locks")
		require.Positive(t, all.ways[staff.AfterVoid], "nobody was in the way of a unit without locks")
		require.Positive(t, all.ways[staff.LockedFirst], "nobody took locks first")
		require.Greater(t, all.groups.largest, 2, "nobody led several")
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
	program, s := bank(t), theSeed(t)
	all := newReport()
	e := engines.DynamoDBLocal(t)
	for n := 0; all.rounds() < *local; n++ {
		dir := keptIfFailed(t)
		work(t, all, min(*aDay, *local-all.rounds()), Day{
			Bank: program, Dir: dir, Archive: filepath.Join(dir, "archive.db"), Engine: e.Server, Prefix: e.Table(prefix(n)),
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

// finish ends a day, audits it, sees that nothing is left that may not be when
// everybody is gone, and adds it to the report.
func (r *report) finish(t *testing.T, d *day) {
	t.Helper()
	require.NoError(t, d.close(patience(d.Lease)))
	out, err := d.audit(t.Context())
	require.NoError(t, err, out)
	_, r.audit, _ = strings.Cut(out, "\n\n") // the books: the rest is about the archive and what was told

	before, after, err := inherit(t.Context(), engines.Client(d.Engine.Endpoint), d.Prefix, d.Lease)
	require.NoError(t, err)
	require.Empty(t, before.lasts, "what bank recover did not find")
	require.Empty(t, after.held, "rows that nobody can have when everybody is gone")
	require.Empty(t, after.marked, "rows that wait for a journal when everybody is gone")
	require.Empty(t, after.places, "rows in whose queues somebody stands who is gone, though they were taken and freed")
	require.Empty(t, after.lasts, "entries, records and journals of units that are done with")
	for _, b := range d.branches {
		entries, err := diary.Read(b.diary)
		require.NoError(t, err)
		calm := heldSince(entries, d.calm)
		for _, unit := range before.units {
			require.False(t, calm[unit], "unit %s of %s left its locks, though nothing went wrong any more: %v", unit, b.name, before.held)
		}
	}
	begun := sum(r.begun)
	require.NoError(t, r.add(d, before))
	require.Greater(t, sum(r.begun), begun, "nobody worked")
	for _, after := range r.known {
		require.Less(t, after, d.Lease, "a process that was stopped learned late that its locks are lost")
	}
}

// keptIfFailed is a folder that stays if the test fails: diaries, tables, the archive.
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
