package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

func bank(ctx context.Context, args string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, strings.Fields(args), &out, &errs)
	return code, out.String(), errs.String()
}

// What the report of each run says, and what it does not say. The clock is virtual, so no lease ends
// because the machine is slow.
func TestRuns(t *testing.T) {
	const few = " -customers 30 -owners 3 -tellers 4 -seed 7 -quiet"
	for args, c := range map[string]struct {
		code  int
		says  []string
		never []string
	}{
		"-units 400 -churn 0 -mix payment=6,move=2,interest=2,merge=1" + few: {says: []string{
			"400 units in ", "TransactWriteItems", " units committed without locks\n", " units committed under locks that they took first\n", " 0 lost updates", "The books are sound."}},
		"-lock -units 200 -churn 0 -mix payment=6,move=2,interest=2,merge=1" + few: {
			says: []string{" units committed under locks that they took first\n", "The books are sound."}, never: []string{"without locks"}},
		"-for 8s -lease 1s -churn 1s -latency 20ms" + few: {says: []string{"owners died", "The books are sound."}},
		"-crash -for 12s -lease 1s -wait 8s -churn 1s -latency 20ms -customers 60 -owners 4 -tellers 2 -mix payment=95,merge=2,month-end=3 -quiet": {says: []string{
			"that were larger than one transaction", "died within a large unit", "recovery of large units: ", " 0 months' interest not whole, or paid twice", "The books are sound."}},
		"-unsafe -units 60 -customers 2 -accounts 1 -owners 3 -tellers 4 -mix payment=1 -latency 30ms -churn 0 -quiet": {code: exitUnsound,
			says: []string{"WITHOUT UNITS", "was made by two units", "The books are NOT sound."}, never: []string{" 0 lost updates", "units committed"}},
		"archive -pauses 2 -lease 1s -customers 10 -owners 3 -tellers 2 -quiet": {says: []string{
			"behind a gate", " 2 times an owner was paused at a statement", "late statements rejected by the archive",
			" 0 newer statements overwritten by stale ones", "The books are sound.", "The archive is sound."}},
		"archive -unsafe -pauses 1 -lease 1s -customers 10 -owners 2 -tellers 2 -quiet": {code: exitUnsound,
			says:  []string{"WITHOUT A GATE", " 0 statements that differ from the ledger", "The books are sound.", "The archive is NOT sound."},
			never: []string{"rejected by the archive", " 0 newer statements overwritten by stale ones"}},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				code, out, errs := bank(t.Context(), args)
				require.Equal(t, c.code, code, out+errs)
				require.Empty(t, errs)
				for _, text := range c.says {
					require.Contains(t, out, text)
				}
				for _, text := range c.never {
					require.NotContains(t, out, text)
				}
			})
		})
	}
}

// A recording has the end of every unit, except those of dead owners.
func TestARecordedRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bank.jsonl")
	code, out, errs := bank(t.Context(), "-record "+path+" -for 1500ms -customers 40 -owners 4 -tellers 4 -lease 1s -churn 500ms -latency 4ms -quiet")
	require.Zero(t, code, out+errs)
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	begun, gone, committed := map[string]int{}, map[string]bool{}, 0
	for e, err := range record.Read(file) {
		require.NoError(t, err)
		switch {
		case e.Name == record.Gone:
			gone[e.Process] = true
		case e.Name == "UnitStart":
			begun[e.Process]++
		case e.Name == "UnitEnd":
			begun[e.Process]--
			if e.Outcome == trace.Committed {
				committed++
			}
		}
	}
	require.NotEmpty(t, gone, out)
	require.Greater(t, committed, 40)
	for process, n := range begun {
		require.True(t, n == 0 || gone[process], "units of %s that did not end", process)
	}
}

func TestAnInterruptedRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		code, out, errs := bank(ctx, "-units 10000000 -customers 20 -lease 1s -latency 20ms -quiet")
		require.Zero(t, code, out+errs)
		require.Contains(t, errs, "interrupted")
		require.Contains(t, out, "The books are sound.")
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"-quiet", "archive -quiet"} {
		code, out, errs := bank(ended, command)
		require.Equal(t, exitUnsound, code)
		require.Empty(t, out)
		require.NotEmpty(t, errs)
	}
}

// An archive in a file stays if it is to be kept, and is not overwritten.
func TestAnArchiveInAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "archive.db")
	args := "archive -archive " + file + " -prefix x- -keep -pauses 1 -customers 4 -lease 1s -quiet"
	code, out, errs := bank(t.Context(), args)
	require.Zero(t, code, out+errs)
	require.Contains(t, out, "SQLite, "+file)
	require.Contains(t, errs, "kept the tables x-* of the archive")
	code, _, errs = bank(t.Context(), args)
	require.Equal(t, exitUnsound, code)
	require.Contains(t, errs, `table "x-statements" exists already in SQLite, `+file+": choose another -archive or -prefix")
	code, _, errs = bank(t.Context(), "archive -archive postgres://nobody@127.0.0.1:1/none -quiet")
	require.Equal(t, exitUnsound, code)
	require.Contains(t, errs, "archive: ")
}

func TestReplay(t *testing.T) {
	ledger := strings.Join(columns, ";") + "\n"
	for n := range 300 {
		kind, partner := "PRIJEM", ";"
		if n%3 == 0 {
			kind, partner = "VYDAJ", fmt.Sprintf("A;%d", n%5)
		}
		row := fmt.Sprintf("%d;%d;930101;%s;;%d.5;;;%s\n", 1000+n, n%12, kind, n, partner)
		if ledger += row; n%50 == 0 {
			ledger += row // the same row again: it counts once
		}
	}
	want := map[string]int64{}
	entries, bad, err := readLedger(strings.NewReader(ledger))
	require.NoError(t, err)
	require.Empty(t, bad)
	once := map[string]bool{}
	for _, e := range entries {
		if !once[e.ID] {
			once[e.ID] = true
			want[e.Account] += e.Amount
			if e.Partner != "" {
				want[e.Partner] -= e.Amount
			}
		}
	}
	var accounts []books.Account
	for id, sum := range want {
		accounts = append(accounts, books.Account{ID: id, Balance: sum})
	}
	var balances bytes.Buffer
	require.NoError(t, writeBalances(&balances, accounts))

	dir := t.TempDir()
	file, result := filepath.Join(dir, "trans.asc"), filepath.Join(dir, "out.csv")
	require.NoError(t, os.WriteFile(file, []byte(ledger), 0o600))
	code, out, errs := bank(t.Context(), "replay -transactions "+file+" -balances "+result+" -repeat 2 -owners 3 -tellers 4 -quiet")
	require.Zero(t, code, out+errs)
	got, err := os.ReadFile(result)
	require.NoError(t, err)
	require.Equal(t, balances.String(), string(got))
	require.Contains(t, out, fmt.Sprintf("300 entered, %d found entered already", len(entries)-300))
	require.Contains(t, out, fmt.Sprintf("0 entered, %d found entered already", len(entries)))
	require.Contains(t, out, "The books are sound.")

	require.NoError(t, os.WriteFile(file, []byte(ledger+"1;2;3\n"), 0o600))
	line := fmt.Sprintf("%s:%d: 3 fields, not 10", file, len(entries)+2)
	code, out, errs = bank(t.Context(), "replay -transactions "+file+" -quiet")
	require.Equal(t, exitUnsound, code)
	require.Empty(t, out)
	require.Contains(t, errs, line)
	code, _, errs = bank(t.Context(), "replay -transactions "+file+" -skip-bad -quiet")
	require.Zero(t, code)
	require.Contains(t, errs, line)
	require.Contains(t, errs, "left out 1 malformed rows")
	code, _, errs = bank(t.Context(), "replay -transactions "+dir+"/none")
	require.Equal(t, exitUnsound, code)
	require.Contains(t, errs, "none")
}

func TestRecoverWithoutADynamoDB(t *testing.T) {
	code, out, errs := bank(t.Context(), "recover -endpoint http://127.0.0.1:1 -prefix x- -lease 1s")
	require.Equal(t, exitUnsound, code)
	require.Empty(t, out)
	require.Contains(t, errs, "recover: ")
}

// A wrong call is refused by one line that names what is wrong.
func TestWrongCalls(t *testing.T) {
	for args, want := range map[string]string{
		"sell": `unknown command "sell"`, "-units 5 extra": `"extra" is not a flag`, "-nope": "-nope", "-units many": "-units", "-units 0": "-units must be at least 1",
		"-for 0s": "-for must be more than 0", "-owners 0": "-owners must be at least 1", "-tellers 0": "-tellers must be at least 1",
		"-customers 1": "-customers must be at least 2", "-accounts 0": "-accounts must be 1 to 1000", "-accounts 1001": "-accounts must be 1 to 1000",
		"-lease 10ms": "-lease must be at least 1s", "-lease 0s": "-lease must be at least 1s", "-churn -1s": "-churn must not be negative",
		"-churn 900ms": "-churn is too short: an owner would live for 3.6s", "-wait 1s": "-wait must be at least a lease, 2s",
		"-latency -1s": "-latency must not be negative", "-latency 1s -aws": "-latency is only of the engine in memory",
		"-endpoint localhost:8000": "-endpoint is not a URL", "-endpoint http://": "-endpoint is not a URL", "-record a/b/c": "-record names a file in a folder",
		"-prefix a/b": "-prefix may have letters", "-mix payment": "-mix", "-mix payment=-1": "-mix", "-mix payment=0": "no kind has a share",
		"-mix gifts=1":   `"gifts=1" is not one of [interest merge month-end move payment]`,
		"-crash -unsafe": "-crash is about units", "-lock -unsafe": "-lock is about units", "-crash -churn 0": "-crash needs -churn",
		"recover -prefix x-": "-endpoint or -aws is required", "recover -aws": "-prefix is required", "recover -aws -prefix x- -units 5": "-units",
		"archive -crash": "-crash", "archive -owners 1": "-owners must be at least 2", "archive -pauses 0": "-pauses must be at least 1",
		"archive -archive a/b/c": "-archive names neither a file", "archive -archive mysql://x": "-archive names neither a file",
		"replay": "-transactions is required", "replay -transactions x -repeat 0": "-repeat must be at least 1",
		"replay -transactions x -balances a/b/c": "-balances names a file in a folder",
	} {
		code, out, errs := bank(t.Context(), args)
		require.Equal(t, exitWrongCall, code, args)
		require.Empty(t, out, args)
		require.Contains(t, errs, want, args)
		require.Equal(t, 1, strings.Count(errs, "\n"), "one line: %s", errs)
	}
	for _, args := range []string{"-h", "replay -h", "recover -h", "archive -h"} {
		code, out, errs := bank(t.Context(), args)
		require.Zero(t, code)
		require.Empty(t, errs)
		require.Contains(t, out, "Usage:")
		require.Contains(t, out, "-lease time")
	}
}

// Defaults depend on other flags.
func TestDefaults(t *testing.T) {
	parsed := func(command string, args ...string) *call {
		c := &call{stderr: os.Stderr}
		_, err := c.parse(command, args)
		require.NoError(t, err)
		return c
	}
	c := parsed("")
	require.True(t, c.InMemory())
	require.Equal(t, 2*time.Second, c.Lease)
	require.Equal(t, 1500*time.Millisecond, c.Churn, "each of four owners lives for three leases")
	require.Equal(t, 4*time.Second, c.Wait)
	require.Regexp(t, `^bank-[a-z0-9]{8}-$`, c.Prefix)
	require.NotEqual(t, c.Prefix, parsed("").Prefix, "two runs share no tables")
	c = parsed("", "-endpoint", "http://localhost:8000", "-prefix", "x-", "-churn", "0")
	require.Equal(t, 10*time.Second, c.Lease)
	require.Zero(t, c.Churn)
	require.Equal(t, "x-", c.Prefix)
	require.Zero(t, parsed("", "-for", "1s").units, "only the time limits them")
	require.Equal(t, 3, parsed("", "-crash").Mix[books.KindMonthEnd])
	require.Equal(t, 1, parsed("", "-crash", "-mix", "month-end=1").Mix[books.KindMonthEnd])
	require.Zero(t, parsed("archive").Churn)
	require.False(t, parsed("archive", "-unsafe").Unsafe, "statements are read in units")
}
