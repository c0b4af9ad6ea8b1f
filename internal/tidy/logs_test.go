package tidy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/trace"
)

// docs/operations.md lists the lines that the library logs: all of them, each under its
// level, and no others.
func TestTheLogLinesAreThoseOfTheDocs(t *testing.T) {
	logged := map[string]string{} // level by line
	logs := regexp.MustCompile(`Logger\.(\w+)Context\([^"]*"([^"]*)"`)
	any := regexp.MustCompile(`Logger\.\w+\(`)
	for dir, floor := range house {
		if !floor.library {
			continue
		}
		files, err := filepath.Glob("../../" + dir + "/*.go")
		require.NoError(t, err)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			found := logs.FindAllStringSubmatch(string(text), -1)
			require.Len(t, found, len(any.FindAll(text, -1)), "%s logs what is no literal, or without a context", name)
			for _, m := range found {
				logged[m[2]] = strings.ToLower(m[1])
			}
		}
	}

	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	listed := map[string]string{}
	line := regexp.MustCompile("`(holdall: [^`]*)`")
	for row := range strings.SplitSeq(string(page), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range line.FindAllStringSubmatch(cells[2], -1) {
			listed[m[1]] = strings.TrimSpace(cells[1])
		}
	}
	require.NotEmpty(t, logged)
	require.Equal(t, logged, listed, "%q", slices.Sorted(maps.Keys(logged)))
}

// The kinds of events that docs/operations.md lists are those that there are, and it says which of them last.
func TestTheEventsAreThoseOfTheDocs(t *testing.T) {
	source, err := os.ReadFile("../../trace/event.go")
	require.NoError(t, err)
	kinds := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +Kind = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		require.Equal(t, m[1], m[2])
		kinds[m[1]] = trace.Kind(m[2]).Lasts()
	}
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n| kind |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string]bool{}
	for row := range strings.SplitSeq(table, "\n") {
		if cells := strings.Split(row, "|"); len(cells) > 3 {
			for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
				listed[m[1]] = strings.HasPrefix(cells[2], " lasts. ")
			}
		}
	}
	require.NotEmpty(t, kinds)
	require.Equal(t, kinds, listed)
}
