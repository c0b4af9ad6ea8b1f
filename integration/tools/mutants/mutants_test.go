package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/integration/tools/mutants/internal/places"
	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
	"github.com/holdall/holdall/integration/tools/mutants/written"
	"github.com/holdall/holdall/integration/tools/program"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := engines.Root()
	require.NoError(t, err)
	return dir
}

func all(t *testing.T) []written.Mutant {
	t.Helper()
	mutants, err := written.All()
	require.NoError(t, err)
	return mutants
}

// weakened returns the text of a mutant's file as it is, and with the mutant's change.
func weakened(t *testing.T, m written.Mutant) (before, after string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), m.File))
	require.NoError(t, err, m.Clause)
	after, err = m.Weaken(string(text))
	require.NoError(t, err, m.Clause)
	return string(text), after
}

// Code moves on, and mutants with it: each has its one place, and what it makes of the code compiles: else it would
// be caught by the compiler alone.
func TestEveryMutantHasItsPlaceAndCompiles(t *testing.T) {
	mutants := all(t)
	var folders []string
	for _, m := range mutants {
		folders = append(folders, path.Dir(m.File))
	}
	slices.Sort(folders)
	packages, err := tree.Load(t.Context(), root(t), slices.Compact(folders))
	require.NoError(t, err)
	for _, m := range mutants {
		require.False(t, strings.HasSuffix(m.File, "_test.go"), "%s: a test is no clause of the protocol", m.Clause)
		_, text := weakened(t, m)
		assert.NoError(t, packages.Compile(path.Dir(m.File), map[string]string{m.File: text}), m.Clause)
	}
}

func TestClausesAreToldApart(t *testing.T) {
	clauses, changes := map[string]bool{}, map[[3]string]string{}
	for _, m := range all(t) {
		require.False(t, clauses[m.Clause], "twice: %s", m.Clause)
		clauses[m.Clause] = true
		change := [3]string{m.File, m.Old, m.New}
		require.Empty(t, changes[change], "the same change as of %q: %s", changes[change], m.Clause)
		changes[change] = m.Clause
	}
	require.Greater(t, len(clauses), 300)
}

var mutantsOfAClause = regexp.MustCompile(`(?m)^/\* clause .*? \| mutant: (.+?)(?: \| finds: .+)? \*/$`)

// The clauses of the models are tried in every run of the mutants. Any other change that
// the drawing makes is left to it.
func TestWhatIsDrawnIsWrittenByHandForClausesOnly(t *testing.T) {
	ofClauses := map[string]bool{}
	models, err := filepath.Glob(filepath.Join(root(t), "docs", "model", "*.pml"))
	require.NoError(t, err)
	for _, model := range models {
		text, err := os.ReadFile(model)
		require.NoError(t, err)
		for _, found := range mutantsOfAClause.FindAllStringSubmatch(string(text), -1) {
			for m := range strings.SplitSeq(found[1], " ; ") {
				ofClauses[m] = true
			}
		}
	}
	require.Greater(t, len(ofClauses), 100)
	canBeDrawn, err := drawable()
	require.NoError(t, err)
	drawn := map[string][]places.Change{} // by file
	for _, c := range canBeDrawn {
		drawn[c.File] = append(drawn[c.File], c)
	}
	oneLine := func(code string) string { return strings.Join(strings.Fields(code), " ") }
	for _, m := range all(t) {
		if ofClauses[m.Clause] {
			continue
		}
		text, weakened := weakened(t, m)
		at := strings.Index(text, m.Old)
		for _, c := range drawn[m.File] {
			if c.From > at+len(m.Old) || c.To < at {
				continue
			}
			from, behind := min(c.From, at), len(text)-max(c.To, at+len(m.Old)) // what neither changes is alike
			if of := c.Of(text); oneLine(of[from:len(of)-behind]) == oneLine(weakened[from:len(weakened)-behind]) {
				assert.Fail(t, m.Clause, "the operator %s makes the same change", c.Operator)
			}
		}
	}
}

// A test that was renamed would catch nothing.
func TestWhatIsToCatchMutantsExists(t *testing.T) {
	tests, err := program.Tests(os.DirFS(root(t)))
	require.NoError(t, err)
	for _, m := range all(t) {
		require.Contains(t, tests, program.Test{Folder: m.In, Name: m.Test}, m.Clause)
	}
}

func TestAMutantWithoutItsPlaceSaysSo(t *testing.T) {
	m := written.Mutant{File: "a.go", Old: "x < y", New: "x <= y"}
	weakened, err := m.Weaken("if x < y {")
	require.NoError(t, err)
	require.Equal(t, "if x <= y {", weakened)
	_, err = m.Weaken("if x > y {")
	require.ErrorContains(t, err, `a.go has no "x < y"`)
	_, err = m.Weaken("x < y && x < y")
	require.ErrorContains(t, err, "2 times")
	m.New = m.Old
	_, err = m.Weaken("if x < y {")
	require.ErrorContains(t, err, "changes nothing")
}

func TestSomeAreChosenAndListed(t *testing.T) {
	mutants := []written.Mutant{
		{Clause: "a|b", File: "x/y.go", In: "x", Test: "TestOne"},
		{Clause: "c", File: "z.go", In: "w", Test: "TestTwo"},
	}
	require.Len(t, selected(mutants, regexp.MustCompile("")), 2)
	chosen := selected(mutants, regexp.MustCompile("w TestTwo"))
	require.Len(t, chosen, 1)
	require.Equal(t, "| clause | file | caught by |\n|---|---|---|\n| c | `z.go` | `w TestTwo` |\n", table(chosen))
	require.Contains(t, table(mutants[:1]), `| a\|b |`)
}

// Runs see the repository as it was when they began, without what is not its
// own.
func TestASnapshotIsWhatIsNeededToBuild(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	write := func(name, text string) {
		path := filepath.Join(from, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("go.mod", "module x")
	write("a/b/c.go", "package b")
	write(".git/config", "")
	write("a-program", "\x7fELF")
	require.NoError(t, snapshot(from, to))
	write("a/b/c.go", "package half-writ")
	text, err := os.ReadFile(filepath.Join(to, "a", "b", "c.go"))
	require.NoError(t, err)
	require.Equal(t, "package b", string(text))
	require.FileExists(t, filepath.Join(to, "go.mod"))
	require.NoDirExists(t, filepath.Join(to, ".git"))
	require.NoFileExists(t, filepath.Join(to, "a-program"))
}
