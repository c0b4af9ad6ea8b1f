package memdynamo

import (
	"cmp"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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
		u, err := combine(a, b, false)
		require.NoError(t, err)
		require.ElementsMatch(t, slices.Collect(maps.Keys(both)), []string(u.(strSet)))
		require.True(t, slices.IsSorted(u.(strSet)))
		d, err := combine(a, b, true)
		require.NoError(t, err)
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
	_, err := combine(strSet{"a"}, numSet{smallDecimal(1)}, false)
	require.Error(t, err)
	_, err = combine(strSet{"a"}, strValue("a"), true)
	require.Error(t, err)
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

func TestDecimalText(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.000": "0", "00012": "12", "+5": "5", "1.": "1", ".5": "0.5", "-.50": "-0.5",
		"1.0": "1", "1.50": "1.5", "100": "100", "1e2": "100", "1E-2": "0.01", "12.34e1": "123.4", "-1.5e-3": "-0.0015",
		"1E125":                                   "1" + strings.Repeat("0", 125),
		"1E-130":                                  "0." + strings.Repeat("0", 129) + "1",
		strings.Repeat("9", 38):                   strings.Repeat("9", 38),
		strings.Repeat("9", 38) + "000":           strings.Repeat("9", 38) + "000",
		"0e999999999999999999999":                 "0",
		"1" + strings.Repeat("0", 300) + "e-300":  "1",
		"0." + strings.Repeat("0", 200) + "1e201": "1",
	} {
		d, err := parseDecimal(in)
		require.NoError(t, err, in)
		require.Equal(t, want, d.String(), in)
	}
}

func TestDecimalRefused(t *testing.T) {
	for in, want := range map[string]string{
		"": "numeric value", " 1": "numeric value", "1 ": "numeric value", "abc": "numeric value", ".": "numeric value",
		"1e": "numeric value", "1e+": "numeric value", "--1": "numeric value", "1.2.3": "numeric value", "0x1": "numeric value",
		"NaN": "numeric value", "Infinity": "numeric value", "1_000": "numeric value", "e5": "numeric value",
		strings.Repeat("1", 39):              "38 significant",
		strings.Repeat("1", 39) + "x":        "numeric value",
		"1." + strings.Repeat("0", 37) + "1": "38 significant",
		"1E126":                              "overflow", "-1E126": "overflow", "10E125": "overflow", "1e99999999999999999999": "overflow",
		"1E-131": "underflow", "0.1E-130": "underflow", "1e-99999999999999999999": "underflow",
	} {
		_, err := parseDecimal(in)
		require.ErrorContains(t, err, want, in)
	}
}

// numbers gives random numbers near each other, near the limits, and of all
// lengths.
func numbers(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(2) == 0 {
		b.WriteByte('-')
	}
	digits := 1 + r.IntN(38)
	if r.IntN(3) == 0 {
		digits = 1 + r.IntN(3)
	}
	for range digits {
		b.WriteByte("0123456789990"[r.IntN(13)])
	}
	exp := r.IntN(12) - 6
	if r.IntN(4) == 0 {
		exp = r.IntN(256) - 130
	}
	b.WriteString("e" + big.NewInt(int64(exp)).String())
	return b.String()
}

func rat(t *testing.T, s string) *big.Rat {
	t.Helper()
	x, ok := new(big.Rat).SetString(s)
	require.True(t, ok, s)
	return x
}

// significant counts the digits of a terminating decimal fraction.
func significant(x *big.Rat) int {
	n := new(big.Rat).Mul(x, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(200), nil)))
	return len(strings.Trim(new(big.Int).Abs(n.Num()).String(), "0"))
}

// TestDecimalAgainstRationals compares parsing, printing, order, sums and the
// sortable encoding with arithmetic that cannot round.
func TestDecimalAgainstRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	limit := rat(t, "1e126")
	least := rat(t, "1e-130")
	sums, pairs := 0, 60_000
	if testing.Short() {
		pairs = 15_000
	}
	for range pairs {
		as, bs := numbers(r), numbers(r)
		a, aerr := parseDecimal(as)
		b, berr := parseDecimal(bs)
		if aerr != nil || berr != nil {
			continue
		}
		ar, br := rat(t, as), rat(t, bs)
		require.Zero(t, ar.Cmp(rat(t, a.String())), "%s printed as %s", as, a)
		require.Equal(t, ar.Cmp(br), a.cmp(b), "%s and %s", as, bs)
		require.Equal(t, ar.Cmp(br) == 0, a == b, "%s and %s", as, bs)
		require.Equal(t, ar.Cmp(br), strings.Compare(a.sortable(), b.sortable()), "%s and %s", as, bs)

		want := new(big.Rat).Add(ar, br)
		got, err := a.add(b)
		size := new(big.Rat).Abs(want)
		switch {
		case significant(want) > maxDigits:
			require.ErrorIs(t, err, errPrecision, "%s + %s", as, bs)
		case size.Cmp(limit) >= 0:
			require.ErrorIs(t, err, errOverflow, "%s + %s", as, bs)
		case want.Sign() != 0 && size.Cmp(least) < 0:
			require.ErrorIs(t, err, errUnderflow, "%s + %s", as, bs)
		default:
			sums++
			require.NoError(t, err, "%s + %s", as, bs)
			require.Zero(t, want.Cmp(rat(t, got.String())), "%s + %s = %s", as, bs, got)
			back, err := parseDecimal(got.String())
			require.NoError(t, err)
			require.Equal(t, got, back, "one representation for %s", got)
			minus, err := got.add(b.negate())
			if err == nil {
				require.Equal(t, a, minus, "%s + %s - %s", as, bs, bs)
			}
		}
	}
	require.Greater(t, sums, pairs/12)
}

func TestDecimalSize(t *testing.T) {
	for in, want := range map[string]int{"0": 1, "1": 2, "-1": 3, "12": 2, "123": 3, "1e100": 2, "12345.6789": 6} {
		d, err := parseDecimal(in)
		require.NoError(t, err)
		require.Equal(t, want, d.size(), in)
	}
}

// TestNothingPilesUp: keys that come and go leave nothing behind, whether or
// not anybody scans.
func TestNothingPilesUp(t *testing.T) {
	tb := &table{store: newStore()}
	for i := range 10000 {
		k := key{hash: strconv.Itoa(i % 3000), rng: strconv.Itoa(i % 7)}
		tb.set(k, newItem([]attr{{"k", strValue(k.hash)}}))
		require.NotNil(t, tb.get(k))
		tb.set(k, nil)
		require.Nil(t, tb.get(k))
		tb.set(k, nil)
	}
	require.Empty(t, tb.parts)
	require.LessOrEqual(t, len(tb.order), 66)
	require.Zero(t, tb.count)
	require.Zero(t, tb.bytes)
	require.Empty(t, tb.partitions())
}

// TestCachesAreBounded: a program that writes values into its expressions
// must not grow the engine.
func TestCachesAreBounded(t *testing.T) {
	var exprs exprCache
	var stmts cache[string, statement]
	for i := range 2*maxCached + 10 {
		_, err := exprs.parse(condExpr, "attribute_exists(a"+strconv.Itoa(i)+")")
		require.NoError(t, err)
		_, err = stmts.get("SELECT * FROM t WHERE k="+strconv.Itoa(i), parseStatement)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(exprs.parsed), maxCached)
	require.LessOrEqual(t, len(stmts.parsed), maxCached)
}
