package memdynamo

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
)

// TestSetsAgainstMaps compares the arithmetic of sets with Go's maps.
func TestSetsAgainstMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() (strSet, map[string]bool) {
		m := map[string]bool{}
		for range r.IntN(6) {
			m[string(rune('a'+r.IntN(8)))] = true
		}
		return slices.Sorted(maps.Keys(m)), m
	}
	for range 5000 {
		a, am := random()
		b, bm := random()
		both, left := maps.Clone(am), map[string]bool{}
		maps.Copy(both, bm)
		for e := range am {
			if !bm[e] {
				left[e] = true
			}
		}
		u, ok := union(a, b)
		require.True(t, ok)
		require.ElementsMatch(t, slices.Collect(maps.Keys(both)), []string(u.(strSet)))
		require.True(t, slices.IsSorted(u.(strSet)))
		d, ok := minus(a, b)
		require.True(t, ok)
		if len(left) == 0 {
			require.Nil(t, d)
		} else {
			require.ElementsMatch(t, slices.Collect(maps.Keys(left)), []string(d.(strSet)))
		}
		for e := rune('a'); e < 'i'; e++ {
			require.Equal(t, am[string(e)], member(a, strValue(string(e))))
		}
		require.Equal(t, maps.Equal(am, bm), equal(a, b))
	}
	_, ok := union(strSet{"a"}, numSet{smallDecimal(1)})
	require.False(t, ok)
	_, ok = minus(strSet{"a"}, strValue("a"))
	require.False(t, ok)
}

func TestNumberSetsAreNumeric(t *testing.T) {
	v, err := decode(&types.AttributeValueMemberNS{Value: []string{"2.0", "1e1", "-3"}}, 0)
	require.NoError(t, err)
	ten, _ := parseDecimal("10.00")
	require.True(t, member(v, ten))
	require.Equal(t, &types.AttributeValueMemberNS{Value: []string{"-3", "2", "10"}}, encode(v))
	_, err = decode(&types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}, 0)
	require.ErrorContains(t, err, "duplicates")
}

func TestSizes(t *testing.T) {
	one := smallDecimal(1)
	for _, c := range []struct {
		v    value
		want int
	}{
		{strValue("é"), 2}, {binValue("abc"), 3}, {boolValue(false), 1}, {nullValue{}, 1}, {one, 2},
		{strSet{"ab", "c"}, 3}, {numSet{one}, 2}, {listValue{}, 3}, {mapValue{}, 3},
		{listValue{strValue("ab"), one}, 3 + 2 + 2 + 2}, {mapValue{{"name", strValue("ab")}}, 3 + 1 + 4 + 2},
	} {
		require.Equal(t, c.want, c.v.size(), "%v", c.v)
	}
	require.Equal(t, 3+1, newItem([]attr{{"key", strValue("a")}}).size)
}

func TestLength(t *testing.T) {
	for _, c := range []struct {
		v    value
		want int
	}{{strValue("aé"), 2}, {strValue("\U0001F600"), 2}, {binValue("é"), 2}, {listValue{nil, nil}, 2}, {strSet{"a"}, 1}} {
		n, ok := length(c.v)
		require.True(t, ok)
		require.Equal(t, c.want, n)
	}
	_, ok := length(smallDecimal(1))
	require.False(t, ok)
	require.Equal(t, "120", smallDecimal(120).String())
}

func TestOrderOfScalarsOnly(t *testing.T) {
	for _, v := range []value{boolValue(true), nullValue{}, strSet{"a"}, listValue{}, mapValue{}, nil} {
		_, ok := order(v, v)
		require.False(t, ok, "%T", v)
	}
	_, ok := order(strValue("a"), binValue("a"))
	require.False(t, ok)
	c, ok := order(strValue("a"), strValue("b"))
	require.True(t, ok)
	require.Equal(t, cmp.Compare("a", "b"), c)
}
