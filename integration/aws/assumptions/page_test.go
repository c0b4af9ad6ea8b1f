package assumptions

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// rows are those of a table of docs/aws.md, as their cells, by the first.
func rows(t *testing.T, header string) (all [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/aws.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), header+"\n|---|---|---|---|\n")
	require.True(t, found, header)
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 4 {
			break
		}
		cells[0], cells[3] = strings.Trim(cells[0], "| `"), strings.TrimSuffix(cells[3], " |")
		all = append(all, cells)
	}
	return all
}

// The page has each assumption, in order, with what holdall would do wrong.
func TestThePageHasEachAssumption(t *testing.T) {
	all := rows(t, "| assumption | | documented by AWS | else holdall would |")
	require.Len(t, all, len(assumptions))
	for i, a := range assumptions {
		require.Equal(t, a.name, all[i][0])
		require.Equal(t, a.harm, all[i][3])
		require.NotEmpty(t, all[i][1])
		require.True(t, all[i][2] == "no" || strings.Contains(all[i][2], "](https://docs."), "%s: where is it documented?", a.name)
	}
}

// The page says what each engine can tell; TestAssumptions that it can.
func TestThePageSaysWhatEnginesTell(t *testing.T) {
	all := rows(t, "| assumption | embedded | dynoxide "+engines.DynoxideVersion+" | DynamoDB Local "+engines.DynamoDBLocalVersion+" |")
	require.Len(t, all, len(assumptions))
	for i, a := range assumptions {
		want := []string{a.name}
		for _, kind := range []engines.Kind{engines.KindEmbedded, engines.KindDynoxide, engines.KindLocal} {
			switch {
			case slices.Contains(a.either, kind):
				want = append(want, "by chance")
			case slices.Contains(a.open, kind):
				want = append(want, "open")
			default:
				want = append(want, "confirmed")
			}
		}
		require.Equal(t, want, all[i])
	}
}
