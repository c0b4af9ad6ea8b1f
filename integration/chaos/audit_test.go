package chaos

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/holdall/holdall/integration/bank/diary"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/trace"
)

// The audit of a day does not only pass: it fails when the archive is not what the
// branches were told, whichever of the two was falsified, and when the books are not
// what somebody has read.
func TestTheAuditNotices(t *testing.T) {
	t.Parallel()
	dir := keptIfFailed(t)
	server, err := engines.Start(t.Context(), engines.KindDynoxide, filepath.Join(dir, "tables.db"))
	require.NoError(t, err)
	defer server.Kill()
	d, err := open(t.Context(), Day{
		Bank: bank(t), Dir: dir, Archive: filepath.Join(dir, "archive.db"), Engine: server, Prefix: prefix(0),
		Seed: theSeed(t), Lease: 2 * time.Second, Branches: 2, Tellers: 4,
	})
	require.NoError(t, err)
	defer d.quit()
	answers := func() (n int) {
		for _, b := range d.branches {
			text, _ := os.ReadFile(b.diary) // it is not there at once
			n += bytes.Count(text, []byte(`"archived":{`))
		}
		return n
	}
	require.Eventually(t, func() bool { return answers() > 10 }, time.Minute, 100*time.Millisecond, "nobody writes statements")
	require.NoError(t, d.close(patience(d.Lease)))
	out, err := d.audit(t.Context())
	require.NoError(t, err, out)

	committed := unlocked(t, d.branches[0].diary)
	file, err := os.OpenFile(d.branches[0].diary, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString(`{"ended":{"unit":"` + committed + `","outcome":"fell back","way":"without locks"}}
{"archived":{"job":"b0/0","statements":[{"account":"none","balance":7,"changes":0,"token":7}],"outcome":"committed"}}
{"shown":{"job":"b0/0","positions":[{"record":"account:bank","changes":0,"balance":7}]}}
` + "\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	out, err = d.audit(t.Context())
	require.Error(t, err, out)
	require.Contains(t, out, " 1 statements told written that are not in the archive")
	require.Contains(t, out, "What was told of statements is NOT sound.")
	require.Regexp(t, `\n +[1-9] changes by units that were told that nothing was written\n`, out)
	require.Contains(t, out, "What was told is NOT sound.")
	require.Contains(t, out, " 1 records that never were as an overview has them")
	require.Contains(t, out, "What was read is NOT sound.")

	archive, err := sql.Open("sqlite", d.Archive)
	require.NoError(t, err)
	defer func() { require.NoError(t, archive.Close()) }()
	_, err = archive.ExecContext(t.Context(), `DELETE FROM "`+d.Prefix+`written" WHERE n = (SELECT MIN(n) FROM "`+d.Prefix+`written")`)
	require.NoError(t, err)
	out, err = d.audit(t.Context())
	require.Error(t, err, out)
	require.Contains(t, out, " 2 statements told written that are not in the archive")
}

// unlocked is a unit that was committed without locks, by a diary.
func unlocked(t *testing.T, name string) string {
	t.Helper()
	entries, err := diary.Read(name)
	require.NoError(t, err)
	i := slices.IndexFunc(entries, func(e diary.Line) bool {
		return e.Ended != nil && e.Ended.Way == staff.WithoutLocks && e.Ended.Outcome == trace.Committed
	})
	require.GreaterOrEqual(t, i, 0, "nobody committed without locks")
	return entries[i].Ended.Unit
}
