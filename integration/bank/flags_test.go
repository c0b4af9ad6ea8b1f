package main

import (
	"context"
	"testing"

	"github.com/holdall/holdall/integration/bank/office/officetest"
	"github.com/stretchr/testify/require"
)

// bankRun runs the program with these arguments.
func bankRun(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return officetest.Run(ctx, program, args...)
}

func TestWrongCalls(t *testing.T) {
	officetest.Refuses(t, program, map[string]string{
		"":                                 `unknown command ""`,
		"open":                             "-endpoint or -aws is required",
		"open -aws -customers 1":           "-customers must be at least 2",
		"open -aws -archive a/b/c":         "-archive names neither a file",
		"branch -prefix x- -name b":        "-endpoint or -aws is required",
		"branch -aws -name b":              "-prefix is required",
		"branch -aws -prefix x-":           "-name is required",
		"branch -aws -prefix x- -name a/b": "-name is required, and may have letters",
		"branch -aws -prefix x- -name b -rate -1":       "-rate must be",
		"branch -aws -prefix x- -name b -rate NaN":      "-rate must be",
		"branch -aws -prefix x- -name b -rate 1e-9":     "-rate must be",
		"branch -aws -prefix x- -name b -for 0s":        "-for must be more than 0",
		"branch -aws -prefix x- -name b -diary a/b/c":   "-diary names a file in no folder",
		"branch -aws -prefix x- -name b -think -1s":     "-think must not be negative",
		"branch -aws -prefix x- -name b -rush -1":       "-rush must not be negative",
		"branch -aws -prefix x- -name b -rush-every 0s": "-rush-every must be more than 0",
		"audit -prefix x-":                              "-endpoint or -aws is required",
		"audit -aws":                                    "-prefix is required",
		"recover -prefix x-":                            "-endpoint or -aws is required",
	})
}

func TestHelp(t *testing.T) {
	for _, command := range []string{"open", "branch", "recover", "audit"} {
		code, out, errs := bankRun(t.Context(), command, "-h")
		require.Zero(t, code)
		require.Empty(t, errs)
		require.Contains(t, out, "Usage:")
		require.Contains(t, out, "-lease time")
	}
	code, out, errs := bankRun(t.Context(), "-h")
	require.Zero(t, code)
	require.Empty(t, errs)
	require.Equal(t, usage, out)
}
