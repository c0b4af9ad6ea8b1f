package fencing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// Gate lets only those write to an SQL database who have not been overtaken: it
// keeps, in a table of the same database, the highest token that each key has met,
// and admits a token inside the caller's own transaction, or refuses it. It is safe
// for concurrent use.
//
// Keys follow the rules of the lock table: a token admitted for "customer:42" makes
// older ones for "customer:42/address:7" stale, and the reverse; two fine keys
// beside each other never make each other stale.
type Gate struct {
	sqlite bool   // it is not PostgreSQL
	table  string // quoted
}

// NewPostgreSQLGate returns a gate that keeps its tokens in a table of a PostgreSQL, which may be named
// with its schema; see [Gate.CreateTable]. It sends nothing.
func NewPostgreSQLGate(table string) (*Gate, error) { return newGate(table, false) }

// NewSQLiteGate does the same for an SQLite.
func NewSQLiteGate(table string) (*Gate, error) { return newGate(table, true) }

func newGate(table string, sqlite bool) (*Gate, error) {
	parts := strings.Split(table, ".")
	for i, part := range parts {
		if part == "" || strings.ContainsRune(part, 0) {
			return nil, fmt.Errorf("gate: %q does not name a table", table)
		}
		parts[i] = `"` + strings.ReplaceAll(part, `"`, `""`) + `"`
	}
	return &Gate{sqlite, strings.Join(parts, ".")}, nil
}

// DDL returns the statement that creates the gate's table, if it is not there.
func (g *Gate) DDL() string {
	// Keys are compared byte by byte, whatever the language of the database.
	resource, options := `TEXT COLLATE "C"`, ""
	if g.sqlite {
		resource, options = "TEXT", " WITHOUT ROWID"
	}
	return "CREATE TABLE IF NOT EXISTS " + g.table + " (" +
		"resource " + resource + " NOT NULL PRIMARY KEY, " +
		"token BIGINT NOT NULL, " + // the highest admitted for the key itself
		"below BIGINT NOT NULL)" + options // the highest admitted for any key below it
}

// CreateTable creates the gate's table, if it is not there.
func (g *Gate) CreateTable(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, g.DDL())
	if err != nil { // PostgreSQL refuses one of two who create it at the same time
		_, err = db.ExecContext(ctx, g.DDL())
	}
	if err != nil {
		return fmt.Errorf("gate: table %s: %w", g.table, err)
	}
	return nil
}

// Admit admits a token for keys, in the transaction tx and by one statement, or
// refuses it: a *[StaleError] names the first key that has met a later one. After
// any error the transaction must be rolled back. The same token may be admitted
// again and again.
//
// tx is a *sql.Tx, or a *sql.Conn on which a transaction was begun. A *sql.DB, whose
// statements are transactions of their own, is refused.
//
// Call it first in the transaction: it locks the rows of the keys and of their
// ancestors, always in one order, until the transaction ends, so that transactions
// on the same keys come one after the other and do not deadlock by it.
func (g *Gate) Admit(ctx context.Context, tx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, token Token, keys ...ordering.Key) error {
	if _, is := tx.(*sql.DB); is {
		return errors.New("gate: a token is admitted in a transaction, not on a *sql.DB")
	}
	a, err := g.admission(token, keys)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, a.sql, a.args...) //nolint:rowserrcheck // judge does
	if err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	defer func() { _ = rows.Close() }()
	return a.judge(rows)
}

// Do runs fn in a transaction of its own in which a token was admitted for keys,
// and commits it; it rolls back if the token is stale, if fn returns an error, or
// panics. fn must return the first error of a statement: SQLite may have ended the
// transaction by then, and what fn writes after it is behind no gate.
func (g *Gate) Do(ctx context.Context, db *sql.DB, token Token, keys []ordering.Key, fn func(*sql.Tx) error) error {
	if fn == nil {
		misuse.Of("fencing", "Gate.Do", "nil function")
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := g.Admit(ctx, tx, token, keys...); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// admission is a statement that admits a token.
type admission struct {
	sql   string
	args  []any
	token Token
	rows  []guardRow
}

// guardRow is a row of the gate's table, in the order of keys.
type guardRow struct {
	key   ordering.Key
	below bool // the token is admitted for something below the key
}

// maxGateRows is how many rows one statement has at most: SQLite has 32,766
// parameters.
const maxGateRows = 32_000

// Admission is for those who send the statement that admits a token for keys with another library than
// database/sql: in a transaction, first of all. judge reads what it has returned, *sql.Rows or rows with
// the same methods, to their end: its error is nil if the token is admitted, and a *[StaleError] for the
// first key that has met a later one. err is an *ordering.KeyError, or says that there are too many keys,
// or none.
func (g *Gate) Admission(token Token, keys ...ordering.Key) (statement string, args []any, judge func(rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
}) error, err error) {
	a, err := g.admission(token, keys)
	if err != nil {
		return "", nil, nil, err
	}
	return a.sql, a.args, a.judge, nil
}

func (g *Gate) admission(token Token, keys []ordering.Key) (*admission, error) {
	if !token.Valid() {
		return nil, fmt.Errorf("gate: %v is not a token", token)
	}
	if len(keys) == 0 {
		return nil, &ordering.KeyError{Reason: "no keys were named"}
	}
	plan, err := plans.New(keys...)
	if err != nil {
		return nil, err
	}
	a := &admission{token: token, args: []any{int64(token)}}
	for _, step := range plan {
		for _, ancestor := range step.Intents {
			a.rows = append(a.rows, guardRow{ancestor, true})
		}
		a.rows = append(a.rows, guardRow{step.Key, false})
	}
	if len(a.rows) > maxGateRows {
		return nil, fmt.Errorf("gate: %d keys and ancestors, the limit is %d", len(a.rows), maxGateRows)
	}
	for _, r := range a.rows {
		if strings.ContainsRune(string(r.key), 0) {
			return nil, &ordering.KeyError{Key: r.key, Reason: "has a zero byte, which SQL text cannot have"}
		}
	}
	values := g.fromArrays
	if g.sqlite {
		values = g.fromList
	}
	a.sql = "INSERT INTO " + g.table + " AS f (resource, token, below) " + values(a) + " ON CONFLICT (resource) DO UPDATE SET" +
		" token = CASE WHEN f.token < excluded.token THEN excluded.token ELSE f.token END," +
		" below = CASE WHEN f.below < excluded.below THEN excluded.below ELSE f.below END" +
		" RETURNING resource, token, below"
	return a, nil
}

// fromArrays lists the rows in the order in which they are to be locked. It is one
// text, whatever the keys: drivers and servers keep what they have prepared.
func (g *Gate) fromArrays(a *admission) string {
	keys, below := make([]string, len(a.rows)), make([]bool, len(a.rows))
	for i, r := range a.rows {
		keys[i], below[i] = string(r.key), r.below
	}
	a.args = append(a.args, keys, below)
	return "SELECT k, CASE WHEN b THEN 0 ELSE $1::bigint END, CASE WHEN b THEN $1::bigint ELSE 0 END " +
		"FROM unnest($2::text[], $3::boolean[]) WITH ORDINALITY AS x (k, b, n) ORDER BY n"
}

// fromList does so for SQLite, which has no arrays.
func (g *Gate) fromList(a *admission) string {
	var text strings.Builder
	for i, r := range a.rows {
		a.args = append(a.args, string(r.key))
		own, below := "?1", "0"
		if r.below {
			own, below = below, own
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString("(?" + strconv.Itoa(len(a.args)) + ", " + own + ", " + below + ")")
	}
	return "VALUES " + text.String()
}

// judge reads what the statement returned.
func (a *admission) judge(rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
}) error {
	type met struct{ token, below int64 }
	found := make(map[ordering.Key]met, len(a.rows))
	for rows.Next() {
		var key string
		var m met
		if err := rows.Scan(&key, &m.token, &m.below); err != nil {
			return fmt.Errorf("gate: %w", err)
		}
		found[ordering.Key(key)] = m
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	for _, r := range a.rows {
		m, ok := found[r.key]
		if !ok {
			return fmt.Errorf("gate: key %q was not written; is there a trigger on the table?", string(r.key))
		}
		latest := m.token
		if !r.below { // what is below the key counts, too
			latest = max(latest, m.below)
		}
		if Token(latest) > a.token {
			return &StaleError{Resource: fmt.Sprintf("key %q", string(r.key)), Token: a.token, Found: Token(latest)}
		}
	}
	return nil
}
