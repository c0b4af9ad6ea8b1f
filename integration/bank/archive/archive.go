// Package archive keeps statements in an SQL database, behind a guard that refuses
// those who have been overtaken.
package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/ordering"
)

// Config says where an archive is.
type Config struct {
	// URL of a PostgreSQL, or the name of a file for SQLite. Default: a file in a
	// temporary folder.
	Where string
	// Prefix of the tables' names. They are made by Open, so there must be none.
	Prefix string
	// Made says that another process made the tables. Close leaves them.
	Made bool
	// Unguarded leaves out the guard, and nothing else.
	Unguarded bool
}

// Archive is one that was opened. It is safe for concurrent use.
type Archive struct {
	db     *sql.DB
	guard  *fencing.Gate // nil if there is none
	name   string        // for people
	folder string        // removed at the end; empty if the archive is elsewhere
	tables tables
	made   []string
}

// tables are quoted names: of what each account's statement is, of all that were
// ever written, in their order, and of the guard's tokens.
type tables struct{ statements, written, fences string }

// Open opens an archive and makes its tables. The caller must close it.
func Open(ctx context.Context, cfg Config) (*Archive, error) {
	a := &Archive{tables: tables{quoted(cfg.Prefix + "statements"), quoted(cfg.Prefix + "written"), quoted(cfg.Prefix + "fences")}}
	err := a.open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("archive: %w", err), a.Close(ctx))
	}
	return a, nil
}

func (a *Archive) open(ctx context.Context, cfg Config) error {
	if strings.Contains(cfg.Prefix, ".") {
		return fmt.Errorf("the prefix %q has a dot, by which SQL tells a schema from a table", cfg.Prefix)
	}
	dialect, file := fencing.SQLite, cfg.Where
	var err error
	switch {
	case IsURL(cfg.Where):
		dialect = fencing.PostgreSQL
	case file == "":
		if a.folder, err = os.MkdirTemp("", "bank-archive-"); err != nil {
			return err
		}
		file = filepath.Join(a.folder, "archive.db")
	}
	if dialect == fencing.PostgreSQL {
		a.name = "PostgreSQL"
		a.db, err = openPostgreSQL(cfg.Where)
	} else {
		a.name = "SQLite, " + file
		a.db, err = openSQLite(file)
	}
	if err != nil {
		return err
	}
	if !cfg.Unguarded {
		if a.guard, err = fencing.NewGate(dialect, cfg.Prefix+"fences"); err != nil {
			return err
		}
	}
	if cfg.Made {
		return a.db.PingContext(ctx)
	}
	return a.create(ctx, dialect)
}

// openSQLite opens a file whose transactions say at once that they will write:
// one that has read before is refused when another has written meanwhile.
func openSQLite(file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)")
	if err == nil {
		db.SetMaxOpenConns(1) // one can write at a time: better to queue here than to poll there
	}
	return db, err
}

// openPostgreSQL opens so few connections that others have some, too, and keeps
// them open.
func openPostgreSQL(url string) (*sql.DB, error) {
	db, err := sql.Open("pgx", url)
	if err == nil {
		const connections = 16
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
	}
	return db, err
}

// create makes the tables. That of statements has one row for each account; another
// has all that were ever written, so that what was overwritten can be told
// afterwards; the third is the guard's.
func (a *Archive) create(ctx context.Context, d fencing.Dialect) error {
	const columns = "balance BIGINT NOT NULL, changes BIGINT NOT NULL, token BIGINT NOT NULL, " +
		"written_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)"
	number := "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	if d == fencing.SQLite {
		number = "INTEGER PRIMARY KEY AUTOINCREMENT"
	}
	for _, table := range []struct{ name, key string }{
		{a.tables.statements, "account TEXT NOT NULL PRIMARY KEY"},
		{a.tables.written, "n " + number + ", account TEXT NOT NULL"},
	} {
		if err := a.createTable(ctx, table.name, "CREATE TABLE "+table.name+" ("+table.key+", "+columns); err != nil {
			return err
		}
	}
	if a.guard == nil {
		return nil
	}
	// Not CreateTable: one that is there is another's.
	return a.createTable(ctx, a.tables.fences, strings.Replace(a.guard.DDL(), "IF NOT EXISTS ", "", 1))
}

// createTable refuses a table that exists: its rows are of other books.
func (a *Archive) createTable(ctx context.Context, name, ddl string) error {
	_, err := a.db.ExecContext(ctx, ddl)
	if err == nil {
		a.made = append(a.made, name)
		return nil
	}
	// Each database says in its own way that it is there; that it can be read is one way for all.
	const nothingOf = "SELECT 1 FROM %s WHERE 1 = 0"
	if _, absent := a.db.ExecContext(ctx, fmt.Sprintf(nothingOf, name)); absent == nil {
		return fmt.Errorf("table %s exists already in %v: choose another -archive or -prefix", name, a)
	}
	return err
}

// Write writes statements, all or none, in a transaction. With a guard, a token
// that has been overtaken at any of keys is refused.
func (a *Archive) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	put := func(tx *sql.Tx) error { return a.put(ctx, tx, statements) }
	if a.guard != nil {
		return a.guard.Do(ctx, a.db, token, keys, put)
	}
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := put(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (a *Archive) put(ctx context.Context, tx *sql.Tx, statements []books.Statement) error {
	for _, s := range statements {
		// The row of the account is locked from here on: its rows in the second
		// table are numbered in the order in which they were written.
		for _, statement := range []string{
			"INSERT INTO " + a.tables.statements + " (account, balance, changes, token) VALUES ($1, $2, $3, $4)" +
				" ON CONFLICT (account) DO UPDATE SET balance = excluded.balance, changes = excluded.changes," +
				" token = excluded.token, written_at = CURRENT_TIMESTAMP",
			"INSERT INTO " + a.tables.written + " (account, balance, changes, token) VALUES ($1, $2, $3, $4)",
		} {
			if _, err := tx.ExecContext(ctx, statement, s.Account, s.Balance, s.Changes, int64(s.Token)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Load reads all that is there. It is for when all work has ended.
func (a *Archive) Load(ctx context.Context) (audit.Archive, error) {
	var all audit.Archive
	var err error
	const columns = "SELECT account, balance, changes, token FROM "
	if all.Statements, err = a.load(ctx, columns+a.tables.statements+" ORDER BY account"); err == nil {
		all.Written, err = a.load(ctx, columns+a.tables.written+" ORDER BY n")
	}
	if err != nil {
		return all, fmt.Errorf("read the archive: %w", err)
	}
	return all, nil
}

func (a *Archive) load(ctx context.Context, query string) (all []books.Statement, err error) {
	rows, err := a.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // read to its end, or of no use
	for rows.Next() {
		var s books.Statement
		if err := rows.Scan(&s.Account, &s.Balance, &s.Changes, &s.Token); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// Keep makes Close leave the tables that Open made.
func (a *Archive) Keep() { a.made, a.folder = nil, "" }

// Close deletes the tables that Open made, and closes the archive.
func (a *Archive) Close(ctx context.Context) error {
	var errs []error
	if a.db != nil {
		for _, table := range a.made {
			_, err := a.db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table)
			errs = append(errs, err)
		}
		a.made = nil
		errs = append(errs, a.db.Close())
	}
	if a.folder != "" {
		errs = append(errs, os.RemoveAll(a.folder))
	}
	return errors.Join(errs...)
}

// String says where it is, without what a URL may have that is secret.
func (a *Archive) String() string { return a.name }

// IsURL reports whether an archive is a PostgreSQL.
func IsURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
