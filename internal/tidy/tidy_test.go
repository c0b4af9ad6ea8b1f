package tidy

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// The law holds for this repository.
func TestTheHouse(t *testing.T) {
	problems, err := Check(os.DirFS("../.."))
	require.NoError(t, err)
	for _, p := range problems {
		t.Error(p)
	}
}

// judged returns what the law says of some files in an otherwise proper house.
func judged(t *testing.T, files map[string]string) string {
	t.Helper()
	repository := fstest.MapFS{}
	for _, p := range named() {
		repository[p] = &fstest.MapFile{Data: []byte("// Package x is here.\npackage x\n")}
	}
	for p, content := range files {
		repository[p] = &fstest.MapFile{Data: []byte(content)}
	}
	problems, err := Check(repository)
	require.NoError(t, err)
	var all []string
	for _, p := range problems {
		all = append(all, p.String())
	}
	return strings.Join(all, "\n")
}

// gofile is a proper file of a package, with a line and imports to judge.
func gofile(pkg, line string, imports ...string) string {
	s := fmt.Sprintf("// Package %[1]s is here.\npackage %[1]s\n", pkg)
	for _, i := range imports {
		s += fmt.Sprintf("import %q\n", i)
	}
	return s + line + "\n"
}

type snippet struct{ path, content, want string }

// try holds each snippet to the law. Every one breaks it once, or not at all.
func try(t *testing.T, snippets ...snippet) {
	t.Helper()
	for _, s := range snippets {
		t.Run(s.path, func(t *testing.T) {
			got := judged(t, map[string]string{s.path: s.content})
			if s.want == "" {
				require.Empty(t, got, s.content)
				return
			}
			require.Contains(t, got, s.want, s.content)
			require.NotContains(t, got, "\n", "one problem, not several")
		})
	}
}

const (
	ours = module + "/"
	sdk  = "github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func TestFloors(t *testing.T) {
	try(t,
		snippet{"ordering/a.go", gofile("ordering", "", ours+"fencing"), "ordering/a.go:3: imports github.com/holdall/holdall/fencing: not below"},
		snippet{"ordering/a.go", gofile("ordering", "", sdk+"/types"), "nothing of AWS"},
		snippet{"ordering/a_test.go", gofile("ordering", "", ours+"lockset"), ""},
		snippet{"fencing/a.go", gofile("fencing", "", ours+"ordering", sdk, "database/sql"), ""},
		snippet{"fencing/a.go", gofile("fencing", "", ours+"heartbeat"), "not below fencing"},
		snippet{"heartbeat/a.go", gofile("heartbeat", "", ours+"ordering", "golang.org/x/sync/errgroup"), ""},
		snippet{"heartbeat/a.go", gofile("heartbeat", "", sdk+"/types"), "nothing of AWS"},
		snippet{"heartbeat/a.go", gofile("heartbeat", "", "github.com/aws/smithy-go"), "nothing of AWS"},
		snippet{"lockset/a.go", gofile("lockset", "", ours+"ordering", ours+"fencing", ours+"heartbeat", ours+"internal/requests", sdk), ""},
		snippet{"lockset/a.go", gofile("lockset", "", ours+"unitofwork"), "not below lockset"},
		snippet{"lockset/a.go", gofile("lockset", "", ours+"internal/memdynamo"), "not below lockset"},
		snippet{"lockset/a_test.go", gofile("lockset", "", ours+"internal/memdynamo", "github.com/stretchr/testify/require"), ""},
		snippet{"lockset/a.go", gofile("lockset", "", "github.com/stretchr/testify/require"), "nobody decided on"},
		snippet{"unitofwork/a.go", gofile("unitofwork", "", ours+"lockset"), ""},
		snippet{"unitofwork/a.go", gofile("unitofwork", "", ours+"internal/faults"), "not below unitofwork"},
		snippet{"unitofwork/a.go", gofile("unitofwork", "", ours+"integration/engines"), "not below unitofwork"},
		snippet{"internal/faults/a.go", gofile("faults", "", ours+"unitofwork"), "not below"},
		snippet{"extra/a.go", gofile("extra", ""), "no place in the house"},
		snippet{"examples/bank/main.go", gofile("main", "", ours+"unitofwork", ours+"internal/memdynamo"), ""},
	)
}

func TestPure(t *testing.T) {
	try(t,
		snippet{"internal/lockrow/a.go", gofile("lockrow", "", "os"), "imports os"},
		snippet{"internal/lockrow/a.go", gofile("lockrow", "var mu sync.Mutex", "sync"), ""},
		snippet{"internal/lockrow/a.go", gofile("lockrow", "var wg sync.WaitGroup", "sync"), "uses sync.WaitGroup"},
		snippet{"internal/lockrow/a.go", gofile("lockrow", "var c dynamodb.Client", sdk), "uses dynamodb.Client"},
		snippet{"internal/lockrow/a.go", gofile("lockrow", "", sdk+"/types"), ""},
		snippet{"lockset/a.go", gofile("lockset", "", "os"), ""},
		snippet{"ordering/a.go", gofile("ordering", "var now = time.Now()", "time"), "uses time.Now"},
		snippet{"ordering/a.go", gofile("ordering", "var now = clock.Since", "time"), ""},
		snippet{"ordering/a.go", "// Package ordering is here.\npackage ordering\nimport clock \"time\"\nvar now = clock.Since", "uses clock.Since"},
		snippet{"ordering/a.go", gofile("ordering", "var d = 3*time.Second\nvar t time.Time", "time"), ""},
		snippet{"ordering/a.go", gofile("ordering", "func f() { time.Sleep(1) }", "time"), "uses time.Sleep"},
		snippet{"ordering/a.go", gofile("ordering", "var a = time.AfterFunc", "time"), "uses time.AfterFunc"},
		snippet{"ordering/a.go", gofile("ordering", "var n = rand.IntN(3)", "math/rand/v2"), "uses rand.IntN"},
		snippet{"ordering/a.go", gofile("ordering", "func f(context.Context) {}", "context"), "uses context.Context"},
		snippet{"ordering/a.go", gofile("ordering", "var e = context.Canceled", "context"), ""},
		snippet{"ordering/a.go", gofile("ordering", "var e = http.Get", "net/http"), "uses http.Get"},
		snippet{"ordering/a.go", gofile("ordering", "const c = http.StatusOK", "net/http"), ""},
		snippet{"ordering/a.go", gofile("ordering", "func f() { go f() }"), "goroutines"},
		snippet{"ordering/a.go", gofile("ordering", "func f() { select {} }"), "goroutines"},
		snippet{"ordering/a.go", gofile("ordering", "func f(c chan int) { <-c }"), "waiting"},
		snippet{"ordering/a.go", gofile("ordering", "func f(c chan int) { close(c) }"), ""},
		snippet{"ordering/a_test.go", gofile("ordering", "var now = time.Now()", "time"), ""},
	)
}

func TestOutdated(t *testing.T) {
	try(t,
		snippet{"ordering/a.go", gofile("ordering", "// a is like takeAll.\nvar a = 1"), "ordering/a.go:3: a comment names takeAll"},
		snippet{"ordering/b.go", gofile("ordering", "// a is like takeAll.\nfunc takeAllOf() {}"), ""},
		snippet{"ordering/c.go", gofile("ordering", "// a is what SetTime was.\nvar a = 1"), "names SetTime"},
		snippet{"ordering/d.go", gofile("ordering", "// a is of JavaScript, see https://x.y/theWay.\nvar a = \"renewedAt\" // renewedAt is text"), ""},
		snippet{"ordering/e.go", gofile("ordering", "// For example:\n//\n//\ttakeAll()\nvar a = 1"), ""},
	)
}

func TestSizes(t *testing.T) {
	long := func(n int) string { return strings.Repeat("\n", n) }
	try(t,
		snippet{"fencing/a.go", gofile("fencing", long(397)), ""},
		snippet{"fencing/a.go", gofile("fencing", long(398)), "401 lines, of at most 400"},
		snippet{"fencing/a_test.go", gofile("fencing", long(398)), ""},
		snippet{"fencing/a_test.go", gofile("fencing", long(598)), "601 lines, of at most 600"},
		snippet{"fencing/a.go", gofile("fencing", "\n// f is long,\n// and explained.\nfunc f() {"+long(69)+"}"), ""},
		snippet{"fencing/a.go", gofile("fencing", "func f() {"+long(70)+"}"), "f has 71 lines"},
		snippet{"fencing/a_test.go", gofile("fencing", "func (t T) f() {"+long(70)+"}"), "f has 71 lines"},
	)
}

func TestWords(t *testing.T) {
	try(t,
		snippet{"fencing/a.go", gofile("fencing", "// TO"+"DO: all of it"), "fencing/a.go:3: \"TO" + "DO\""},
		snippet{"docs/a.md", "This is FIX" + "ME.", "docs/a.md:1:"},
		snippet{"docs/a.md", "prefixme, xxxl", ""},
		snippet{".git/a.md", "TO" + "DO", ""},
		snippet{"fencing/utils.go", gofile("fencing", ""), `"utils" is a name that says nothing`},
		snippet{"fencing/common_test.go", gofile("fencing", ""), "says nothing"},
		snippet{"examples/helper/a.go", gofile("helper", ""), "says nothing"},
		snippet{"fencing/a.go", gofile("fencing", "type lockManager int"), `"lockManager": not one of our words`},
		snippet{"fencing/a.go", gofile("fencing", "func f() { thing := 1; _ = thing }"), "not one of our words"},
		snippet{"fencing/a.go", gofile("fencing", "var mu sync.Mutex\nvar h = t.Helper\nvar something, utility int", "sync"), ""},
	)
}

func TestComments(t *testing.T) {
	try(t,
		snippet{"fencing/a.go", gofile("fencing", "func F() {}"), "exported F has no comment"},
		snippet{"fencing/a.go", gofile("fencing", "// T is.\ntype T int\nfunc (T) M() {}"), "exported M has no comment"},
		snippet{"fencing/a.go", gofile("fencing", "type t int\nfunc (t) M() {}"), ""},
		snippet{"fencing/a.go", gofile("fencing", "// T is.\ntype T int\nfunc (*T) Error() string { return \"\" }"), ""},
		snippet{"fencing/a.go", gofile("fencing", "func Error() {}"), "exported Error has no comment"},
		snippet{"fencing/a.go", gofile("fencing", "// T is.\ntype T[A any] int\nfunc (*T[A]) M() {}"), "exported M has no comment"},
		snippet{"fencing/a.go", gofile("fencing", "type T int"), "exported T has no comment"},
		snippet{"fencing/a.go", gofile("fencing", "var V int"), "exported V has no comment"},
		snippet{"fencing/a.go", gofile("fencing", "// These are.\nconst (\nA = 1\nB = 2\n)\nvar (\nV int // is V\n)"), ""},
		snippet{"internal/faults/a.go", gofile("faults", "func F() {}"), ""},
		snippet{"fencing/a.go", "package fencing\n", "no file of this package says what it is"},
	)
}

func TestTheLawNamesWhatIsThere(t *testing.T) {
	problems, err := Check(fstest.MapFS{})
	require.NoError(t, err)
	require.Len(t, problems, len(named()))
	for name, l := range longer {
		require.NotEmpty(t, l.reason, name)
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string]string{
		"lockManager": "lock manager", "HTTPUtil": "http util", "a_b2c": "a b c", "X": "x", "utility": "utility",
	} {
		require.Equal(t, want, strings.Join(split(name), " "))
	}
}
