package fencing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/fencing.md shows nothing but code that is compiled here.
func TestTheCodeInTheDocumentIsCompiled(t *testing.T) {
	document, err := os.ReadFile("../docs/fencing.md")
	require.NoError(t, err)
	files, err := filepath.Glob("example*_test.go")
	require.NoError(t, err)
	files = append(files, "../integration/gate/gate_test.go") // needs a driver that the library does not
	var compiled strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		compiled.Write(text)
	}
	blocks := strings.Split(string(document), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		code, _, ended := strings.Cut(b, "```")
		require.True(t, ended)
		require.Contains(t, compiled.String(), code)
	}
}
