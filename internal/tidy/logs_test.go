package tidy

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdall/holdall/trace"
	"github.com/stretchr/testify/require"
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

// The hooks that docs/operations.md lists are those that there are.
func TestTheHooksAreThoseOfTheDocs(t *testing.T) {
	var hooks []string
	for hook := range reflect.TypeFor[trace.Trace]().Fields() {
		hooks = append(hooks, hook.Name)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n| hook |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.SplitSeq(table, "\n") {
		if cells := strings.Split(row, "|"); len(cells) > 3 {
			for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
				listed = append(listed, m[1])
			}
		}
	}
	slices.Sort(hooks)
	slices.Sort(listed)
	require.NotEmpty(t, hooks)
	require.Equal(t, hooks, listed)
}
