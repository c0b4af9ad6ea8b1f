package simulation

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/tools/program"
)

const (
	faultsPage   = "docs/faults.md"
	faultsTable  = "| fault | what happens | what holdall promises | test |"
	checksTable  = "| checked | promise | by |"
	targetsTable = "| target | any … | what holds |"
	flagsTable   = "| flag | does |"
	alone        = "TestOneFault/"
)

var inBackticks = regexp.MustCompile("`([^`]+)`")

// tableLines reads the lines under every header that is given: their cells.
func tableLines(t *testing.T, page, header string) (lines [][]string) {
	t.Helper()
	inTable := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case line == header:
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			require.Len(t, cells, strings.Count(header, "|")-1, line)
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			lines = append(lines, cells)
		}
	}
	require.NotEmpty(t, lines, header)
	return lines
}

// named returns what a cell has in backticks.
func named(cell string) (names []string) {
	for _, found := range inBackticks.FindAllStringSubmatch(cell, -1) {
		names = append(names, found[1])
	}
	return names
}

// allNamed returns what a column of a table has in backticks.
func allNamed(t *testing.T, page, header string, column int) (names []string) {
	t.Helper()
	for _, cells := range tableLines(t, page, header) {
		names = append(names, named(cells[column])...)
	}
	return names
}

func readFaultsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../" + faultsPage)
	require.NoError(t, err)
	return string(page)
}

// faultLine is a line of the tables of faults.
type faultLine struct {
	fault string
	tests []string
}

func faultLines(t *testing.T, page string) (lines []faultLine) {
	t.Helper()
	for _, cells := range tableLines(t, page, faultsTable) {
		for i, cell := range cells {
			require.NotEmpty(t, cell, "cell %d of %s", i+1, cells)
		}
		lines = append(lines, faultLine{cells[0], named(cells[3])})
	}
	return lines
}

// aloneName is the test that injects just this fault.
func aloneName(fault string) string {
	return alone + strings.NewReplacer(" ", "_", ",", "").Replace(fault)
}

// Every fault has its line in docs/faults.md, and every test named there is
// there.
func TestEveryFaultHasItsLine(t *testing.T) {
	lines := faultLines(t, readFaultsPage(t))
	require.GreaterOrEqual(t, len(lines), 36)
	tests := declaredTests(t)
	of := map[string]faultLine{}
	for _, l := range lines {
		_, twice := of[l.fault]
		require.False(t, twice, "two lines for %s", l.fault)
		of[l.fault] = l
		require.NotEmpty(t, l.tests, "%s: no test", l.fault)
		for _, name := range l.tests {
			if strings.HasPrefix(name, alone) {
				require.True(t, slices.Contains(Faults(), l.fault), "%s is none of Faults()", l.fault)
				require.Equal(t, aloneName(l.fault), name)
				continue
			}
			require.True(t, tests[name], "%s: there is no %s", l.fault, name)
		}
	}
	require.True(t, tests["simulation."+strings.TrimSuffix(alone, "/")])
	for _, fault := range Faults() {
		_, has := of[fault]
		require.True(t, has, "%s has no line in %s", fault, faultsPage)
		require.Contains(t, of[fault].tests, aloneName(fault), fault)
	}
}

// declaredTests has every test and fuzz target of the repository, by its package.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared, err := program.Tests(os.DirFS("../.."))
	require.NoError(t, err)
	tests := map[string]bool{}
	for _, test := range declared {
		tests[path.Base(test.Folder)+"."+test.Name] = true
	}
	return tests
}

// Every check that judges a course has its line, and what is named there as a check
// is a function or a method of this package.
func TestEveryCheckHasItsLine(t *testing.T) {
	names := allNamed(t, readFaultsPage(t), checksTable, 2)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		code.Write(text)
	}
	for _, name := range names {
		require.Regexp(t, `(?m)^(func|type) (\(\w+ \*?\w+\) )?`+name+`\b`, code.String(), "there is no %s", name)
	}
	judged := regexp.MustCompile(`\bh\.(check\w+)\(\w?\)`).FindAllStringSubmatch(code.String(), -1)
	require.NotEmpty(t, judged)
	for _, check := range judged {
		require.Contains(t, names, check[1])
	}
}

func TestEveryFuzzTargetHasItsLine(t *testing.T) {
	var targets []string
	for name := range declaredTests(t) {
		if strings.Contains(name, ".Fuzz") {
			targets = append(targets, name)
		}
	}
	require.ElementsMatch(t, targets, allNamed(t, readFaultsPage(t), targetsTable, 0))
}

// Every flag of a simulation has its line, and the page names no others.
func TestEveryFlagHasItsLine(t *testing.T) {
	page := readFaultsPage(t)
	var flags []string
	flag.VisitAll(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			flags = append(flags, "-"+f.Name)
		}
	})
	require.ElementsMatch(t, flags, allNamed(t, page, flagsTable, 0))
	for _, found := range regexp.MustCompile("`-([a-z]+)`").FindAllStringSubmatch(page, -1) {
		require.NotNil(t, flag.Lookup(found[1]), "there is no flag -%s", found[1])
	}
}
