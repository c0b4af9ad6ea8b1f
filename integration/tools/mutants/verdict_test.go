package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only the named test's own failure is a catch.
func TestVerdicts(t *testing.T) {
	for output, c := range map[string]struct {
		failed  bool
		verdict verdict
	}{
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n":                                   {false, survived},
		"=== RUN   TestA\n    a_test.go:1: no\n--- FAIL: TestA (0.01s)\nFAIL\n":              {true, caught},
		"--- FAIL: TestA (0.01s)\npanic: deadlock: main bubble goroutine has exited\n":       {true, caught},
		"--- FAIL: TestAB (0.01s)\nFAIL\n":                                                   {true, died},
		"    --- FAIL: TestA (0.01s)\nFAIL\n":                                                {true, died},
		"=== RUN   TestA\npanic: index out of range\n":                                       {true, died},
		"panic: test timed out after 2m0s\n\trunning tests:\n\t\tTestA\n":                    {true, endless},
		"--- FAIL: TestA (0.01s)\npanic: test timed out after 2m0s\n":                        {true, endless},
		"testing: warning: no tests to run\nPASS\n":                                          {false, unknown},
		"=== RUN   TestA\n--- SKIP: TestA (0.00s)\nPASS\n":                                   {false, unknown},
		"=== RUN   TestAB\n--- PASS: TestAB (0.00s)\n=== RUN   TestA/b\n--- PASS: TestA/b\n": {false, unknown},
	} {
		require.Equal(t, c.verdict, verdictOf("TestA", output, c.failed), output)
	}
}

func TestOnlyARunThatDidNotEndIsRepeated(t *testing.T) {
	for _, v := range []verdict{caught, survived, unbuilt, died, unknown, gone, equivalent, diagnostic} {
		require.False(t, runsAgain(v), v)
	}
	require.True(t, runsAgain(endless))
}

func TestTheFirstRunHasALimit(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                15 * time.Second,
		5 * time.Second:  45 * time.Second,
		30 * time.Second: 2 * time.Minute, // the most
		90 * time.Second: 3 * time.Minute, // more would be too little for a suite that is as slow as that
	} {
		require.Equal(t, want, firstLimit(took, 2*time.Minute), took)
	}
}

func TestVerdictsAreCounted(t *testing.T) {
	sum := tally{caught: 6, endless: 1, survived: 3, equivalent: 2}
	require.Equal(t, 12, sum.all())
	require.InDelta(t, 70, sum.rate(), 0.001)
	require.Equal(t, "6 noticed, 1 did not end twice, 3 survived, 2 equivalent", sum.String())
	require.Zero(t, tally{}.rate())
}

// What does not end runs again when all others have ended, and the second run counts.
func TestWhatDidNotEndRunsAgainAlone(t *testing.T) {
	first := []verdict{endless, caught, endless, survived, endless}
	second := map[int]verdict{0: caught, 2: survived, 4: endless}
	l, said := smallLab(t, nil)
	got := make([]verdict, len(first))
	var again []int
	require.NoError(t, l.twice(t.Context(), len(first), func(_ context.Context, i int, repeated bool) result {
		if !repeated {
			return result{verdict: first[i]}
		}
		require.Equal(t, caught, got[1])
		require.Equal(t, survived, got[3])
		again = append(again, i)
		return result{verdict: second[i]}
	}, func(i int, r result) { got[i] = r.verdict }))
	require.Equal(t, []int{0, 2, 4}, again)
	require.Equal(t, []verdict{caught, caught, survived, survived, endless}, got)
	require.Contains(t, said.String(), "3 did not end")

	ctx, cancel := context.WithCancelCause(t.Context())
	err := l.twice(ctx, 3, func(_ context.Context, i int, second bool) result {
		if second {
			cancel(fmt.Errorf("enough"))
		}
		return result{verdict: endless}
	}, func(i int, _ result) { require.Fail(t, "reported", i) })
	require.Equal(t, "enough", err.Error())
}
