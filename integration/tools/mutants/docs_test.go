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

func TestOneTableForEachModel(t *testing.T) {
	tables, err := byModel(clausesHeader + "\n|---|---|---|---|---|\n" +
		"| it is free | hold `free` | `alone`: one at a time | it is free | `x TestOne` |\n" +
		"| it is x\\|y | hold `either` | `alone`: one at a time | a; b | `x TestOne`, `y TestTwo` |\n" +
		"| it was seen | queue `seen` | nothing: it need not be | - | - |\n")
	require.NoError(t, err)
	require.Equal(t, `## hold

[hold.pml](hold.pml)

- `+"`alone`"+`: one at a time

| clause | without it | caught by |
|---|---|---|
| `+"`free`: it is free | `alone` | `x TestOne`"+` |
| `+"`either`: it is x\\|y | `alone` | `x TestOne`, `y TestTwo`"+` |

## queue

[queue.pml](queue.pml)

| clause | without it | caught by |
|---|---|---|
| `+"`seen`: it was seen | nothing: it need not be | -"+` |

`, tables)

	_, err = byModel("nothing to see")
	require.ErrorContains(t, err, "no table")
	_, err = byModel(clausesHeader + "\n|---|---|---|---|---|\n| a | b |\n")
	require.ErrorContains(t, err, "2 cells, not 5")
}

func TestAPageWithoutRoomForTables(t *testing.T) {
	_, err := generated(t.Context(), root(t), clausesEnd+clausesBegin)
	require.ErrorContains(t, err, "docs/model/clauses.md has no line")
}
