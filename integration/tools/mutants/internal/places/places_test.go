package places

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
)

// found returns what is replaced in the declarations of a file, and by what, by
// operator.
func found(t *testing.T, declarations string) map[string][]string {
	t.Helper()
	text, changes := find(t, declarations)
	all := map[string][]string{}
	for _, c := range changes {
		require.Equal(t, "small/small.go", c.File)
		require.NotEqual(t, text, c.Of(text))
		all[c.Operator] = append(all[c.Operator], text[c.From:c.To]+" → "+c.Text)
	}
	return all
}

func find(t *testing.T, declarations string) (string, []Change) {
	t.Helper()
	text := "package small\n\n" + declarations
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "small.go", text, parser.SkipObjectResolution)
	require.NoError(t, err)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	_, err = (&types.Config{Importer: importer.ForCompiler(fset, "source", nil)}).Check("small", fset, []*ast.File{file}, info)
	require.NoError(t, err)
	return text, Find(fset, "small/small.go", text, file, info)
}

// Each operator proposes this, and only this, for what stands in a function.
func TestOperators(t *testing.T) {
	for name, c := range map[string]struct {
		head, body string // the function's
		want       []string
	}{
		"boundary":  {"(a, b int) bool", "return a < b", []string{"a < b → a <= b"}},
		"equal":     {"(a, b int) bool", "return a == b", []string{"a == b → a != b"}},
		"and-or":    {"(a, b, c bool) bool", "return a && (b || c)", []string{"a && (b || c) → (a) || ((b || c))", "b || c → (b) && (c)"}},
		"drop-left": {"(a, b, c bool) bool", "return a || b || c", []string{"a || b || c → c", "a || b → b"}},
		"drop-right": {
			"(a, b, c bool) bool", "return a || b || c",
			[]string{"a || b || c → a || b", "a || b → a"},
		},
		"plus-minus": {"(a, b int, s string) (int, string)", `return a + b, s + "x"`, []string{"a + b → a - b"}},
		"drop-not":   {"(a bool) bool", "return !a", []string{"!a → a"}},
		"negate": {
			"(a, b int, ok bool)", "if ok {}; if !ok {}; if a == b {}; for a < b {}; for {}; switch { case a > b: case a != b: }",
			[]string{"ok → !(ok)", "a < b → !(a < b)", "a > b → !(a > b)"},
		},
		"flip-bool":   {"(f func(bool)) bool", "f(true); return true", []string{"true → false"}},
		"return-bool": {"(ok bool) (int, bool)", "if ok { return 1, ok }; return 0, false", []string{"ok → !(ok)", "false → true"}},
		"return-nil-error": {
			"(err error) error", "func() int { return 7 }(); if err == nil { return nil }; return err",
			[]string{"err → nil"},
		},
		"off-by-one": {
			"(s []int) []int", "s = append(s, 0x10, 0); return make([]int, 3, 77)",
			[]string{"0x10 → 17", "0x10 → 15", "0 → 1", "3 → 4", "3 → 2"},
		},
		"drop-assign": {"(a, b int) int", "a = b; b++; c := a + b; return c", []string{"a = b → ", "b++ → "}},
		"drop-call":   {"(f, g func())", "f(); defer g()", []string{"f() → "}},
		"drop-defer":  {"(f func())", "f(); defer f()", []string{"defer f() → "}},
		"drop-go":     {"(f func())", "go f()", []string{"go f() → "}},
		"drop-if":     {"(a bool)", "if a { return } else { println() }", []string{"if a { return } else { println() } → "}},
		"drop-else":   {"(a bool)", "if a { return } else { println() }", []string{" else { println() } → "}},
		"drop-loop":   {"(s []int)", "all: for range s { break all }; for {}", []string{"all: for range s { break all } → ", "for {} → "}},
		"drop-branch": {"(s []int)", "for range s { continue }", []string{"continue → "}},
		"drop-return": {"(a bool) int", "if a { return 1 }; return 2", []string{"return 1 → ", "return 2 → "}},
		"drop-send":   {"(c chan int)", "c <- 1; <-c", []string{"c <- 1 → "}},
		"drop-receive": {
			"(c chan int)", "c <- 1; <-c",
			[]string{"<-c → "},
		},
		"drop-case": {
			"(a int, c, d chan int)", "switch a { case 1: println(); default: }; switch a { case 2: }; select { case <-c: case <-d: }",
			[]string{"case 1: println() → ", "default: → ", "case <-c: → ", "case <-d: → "},
		},
		"swap": {
			"(f, g func(), a *int, b int)", "b = 1; f(); *a = 2; *a = 3; g(); defer f(); defer g()",
			[]string{"f(); *a = 2 → *a = 2; f()", "*a = 3; g() → g(); *a = 3", "defer f(); defer g() → defer g(); defer f()"},
		},
		"call-swap": {"(a, b int) int", "return min(a, b)", []string{"min(a, b) → max(a, b)"}},
		"str-equal": {"() string", `return "#a = :b AND #c = :d" + " OR e"`, []string{
			`"#a = :b AND #c = :d" + " OR e" → "#a <> :b AND #c = :d OR e"`,
			`"#a = :b AND #c = :d" + " OR e" → "#a = :b AND #c <> :d OR e"`,
		}},
	} {
		require.Equal(t, c.want, found(t, "func f"+c.head+" {"+c.body+"}")[name], name)
	}
}

func TestMethodsThatCompareAreSwapped(t *testing.T) {
	all := found(t, `import ("time"; "slices")
func f(a, b time.Time) bool { return a.Before(b) }
func g(s []int) int { return slices.Max(s) }
func h() <-chan time.Time { return time.After(1) }`)
	require.Equal(t, []string{"a.Before(b) → a.After(b)", "slices.Max(s) → slices.Min(s)"}, all["call-swap"])
}

// Which side of a lock a statement stands on is not for tests to see.
func TestNothingIsSwappedWithALock(t *testing.T) {
	require.Empty(t, found(t, "import \"sync\"\nfunc f(mu *sync.Mutex, g func()) { mu.Lock(); g(); mu.Unlock() }")["swap"])
}

// Values of a package are changed like others; what counts up by itself is not.
func TestValuesOfAPackage(t *testing.T) {
	require.Equal(t, map[string][]string{
		"off-by-one": {"10 → 11", "10 → 9", "7 → 8", "7 → 6"},
		"str-exists": {`"attribute_exists(#a)" → "attribute_not_exists(#a)"`},
	}, found(t, `const limit = 10
const (
	zero = iota + 5
	one
)
var seven, text = 7, "attribute_exists(#a)"
type row [3]int`))
}

// Old is there once, and long enough to be known again, and so tells a change from
// all others.
func TestWhatIsShownIsThereOnce(t *testing.T) {
	_, changes := find(t, `func f(err error, a, b int) error {
	if a > 1 { // a comment
		return err
	}
	if b > 2 {
		return err
	}
	return nil
}`)
	var all []string
	for _, c := range changes {
		if c.Operator == "return-nil-error" || c.Operator == "off-by-one" {
			all = append(all, c.Old+" → "+c.New)
		}
	}
	require.Equal(t, []string{
		"a > 1 → a > 2", "a > 1 → a > 0", "if a > 1 { return err } → if a > 1 { return nil }",
		"b > 2 → b > 3", "b > 2 → b > 1", "if b > 2 { return err } → if b > 2 { return nil }",
	}, all)
}

func TestWhatIsLongIsCut(t *testing.T) {
	long := ""
	for range 30 {
		long += "0123456789"
	}
	old, changed := shown(long+" a "+long, long+" bb "+long)
	require.Equal(t, "… "+long[1:80]+" a "+long[:79]+" …", old)
	require.Equal(t, "… "+long[1:80]+" bb "+long[:79]+" …", changed)
	old, changed = shown(long, "")
	require.Len(t, []rune(old), 3+differs/3+differs*2/3)
	require.Empty(t, changed)
	old, _ = shown("ä\n\t// a comment\n\tb", "")
	require.Equal(t, "ä b", old)
}
