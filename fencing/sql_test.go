package fencing_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/tokens"
	"github.com/holdall/holdall/ordering"
)

func TestAGuardRefusesBadInput(t *testing.T) {
	for _, table := range []string{"", "a.", ".b", "a\x00"} {
		_, err := fencing.NewSQLiteGate(table)
		require.ErrorContains(t, err, "does not name a table", "%q", table)
	}
	g, err := fencing.NewPostgreSQLGate("bank.fences")
	require.NoError(t, err)
	require.Contains(t, g.DDL(), `"bank"."fences"`)
	odd, err := fencing.NewPostgreSQLGate(`a" (x); DROP TABLE "b`)
	require.NoError(t, err)
	require.Contains(t, odd.DDL(), `"a"" (x); DROP TABLE ""b"`, "it is one name")
	require.ErrorContains(t, odd.Admit(t.Context(), new(sql.DB), 10, "a"), "in a transaction")
	var key *ordering.KeyError
	for _, k := range []ordering.Key{"", "a//b", "a\x00", "%"} {
		_, _, _, err := g.Admission(10, "a", k)
		require.ErrorAs(t, err, &key, "%q", k)
		require.Equal(t, k, key.Key)
	}
	_, _, _, err = g.Admission(10)
	require.ErrorAs(t, err, &key)
	for _, token := range []fencing.Token{0, -1, tokens.Max + 1} {
		_, _, _, err := g.Admission(token, "a")
		require.ErrorContains(t, err, "is not a token")
	}
	many := make([]ordering.Key, 16_001)
	for i := range many {
		many[i] = ordering.Join(fmt.Sprint(i), "a")
	}
	_, _, _, err = g.Admission(10, many...)
	require.ErrorContains(t, err, "32002 keys and ancestors, the limit is 32000")
	_, _, _, err = g.Admission(10, many[:16_000]...)
	require.NoError(t, err)
}

// A statement has an argument for each of its placeholders, and no other.
func TestAnAdmissionHasItsArguments(t *testing.T) {
	keys := []ordering.Key{"a/x", "a/y", "b"}
	for _, c := range []struct {
		newGate     func(string) (*fencing.Gate, error)
		placeholder string
		args        []any
	}{
		{fencing.NewPostgreSQLGate, `\$(\d+)`, []any{int64(10), []string{"a", "a/x", "a/y", "b"}, []bool{true, false, false, false}}},
		{fencing.NewSQLiteGate, `\?(\d+)`, []any{int64(10), "a", "a/x", "a/y", "b"}},
	} {
		g, err := c.newGate("fences")
		require.NoError(t, err)
		statement, args, _, err := g.Admission(10, keys...)
		require.NoError(t, err)
		require.Equal(t, c.args, args)
		used := map[string]bool{}
		for _, m := range regexp.MustCompile(c.placeholder).FindAllStringSubmatch(statement, -1) {
			used[m[1]] = true
		}
		for i := range args {
			require.True(t, used[fmt.Sprint(i+1)], "%d of %s", i+1, statement)
		}
		require.Len(t, used, len(args))
	}
}

// returned are rows that a statement returned.
type returned [][3]any

func (r *returned) Next() bool { *r = (*r)[1:]; return len(*r) > 0 }
func (r *returned) Err() error { return nil }
func (r *returned) Scan(to ...any) error {
	*to[0].(*string), *to[1].(*int64), *to[2].(*int64) = (*r)[0][0].(string), (*r)[0][1].(int64), (*r)[0][2].(int64)
	return nil
}

// A trigger, a rule or the like may keep a row from being written: then nothing says
// that the token was not overtaken.
func TestARowThatWasNotWrittenAdmitsNobody(t *testing.T) {
	for _, newGate := range []func(string) (*fencing.Gate, error){fencing.NewPostgreSQLGate, fencing.NewSQLiteGate} {
		g, err := newGate("fences")
		require.NoError(t, err)
		_, _, judge, err := g.Admission(10, "a/x")
		require.NoError(t, err)
		all := returned{{}, {"a", int64(0), int64(10)}, {"a/x", int64(10), int64(0)}}
		require.NoError(t, judge(&all))
		some := returned{{}, {"a", int64(0), int64(10)}}
		require.ErrorContains(t, judge(&some), `key "a/x" was not written`)
	}
}

// scripted is a database that answers as it is told, and keeps what became of its
// transaction.
type scripted struct {
	begin, query, scan, commit error
	rows                       [][]driver.Value
	queries                    int
	closed                     int // result sets that were closed
	ended                      string
}

func (s *scripted) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *scripted) Driver() driver.Driver                        { return nil }
func (s *scripted) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s *scripted) Close() error                                 { return nil }
func (s *scripted) Begin() (driver.Tx, error)                    { return s, s.begin }
func (s *scripted) Commit() error                                { s.ended += "committed"; return s.commit }
func (s *scripted) Rollback() error                              { s.ended += "rolled back"; return nil }

func (s *scripted) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	s.queries++
	return &scriptedRows{s: s, left: s.rows}, s.query
}

type scriptedRows struct {
	s    *scripted
	left [][]driver.Value
}

func (r *scriptedRows) Columns() []string { return []string{"resource", "token", "below"} }
func (r *scriptedRows) Close() error      { r.s.closed++; return nil }
func (r *scriptedRows) Next(to []driver.Value) error {
	if len(r.left) == 0 {
		if r.s.scan != nil {
			return r.s.scan
		}
		return io.EOF
	}
	copy(to, r.left[0])
	r.left = r.left[1:]
	return nil
}

func TestATableThatCannotBeCreated(t *testing.T) {
	db := sql.OpenDB(&scripted{})
	defer func() { _ = db.Close() }()
	g, err := fencing.NewSQLiteGate("fences")
	require.NoError(t, err)
	err = g.CreateTable(t.Context(), db)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "fences")
}

// What a gate does is committed if the token is admitted and all went well, and else
// rolled back; whose error it was is told.
func TestAGuardedTransaction(t *testing.T) {
	broken := errors.New("broken")
	mine := [][]driver.Value{{"a", int64(10), int64(0)}}
	for name, c := range map[string]struct {
		db    scripted
		fn    error
		is    error // nil if there is none
		calls int   // of fn
		ended string
	}{
		"all is well":               {scripted{rows: mine}, nil, nil, 1, "committed"},
		"fn fails":                  {scripted{rows: mine}, broken, broken, 1, "rolled back"},
		"the token is stale":        {scripted{rows: [][]driver.Value{{"a", int64(11), int64(0)}}}, nil, fencing.ErrStale, 0, "rolled back"},
		"it is stale for one in it": {scripted{rows: [][]driver.Value{{"a", int64(10), int64(11)}}}, nil, fencing.ErrStale, 0, "rolled back"},
		"it cannot begin":           {scripted{begin: broken}, nil, broken, 0, ""},
		"it cannot ask":             {scripted{query: broken}, nil, broken, 0, "rolled back"},
		"half an answer":            {scripted{rows: mine, scan: broken}, nil, broken, 0, "rolled back"},
		"it cannot commit":          {scripted{rows: mine, commit: broken}, nil, broken, 1, "committed"},
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(&c.db)
			defer func() { _ = db.Close() }()
			g, err := fencing.NewSQLiteGate("fences")
			require.NoError(t, err)
			calls := 0
			err = g.Do(t.Context(), db, 10, []ordering.Key{"a"}, func(tx *sql.Tx) error {
				require.NotNil(t, tx)
				calls++
				require.Equal(t, 1, c.db.queries, "the token is admitted first")
				require.Equal(t, 1, c.db.closed)
				return c.fn
			})
			if c.is == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.is)
			}
			require.Equal(t, c.calls, calls)
			require.Equal(t, c.ended, c.db.ended)
		})
	}
}

// One whose function panics leaves nothing behind.
func TestAGuardedTransactionThatPanics(t *testing.T) {
	s := &scripted{rows: [][]driver.Value{{"a", int64(10), int64(0)}}}
	db := sql.OpenDB(s)
	defer func() { _ = db.Close() }()
	g, err := fencing.NewSQLiteGate("fences")
	require.NoError(t, err)
	require.PanicsWithValue(t, "on its way", func() {
		_ = g.Do(t.Context(), db, 10, []ordering.Key{"a"}, func(*sql.Tx) error { panic("on its way") })
	})
	require.Equal(t, "rolled back", s.ended)
}
