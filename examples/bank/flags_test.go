package main

import (
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/internal/books"
)

func TestWrongCalls(t *testing.T) {
	for call, want := range map[string]string{
		"sell":                             `unknown command "sell"`,
		"extra -units 5":                   `unknown command "extra"`,
		"-units 5 extra":                   `"extra" is no flag`,
		"-nope":                            "-nope",
		"-units many":                      "-units",
		"-units 0":                         "-units must be at least 1",
		"-for 0s":                          "-for must be more than 0",
		"-owners 0":                        "-owners must be at least 1",
		"-tellers 0":                       "-tellers must be at least 1",
		"-customers 1":                     "-customers must be at least 2",
		"-accounts 0":                      "-accounts must be 1 to 1000",
		"-accounts 1001":                   "-accounts must be 1 to 1000",
		"-lease 10ms":                      "-lease must be at least 1s",
		"-lease 0s":                        "-lease must be at least 1s",
		"-churn -1s":                       "-churn must not be negative",
		"-churn 900ms":                     "-churn is too short: an owner would live for 3.6s",
		"-wait 1s":                         "-wait must be at least a lease, 2s",
		"-latency -1s":                     "-latency must not be negative",
		"-latency 1s -aws":                 "-latency is only of the engine in memory",
		"-endpoint localhost:8000":         "-endpoint is no URL",
		"-endpoint http://":                "-endpoint is no URL",
		"-prefix a/b":                      "-prefix may have letters",
		"-mix payment":                     "-mix",
		"-mix gifts=1":                     `"gifts=1" is not one of [interest merge month-end move payment]`,
		"-mix payment=-1":                  "-mix",
		"-mix payment=0":                   "no kind has a share",
		"-mix payment=0,move=0":            "no kind has a share",
		"-crash -unsafe":                   "-crash is about units",
		"-crash -churn 0":                  "-crash needs -churn",
		"recover -prefix x-":               "-endpoint or -aws is required",
		"recover -aws":                     "-prefix is required",
		"recover -aws -prefix a/b":         "-prefix may have letters",
		"recover -aws -prefix x- -units 5": "-units",
		"archive -crash":                   "-crash",
		"archive -owners 1":                "-owners must be at least 2",
		"archive -customers 1":             "-customers must be at least 2",
		"archive -accounts 0":              "-accounts must be 1 to 1000",
		"archive -pauses 0":                "-pauses must be at least 1",
		"archive -archive a/b/c":           "-archive names neither a file",
		"archive -archive mysql://x":       "-archive names neither a file",
		"open":                             "-endpoint or -aws is required",
		"open -aws -customers 1":           "-customers must be at least 2",
		"open -aws -archive a/b/c":         "-archive names neither a file",
		"branch -prefix x- -name b":        "-endpoint or -aws is required",
		"branch -aws -name b":              "-prefix is required",
		"branch -aws -prefix x-":           "-name is required",
		"branch -aws -prefix x- -name a/b": "-name is required, and may have letters",
		"branch -aws -prefix x- -name b -rate -1":     "-rate must be",
		"branch -aws -prefix x- -name b -rate NaN":    "-rate must be",
		"branch -aws -prefix x- -name b -rate 1e-9":   "-rate must be",
		"branch -aws -prefix x- -name b -for 0s":      "-for must be more than 0",
		"branch -aws -prefix x- -name b -diary a/b/c": "-diary names a file in no folder",
		"branch -aws -prefix x- -name b -think -1s":   "-think must not be negative",
		"audit -prefix x-":                            "-endpoint or -aws is required",
		"audit -aws":                                  "-prefix is required",
		"replay":                                      "-transactions is required",
		"replay -transactions x -units 5":             "-units",
		"replay -transactions x -repeat 0":            "-repeat must be at least 1",
		"replay -transactions x -balances a/b/c":      "-balances names a file in no folder that exists",
	} {
		code, out, errs := bankRun(t.Context(), strings.Fields(call)...)
		require.Equal(t, exitUsage, code, call)
		require.Empty(t, out, call)
		require.Contains(t, errs, want, call)
		require.Equal(t, 1, strings.Count(errs, "\n"), "one line: %s", errs)
	}
}

func TestHelp(t *testing.T) {
	for _, call := range [][]string{{"-h"}, {"replay", "-h"}, {"recover", "-h"}, {"archive", "-h"}, {"open", "-h"}, {"branch", "-h"}, {"audit", "-h"}} {
		code, out, errs := bankRun(t.Context(), call...)
		require.Zero(t, code)
		require.Empty(t, errs)
		require.Contains(t, out, "Usage:")
		require.Contains(t, out, "-lease time")
	}
}

func TestDefaults(t *testing.T) {
	parsed := func(command string, args ...string) *options {
		t.Helper()
		o, err := parse(command, args, io.Discard)
		require.NoError(t, err)
		return o
	}
	o := parsed("bank")
	require.True(t, o.where.Embedded())
	require.Equal(t, 2*time.Second, o.lease)
	require.Equal(t, 1500*time.Millisecond, o.churn, "each of four owners lives for three leases")
	require.Equal(t, 4*time.Second, o.wait)
	require.NotEqual(t, o.prefix, parsed("bank").prefix, "two runs share no tables")
	require.Regexp(t, prefixes, o.prefix)

	o = parsed("bank", "-endpoint", "http://localhost:8000", "-prefix", "x-")
	require.False(t, o.where.Embedded())
	require.Equal(t, 10*time.Second, o.lease)
	require.Equal(t, 7500*time.Millisecond, o.churn)
	require.Equal(t, "x-", o.prefix)

	require.Zero(t, parsed("bank", "-churn", "0").churn)
	require.Zero(t, parsed("bank", "-for", "1s").units, "no bound but the time")
	require.Equal(t, 5, parsed("bank", "-for", "1s", "-units", "5").units)
	require.Equal(t, 3, parsed("bank", "-crash").mix[books.KindMonthEnd])
	require.Equal(t, 1, parsed("bank", "-crash", "-mix", "month-end=1").mix[books.KindMonthEnd])
	require.Equal(t, 10*time.Second, parsed("recover", "-aws", "-prefix", "x-").lease)
	require.Zero(t, parsed("replay", "-transactions", "x").churn)
	require.Zero(t, parsed("archive").churn)
	require.False(t, parsed("archive", "-unsafe", "-archive", "postgres://x").unsafe, "the locks stay")
	_, err := parse("archive", []string{"-prefix", strings.Repeat("x", 51)}, io.Discard)
	require.ErrorContains(t, err, "-prefix may have at most 50")
	require.NotZero(t, parsed("replay", "-transactions", "x", "-balances", filepath.Join(t.TempDir(), "x")))
}

func TestMix(t *testing.T) {
	m := defaultMix()
	require.Equal(t, "interest=179,merge=20,month-end=1,move=200,payment=1600", m.String())
	require.NoError(t, m.Set("move=3,merge=1"))
	require.Equal(t, "merge=1,move=3", m.String())
	var picked []string
	for n := range 4 {
		picked = append(picked, m.pick(func(total int) int {
			require.Equal(t, 4, total)
			return n
		}))
	}
	require.Equal(t, []string{books.KindMerge, books.KindMove, books.KindMove, books.KindMove}, picked)
}

// The work is a function of the seed.
func TestTheWorkIsDrawnFromTheSeed(t *testing.T) {
	kinds := func(seed string) (kinds string) {
		o, err := parse("bank", []string{"-units", "200", "-seed", seed, "-mix", "payment=6,move=2,interest=2,merge=1,month-end=1"}, io.Discard)
		require.NoError(t, err)
		next := newTown(o).jobs()
		for {
			job, ok := next()
			if !ok {
				return kinds
			}
			kinds += job.Kind + " "
		}
	}
	require.Equal(t, kinds("3"), kinds("3"))
	require.NotEqual(t, kinds("3"), kinds("4"))
	for _, kind := range []string{books.KindPayment, books.KindMove, books.KindInterest, books.KindMerge, books.KindMonthEnd} {
		require.Contains(t, kinds("3"), kind)
	}
	draw := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		a, b := twoOf(draw, 2)
		require.Equal(t, 1, a+b, "two different ones of two")
	}
}

func TestProgressLine(t *testing.T) {
	require.Equal(t, "working: 30 of 60, 15/s", progressLine("working", 30, 60, 2*time.Second, false))
	require.Equal(t, "working: [===============               ] 30 of 60, 15/s", progressLine("working", 30, 60, 2*time.Second, true))
	require.Equal(t, "working: 30, 15/s", progressLine("working", 30, 0, 2*time.Second, true))
}
