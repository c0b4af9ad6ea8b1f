package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/integration/tools/mutants/internal/places"
	"github.com/holdall/holdall/integration/tools/program"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := engines.Root()
	require.NoError(t, err)
	return dir
}

// Code moves on, and mutants with it: each has its one place, and leaves a
// program behind.
func TestEveryMutantChangesExactlyOnePlace(t *testing.T) {
	for _, m := range all() {
		text, err := os.ReadFile(filepath.Join(root(t), m.file))
		require.NoError(t, err, m.clause)
		weakened, err := m.mutate(string(text))
		require.NoError(t, err, m.clause)
		require.NotEqual(t, string(text), weakened)
		require.False(t, strings.HasSuffix(m.file, "_test.go"), "%s: a test is no clause of the protocol", m.clause)
		_, err = parser.ParseFile(token.NewFileSet(), m.file, weakened, parser.SkipObjectResolution)
		require.NoError(t, err, m.clause)
	}
}

func TestClausesAreToldApart(t *testing.T) {
	clauses, changes := map[string]bool{}, map[[3]string]string{}
	for _, m := range all() {
		require.NotEmpty(t, m.clause)
		require.False(t, clauses[m.clause], "twice: %s", m.clause)
		clauses[m.clause] = true
		change := [3]string{m.file, m.old, m.new}
		require.Empty(t, changes[change], "the same change as of %q: %s", changes[change], m.clause)
		changes[change] = m.clause
	}
	require.GreaterOrEqual(t, len(clauses), 24)
}

// What a mutant makes of the code compiles: else it would be caught by the compiler alone.
func TestEveryMutantCompiles(t *testing.T) {
	require.NoError(t, compileAll(t.Context(), root(t), all()))
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
	for _, m := range all() {
		if ofClauses[m.clause] {
			continue
		}
		read, err := os.ReadFile(filepath.Join(root(t), m.file))
		require.NoError(t, err)
		text := string(read)
		weakened, err := m.mutate(text)
		require.NoError(t, err)
		at := strings.Index(text, m.old)
		for _, c := range drawn[m.file] {
			if c.From > at+len(m.old) || c.To < at {
				continue
			}
			from, behind := min(c.From, at), len(text)-max(c.To, at+len(m.old)) // what neither changes is alike
			if of := c.Of(text); oneLine(of[from:len(of)-behind]) == oneLine(weakened[from:len(weakened)-behind]) {
				assert.Fail(t, m.clause, "the operator %s makes the same change", c.Operator)
			}
		}
	}
}

// A test that was renamed would catch nothing.
func TestWhatIsToCatchMutantsExists(t *testing.T) {
	tests, err := program.Tests(os.DirFS(root(t)))
	require.NoError(t, err)
	for _, m := range all() {
		require.Contains(t, tests, program.Test{Folder: m.by.in, Name: m.by.test}, m.clause)
	}
}

func TestAMutantWithoutItsPlaceSaysSo(t *testing.T) {
	m := mutant{file: "a.go", old: "x < y", new: "x <= y"}
	weakened, err := m.mutate("if x < y {")
	require.NoError(t, err)
	require.Equal(t, "if x <= y {", weakened)
	_, err = m.mutate("if x > y {")
	require.ErrorContains(t, err, `a.go has no "x < y"`)
	_, err = m.mutate("x < y && x < y")
	require.ErrorContains(t, err, "2 times")
	m.new = m.old
	_, err = m.mutate("if x < y {")
	require.ErrorContains(t, err, "changes nothing")
}

func TestSomeAreChosenAndListed(t *testing.T) {
	mutants := []mutant{
		{clause: "a|b", file: "x/y.go", by: check{in: "x", test: "TestOne"}},
		{clause: "c", file: "z.go", by: check{in: "w", test: "TestTwo", args: []string{"-seed", "7"}}},
	}
	require.Len(t, selected(mutants, regexp.MustCompile("")), 2)
	chosen := selected(mutants, regexp.MustCompile("seed 7"))
	require.Len(t, chosen, 1)
	require.Equal(t, "| clause | file | caught by |\n|---|---|---|\n| c | `z.go` | `w TestTwo -seed 7` |\n", table(chosen))
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
