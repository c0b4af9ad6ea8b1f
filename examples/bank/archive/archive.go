// Package archive keeps statements in an SQL database, behind a gate that rejects late writers.
package archive

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// Config says which archive to open.
type Config struct {
	// Where is the name of an SQLite file, or the URL of a PostgreSQL, for which the program has to
	// import a driver called "pgx". Default: SQLite in memory.
	Where string
	// Prefix begins the names of the tables. Open creates them, so they must not exist.
	Prefix string
	// Exists says that another process created the tables.
	Exists bool
	// Keep says that Close keeps the tables that Open created.
	Keep bool
	// Ungated leaves out the gate.
	Ungated bool
}

// Archive is an open archive. It is safe for concurrent use.
type Archive struct {
	cfg      Config
	db       *sql.DB
	postgres bool
	gate     *fencing.Gate // nil if Ungated
	created  bool

	// statements is the quoted name of the table of all statements ever written. The last one of an
	// account is the present one.
	statements string
}

// Open opens an archive. The caller must close it.
func Open(ctx context.Context, cfg Config) (*Archive, error) {
	a := &Archive{cfg: cfg, postgres: IsURL(cfg.Where)}
	a.statements = a.quoted("statements")
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("archive: %w", err), a.Close(ctx))
	}
	return a, nil
}

func (a *Archive) quoted(name string) string {
	return `"` + strings.ReplaceAll(a.cfg.Prefix+name, `"`, `""`) + `"`
}

func (a *Archive) open(ctx context.Context) (err error) {
	if strings.Contains(a.cfg.Prefix, ".") {
		return fmt.Errorf("the prefix %q has a dot, which separates schema and table in SQL", a.cfg.Prefix)
	}
	if a.postgres {
		const connections = 16 // few enough to leave some for other processes
		if a.db, err = sql.Open("pgx", a.cfg.Where); err != nil {
			return err
		}
		a.db.SetMaxOpenConns(connections)
		a.db.SetMaxIdleConns(connections)
	} else if err := a.openSQLite(); err != nil {
		return err
	}
	if !a.cfg.Ungated {
		newGate := fencing.NewSQLiteGate
		if a.postgres {
			newGate = fencing.NewPostgreSQLGate
		}
		if a.gate, err = newGate(a.cfg.Prefix + "fences"); err != nil {
			return err
		}
	}
	if a.cfg.Exists {
		return a.db.PingContext(ctx)
	}
	return a.create(ctx)
}

func (a *Archive) openSQLite() (err error) {
	file := "file::memory:?"
	if a.cfg.Where != "" {
		file = "file:" + (&url.URL{Path: a.cfg.Where}).EscapedPath() + "?_pragma=journal_mode(wal)&"
	}
	// Immediate: SQLite rejects a transaction that reads first if another one has written meanwhile.
	if a.db, err = sql.Open("sqlite", file+"_txlock=immediate&_pragma=busy_timeout(60000)"); err == nil {
		a.db.SetMaxOpenConns(1) // SQLite has one writer at a time: queueing here is cheaper than polling there
	}
	return err
}

// create refuses an existing table of statements, which belongs to another archive.
func (a *Archive) create(ctx context.Context) error {
	number := "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	if !a.postgres {
		number = "INTEGER PRIMARY KEY AUTOINCREMENT"
	}
	_, err := a.db.ExecContext(ctx, "CREATE TABLE "+a.statements+" (n "+number+
		", account TEXT NOT NULL, balance BIGINT NOT NULL, changes BIGINT NOT NULL, token BIGINT NOT NULL)")
	if err != nil {
		return fmt.Errorf("table %s in %v: %w; if it exists, choose another -archive or -prefix", a.statements, a, err)
	}
	a.created = true
	if a.gate == nil {
		return nil
	}
	return a.gate.CreateTable(ctx, a.db)
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

// put numbers statements in the order in which they are written: the gate has locked the rows of their
// keys before.
func (a *Archive) put(ctx context.Context, tx *sql.Tx, statements []books.Statement) error {
	for _, s := range statements {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+a.statements+" (account, balance, changes, token) VALUES ($1, $2, $3, $4)", //nolint:gosec // a quoted name
			s.Account, s.Balance, s.Changes, int64(s.Token))
		if err != nil {
			return err
		}
	}
	return nil
}

// Load reads all statements that were ever written, in the order of the writes. Call it only after all
// work has ended.
func (a *Archive) Load(ctx context.Context) (all []books.Statement, err error) {
	rows, err := a.db.QueryContext(ctx, "SELECT account, balance, changes, token FROM "+a.statements+" ORDER BY n") //nolint:gosec // a quoted name
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
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

// Close closes the archive, and deletes the tables that Open created unless they are to be kept.
func (a *Archive) Close(ctx context.Context) error {
	if a.db == nil {
		return nil
	}
	var errs []error
	if a.created && !a.cfg.Keep {
		for _, table := range []string{a.statements, a.quoted("fences")} {
			_, err := a.db.ExecContext(ctx, "DROP TABLE IF EXISTS "+table)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, a.db.Close())...)
}

// String names the database, without the secrets that a URL may contain.
func (a *Archive) String() string {
	if a.postgres {
		return "PostgreSQL"
	}
	return "SQLite, " + cmp.Or(a.cfg.Where, "in memory")
}

// IsURL reports whether an archive is a PostgreSQL.
func IsURL(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// Audit compares all statements of an archive, in the order of the writes, with the books.
func Audit(all []books.Statement, r books.Records) []books.Result {
	byToken := slices.Clone(all)
	slices.SortStableFunc(byToken, func(a, b books.Statement) int { return cmp.Compare(a.Token, b.Token) })
	return []books.Result{
		{Count: "stale statements written after newer ones", Findings: eachPair(all, stale)},
		{Count: "statements with a later token that had seen less", Findings: eachPair(byToken, seenLess)},
		{Count: "statements that differ from the ledger", Findings: differing(all, r)},
	}
}

// eachPair calls check for every statement and the one with the latest token before it, the zero
// Statement for the first of an account.
func eachPair(all []books.Statement, check func(newest, s books.Statement) (finding string)) (findings []string) {
	newest := map[string]books.Statement{}
	for _, s := range all {
		if finding := check(newest[s.Account], s); finding != "" {
			findings = append(findings, fmt.Sprintf("account %s: %s", s.Account, finding))
		}
		if s.Token > newest[s.Account].Token {
			newest[s.Account] = s
		}
	}
	return findings
}

// stale: a late writer has written what readers now take for the present statement.
func stale(newest, s books.Statement) string {
	if s.Token >= newest.Token {
		return ""
	}
	return fmt.Sprintf("%s was followed by %s", Describe(newest), Describe(s))
}

// seenLess: a later holder of the locks has seen all changes that an earlier one saw, in whatever order
// they wrote.
func seenLess(newest, s books.Statement) string {
	if s.Changes >= newest.Changes {
		return ""
	}
	return fmt.Sprintf("%s had seen more than %s", Describe(newest), Describe(s))
}

// differing: a statement has the balance that the account had after the change that it names.
func differing(all []books.Statement, r books.Records) (findings []string) {
	type point struct {
		account string
		changes int
	}
	balances := map[point]int64{}
	for _, a := range r.Accounts {
		balances[point{books.AccountRecord(a.ID), 0}] = a.Opening
	}
	for _, c := range r.History {
		balances[point{c.Record, c.Seq}] = c.Balance
	}
	for _, s := range all {
		balance, known := balances[point{books.AccountRecord(s.Account), s.Changes}]
		switch {
		case !known:
			findings = append(findings, fmt.Sprintf("account %s: change %d is not in the ledger", s.Account, s.Changes))
		case s.Balance != balance:
			findings = append(findings, fmt.Sprintf("account %s: the statement after change %d says %s, the ledger %s",
				s.Account, s.Changes, books.Hundredths(s.Balance), books.Hundredths(balance)))
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings)
}

// Describe describes a statement in a finding. The zero Statement is none.
func Describe(s books.Statement) string {
	if s.Token == 0 {
		return "none"
	}
	return fmt.Sprintf("that after change %d, token %v", s.Changes, s.Token)
}
