package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheGeneratedTablesAreOnThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(clausesPage)))
	require.NoError(t, err)
	want, err := generated(t.Context(), root(t), string(page))
	require.NoError(t, err)
	if want != string(page) { // both are long
		t.Fatalf("%s is not what its lists say: make docs", clausesPage)
	}
}

func TestAPageWithoutRoomForTables(t *testing.T) {
	_, err := generated(t.Context(), root(t), clausesEnd+clausesBegin)
	require.ErrorContains(t, err, "docs/model/clauses.md has no line")
}
