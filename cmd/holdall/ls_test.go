package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

func TestLs(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, e *engines.Engine) {
		w := newTown(t, e)
		golden(t, "ls.golden", sinceNormalised(w.session(t,
			"ls", "ls customer:1", "ls customer:1/", "ls nothing", "ls --held", "ls --waiting", "ls --prepared", "ls --dead", "ls --alive", "ls --all",
			"ls --capacity 50 --consistent customer:3")))
		golden(t, "ls.json.golden", w.session(t, "ls -o json", "ls -o json --dead customer:2", "ls -o json nothing"))
	})
}

var sinceColumn = regexp.MustCompile(`  (\d+m)?\d+s( {2,}|$)`)

// sinceNormalised leaves out how long ago rows were taken, and keeps columns as they are.
func sinceNormalised(text string) string {
	return sinceColumn.ReplaceAllStringFunc(text, func(cell string) string {
		return "  <n>s" + strings.Repeat(" ", max(len(cell)-len("  <n>s"), 0))
	})
}

// A list goes on until it is interrupted, and comes to know who is alive.
func TestLsWatches(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	b.actor(t, "holds", "holder", "k").ready(t)
	lists, rounds := b.begin(t, "ls", "--watch", "--every", "500ms", "-o", "json", "--lease", b.lease.String()), 0
	for alive := false; !alive; {
		text := next(t, lists.lines)
		var line struct {
			rowJSON
			roundJSON
		}
		require.NoError(t, json.Unmarshal([]byte(text), &line), text)
		if line.Key == "" {
			require.Equal(t, 1, line.Rows)
			rounds++
			continue
		}
		require.Equal(t, "k", line.Key)
		alive = line.Life != nil && line.Life.State == "alive"
	}
	require.Greater(t, rounds, 1)
	lists.interrupted(t, syscall.SIGINT)
}

func TestColumns(t *testing.T) {
	c := columns{{"A", "B", "C"}, {"long", "", "x"}, {strings.Repeat("y", 60), "z", "x"}}
	lines := c.lines()
	require.Equal(t, "A"+strings.Repeat(" ", 49)+"B  C", lines[0])
	require.Equal(t, strings.Repeat("y", 60)+"  z  x", lines[2], "one that is too long moves no other")
	written := columns{{"a\tb", "x"}, {"c", "x"}}
	require.Equal(t, []string{`a\tb  x`, `c     x`}, written.lines(), "as wide as it is shown")
	c.drop(1)
	require.Equal(t, columns{{"A", "C"}, {"long", "x"}, {strings.Repeat("y", 60), "x"}}, c)
}

// The tree has every key once, under the nearest above it.
func TestPicture(t *testing.T) {
	row := func(key ordering.Key) inspect.Row { return inspect.Row{Key: key} }
	s := shown{View: inspect.View{
		Above: []inspect.Row{row("a")}, Row: inspect.Row{Key: "a/b", Queue: []inspect.Waiter{{Unit: "1"}, {Unit: "2"}, {Unit: "3"}, {Unit: "4"}, {Unit: "5"}}},
		Witnesses: []inspect.Row{row("a/b/c/d"), row("a/b/e")},
	}, Below: []inspect.Row{row("a/b/c"), row("a/b/c/d"), row("a/b/c/x"), row("a/b/e/f")}, MoreBelow: true}
	require.Equal(t, strings.TrimPrefix(`
a                               free
`+"`"+`- b                            free  <- this key
   |  ^ 1 < 2 < 3 < 4 < 1 more
   |- c                         free
   |  |- d                      free
   |  `+"`"+`- x                      free
   `+"`"+`- e                         free
      `+"`"+`- f                      free
(and more below)`, "\n"), strings.Join(s.picture(), "\n"))
}
