package ordering_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// isKey is the rule of keys, as the README has it.
func isKey(s string) bool {
	if len(s) < 1 || len(s) > 1024 || !utf8.ValidString(s) || strings.Count(s, "/") > 15 {
		return false
	}
	for _, segment := range strings.Split(s, "/") {
		if segment == "" || strings.Contains(strings.NewReplacer("%25", "", "%2F", "").Replace(segment), "%") {
			return false
		}
	}
	return true
}

// inOrder compares two keys segment by segment.
func inOrder(a, b ordering.Key) int {
	return slices.Compare(strings.Split(string(a), "/"), strings.Split(string(b), "/"))
}

// isBelow is what it is to be below a key: to begin with all of its segments, whole
// ones, and to go on.
func isBelow(k, above ordering.Key) bool {
	of, all := strings.Split(string(above), "/"), strings.Split(string(k), "/")
	return len(all) > len(of) && slices.Equal(all[:len(of)], of)
}

// FuzzKey: any text is a key, or is refused with an error that names it; a key is
// what its segments make; two are in one order, and it is that of their segments.
func FuzzKey(f *testing.F) {
	all := []string{
		"customer:42/address:7/line:1", "customer:42", "customer:4", "Moe", "é\x00 ", "\xff", "",
		"a%2Fb/%25", "a%2fb", "a%20b", "a%b", "a%2", "100%", "%2F", "a//b", "/", "a/", "/a",
		"a", "a/\x00", "a/b", "a/b/c", "a/b-", "a\x00", "a\x00/a", "a b", "a-b", "a-b/c", "a0", "aa", "b",
		strings.Repeat("x", 1024), strings.Repeat("x", 1025), strings.Repeat("x/", 15) + "x", strings.Repeat("x/", 16) + "x",
	}
	for _, s := range all {
		for _, other := range all {
			f.Add(s, other)
		}
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		k := ordering.Key(s)
		err := k.Validate()
		require.Equal(t, isKey(s), err == nil, "%q: %v", s, err)
		joined := ordering.Join(s, other)
		if s != "" && other != "" && joined.Validate() == nil {
			require.Equal(t, []string{s, other}, joined.Segments(), "any text can be a segment")
		}
		if err != nil {
			var wrong *ordering.KeyError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, k, wrong.Key)
			return
		}
		require.Equal(t, k, ordering.Join(k.Segments()...))
		require.Equal(t, strings.Split(s, "/")[0], string(k.Root()))
		require.Len(t, k.Ancestors(), strings.Count(s, "/"))
		for i, a := range k.Ancestors() {
			require.NoError(t, a.Validate())
			require.Len(t, a.Segments(), i+1)
			require.True(t, a.Covers(k) && !k.Covers(a))
			require.Negative(t, ordering.Compare(a, k))
			require.Equal(t, k, a.Below(k.Under(a)))
			require.Equal(t, k.Root(), a.Root())
		}
		o := ordering.Key(other)
		if o.Validate() != nil {
			return
		}
		require.Equal(t, sign(inOrder(k, o)), sign(ordering.Compare(k, o)), "%q against %q", k, o)
		require.Equal(t, sign(ordering.Compare(k, o)), -sign(ordering.Compare(o, k)))
		require.Equal(t, k == o || isBelow(o, k), k.Covers(o), "%q covers %q", k, o)
		require.Equal(t, isBelow(o, k), slices.Contains(o.Ancestors(), k), "%q is above %q", k, o)
	})
}

func sign(n int) int { return min(max(n, -1), 1) }

// uncovered are the keys that are below none of the others, once each and in order.
func uncovered(keys []ordering.Key) (some []ordering.Key) {
	for _, k := range keys {
		if !slices.ContainsFunc(keys, func(other ordering.Key) bool { return isBelow(k, other) }) {
			some = append(some, k)
		}
	}
	slices.SortFunc(some, inOrder)
	return slices.Compact(some)
}

// addPlans adds keys that often cover each other, drawn by one seed.
func addPlans(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 500 {
		var lines []string
		for range 1 + random.IntN(30) {
			segments := make([]string, 1+random.IntN(4))
			for i := range segments {
				segments[i] = string(rune('a'+random.IntN(3))) + strings.Repeat("-", random.IntN(2))
			}
			lines = append(lines, strings.Join(segments, "/"))
		}
		f.Add(strings.Join(lines, "\n"), 1+random.IntN(10))
	}
}

// FuzzPlan: of any keys, one a line, a plan takes what they name and nothing else,
// each row once and in order, ancestors first; or it names one that is none.
func FuzzPlan(f *testing.F) {
	f.Add("b/x/2\na\nb/x/1\nb/y\na/covered\nb/x/1\nc/d/e", 3)
	f.Add("a\n\nb", 1)
	f.Add("a/b\na-b\na", 24)
	f.Add("customer:1\ncustomer:10\ncustomer:1/a\ncustomer:10/b\ncustomer:100/b", 2)
	f.Add("", 0)
	addPlans(f)
	f.Fuzz(func(t *testing.T, lines string, rows int) {
		var keys []ordering.Key
		bad := false
		for _, line := range strings.Split(lines, "\n") {
			keys = append(keys, ordering.Key(line))
			bad = bad || !isKey(line)
		}
		if len(keys) > 200 {
			return
		}
		given := slices.Clone(keys)
		plan, err := plans.New(keys...)
		require.Equal(t, given, keys, "the caller's own are as they were")
		require.Equal(t, bad, err != nil)
		if err != nil {
			var wrong *ordering.KeyError
			require.ErrorAs(t, err, &wrong)
			require.True(t, slices.Contains(keys, wrong.Key) && !isKey(string(wrong.Key)))
			return
		}
		held := plan.Keys()
		require.Equal(t, uncovered(keys), held)
		var taken []ordering.Key
		for _, step := range plan {
			taken = append(append(taken, step.Intents...), step.Key)
			for _, a := range step.Key.Ancestors() {
				require.Contains(t, taken, a, "no intent on it before %q", step.Key)
			}
			for _, a := range step.Intents {
				require.Contains(t, step.Key.Ancestors(), a)
			}
		}
		require.True(t, slices.IsSortedFunc(taken, inOrder), "%q", taken)
		require.Len(t, slices.Compact(slices.Clone(taken)), len(taken), "a row twice: %q", taken)
		require.Equal(t, len(taken), plan.Rows())
		for _, k := range keys {
			for _, other := range append(k.Ancestors(), k, k+"/0", k+"0") {
				covers := func(h ordering.Key) bool { return h == other || isBelow(other, h) }
				holder, ok := plans.Covering(held, other)
				require.Equal(t, slices.ContainsFunc(held, covers), ok, "%q", other)
				require.True(t, !ok || covers(holder), "%q has %q", holder, other)
			}
		}
		slices.Reverse(keys)
		again, err := plans.New(keys...)
		require.NoError(t, err)
		require.Equal(t, plan, again, "in whatever order they are named")
		if chunk, rest := plan.Cut(rows); len(plan) > 0 {
			require.NotEmpty(t, chunk)
			require.True(t, len(chunk) == 1 || chunk.Rows() <= rows)
			require.Equal(t, plan, append(slices.Clone(chunk), rest...))
		}
	})
}
