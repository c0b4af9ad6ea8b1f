package chaos

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/internal/hooks"
)

// The audit of a day fails if the archive is not what the branches were told, whichever of the two is
// falsified, and if the books are not what a branch has read.
func TestTheAuditNotices(t *testing.T) {
	t.Parallel()
	dir := keptIfFailed(t)
	d, err := open(t.Context(), Day{
		Dir: dir, Archive: filepath.Join(dir, "archive.db"), Engine: engineIn(t, dir).Server, Prefix: prefix(0),
		Seed: theSeed(t), Lease: 2 * time.Second, Branches: 2, Tellers: 4,
	})
	require.NoError(t, err)
	defer d.quit()
	require.Eventually(t, func() bool {
		n := 0
		for _, b := range d.branches {
			entries, err := readDiary(b.Diary)
			require.NoError(t, err)
			for _, e := range entries {
				if e.Is == filed {
					n++
				}
			}
		}
		return n > 10
	}, time.Minute, 100*time.Millisecond, "no branch writes statements")
	require.NoError(t, d.close(patience(d.Lease)))
	results, err := d.audit(t.Context())
	require.NoError(t, err)
	require.True(t, books.Sound(results), inLines(results))

	falsified, entries, err := openDiary(d.branches[0].Diary)
	require.NoError(t, err)
	i := slices.IndexFunc(entries, func(e entry) bool {
		return e.Is == ended && e.Way == staff.WithoutLocks && e.Outcome == hooks.Committed
	})
	require.GreaterOrEqual(t, i, 0, "no unit was committed without locks")
	falsified.write(entry{Is: ended, Unit: entries[i].Unit, Outcome: hooks.FellBack, Way: staff.WithoutLocks})
	falsified.write(entry{Is: filed, Job: "b0/0", Outcome: string(staff.Committed), Statements: []books.Statement{{Account: "none", Balance: 7, Token: 7}}})
	falsified.write(entry{Is: shown, Job: "b0/0", Positions: []position{{Record: "account:bank", Balance: 7}}})
	require.NoError(t, falsified.close())
	found := func() map[string]int {
		results, err := d.audit(t.Context())
		require.NoError(t, err)
		return findings(results)
	}
	first := found()
	require.Equal(t, 1, first[unfiled])
	require.Equal(t, 1, first[nowhere])
	require.Positive(t, first[void])
	require.Len(t, first, 3)

	archive, err := sql.Open("sqlite", d.Archive)
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	_, err = archive.ExecContext(t.Context(), `DELETE FROM "`+d.Prefix+`statements" WHERE n = (SELECT MIN(n) FROM "`+d.Prefix+`statements")`)
	require.NoError(t, err)
	require.Equal(t, 2, found()[unfiled])
}

// findings returns the number of findings of each check that found anything.
func findings(results []books.Result) map[string]int {
	found := map[string]int{}
	for _, r := range results {
		if len(r.Findings) > 0 {
			found[r.Count] = len(r.Findings)
		}
	}
	return found
}
