package program

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPartsAreTheWhole(t *testing.T) {
	all := []int{1, 2, 3, 4, 5, 6, 7}
	var parts []int
	for _, share := range []string{"1/3", "2/3", "3/3"} {
		some, err := Part(all, share)
		require.NoError(t, err)
		require.NotEmpty(t, some)
		parts = append(parts, some...)
	}
	require.ElementsMatch(t, all, parts)
	for _, share := range []string{"0/3", "4/3", "1", "", "a/b"} {
		_, err := Part(all, share)
		require.ErrorContains(t, err, "-part", share)
	}
}

func TestTestsAreFound(t *testing.T) {
	found, err := Tests(fstest.MapFS{
		"a/b/x_test.go":     {Data: []byte("package b\n\nfunc FuzzOne(f *testing.F) {\n}\nfunc TestTwo(t *testing.T) {}\nfunc BenchmarkX(b *testing.B) {}\n")},
		"a/not.go":          {Data: []byte("package a\n\nfunc FuzzNo(f *testing.F) {}\n")},
		".hidden/x_test.go": {Data: []byte("package x\n\nfunc FuzzNo(f *testing.F) {}\n")},
		"c/x_test.go":       {Data: []byte("package c\n\nfunc fuzzNo(f *testing.F) {}\nfunc Fuzzer() {}\nfunc (s suite) TestNo(t *testing.T) {}\n")},
	})
	require.NoError(t, err)
	require.Equal(t, []Test{{"a/b", "FuzzOne"}, {"a/b", "TestTwo"}}, found)
}

// What was started is asked to end, and has time for its own children.
func TestACommandIsInterruptedWhenItsTimeIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready := filepath.Join(t.TempDir(), "ready")
	go func() {
		for {
			if _, err := os.Stat(ready); err == nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	output, _, err := Run(ctx, ".", []string{"READY=" + ready}, "sh", "-c", `trap 'echo asked; exit 3' INT; touch "$READY"; while :; do sleep 0.01; done`)
	require.Error(t, err)
	require.Equal(t, "asked\n", output)
}
