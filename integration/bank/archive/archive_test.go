package archive_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/archive"
	"github.com/holdall/holdall/ordering"
)

func open(t *testing.T, cfg archive.Config) *archive.Archive {
	t.Helper()
	a, err := archive.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close(context.Background())) })
	return a
}

// write writes a statement, under the token and the key given.
func write(t *testing.T, a *archive.Archive, key ordering.Key, of ...books.Statement) error {
	t.Helper()
	return a.Write(t.Context(), of[0].Token, []ordering.Key{key}, of)
}

// What was written stands, unless a later one did; coarse and fine locks count
// alike.
func TestTheGuard(t *testing.T) {
	t.Parallel()
	a := open(t, archive.Config{Prefix: "x-"})
	older := books.Statement{Account: "a", Balance: -5, Changes: 1, Token: 10}
	newer := books.Statement{Account: "a", Balance: 7, Changes: 3, Token: 12}
	other := books.Statement{Account: "b", Balance: 1, Changes: 0, Token: 12}
	require.NoError(t, write(t, a, "customer:1/account:a", older))
	require.NoError(t, write(t, a, "customer:1", newer, other))
	require.ErrorIs(t, write(t, a, "customer:1/account:a", older), fencing.ErrStale)
	require.ErrorIs(t, write(t, a, "customer:1", older), fencing.ErrStale)

	all, err := a.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, []books.Statement{newer, other}, all.Statements)
	require.Equal(t, []books.Statement{older, newer, other}, all.Written)
}

func TestWithoutTheGuard(t *testing.T) {
	t.Parallel()
	a := open(t, archive.Config{Prefix: "x-", Unguarded: true})
	older, newer := books.Statement{Account: "a", Changes: 1, Token: 10}, books.Statement{Account: "a", Changes: 3, Token: 12}
	require.NoError(t, write(t, a, "customer:1", newer))
	require.NoError(t, write(t, a, "customer:1", older))
	all, err := a.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, []books.Statement{older}, all.Statements)
	require.Equal(t, []books.Statement{newer, older}, all.Written)
}

// tables are those in a file.
func tables(t *testing.T, file string) (names []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(file, "?", "%3f"))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rows, err := db.Query("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%-%' ORDER BY name")
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		names = append(names, name)
	}
	require.NoError(t, rows.Err())
	return names
}

// An archive removes the tables that it made, unless they are to be kept, and no
// others.
func TestTablesOfAnArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "an archive?.db")
	cfg := archive.Config{Where: file, Prefix: `x"-`}
	a, err := archive.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, "SQLite, "+file, a.String())
	require.Equal(t, []string{`x"-fences`, `x"-statements`, `x"-written`}, tables(t, file))
	_, err = archive.Open(t.Context(), cfg)
	require.EqualError(t, err, `archive: table "x""-statements" exists already in SQLite, `+file+`: choose another -archive or -prefix`)
	require.Len(t, tables(t, file), 3, "they are not of the second")
	require.NoError(t, a.Close(t.Context()))
	require.Empty(t, tables(t, file))

	cfg.Prefix = "y-"
	a, err = archive.Open(t.Context(), cfg)
	require.NoError(t, err)
	a.Keep()
	require.NoError(t, a.Close(t.Context()))
	require.Len(t, tables(t, file), 3)

	a, err = archive.Open(t.Context(), archive.Config{})
	require.NoError(t, err)
	_, folder, ok := strings.Cut(filepath.Dir(a.String()), ", ")
	require.True(t, ok)
	require.DirExists(t, folder)
	require.NoError(t, a.Close(t.Context()))
	require.NoDirExists(t, folder)
	require.NotEqual(t, os.TempDir(), folder)
}
