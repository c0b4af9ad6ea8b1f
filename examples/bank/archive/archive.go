// Package archive keeps statements in an SQL database, behind a gate that rejects late writers.
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
	"github.com/holdall/holdall/ordering"
)

// Config says which archive to open.
type Config struct {
	// Where is the URL of a PostgreSQL, or the name of an SQLite file. Default: a file in a temporary
	// folder, which Close removes.
	Where string
	// Prefix begins the names of the tables. Open creates them, so they must not exist.
	Prefix string
	// Exists says that another process created the tables. Close keeps them.
	Exists bool
	// Ungated leaves out the gate.
	Ungated bool
}

// Archive is an open archive. It is safe for concurrent use.
type Archive struct {
	db      *sql.DB
	gate    *fencing.Gate // nil if Ungated
	name    string
	folder  string // the temporary folder, if any
	created []string

	// Quoted names of tables: the present statement of each account, all statements ever written, and
	// the tokens of the gate.
	statements, written, fences string
}

// Open opens an archive. The caller must close it.
func Open(ctx context.Context, cfg Config) (*Archive, error) {
	quoted := func(name string) string { return `"` + strings.ReplaceAll(cfg.Prefix+name, `"`, `""`) + `"` }
	a := &Archive{statements: quoted("statements"), written: quoted("written"), fences: quoted("fences")}
	if err := a.open(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("archive: %w", err), a.Close(ctx))
	}
	return a, nil
}

func (a *Archive) open(ctx context.Context, cfg Config) (err error) {
	if strings.Contains(cfg.Prefix, ".") {
		return fmt.Errorf("the prefix %q has a dot, which separates schema and table in SQL", cfg.Prefix)
	}
	dialect := fencing.SQLite
	if IsURL(cfg.Where) {
		dialect = fencing.PostgreSQL
		err = a.openPostgreSQL(cfg.Where)
	} else {
		err = a.openSQLite(cfg.Where)
	}
	if err != nil {
		return err
	}
	if !cfg.Ungated {
		if a.gate, err = fencing.NewGate(dialect, cfg.Prefix+"fences"); err != nil {
			return err
		}
	}
	if cfg.Exists {
		return a.db.PingContext(ctx)
	}
	return a.create(ctx, dialect)
}

func (a *Archive) openSQLite(file string) (err error) {
	if file == "" {
		if a.folder, err = os.MkdirTemp("", "bank-archive-"); err != nil {
			return err
		}
		file = filepath.Join(a.folder, "archive.db")
	}
	a.name = "SQLite, " + file
	// Immediate: SQLite rejects a transaction that reads first if another one has written meanwhile.
	a.db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+
		"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)")
	if err == nil {
		a.db.SetMaxOpenConns(1) // SQLite has one writer at a time: queueing here is cheaper than polling there
	}
	return err
}

func (a *Archive) openPostgreSQL(url string) (err error) {
	const connections = 16 // few enough to leave some for other processes
	a.name = "PostgreSQL"  // a URL may contain a password
	if a.db, err = sql.Open("pgx", url); err == nil {
		a.db.SetMaxOpenConns(connections)
		a.db.SetMaxIdleConns(connections)
	}
	return err
}

func (a *Archive) create(ctx context.Context, d fencing.Dialect) error {
	const columns = "balance BIGINT NOT NULL, changes BIGINT NOT NULL, token BIGINT NOT NULL)"
	number := "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	if d == fencing.SQLite {
		number = "INTEGER PRIMARY KEY AUTOINCREMENT"
	}
	tables := [][2]string{
		{a.statements, "CREATE TABLE " + a.statements + " (account TEXT NOT NULL PRIMARY KEY, " + columns},
		{a.written, "CREATE TABLE " + a.written + " (n " + number + ", account TEXT NOT NULL, " + columns},
	}
	if a.gate != nil { // not by Gate.CreateTable, which accepts an existing table
		tables = append(tables, [2]string{a.fences, strings.Replace(a.gate.DDL(), "IF NOT EXISTS ", "", 1)})
	}
	for _, table := range tables {
		if _, err := a.db.ExecContext(ctx, table[1]); err != nil {
			// Databases differ in how they say that a table exists, but not in how it is read.
			if _, absent := a.db.ExecContext(ctx, "SELECT 1 FROM "+table[0]+" WHERE 1 = 0"); absent == nil { //nolint:gosec // the prefix is the operator's, who has the database
				return fmt.Errorf("table %s exists already in %v: choose another -archive or -prefix", table[0], a)
			}
			return err
		}
		a.created = append(a.created, table[0])
	}
	return nil
}

// Write writes all statements or none, in one transaction. The gate rejects a token if a later one
// has been admitted at any of the keys.
func (a *Archive) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	put := func(tx *sql.Tx) error { return a.put(ctx, tx, statements) }
	if a.gate != nil {
		return a.gate.Do(ctx, a.db, token, keys, put)
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
		// The first statement locks the account's row, so the rows of the second table are numbered in
		// the order in which they were written.
		for _, statement := range []string{
			"INSERT INTO " + a.statements + " (account, balance, changes, token) VALUES ($1, $2, $3, $4)" +
				" ON CONFLICT (account) DO UPDATE SET balance = excluded.balance, changes = excluded.changes, token = excluded.token",
			"INSERT INTO " + a.written + " (account, balance, changes, token) VALUES ($1, $2, $3, $4)",
		} {
			if _, err := tx.ExecContext(ctx, statement, s.Account, s.Balance, s.Changes, int64(s.Token)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Load reads all statements. Call it only after all work has ended.
func (a *Archive) Load(ctx context.Context) (all Statements, err error) {
	const columns = "SELECT account, balance, changes, token FROM "
	if all.Present, err = a.load(ctx, columns+a.statements+" ORDER BY account"); err == nil {
		all.Written, err = a.load(ctx, columns+a.written+" ORDER BY n")
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
	defer func() { _ = rows.Close() }() // rows.Err has the error
	for rows.Next() {
		var s books.Statement
		if err := rows.Scan(&s.Account, &s.Balance, &s.Changes, &s.Token); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// Keep makes Close keep the tables that Open created.
func (a *Archive) Keep() { a.created, a.folder = nil, "" }

// Close deletes the tables that Open created, and closes the archive.
func (a *Archive) Close(ctx context.Context) error {
	var errs []error
	if a.db != nil {
		for _, table := range a.created {
			_, err := a.db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table)
			errs = append(errs, err)
		}
		a.created = nil
		errs = append(errs, a.db.Close())
	}
	if a.folder != "" {
		errs = append(errs, os.RemoveAll(a.folder))
	}
	return errors.Join(errs...)
}

// String names the database, without the secrets that a URL may contain.
func (a *Archive) String() string { return a.name }

// IsURL reports whether an archive is a PostgreSQL.
func IsURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}
