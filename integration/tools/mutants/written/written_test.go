package written

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMutantIsRead(t *testing.T) {
	m, err := read("a clause: of some kind\na/b.go: c/d TestE\n-\tif x {\n-\t}\n+")
	require.NoError(t, err)
	require.Equal(t, Mutant{"a clause: of some kind", "a/b.go", "\tif x {\n\t}", "", "c/d", "TestE"}, m)
	for block, want := range map[string]string{
		"a clause\na/b.go: c TestE":               "no mutant",
		"a clause\na/b.go: c\n-x":                 "FILE: PACKAGE TEST",
		"a clause\na/b.go: c TestE\n-x\nx":        "neither",
		"a clause\na/b.go: c TestE\n-x\n+y\n-z":   "neither",
		"a clause\na/b.go: c TestE\n-x\n\tx += 1": "neither",
	} {
		_, err := read(block)
		require.ErrorContains(t, err, want)
	}
}
