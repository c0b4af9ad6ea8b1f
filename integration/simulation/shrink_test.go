package simulation

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A course that fails from its 17th event on, if pauses are among its faults.
func TestShrinkFindsTheFirstEventThatMatters(t *testing.T) {
	runs := 0
	run := func(s Settings) *Result {
		runs++
		r := &Result{Counts: Counts{Faults: map[string]int{pause: 3, crash: 2, "answer lost": 5}}}
		for i := range 100 {
			if at := time.Duration(i) * time.Second; s.Until == 0 || at < s.Until {
				r.Instants = append(r.Instants, at)
			}
		}
		if len(r.Instants) >= 17 && !slices.Contains(s.Without, pause) {
			r.Problems = []string{"a promise"}
		}
		return r
	}
	all := Settings{Seed: 1}
	s, r := Shrink(all, run(all), run, func() bool { return runs < 50 })
	require.Len(t, r.Instants, 17)
	require.NotEmpty(t, r.Problems)
	require.ElementsMatch(t, []string{crash, "answer lost"}, s.Without)
	require.Equal(t, `go -C integration test ./simulation -run 'TestSimulation$' -count=1 -v -seed 1 -until 16.000000001s -without "answer lost" -without "crash"`,
		Settings{Seed: 1, Until: s.Until, Without: []string{"answer lost", crash}}.Replay())
	require.Less(t, runs, 40)
}

// With no patience left, the search gives what it has.
func TestShrinkEnds(t *testing.T) {
	failed := &Result{Problems: []string{"a promise"}, Instants: []time.Duration{1, 2, 3}}
	s, r := Shrink(Settings{Seed: 1}, failed, func(Settings) *Result { panic("not asked") }, func() bool { return false })
	require.Equal(t, Settings{Seed: 1}, s)
	require.Same(t, failed, r)
}
