package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/office/officetest"
)

func TestWrongCalls(t *testing.T) {
	officetest.Refuses(t, program, map[string]string{
		"sell":                                   `unknown command "sell"`,
		"extra -units 5":                         `unknown command "extra"`,
		"-units 5 extra":                         `"extra" is no flag`,
		"-nope":                                  "-nope",
		"-units many":                            "-units",
		"-units 0":                               "-units must be at least 1",
		"-for 0s":                                "-for must be more than 0",
		"-owners 0":                              "-owners must be at least 1",
		"-tellers 0":                             "-tellers must be at least 1",
		"-customers 1":                           "-customers must be at least 2",
		"-accounts 0":                            "-accounts must be 1 to 1000",
		"-accounts 1001":                         "-accounts must be 1 to 1000",
		"-lease 10ms":                            "-lease must be at least 1s",
		"-lease 0s":                              "-lease must be at least 1s",
		"-churn -1s":                             "-churn must not be negative",
		"-churn 900ms":                           "-churn is too short: an owner would live for 3.6s",
		"-wait 1s":                               "-wait must be at least a lease, 2s",
		"-latency -1s":                           "-latency must not be negative",
		"-latency 1s -aws":                       "-latency is only of the engine in memory",
		"-endpoint localhost:8000":               "-endpoint is no URL",
		"-endpoint http://":                      "-endpoint is no URL",
		"-record a/b/c":                          "-record names a file in no folder",
		"-prefix a/b":                            "-prefix may have letters",
		"-mix payment":                           "-mix",
		"-mix gifts=1":                           `"gifts=1" is not one of [interest merge month-end move payment]`,
		"-mix payment=-1":                        "-mix",
		"-mix payment=0":                         "no kind has a share",
		"-mix payment=0,move=0":                  "no kind has a share",
		"-crash -unsafe":                         "-crash is about units",
		"-lock -unsafe":                          "-lock is about units",
		"-crash -churn 0":                        "-crash needs -churn",
		"recover -prefix x-":                     "-endpoint or -aws is required",
		"recover -aws":                           "-prefix is required",
		"recover -aws -prefix a/b":               "-prefix may have letters",
		"recover -aws -prefix x- -units 5":       "-units",
		"archive -crash":                         "-crash",
		"archive -owners 1":                      "-owners must be at least 2",
		"archive -customers 1":                   "-customers must be at least 2",
		"archive -accounts 0":                    "-accounts must be 1 to 1000",
		"archive -pauses 0":                      "-pauses must be at least 1",
		"archive -archive a/b/c":                 "-archive names neither a file",
		"archive -archive mysql://x":             "-archive names neither a file",
		"replay":                                 "-transactions is required",
		"replay -transactions x -units 5":        "-units",
		"replay -transactions x -repeat 0":       "-repeat must be at least 1",
		"replay -transactions x -balances a/b/c": "-balances names a file in no folder that exists",
	})
}

func TestHelp(t *testing.T) {
	for _, call := range [][]string{{"-h"}, {"replay", "-h"}, {"recover", "-h"}, {"archive", "-h"}} {
		code, out, errs := bankRun(t.Context(), call...)
		require.Zero(t, code)
		require.Empty(t, errs)
		require.Contains(t, out, "Usage:")
		require.Contains(t, out, "-lease time")
	}
}

// parsed is a command that was given these arguments.
func parsed[C office.Command](t *testing.T, cmd C, args ...string) C {
	t.Helper()
	_, err := office.Parse(cmd, args)
	require.NoError(t, err)
	return cmd
}

func TestDefaults(t *testing.T) {
	d := parsed(t, &demo{})
	require.True(t, d.Where.Embedded())
	require.Equal(t, 2*time.Second, d.Lease)
	require.Equal(t, 1500*time.Millisecond, d.Churn, "each of four owners lives for three leases")
	require.Equal(t, 4*time.Second, d.Wait)
	require.Regexp(t, `^bank-[a-z0-9]{8}-$`, d.Prefix)
	require.NotEqual(t, d.Prefix, parsed(t, &demo{}).Prefix, "two runs share no tables")

	d = parsed(t, &demo{}, "-endpoint", "http://localhost:8000", "-prefix", "x-")
	require.False(t, d.Where.Embedded())
	require.Equal(t, 10*time.Second, d.Lease)
	require.Equal(t, 7500*time.Millisecond, d.Churn)
	require.Equal(t, "x-", d.Prefix)

	require.Zero(t, parsed(t, &demo{}, "-churn", "0").Churn)
	require.Zero(t, parsed(t, &demo{}, "-for", "1s").units, "no bound but the time")
	require.Equal(t, 5, parsed(t, &demo{}, "-for", "1s", "-units", "5").units)
	require.Equal(t, 3, parsed(t, &demo{}, "-crash").Mix[books.KindMonthEnd])
	require.Equal(t, 1, parsed(t, &demo{}, "-crash", "-mix", "month-end=1").Mix[books.KindMonthEnd])
	require.Zero(t, parsed(t, &replay{}, "-transactions", "x").Churn)
	require.Zero(t, parsed(t, &archiving{}).Churn)
	require.False(t, parsed(t, &archiving{}, "-unsafe", "-archive", "postgres://x").Unsafe, "the locks stay")
	_, err := office.Parse(&archiving{}, []string{"-prefix", strings.Repeat("x", 51)})
	require.ErrorContains(t, err, "-prefix may have at most 50")
	require.NotZero(t, parsed(t, &replay{}, "-transactions", "x", "-balances", filepath.Join(t.TempDir(), "x")))
}
