package archive_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
)

// An archive refuses existing tables, and deletes the tables that it created unless they are kept.
func TestTablesOfAnArchive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "an archive?.db")
	tables := func() (n int) {
		db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(file, "?", "%3f"))
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		require.NoError(t, db.QueryRow("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name LIKE '%-%'").Scan(&n))
		return n
	}
	cfg := archive.Config{Where: file, Prefix: `x"-`}
	a, err := archive.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, 2, tables())
	_, err = archive.Open(t.Context(), cfg)
	require.ErrorContains(t, err, `archive: table "x""-statements" in SQLite, `+file+`: `)
	require.Equal(t, 2, tables(), "the second archive did not create them")
	require.NoError(t, a.Close(t.Context()))
	require.Zero(t, tables())
	cfg.Keep = true
	a, err = archive.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, a.Close(t.Context()))
	require.Equal(t, 2, tables())
}

// Every check finds what is wrong, and no other check finds it.
func TestAudit(t *testing.T) {
	const (
		stale     = "stale statements written after newer ones"
		seenLess  = "statements with a later token that had seen less"
		differing = "statements that differ from the ledger"
	)
	r := books.Records{
		Accounts: []books.Account{{ID: "a", Opening: 100, Balance: 65, Changes: 2}, {ID: "b", Opening: 30, Balance: 30}},
		History:  []books.Change{{Record: "account:a", Seq: 2, Amount: 5, Balance: 65}, {Record: "account:a", Seq: 1, Amount: -40, Balance: 60}},
	}
	s := func(account string, balance int64, changes int, token fencing.Token) books.Statement {
		return books.Statement{Account: account, Balance: balance, Changes: changes, Token: token}
	}
	opened, first, again, second, other := s("a", 100, 0, 10), s("a", 60, 1, 12), s("a", 60, 1, 14), s("a", 65, 2, 16), s("b", 30, 0, 11)
	type all = []books.Statement
	type found = map[string][]string
	for name, c := range map[string]struct {
		written all
		want    found
	}{
		"nothing":    {nil, found{}},
		"sound":      {all{opened, other, first, again, second}, found{}},
		"same again": {all{first, first}, found{}},
		"stale": {all{opened, first, opened, other, second}, found{
			stale: {"account a: that after change 1, token 12 was followed by that after change 0, token 10"}}},
		"stale, and the last one": {all{second, opened}, found{
			stale: {"account a: that after change 2, token 16 was followed by that after change 0, token 10"}}},
		"stale, though it says the same": {all{again, first}, found{
			stale: {"account a: that after change 1, token 14 was followed by that after change 1, token 12"}}},
		"a later token that saw less": {all{second, s("a", 60, 1, 17)}, found{
			seenLess: {"account a: that after change 2, token 16 had seen more than that after change 1, token 17"}}},
		"another balance": {all{s("a", 100, 1, 12)}, found{
			differing: {"account a: the statement after change 1 says 1.00, the ledger 0.60"}}},
		"another opening": {all{s("b", 31, 0, 11)}, found{
			differing: {"account b: the statement after change 0 says 0.31, the ledger 0.30"}}},
		"a change that never was":   {all{s("b", 30, 1, 11)}, found{differing: {"account b: change 1 is not in the ledger"}}},
		"an account that never was": {all{s("c", 0, 0, 11)}, found{differing: {"account c: change 0 is not in the ledger"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := found{}
			for _, result := range archive.Audit(c.written, r) {
				if len(result.Findings) > 0 {
					got[result.Count] = result.Findings
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}
