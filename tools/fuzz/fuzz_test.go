package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTargetsAreFound(t *testing.T) {
	found, err := targets(fstest.MapFS{
		"a/b/x_test.go": {Data: []byte("package b\n\nfunc FuzzOne(f *testing.F) {\n}\nfunc FuzzTwo(f *testing.F) {}\nfunc TestX(t *testing.T) {}\n")},
	})
	require.NoError(t, err)
	require.Equal(t, []target{{"a/b", "FuzzOne"}, {"a/b", "FuzzTwo"}}, found)
}

func TestTheLastProgressCounts(t *testing.T) {
	r := read("fuzz: elapsed: 0s, gathering baseline coverage: 0/2 completed\n" +
		"fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1 (total: 3)\n" +
		"fuzz: elapsed: 1m3s, execs: 6300 (99/sec), new interesting: 12 (total: 14)\nPASS\n")
	require.Equal(t, 6300, r.inputs)
	require.Equal(t, 12, r.interesting)
	require.Equal(t, 100, r.rate())
	require.True(t, r.goesOn)
	require.Zero(t, read("FAIL").rate())
	require.False(t, read("fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1 (total: 3)\n"+
		"fuzz: elapsed: 6s, execs: 101 (0/sec), new interesting: 1 (total: 3)\n"+
		"fuzz: elapsed: 9s, execs: 101 (0/sec), new interesting: 1 (total: 3)\n"+
		"fuzz: elapsed: 9s, execs: 101 (0/sec), new interesting: 1 (total: 3)\n").goesOn, "it hangs")
}

// repository returns the root of one with one target, FuzzX, which begins with a
// line of code and does another with every input but 1.
func repository(t *testing.T, first, with string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.24\n",
		"x_test.go": "package x\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc FuzzX(f *testing.F) {\n\t" + first + "\n" +
			"\tf.Fuzz(func(t *testing.T, n int) {\n\t\tif n != 1 {\n\t\t\t" + with + "\n\t\t}\n\t})\n}\n\nvar _ = time.Second\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	return root
}

// A target that fails is told of, and its input is kept.
func TestATargetThatFails(t *testing.T) {
	root := repository(t, "f.Add(1)", `t.Fatal("not one")`)
	err := fuzz(context.Background(), root, []target{{".", "FuzzX"}}, 10*time.Second)
	require.ErrorContains(t, err, "failed: ..FuzzX")
	kept, err := filepath.Glob(filepath.Join(root, "testdata", "fuzz", "FuzzX", "*"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
}

// One that does not come back from an input has failed, too.
func TestATargetThatHangs(t *testing.T) {
	root := repository(t, "f.Add(1)", `time.Sleep(time.Hour)`)
	require.ErrorContains(t, fuzz(t.Context(), root, []target{{".", "FuzzX"}}, 8*time.Second), "failed: ..FuzzX")
}

// And so has one that tries nothing, however soon it says that all is well.
func TestATargetThatTriesNothing(t *testing.T) {
	_, err := target{".", "FuzzX"}.fuzz(t.Context(), repository(t, `f.Skip("not today")`, ""), time.Second)
	require.ErrorIs(t, err, errNothing)
	_, err = target{".", "FuzzY"}.fuzz(t.Context(), repository(t, "f.Add(1)", ""), time.Second)
	require.ErrorIs(t, err, errNothing, "there is none of that name")
}

func TestBadArguments(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), []string{"-run", "("}), "-run")
	require.ErrorContains(t, run(t.Context(), []string{"-run", "no such target"}), "no target matches")
	require.ErrorContains(t, run(t.Context(), []string{"-time", "1ms"}), "at least a second")
	require.NoError(t, run(t.Context(), []string{"-list"}))
}
