package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/bank/office/officetest"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

// bankRun runs the program with these arguments.
func bankRun(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return officetest.Run(ctx, program, args...)
}

func TestASafeRun(t *testing.T) {
	code, out, errs := bankRun(t.Context(), "-units", "400", "-customers", "30", "-owners", "3", "-tellers", "4",
		"-lease", "10s", "-churn", "0", "-mix", "payment=6,move=2,interest=2,merge=1", "-seed", "7", "-quiet")
	require.Zero(t, code, out+errs)
	require.Empty(t, errs)
	require.Contains(t, out, "400 units")
	require.Contains(t, out, "TransactWriteItems")
	require.Contains(t, out, " units committed without locks\n")
	require.Contains(t, out, " units committed under locks that they took first\n")
	require.Contains(t, out, "0 lost updates")
	require.Contains(t, out, "The books are sound.")
}

func TestARunThatLocksFirst(t *testing.T) {
	code, out, errs := bankRun(t.Context(), "-lock", "-units", "200", "-customers", "30", "-owners", "3", "-tellers", "4",
		"-lease", "10s", "-churn", "0", "-mix", "payment=6,move=2,interest=2,merge=1", "-seed", "7", "-quiet")
	require.Zero(t, code, out+errs)
	require.NotContains(t, out, "without locks")
	require.Contains(t, out, " units committed under locks that they took first\n")
	require.Contains(t, out, "The books are sound.")
}

// Owners that die while they work; with the clock of this machine, so this one
// takes its time.
func TestARunWithDeadOwners(t *testing.T) {
	t.Parallel()
	code, out, errs := bankRun(t.Context(), "-for", "1500ms", "-customers", "40", "-owners", "4", "-tellers", "4",
		"-lease", "1s", "-churn", "500ms", "-latency", "4ms")
	require.Zero(t, code, out+errs)
	require.Contains(t, out, "owners died")
	require.Contains(t, out, "The books are sound.")
}

// Owners that die in the midst of large units, too.
func TestARunWithCrashes(t *testing.T) {
	t.Parallel()
	code, out, errs := bankRun(t.Context(), "-crash", "-units", "200", "-customers", "60", "-owners", "4", "-tellers", "2",
		"-lease", "1s", "-wait", "8s", "-churn", "1s", "-latency", "4ms", "-mix", "payment=95,merge=2,month-end=3", "-quiet")
	require.Zero(t, code, out+errs)
	require.Contains(t, out, "that were larger than one transaction")
	require.Contains(t, out, "recovery of large units: ")
	require.Contains(t, out, "0 months' interest not whole, or paid twice")
	require.Contains(t, out, "The books are sound.")
}

// A recording has every unit's way to its end, but for those of the dead.
func TestARecordedRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bank.jsonl")
	code, out, errs := bankRun(t.Context(), "-record", path, "-for", "1500ms", "-customers", "40", "-owners", "4", "-tellers", "4",
		"-lease", "1s", "-churn", "500ms", "-latency", "4ms", "-quiet")
	require.Zero(t, code, out+errs)
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	begun, committed, gone, after := map[string]int{}, 0, map[string]bool{}, map[string]int{}
	for e, err := range record.Read(file) {
		require.NoError(t, err)
		switch {
		case e.Name == record.Gone:
			gone[e.Process] = true
		case gone[e.Process]:
			after[e.Process]++
		case e.Name == "UnitStart":
			begun[e.Process]++
		case e.Name == "UnitEnd":
			begun[e.Process]--
			if e.Outcome == string(trace.Committed) {
				committed++
			}
		}
	}
	require.NotEmpty(t, gone, out)
	require.LessOrEqual(t, sumOf(after), 16*len(gone), "of calls that were under way as it died")
	require.Greater(t, committed, 40)
	for process, n := range begun {
		if !gone[process] {
			require.Zero(t, n, "units of %s that did not end", process)
		}
	}
}

func sumOf(all map[string]int) (sum int) {
	for _, n := range all {
		sum += n
	}
	return sum
}

// Twelve tellers pay between two accounts. A request takes so long that all of
// them have read before the first has written.
func TestAnUnsafeRunIsUnsound(t *testing.T) {
	code, out, errs := bankRun(t.Context(), "-unsafe", "-units", "60", "-customers", "2", "-accounts", "1", "-owners", "3", "-tellers", "4",
		"-mix", "payment=1", "-latency", "30ms", "-churn", "0", "-quiet")
	require.Equal(t, 1, code, out+errs)
	require.Contains(t, out, "WITHOUT UNITS")
	require.NotContains(t, out, " 0 lost updates")
	require.Contains(t, out, "was made by two units")
	require.Contains(t, out, "The books are NOT sound.")
}

func TestAnInterruptedRun(t *testing.T) {
	t.Parallel()
	run := func(length time.Duration) (code int, out, errs string) {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		return bankRun(ctx, "-units", "10000000", "-customers", "20", "-lease", "1s", "-quiet")
	}
	length := 500 * time.Millisecond
	code, out, errs := run(length)
	for strings.Contains(errs, "before the work began") && length < time.Minute { // a slow machine
		length *= 2
		code, out, errs = run(length)
	}
	require.Zero(t, code, out+errs)
	require.Contains(t, errs, "interrupted")
	require.Contains(t, out, "The books are sound.")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, errs = bankRun(ctx, "-quiet")
	require.Equal(t, 1, code)
	require.NotEmpty(t, errs)
}

// ledgerFile writes a ledger and returns its name, and what its accounts must
// have in the end, as -balances has it.
func ledgerFile(t *testing.T, rows int, more ...string) (name, balances string) {
	t.Helper()
	draw := rand.New(rand.NewPCG(1, 2))
	text := []string{`"trans_id";"account_id";"date";"type";"operation";"amount";"balance";"k_symbol";"bank";"account"`}
	own, partners := map[int]int{}, map[string]int{}
	for n := range rows {
		account, amount := 1+draw.IntN(12), draw.IntN(100_000)
		kind := []string{"PRIJEM", "VYDAJ", "VYBER"}[draw.IntN(3)]
		row := fmt.Sprintf(`%d;%d;9301%02d;%q;"";%d.%02d;0.00;"";`, 1000+n, account, 1+draw.IntN(31), kind, amount/100, amount%100)
		if kind != "PRIJEM" {
			amount = -amount
		}
		own[account] += amount
		if draw.IntN(2) == 0 {
			bank, partner := string(rune('A'+draw.IntN(3))), draw.IntN(5)
			partners[fmt.Sprintf("%s/%d", bank, partner)] -= amount
			row += fmt.Sprintf("%q;%d", bank, partner)
		} else {
			row += ";"
		}
		text = append(text, row)
		if n%50 == 0 {
			text = append(text, row) // the same row once more: it counts once
		}
	}
	var want []string
	for account := range 13 {
		if sum, ok := own[account]; ok {
			want = append(want, fmt.Sprintf("%d,%d", account, sum))
		}
	}
	var names []string
	for partner := range partners {
		names = append(names, partner)
	}
	slices.Sort(names)
	for _, partner := range names {
		want = append(want, partner+","+strconv.Itoa(partners[partner]))
	}
	name = filepath.Join(t.TempDir(), "trans.asc")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(append(text, more...), "\n")+"\n"), 0o600))
	return name, strings.Join(want, "\n") + "\n"
}

func TestReplay(t *testing.T) {
	file, want := ledgerFile(t, 300)
	balances := filepath.Join(t.TempDir(), "out.csv")
	code, out, errs := bankRun(t.Context(), "replay", "-transactions", file, "-balances", balances, "-repeat", "2",
		"-owners", "3", "-tellers", "4", "-quiet")
	require.Zero(t, code, out+errs)
	got, err := os.ReadFile(balances)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
	require.Contains(t, out, "300 entered, 6 found entered already")
	require.Contains(t, out, "0 entered, 306 found entered already")
	require.Contains(t, out, "The books are sound.")
}

func TestReplayOfBadRows(t *testing.T) {
	file, want := ledgerFile(t, 20, "1;2;3", `2;x;930101;"PRIJEM";"";1.00;1.00;"";;`)
	balances := filepath.Join(t.TempDir(), "out.csv")
	code, out, errs := bankRun(t.Context(), "replay", "-transactions", file, "-balances", balances, "-quiet")
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, file+":23: 3 fields, not 10")
	require.Contains(t, errs, file+":24: account_id \"x\" is not a number")
	require.NoFileExists(t, balances)

	code, out, errs = bankRun(t.Context(), "replay", "-transactions", file, "-balances", balances, "-skip-bad", "-quiet")
	require.Zero(t, code, out+errs)
	require.Contains(t, errs, file+":23: ")
	require.Contains(t, errs, "left out 2 malformed rows")
	got, err := os.ReadFile(balances)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func TestReplayOfNothing(t *testing.T) {
	code, _, errs := bankRun(t.Context(), "replay", "-transactions", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "none")
}
