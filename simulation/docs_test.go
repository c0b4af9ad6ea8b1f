package simulation

import (
	"flag"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/tools/program"
)

// faultLine is a line of the tables in docs/faults.md.
type faultLine struct {
	fault string
	tests []string
}

const (
	faultsPage  = "docs/faults.md"
	faultsTable = "| fault | what happens | what holdall promises | test |"
	alone       = "TestOneFault/"
)

var inBackticks = regexp.MustCompile("`([^`]+)`")

// faultLines reads the lines under every header that says faultsTable.
func faultLines(t *testing.T, page string) (lines []faultLine) {
	t.Helper()
	inTable := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case line == faultsTable:
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			require.Len(t, cells, 4, line)
			l := faultLine{fault: strings.TrimSpace(cells[0])}
			for i, cell := range cells {
				require.NotEmpty(t, strings.TrimSpace(cell), "cell %d of %s", i+1, line)
			}
			for _, found := range inBackticks.FindAllStringSubmatch(cells[3], -1) {
				l.tests = append(l.tests, found[1])
			}
			lines = append(lines, l)
		}
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
	repository := os.DirFS("..")
	page, err := fs.ReadFile(repository, faultsPage)
	require.NoError(t, err)
	lines := faultLines(t, string(page))
	require.GreaterOrEqual(t, len(lines), 36)
	declared, err := program.Tests(repository)
	require.NoError(t, err)
	tests := map[string]bool{}
	for _, test := range declared {
		tests[path.Base(test.Folder)+"."+test.Name] = true
	}
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
	for _, found := range regexp.MustCompile("`-([a-z]+)`").FindAllStringSubmatch(string(page), -1) {
		require.NotNil(t, flag.Lookup(found[1]), "there is no flag -%s", found[1])
	}
}
