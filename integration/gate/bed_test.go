// Package gate tries the gates of other stores on the stores themselves.
package gate

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/ordering"
)

func TestMain(m *testing.M) {
	if settings := os.Getenv(holderEnv); settings != "" {
		if err := holder(settings); err != nil {
			fmt.Fprintln(os.Stderr, "holder:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(engines.Main(m))
}

// store is a database with a gate of the test's own.
type store struct {
	newGate func(table string) (*fencing.Gate, error)
	driver  string
	db      *sql.DB
	table   string
	*fencing.Gate
}

// each runs a test on PostgreSQL and on SQLite.
func each(t *testing.T, test func(*testing.T, *store)) {
	t.Helper()
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgres(t)) })
	t.Run("SQLite", func(t *testing.T) { test(t, sqlite(t)) })
}

func postgres(t testing.TB) *store {
	t.Helper()
	return newStore(t, fencing.NewPostgreSQLGate, "pgx", engines.Postgres(t))
}

// Transactions of SQLite are to say at once that they will write: one that has
// read before is refused when another has written meanwhile.
func sqlite(t testing.TB) *store {
	t.Helper()
	file := filepath.Join(t.TempDir(), "store.db")
	return newStore(t, fencing.NewSQLiteGate, "sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)")
}

func newStore(t testing.TB, newGate func(string) (*fencing.Gate, error), driver, url string) *store {
	t.Helper()
	db, err := sql.Open(driver, url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	s := &store{newGate: newGate, driver: driver, db: db, table: "Fences " + rand.Text()[:10]}
	s.Gate, err = newGate(s.table)
	require.NoError(t, err)
	require.NoError(t, s.CreateTable(t.Context(), db))
	return s
}

// admit admits a token in a transaction that does nothing else.
func (s *store) admit(t testing.TB, token fencing.Token, keys ...ordering.Key) error {
	return s.Do(t.Context(), s.db, token, keys, func(*sql.Tx) error { return nil })
}

// exec runs a statement; ? stands for each argument.
func (s *store) exec(t testing.TB, on interface {
	Exec(string, ...any) (sql.Result, error)
}, statement string, args ...any) {
	t.Helper()
	_, err := on.Exec(s.numbered(statement), args...)
	require.NoError(t, err)
}

// numbered writes placeholders as the database has them.
func (s *store) numbered(statement string) string {
	if s.driver == "sqlite" {
		return statement
	}
	text, n := "", 0
	for _, r := range statement {
		if r == '?' {
			n++
			text += fmt.Sprint("$", n)
		} else {
			text += string(r)
		}
	}
	return text
}
