package tidy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Links between pages lead to files that there are, and to headings that these have.
func TestLinksLeadSomewhere(t *testing.T) {
	const root = "../.."
	link := regexp.MustCompile(`\]\(([^)\s]*)\)`)
	headings := map[string][]string{} // of the pages that links lead to
	checked := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return skipUnless(err)
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, ":") {
				continue // another site
			}
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			_, err := os.Stat(to)
			require.NoError(t, err, "%s: %s", path, m[1])
			if anchor != "" {
				if _, known := headings[to]; !known {
					headings[to] = anchorsOf(t, to)
				}
				require.Contains(t, headings[to], anchor, "%s: %s", path, m[1])
			}
			checked++
		}
		return nil
	}))
	require.Positive(t, checked)
}

// skipUnless skips a folder in which nothing went wrong.
func skipUnless(err error) error {
	if err == nil {
		return filepath.SkipDir
	}
	return err
}

// anchorsOf are the headings of a page, as links name them.
func anchorsOf(t *testing.T, path string) (anchors []string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	noLetter := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	fenced := regexp.MustCompile("(?s)(^|\n)```.*?\n```\n").ReplaceAllString(string(text), "\n")
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(fenced, -1) {
		anchors = append(anchors, strings.ReplaceAll(noLetter.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return anchors
}
