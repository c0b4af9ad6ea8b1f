package ordering_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

func TestJoinEscapesAndSegmentsUnescape(t *testing.T) {
	k := ordering.Join("a/b", "50%", "%2F", "plain")
	require.Equal(t, ordering.Key("a%2Fb/50%25/%252F/plain"), k)
	require.NoError(t, k.Validate())
	require.Equal(t, []string{"a/b", "50%", "%2F", "plain"}, k.Segments())
}

func TestInvalidKeysAreNamed(t *testing.T) {
	for _, bad := range []ordering.Key{
		"", "/", "a/", "/a", "a//b", "a%b", "100%", "a%2f", "a%20b", "\xff",
		ordering.Key(strings.Repeat("x", 1025)),
		ordering.Key(strings.Repeat("x/", 16) + "x"),
		ordering.Join(), ordering.Join("a", ""),
	} {
		err := bad.Validate()
		var keyErr *ordering.KeyError
		require.ErrorAs(t, err, &keyErr, "%q", bad)
		require.Equal(t, bad, keyErr.Key)
		_, err = plans.New("good", bad)
		require.True(t, errors.As(err, &keyErr), "%q", bad)
	}
	for _, good := range []ordering.Key{
		"Moe", "customer:42/address:7", " ", "\x00", "é", "%25/%2F",
		ordering.Key(strings.Repeat("x", 1024)),
		ordering.Key(strings.Repeat("x/", 15) + "x"),
	} {
		require.NoError(t, good.Validate(), "%q", good)
	}
}

func TestOrderIsBySegment(t *testing.T) {
	sorted := []ordering.Key{
		"a", "a/\x00", "a/b", "a/b/c", "a/b-", "a\x00", "a\x00/a", "a b", "a-b", "a-b/c", "a0", "aa", "b",
	}
	for i, x := range sorted {
		for j, y := range sorted {
			require.Equal(t, sign(i-j), sign(ordering.Compare(x, y)), "%q against %q", x, y)
		}
	}
}

func sign(n int) int { return min(max(n, -1), 1) }

func TestCoversAndAncestors(t *testing.T) {
	k := ordering.Join("customer:42", "address:7", "line:1")
	require.Equal(t, []ordering.Key{"customer:42", "customer:42/address:7"}, k.Ancestors())
	require.Empty(t, ordering.Key("Moe").Ancestors())
	require.Equal(t, ordering.Key("customer:42"), k.Root())
	require.True(t, k.Covers(k))
	require.True(t, ordering.Key("customer:42").Covers(k))
	require.False(t, k.Covers("customer:42"))
	require.False(t, ordering.Key("customer:4").Covers(k))
	require.Equal(t, k, ordering.Key("customer:42").Below(k.Under("customer:42")))
}

func TestPlanGivesEachAncestorToTheFirstStepBelowIt(t *testing.T) {
	plan, err := plans.New("b/x/2", "a", "b/x/1", "b/y", "a/covered", "b/x/1", "c/d/e")
	require.NoError(t, err)
	require.Equal(t, plans.Plan{
		{Key: "a"},
		{Key: "b/x/1", Intents: []ordering.Key{"b", "b/x"}},
		{Key: "b/x/2", Intents: []ordering.Key{}},
		{Key: "b/y", Intents: []ordering.Key{}},
		{Key: "c/d/e", Intents: []ordering.Key{"c", "c/d"}},
	}, plan)
	require.Equal(t, 9, plan.Rows())

	chunk, rest := plan.Cut(4)
	require.Len(t, chunk, 2)
	require.Len(t, rest, 3)
	chunk, rest = plan[1:].Cut(2) // larger than the limit: alone
	require.Len(t, chunk, 1)
	require.Len(t, rest, 3)
}

// The rules of a plan, on random keys: what deadlock freedom rests on.
func TestPlanInvariants(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		keys := make([]ordering.Key, 1+random.IntN(30))
		for i := range keys {
			segments := make([]string, 1+random.IntN(4))
			for j := range segments {
				segments[j] = string(rune('a'+random.IntN(3))) + strings.Repeat("-", random.IntN(2))
			}
			keys[i] = ordering.Join(segments...)
		}
		plan, err := plans.New(keys...)
		require.NoError(t, err)
		held := plan.Keys()

		exclusive, intents := map[ordering.Key]bool{}, map[ordering.Key]bool{}
		var last ordering.Key
		for i, step := range plan {
			for _, row := range append(slices.Clone(step.Intents), step.Key) {
				require.False(t, exclusive[row] || intents[row], "row %q twice in %v", row, plan)
				require.True(t, i == 0 && last == "" || ordering.Compare(last, row) < 0, "%q after %q", row, last)
				last = row
			}
			exclusive[step.Key] = true
			for _, a := range step.Intents {
				require.True(t, a.Covers(step.Key))
				intents[a] = true
			}
			for _, a := range step.Key.Ancestors() {
				require.True(t, intents[a], "no intent on %q before %q", a, step.Key)
			}
		}
		for _, k := range keys {
			holder, ok := plans.Covering(held, k)
			require.True(t, ok)
			require.True(t, exclusive[holder] && holder.Covers(k))
		}
		_, ok := plans.Covering(held, "z")
		require.False(t, ok)
	}
}

func TestHolderIsWhatCovers(t *testing.T) {
	held := []ordering.Key{"a/b", "a/c/x", "d"}
	for key, want := range map[ordering.Key]ordering.Key{
		"a/b": "a/b", "a/b/z": "a/b", "a/c/x": "a/c/x", "d/1/2": "d",
		"a": "", "a/bb": "", "a/c": "", "a/c/y": "", "a/d": "", "c": "", "dd": "", "0": "",
	} {
		got, ok := plans.Covering(held, key)
		require.Equal(t, want, got, "%q", key)
		require.Equal(t, want != "", ok)
	}
}

// A chunk has at most as many rows as it may, but for a first step that is larger
// by itself.
func TestCutKeepsToItsRows(t *testing.T) {
	plan, err := plans.New("a", "b/x/1", "b/x/2", "c/d")
	require.NoError(t, err)
	for rows := 1; rows <= plan.Rows()+1; rows++ {
		var again plans.Plan
		for rest := plan; len(rest) > 0; {
			var chunk plans.Plan
			chunk, rest = rest.Cut(rows)
			require.True(t, len(chunk) == 1 || chunk.Rows() <= rows, "%d rows, of at most %d", chunk.Rows(), rows)
			again = append(again, chunk...)
		}
		require.Equal(t, plan, again)
	}
}
