package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/integration/tools/mutants/internal/places"
	"github.com/holdall/holdall/integration/tools/mutants/internal/switched"
	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
)

// small is a repository of three packages: low has no tests, high imports low, and
// end what is run last.
var small = map[string]string{
	"go.mod": "module small\n\ngo 1.26\n",
	"low/low.go": `package low

// Least is tested by whoever imports it.
func Least(a, b int) int {
	if a < b {
		return a
	}
	return b
}
`,
	"high/high.go": `package high

import "small/low"

func Of(n int) int { return low.Least(n, limit) }

const limit = 3

func Seen(on bool) bool { return !on }

func Unseen(on bool) bool { return !on }

func SeenInTheEnd(on bool) bool { return !on }
`,
	"high/high_test.go": `package high

import "testing"

func TestOf(t *testing.T) {
	if Of(5) != 3 || Of(2) != 2 {
		t.Error(Of(5), Of(2))
	}
}

func TestSeen(t *testing.T) {
	for Seen(true) { // for ever
	}
	if !Seen(false) {
		t.Error()
	}
}
`,
	"end/end_test.go": `package end

import (
	"flag"
	"small/high"
	"testing"
)

var sure = flag.Bool("sure", false, "")

func TestEnd(t *testing.T) {
	if high.SeenInTheEnd(*sure) {
		t.Error()
	}
}

func TestNotAsked(t *testing.T) { t.Error() }
`,
}

// smallLab is a laboratory over that repository, and what it says.
func smallLab(t *testing.T, changed map[string]string) (*laboratory, *strings.Builder) {
	root, said := t.TempDir(), &strings.Builder{}
	for name, text := range small {
		if changed[name] != "" {
			text = changed[name]
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return &laboratory{
		root: root, dir: t.TempDir(), workers: 2, timeout: 3 * time.Second, long: 5 * time.Second,
		say: func(format string, a ...any) { fmt.Fprintf(said, format+"\n", a...) },
	}, said
}

func smallRun(n int, seed uint64) random {
	return random{
		n: n, seed: seed, least: 80, wanted: regexp.MustCompile(""), share: "1/1", from: []string{"low", "high"},
		quick: []check{{in: "low"}, {in: "high"}},
		last:  []check{{in: "end", test: "TestEnd", args: []string{"-sure"}}},
		but: []unseen{{
			file: "low/low.go", operator: "boundary", old: "a < b", new: "a <= b",
			kind: equivalent, why: "both are the least when they are equal",
		}},
	}
}

// Every mutant of the small repository is drawn, and noticed by what can.
func TestDrawnMutantsAreCaughtOrSurvive(t *testing.T) {
	l, said := smallLab(t, nil)
	require.NoError(t, smallRun(7, 7).examine(t.Context(), l), said)
	out := said.String()
	for _, want := range []string{
		"low/low.go:5  drop-if  `if a < b { return a }` → ``  caught (high TestOf)",
		"low/low.go:5  boundary  `a < b` → `a <= b`  equivalent (both are the least when they are equal)",
		"high/high.go:7  off-by-one  `limit = 3` → `limit = 4`  caught (high TestOf)",
		"high/high.go:9  drop-not",
		"1 did not end, and run again, one at a time, each for at most 5s",
		"DID NOT END (high)",
		"high/high.go:11  drop-not  `func Unseen(on bool) bool { return !on }` → `func Unseen(on bool) bool { return on }`  SURVIVED",
		"caught (end TestEnd)",
		"these survived:\n",
		"4 noticed, 1 did not end twice, 1 survived, 1 equivalent: 83 %",
		"1 by the simulation alone\n",
	} {
		require.Contains(t, out, want)
	}
}

// A seed is a list of mutants, whatever else is run.
func TestTheSameSeedDrawsTheSame(t *testing.T) {
	l, _ := smallLab(t, nil)
	tr, err := tree.Load(t.Context(), l.root, []string{"low", "high"}, switched.Imports...)
	require.NoError(t, err)
	lists := map[string]bool{}
	for seed := range uint64(5) {
		var before []switched.Mutant
		for range 2 {
			drawn, _, err := draw(t.Context(), tr, changes(tr, []string{"low", "high"}), 6, seed)
			require.NoError(t, err)
			require.True(t, before == nil || fmt.Sprint(before) == fmt.Sprint(drawn))
			before = drawn
		}
		fewer, _, err := draw(t.Context(), tr, changes(tr, []string{"low", "high"}), 3, seed)
		require.NoError(t, err)
		require.Equal(t, before[:3], fewer)
		lists[fmt.Sprint(before)] = true
		places := map[string]bool{}
		for _, m := range before {
			places[fmt.Sprint(m.File, m.From, m.To)] = true
		}
		require.Len(t, places, 6, "one of each place")
	}
	require.Len(t, lists, 5)
	_, _, err = draw(t.Context(), tr, changes(tr, []string{"low", "high"}), 1000, 1)
	require.ErrorContains(t, err, "not 1000")
}

func TestSomeOfTheDrawnAreWanted(t *testing.T) {
	l, said := smallLab(t, nil)
	r := smallRun(7, 7)
	r.wanted, r.list = regexp.MustCompile("drop-not .*Unseen"), true
	require.NoError(t, r.examine(t.Context(), l))
	require.Len(t, strings.Split(strings.TrimSpace(said.String()), "\n"), 2, said)
	r.wanted = regexp.MustCompile("nobody")
	require.ErrorContains(t, r.examine(t.Context(), l), "none of them is wanted")
	r.wanted, r.list, r.least = regexp.MustCompile("Unseen"), false, 1
	require.ErrorContains(t, r.examine(t.Context(), l), "0 % are noticed, 1 % have to be")
}

func TestWhatDoesNotPassWithoutMutants(t *testing.T) {
	l, _ := smallLab(t, map[string]string{"high/high_test.go": "package high\n\nimport \"testing\"\n\nfunc TestOf(t *testing.T) { t.Error(17) }\n"})
	require.ErrorContains(t, smallRun(3, 1).examine(t.Context(), l), "high does not pass with all mutants asleep")
	l, _ = smallLab(t, map[string]string{"high/high_test.go": "package high\n\nvar _ [limit]int\n\nvar _ = nobody\n"})
	require.Error(t, smallRun(3, 1).examine(t.Context(), l))
}

// A package of another module is built there, and so is the program that its test runs.
func TestMutantsOfAnotherModule(t *testing.T) {
	l, said := smallLab(t, nil)
	for name, text := range map[string]string{
		"go.mod":  "module small/tool\n\ngo 1.26\n\nrequire small v0.0.0\n\nreplace small => ../\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"small/low\"\n)\n\nfunc main() { fmt.Print(low.Least(2, 7)) }\n",
		"main_test.go": `package main

import (
	"os/exec"
	"testing"
)

func TestPrinted(t *testing.T) {
	if out, err := exec.Command("go", "run", ".").CombinedOutput(); err != nil || string(out) != "2" {
		t.Errorf("%s %v", out, err)
	}
}
`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(l.root, "tool"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(l.root, "tool", name), []byte(text), 0o600))
	}
	l.timeout, l.long = time.Minute, time.Minute
	r := random{
		n: 3, seed: 1, wanted: regexp.MustCompile("drop-call"), share: "1/1", from: []string{"tool"},
		quick: []check{{in: "low"}, {in: "tool"}},
	}
	require.NoError(t, r.examine(t.Context(), l), said)
	require.Contains(t, said.String(), "tool/main.go:8  drop-call  `fmt.Print(low.Least(2, 7))` → ``  caught (tool TestPrinted)")
	require.Equal(t, "./inner", tree.Pattern("tool", "tool/inner"))
	require.Equal(t, "tool", tree.ModuleOf(l.root, "tool/inner"))
	require.Equal(t, ".", tree.ModuleOf(l.root, "low/inner"))
}

func TestAnInterruptedRunSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, _ := smallLab(t, nil)
	require.Error(t, smallRun(3, 1).examine(ctx, l))
}

func TestWhatNoticedAMutant(t *testing.T) {
	for output, want := range map[string]string{
		"--- FAIL: TestA (0.01s)\n    --- FAIL: TestA/b (0.00s)\nFAIL\n":             "TestA",
		"ok\npanic: nil map\n\ngoroutine 1":                                          "panic: nil map",
		"fatal error: stack overflow\n\nruntime stack":                               "fatal error: stack overflow",
		"--- FAIL: TestA (0.01s)\npanic: deadlock: main bubble goroutine has exited": "TestA",
	} {
		require.Equal(t, want, noticed(output))
	}
}

// drawable returns all changes that can be drawn.
var drawable = sync.OnceValues(func() ([]places.Change, error) {
	root, err := engines.Root()
	if err != nil {
		return nil, err
	}
	from := drawnByChance(1, 1).from
	packages, err := tree.Load(context.Background(), root, from, switched.Imports...)
	if err != nil {
		return nil, err
	}
	return changes(packages, from), nil
})

// Code moves on, and what is listed of it with it: each is one change that can be drawn, or
// several of a number or of what it compares.
func TestWhatIsListedAsUnseenIsThere(t *testing.T) {
	all, err := drawable()
	require.NoError(t, err)
	for i, u := range unseens {
		n := 0
		for _, c := range all {
			if u.is(c) {
				n++
			}
		}
		several := n > 1 && u.new == "" && (u.operator == "off-by-one" || u.operator == "equal")
		assert.True(t, n == 1 || several, "%d: %s %s `%s` → `%s`", i, u.file, u.operator, u.old, u.new)
		require.Contains(t, []verdict{equivalent, diagnostic}, u.kind, u.old)
		require.NotEmpty(t, u.why, u.old)
	}
}
