// Package guides checks what stands in the folders below it: guides, each with its code.
package guides

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code that a guide shows is in the files beside it, which are compiled: each block of Go or Java
// is a run of whole lines of one of them, whatever its indentation.
func TestGuidesShowWhatIsCompiled(t *testing.T) {
	pages, err := filepath.Glob("*/*.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^ *```(go|java)\n(.*?)\n *```$")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			require.True(t, shown(t, filepath.Dir(page), b[1], b[2]), "%s shows code that no file beside it has:\n%s", page, b[2])
		}
	}
}

// shown reports whether a file of a language below a folder has these lines, one after another.
func shown(t *testing.T, folder, language, code string) (found bool) {
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != "."+language {
			return err
		}
		text, err := os.ReadFile(path)
		found = found || strings.Contains(flat(string(text)), flat(code))
		return err
	}))
	return found
}

// flat has every line of a text without its indentation, between two line breaks.
func flat(text string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line))
		b.WriteByte('\n')
	}
	return b.String()
}

// The index names every guide.
func TestTheIndexHasEveryGuide(t *testing.T) {
	index, err := os.ReadFile("README.md")
	require.NoError(t, err)
	pages, err := filepath.Glob("*/README.md")
	require.NoError(t, err)
	for _, page := range pages {
		require.Contains(t, string(index), "]("+page+")")
	}
}
