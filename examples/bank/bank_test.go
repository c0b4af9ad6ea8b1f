package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/record"
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
		"-units 1200 -lease 1s -churn 1s -latency 20ms" + few: {says: []string{
			"1200 units in ", "TransactWriteItems", " units committed without locks\n", " units committed under locks that they took first\n",
			"owners died", "owners left", " 0 lost updates", "The books are sound."}},
		"-lock -units 1200 -lease 1s -churn 1s -latency 20ms" + few: {says: []string{
			" units committed under locks that they took first\n", "owners died", "locks of dead holders taken over", "The books are sound."},
			never: []string{"without locks"}},
		"-crash -units 700 -lease 1s -churn 1s -latency 20ms -customers 60 -owners 4 -tellers 2 -quiet": {says: []string{
			"that were larger than one transaction", "died within a large unit", "recovery of large units: ", " 0 payments or months not whole, or made twice", "The books are sound."}},
		"-unsafe -units 60 -customers 2 -owners 3 -tellers 4 -latency 30ms -churn 0 -quiet": {code: exitUnsound,
			says: []string{"WITHOUT UNITS", "was made by two units", "The books are NOT sound."}, never: []string{" 0 lost updates", "units committed"}},
		"archive -pauses 2 -latency 8ms -lease 1s -customers 10 -owners 3 -tellers 2 -quiet": {says: []string{
			"behind a gate", " 2 times an owner was paused at a statement", "late statements rejected by the archive",
			" 0 stale statements written after newer ones", "The books are sound.", "The archive is sound."}},
		"archive -unsafe -pauses 1 -latency 8ms -lease 1s -customers 10 -owners 2 -tellers 2 -quiet": {code: exitUnsound,
			says:  []string{"WITHOUT A GATE", " 0 statements that differ from the ledger", "The books are sound.", "The archive is NOT sound."},
			never: []string{"rejected by the archive", " 0 stale statements written after newer ones"}},
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
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "bank.jsonl")
		code, out, errs := bank(t.Context(), "-record "+path+" -units 800 -customers 40 -owners 4 -tellers 4 -lease 1s -churn 500ms -latency 4ms -quiet")
		require.Zero(t, code, out+errs)
		file, err := os.Open(path)
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		begun, gone := map[string]int{}, map[string]bool{}
		for e, err := range record.Read(file) {
			require.NoError(t, err)
			gone[e.Process] = gone[e.Process] || e.Name == "Gone"
			begun[e.Process] += map[string]int{"UnitStart": 1, "UnitEnd": -1}[e.Name]
		}
		require.Contains(t, slices.Collect(maps.Values(gone)), true)
		require.Greater(t, len(begun), 4)
		for process, n := range begun {
			require.True(t, n == 0 || gone[process], "units of %s that did not end", process)
		}
	})
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

// Rows count once, however often they are in the file or are entered.
func TestReplay(t *testing.T) {
	ledger := header
	for n := range 300 {
		row := fmt.Sprintf("%d;%d;930101;PRIJEM;;%d.5;;;;\n", 1000+n, n%12, n)
		if n%3 == 0 {
			row = fmt.Sprintf("%d;%d;930101;VYDAJ;;%d.5;;;A;%d\n", 1000+n, n%12, n, n%5)
		}
		if ledger += row; n%50 == 0 {
			ledger += row
		}
	}
	file := filepath.Join(t.TempDir(), "trans.asc")
	require.NoError(t, os.WriteFile(file, []byte(ledger), 0o600))
	code, out, errs := bank(t.Context(), "replay -transactions "+file+" -repeat 2 -owners 3 -tellers 4 -quiet")
	require.Zero(t, code, out+errs)
	for _, text := range []string{
		"300 entered, 6 found entered already", "0 entered, 306 found entered already", "\n17 accounts\n", "The books are sound.",
	} {
		require.Contains(t, out, text)
	}

	require.NoError(t, os.WriteFile(file, []byte(ledger+"1;2;3\n"), 0o600))
	code, out, errs = bank(t.Context(), "replay -transactions "+file+" -quiet")
	require.Equal(t, exitUnsound, code)
	require.Empty(t, out)
	require.Contains(t, errs, file+": record on line 308: wrong number of fields: nothing was entered")
}

func TestWhatCannotBeReached(t *testing.T) {
	for _, args := range []string{
		"recover -endpoint http://127.0.0.1:1 -prefix x- -lease 1s", "archive -archive a/b/c",
		"replay -transactions none",
	} {
		code, _, errs := bank(t.Context(), args)
		require.Equal(t, exitUnsound, code)
		command, _, _ := strings.Cut(args, " ")
		require.Contains(t, errs, command+": ")
	}
}

// A wrong call is refused by one line that names what is wrong.
func TestWrongCalls(t *testing.T) {
	for args, want := range map[string]string{
		"sell": `unknown command "sell"`, "-units 5 extra": `"extra" is not a flag`, "-nope": "-nope", "-units many": "-units", "-units 0": "-units must be at least 1",
		"-owners 0": "-owners must be at least 1", "-tellers 0": "-tellers must be at least 1",
		"-customers 1": "-customers must be at least 2", "-lease 10ms": "-lease must be at least 1s",
		"-churn -1s": "-churn is too short", "-churn 900ms": "-churn is too short: an owner would live for 3.6s",
		"-latency 1s -aws": "-latency must not be negative, and is only of", "-endpoint localhost:8000": "-endpoint is not a URL", "-prefix a/b": "-prefix may have letters",
		"-crash -unsafe": "-unsafe does the work without units", "-lock -unsafe": "-unsafe does the work without units", "-crash -churn 0": "-crash needs -churn",
		"recover -prefix x-": "-endpoint or -aws is required", "recover -aws": "-prefix is required", "recover -aws -prefix x- -units 5": "-units",
		"archive -archive postgres://nobody@127.0.0.1:1/none": "-archive takes a file", "archive -owners 1": "-owners must be at least 2", "archive -pauses 0": "-pauses must be at least 1",
		"replay": "-transactions is required", "replay -transactions x -repeat 0": "-repeat must be at least 1",
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
	parsed := func(args ...string) (o options) {
		_, err := o.parse("", args)
		require.NoError(t, err)
		return o
	}
	memory, elsewhere := parsed(), parsed("-endpoint", "http://localhost:8000", "-prefix", "x-")
	require.Equal(t, 2*time.Second, memory.Lease)
	require.Equal(t, 1500*time.Millisecond, memory.Churn, "each of four owners lives for three leases")
	require.NotEqual(t, memory.Prefix, parsed().Prefix, "two runs share no tables")
	require.Equal(t, 10*time.Second, elsewhere.Lease)
	require.Equal(t, "x-", elsewhere.Prefix)
	require.Equal(t, 10, parsed("-crash").Mix[books.KindMonthEnd])
}

var header = strings.Join(columns, ";") + "\n"

// Amounts are exact, quotes and line ends are those of CSV, and an account may have leading zeros.
func TestALedger(t *testing.T) {
	entries, err := readLedger(strings.NewReader(header +
		`5;2378;930101;"PRIJEM";"VKLAD";700.00;700.00;"";;` + "\n" +
		`6;0576;930102;"VYDAJ";"PREVOD";14.6;685.40;"SLUZBY";"Y ""Z""";"624"` + "\r\n\n" +
		`6;576;930102;VYBER;;14.60;;;"Y ""Z""";624`))
	require.NoError(t, err)
	transfer := books.Entry{ID: "6", Account: "576", Note: "930102", Partner: `Y "Z"/624`, Amount: -14_60}
	require.Equal(t, []books.Entry{{ID: "5", Account: "2378", Note: "930101", Amount: 700_00}, transfer, transfer}, entries)
}

// What is wrong with a row is said, with its line.
func TestBadRows(t *testing.T) {
	good := "1;2;930101;PRIJEM;x;1.00;1.00;;;\n"
	for row, reason := range map[string]string{
		"3;2;930101":                                                   "wrong number of fields",
		`3;2;930101;PRIJEM;"x;1;1;;;`:                                  `extraneous or missing "`,
		"x;2;930101;PRIJEM;x;1;1;;;":                                   `parsing "x"`,
		"3;-2;930101;PRIJEM;x;1;1;;;":                                  `parsing "-2"`,
		"3;2;930229;PRIJEM;x;1;1;;;":                                   `parsing time "930229"`,
		"3;2;930101;PRIJEMKA;x;1;1;;;":                                 `type "PRIJEMKA" is not PRIJEM, VYDAJ or VYBER`,
		"3;2;930101;PRIJEM;x;;1;;;":                                    `"" is not an amount`,
		"3;2;930101;PRIJEM;x;.5;1;;;":                                  `".5" is not an amount`,
		"3;2;930101;PRIJEM;x;1.;1;;;":                                  `"1." is not an amount`,
		"3;2;930101;PRIJEM;x;1.005;1;;;":                               `"1.005" is not an amount`,
		"3;2;930101;PRIJEM;x;1e3;1;;;":                                 "too large, or not a number",
		"3;2;930101;PRIJEM;x;-1;1;;;":                                  "too large, or not a number",
		"3;2;930101;PRIJEM;x;1000000000;1;;;":                          "too large, or not a number",
		"3;2;930101;PRIJEM;x;18446744073709551616;1;;;":                "too large, or not a number",
		"3;2;930101;PRIJEM;x;1;1;;YZ;":                                 `account "" is empty`,
		"3;2;930101;PRIJEM;x;1;1;;Y/Z;1":                               `bank "Y/Z" has a slash`,
		"3;2;930101;PRIJEM;x;1;1;;" + strings.Repeat("b", 5000) + ";1": "key",
		"3;2;930101;PRIJEM;x;1;1;;A;\xff":                              "key",
		"1;2;930101;PRIJEM;x;2;1;;;":                                   "trans_id 1 is that of another row",
	} {
		_, err := readLedger(strings.NewReader(header + good + row + "\n4" + good[1:]))
		require.ErrorContains(t, err, reason, row)
		require.ErrorContains(t, err, "line 3", row)
	}
	for amount, want := range map[string]int64{"700.00": 70000, "14.6": 1460, "0": 0, "0.07": 7, "00000000000000000000000001.5": 150, "922337203.68": 92233720368} {
		got, err := hundredths(amount)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, file := range []string{"", "\n", "trans_id;account_id\n1;2\n", strings.ToUpper(header)} {
		_, err := readLedger(strings.NewReader(file))
		require.ErrorContains(t, err, "line 1 is not the header")
	}
	_, err := readLedger(iotest.ErrReader(errors.New("the disk is on fire")))
	require.ErrorContains(t, err, "the disk is on fire")
}
