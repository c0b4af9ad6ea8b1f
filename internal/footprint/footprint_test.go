package footprint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/footprint"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// state is a lock table; rows that are not named are not there.
type state map[ordering.Key]lockrow.Row

// free is a row that was left with this fence and RVN.
func free(fence fencing.Token, rvn string) lockrow.Row {
	return lockrow.Row{Exists: true, Released: true, Fence: fence, RVN: rvn}
}

func held(fence fencing.Token, rvn string) lockrow.Row {
	return lockrow.Row{Exists: true, Unit: "u", Fence: fence, RVN: rvn}
}

// with is the table after somebody has changed a row.
func (s state) with(key ordering.Key, r lockrow.Row) state {
	after := state{key: r}
	for k, row := range s {
		if k != key {
			after[k] = row
		}
	}
	return after
}

// shown are the rows of a glance, as the table has them.
func (s state) shown(g *footprint.Glance) (rows []lockrow.Row) {
	for _, key := range g.Rows() {
		r := s[key]
		r.Key = key
		rows = append(rows, r)
	}
	return rows
}

// glance looks at a table for records with these guards, all of which are known before, and
// keeps what it has seen. It tells what is in the way: "changed c", "taken c", or nothing.
func (s state) glance(f *footprint.Footprint, guards ...ordering.Key) string {
	g := f.Glance(guards)
	if told := tell(g.Saw(s.shown(g))); told != "" {
		return told
	}
	g.Keep(guards)
	return ""
}

func tell(key ordering.Key, changed, ok bool) string {
	switch {
	case ok:
		return ""
	case changed:
		return "changed " + string(key)
	default:
		return "taken " + string(key)
	}
}

// told writes needs as text: what of the row must be as it was, and what that was.
func told(needs []lockrow.Need) (texts []string) {
	for _, n := range needs {
		text := []string{string(n.Key)}
		if n.Mode == lockrow.Intent {
			text = append(text, "above")
		}
		switch {
		case n.Same == lockrow.Fence && !n.Seen.Exists:
			text = append(text, "absent")
		case n.Same == lockrow.Fence:
			text = append(text, fmt.Sprint("fence ", n.Seen.Fence))
		case n.Same == lockrow.RVN:
			text = append(text, fmt.Sprintf("rvn %q", n.Seen.RVN))
		}
		texts = append(texts, strings.Join(text, " "))
	}
	return texts
}

var quiet = state{
	"c": free(10, "vc"), "c/f": free(5, "vf"), "c/g": free(7, "vg"), "c/f/x": free(3, "vx"), "d": free(1, ""),
}

// What a commit needs of each row, by what was read and written, and in which order.
func TestNeeds(t *testing.T) {
	const write = "write "
	for name, c := range map[string]struct {
		run  string // guards, in order; those of one read are joined by "+"
		want []string
		keys string // those that a run under locks would take
	}{
		"nothing":                          {"", nil, ""},
		"one":                              {"c/f", []string{`c above rvn "vc"`, "c/f fence 5"}, "c/f"},
		"of the top":                       {"c", []string{"c fence 10"}, "c"},
		"not there":                        {"e/f", []string{`e above rvn ""`, "e/f absent"}, "e/f"},
		"two at once":                      {"c/f+c/g", []string{`c above rvn "vc"`, "c/f fence 5", "c/g fence 7"}, "c/f c/g"},
		"two in turn":                      {"c/f c/g", []string{`c above rvn "vc"`, "c/f fence 5", "c/g fence 7"}, "c/f c/g"},
		"fine, then coarse":                {"c/f c", []string{"c fence 10"}, "c"},
		"coarse, then fine":                {"c c/f", []string{"c fence 10"}, "c"},
		"fine and coarse at once":          {"c/f+c", []string{"c fence 10"}, "c"},
		"finer, then fine":                 {"c/f/x c/g c/f", []string{`c above rvn "vc"`, "c/f fence 5", "c/g fence 7"}, "c/f c/g"},
		"finer, then the top":              {"c/f/x c", []string{"c fence 10"}, "c"},
		"others stay":                      {"c/f d c", []string{"c fence 10", "d fence 1"}, "c d"},
		"only written":                     {"write c/f", []string{"c above", "c/f"}, "c/f"},
		"only written, coarse and fine":    {"write c/f write c", []string{"c"}, "c"},
		"only written, fine beside":        {"write c/f write c/g", []string{"c above", "c/f", "c/g"}, "c/f c/g"},
		"written as read":                  {"c/f write c/f", []string{`c above rvn "vc"`, "c/f fence 5"}, "c/f"},
		"written below what was read":      {"c write c/f", []string{"c fence 10"}, "c"},
		"written, then read":               {"write c/f c/f", []string{`c above rvn "vc"`, "c/f fence 5"}, "c/f"},
		"written, then read from above":    {"write c/f c", []string{"c fence 10"}, "c"},
		"written above what was read":      {"c/f write c", []string{`c rvn "vc"`, "c/f fence 5"}, "c"},
		"written above, then read below":   {"write c c/f", []string{`c rvn "vc"`, "c/f fence 5"}, "c"},
		"written beside what was read":     {"c/f write c/g", []string{`c above rvn "vc"`, "c/f fence 5", "c/g"}, "c/f c/g"},
		"written between":                  {"c/f/x write c/f", []string{`c above rvn "vc"`, `c/f rvn "vf"`, "c/f/x fence 3"}, "c/f"},
		"written elsewhere":                {"c/f write d", []string{`c above rvn "vc"`, "c/f fence 5", "d"}, "c/f d"},
		"written above and below one read": {"c/f write c write c/f/x", []string{`c rvn "vc"`, "c/f fence 5"}, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			var f footprint.Footprint
			words := strings.Fields(c.run)
			for i := 0; i < len(words); i++ {
				if words[i]+" " == write {
					i++
					f.Write(ordering.Key(words[i]))
					continue
				}
				var guards []ordering.Key
				for word := range strings.SplitSeq(words[i], "+") {
					guards = append(guards, ordering.Key(word))
				}
				require.Empty(t, quiet.glance(&f, guards...))
			}
			require.Equal(t, c.want, told(f.Needs()))
			var keys []string
			for _, key := range f.Keys() {
				keys = append(keys, string(key))
			}
			require.Equal(t, c.keys, strings.Join(keys, " "))
		})
	}
}

// What a commit passes, and what it only checks: that under which nothing is written.
func TestWhatIsOnlyChecked(t *testing.T) {
	for name, c := range map[string]struct {
		read, blind, written string
		passed, checked      string
	}{
		"only read":                      {"c/f d", "", "", "", "c c/f d"},
		"one of two written":             {"c/f d", "", "d", "d", "c c/f"},
		"one of two in a family":         {"c/f c/g", "", "c/g", "c c/g", "c/f"},
		"written below what was read":    {"c d", "", "c/f/x", "c", "d"},
		"written above what was read":    {"c/f", "c", "c", "c", "c/f"},
		"written blind, beside":          {"c/f", "c/g", "c/g", "c c/g", "c/f"},
		"written blind, elsewhere":       {"c/f", "d", "d", "d", "c c/f"},
		"checked blind":                  {"c/f", "d", "", "", "c c/f d"},
		"written below one, not another": {"c/f/x c/g", "", "c/f/x", "c c/f c/f/x", "c/g"},
		"not a prefix of its text":       {"c/f", "c/ff", "c/ff", "c c/ff", "c/f"},
	} {
		t.Run(name, func(t *testing.T) {
			var f footprint.Footprint
			require.Empty(t, quiet.glance(&f, keysOf(c.read)...))
			for _, guard := range keysOf(c.blind) {
				f.Write(guard)
			}
			var passed, checked []ordering.Key
			for _, n := range f.Commit(keysOf(c.written)) {
				if n.Checked {
					checked = append(checked, n.Key)
				} else {
					passed = append(passed, n.Key)
				}
			}
			require.Equal(t, c.passed, join(passed))
			require.Equal(t, c.checked, join(checked))
			require.Equal(t, len(f.Needs()), len(passed)+len(checked))
		})
	}
}

func keysOf(words string) (keys []ordering.Key) {
	for word := range strings.FieldsSeq(words) {
		keys = append(keys, ordering.Key(word))
	}
	return keys
}

// What is looked at, and what each row must show: new rows are free, and nothing is below a
// new key; the others are as they were seen first.
func TestGlances(t *testing.T) {
	for name, c := range map[string]struct {
		before []ordering.Key // read before, one by one, while all was quiet
		guard  ordering.Key
		rows   string // looked at
		fresh  string // the keys that are new
		told   map[string]state
	}{
		"the first": {nil, "c/f", "c c/f", "c/f", map[string]state{
			"":          quiet,
			"taken c/f": quiet.with("c/f", held(6, "v2")),
			"taken c":   quiet.with("c", held(11, "v2")),
		}},
		"something is below a new key": {nil, "c", "c", "c", map[string]state{
			"taken c": quiet.with("c", lockrow.Row{Exists: true, Released: true, Fence: 10, RVN: "vc", Below: []lockrow.Entry{{Unit: "u", Witness: "c/f"}}}),
		}},
		"something is below a row above": {nil, "c/f", "c c/f", "c/f", map[string]state{
			"": quiet.with("c", lockrow.Row{Exists: true, Released: true, Fence: 10, RVN: "vc", Below: []lockrow.Entry{{Unit: "u", Witness: "c/g"}}}),
		}},
		"somebody waits for a new key": {nil, "c/f", "c c/f", "c/f", map[string]state{
			"taken c/f": quiet.with("c/f", lockrow.Row{Exists: true, Released: true, Fence: 5, Queue: []lockrow.Waiter{"u"}}),
		}},
		"somebody waits for a row above": {nil, "c/f", "c c/f", "c/f", map[string]state{
			"taken c": quiet.with("c", lockrow.Row{Exists: true, Released: true, Fence: 10, Queue: []lockrow.Waiter{"u"}}),
		}},
		"the same again": {[]ordering.Key{"c/f"}, "c/f", "c c/f", "", map[string]state{
			"":            quiet.with("c", free(11, "vc")), // others below it come and go
			"changed c/f": quiet.with("c/f", free(6, "vf")),
			"changed c":   quiet.with("c", free(11, "v2")),
		}},
		"another": {[]ordering.Key{"c/f"}, "c/g", "c c/f c/g", "c/g", map[string]state{
			"":            quiet,
			"taken c/g":   quiet.with("c/g", held(8, "v2")),
			"changed c/f": quiet.with("c/f", free(6, "v2")),
			"changed c":   quiet.with("c", free(11, "v2")),
		}},
		"coarse after fine": {[]ordering.Key{"c/f"}, "c", "c c/f", "c", map[string]state{
			"":            quiet.with("c", free(11, "vc")),
			"changed c/f": quiet.with("c/f", free(6, "v2")),
			"changed c":   quiet.with("c", free(11, "v2")),
			"taken c":     quiet.with("c", lockrow.Row{Exists: true, Released: true, Fence: 11, RVN: "vc", Below: []lockrow.Entry{{Unit: "u", Witness: "c/g"}}}),
		}},
		"fine after coarse": {[]ordering.Key{"c"}, "c/f", "c", "", map[string]state{
			"":          quiet.with("c/f", held(6, "v2")), // nobody is below c while its fence is as it was
			"changed c": quiet.with("c", free(11, "vc")),
		}},
		"covered ones are looked at no more": {[]ordering.Key{"c/f", "c"}, "c/g", "c", "", map[string]state{
			"":          quiet.with("c/f", free(6, "v2")),
			"changed c": quiet.with("c", free(11, "vc")),
		}},
		"a row that was not there": {[]ordering.Key{"e/f"}, "e/g", "e e/f e/g", "e/g", map[string]state{
			"":            quiet,
			"changed e/f": quiet.with("e/f", free(1, "v")),
			"changed e":   quiet.with("e", free(1, "v")),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for want, now := range c.told {
				var f footprint.Footprint
				for _, guard := range c.before {
					require.Empty(t, quiet.glance(&f, guard))
				}
				g := f.Glance([]ordering.Key{c.guard})
				require.Equal(t, c.rows, join(g.Rows()))
				require.Equal(t, c.fresh, join(g.Fresh()))
				require.Equal(t, want, tell(g.Saw(now.shown(g))))
			}
		})
	}
}

func join(keys []ordering.Key) string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = string(key)
	}
	return strings.Join(texts, " ")
}

// A glance of several moments: each shows what the first did, of new rows, too. A new row
// that was free then need not be looked at as new again.
func TestTheMomentsOfOneGlance(t *testing.T) {
	for want, second := range map[string]state{
		"":            quiet.with("c", free(11, "vc")),
		"changed c/g": quiet.with("c/g", held(8, "v2")),
		"changed c/f": quiet.with("c/f", free(6, "vf")),
		"changed c":   quiet.with("c", free(11, "v2")),
		"changed e":   quiet.with("e", free(1, "v")),
		"changed e/f": quiet.with("e/f", free(1, "v")),
	} {
		var f footprint.Footprint
		require.Empty(t, quiet.glance(&f, "c/f"))
		guards := []ordering.Key{"c/g", "e/f"}
		g := f.Glance(guards)
		require.Empty(t, tell(g.Saw(quiet.shown(g))))
		require.Equal(t, want, tell(g.Saw(second.shown(g))))
	}
	// A coarser key is a key from the first moment on: its fence stays.
	var f footprint.Footprint
	require.Empty(t, quiet.glance(&f, "c/f"))
	g := f.Glance([]ordering.Key{"c"})
	require.Empty(t, tell(g.Saw(quiet.shown(g))))
	require.Equal(t, "changed c", tell(g.Saw(quiet.with("c", free(11, "vc")).shown(g))))
}

// What is looked at for a guard that turns out to be another is forgotten, with the rows
// above it: nobody relies on it.
func TestAKeyThatGuardsNothingIsForgotten(t *testing.T) {
	var f footprint.Footprint
	g := f.Glance([]ordering.Key{"c/f", "d/x"})
	require.Equal(t, "c c/f d d/x", join(g.Rows()))
	require.Empty(t, tell(g.Saw(quiet.shown(g))))
	require.True(t, g.Covers("d/x/y"))
	require.False(t, g.Covers("d"))
	g.Keep([]ordering.Key{"c/f/y"})
	require.Equal(t, []string{`c above rvn "vc"`, "c/f fence 5"}, told(f.Needs()))
	_, covered := f.Covering("d/x")
	require.False(t, covered)
	key, covered := f.Covering("c/f/y")
	require.True(t, covered)
	require.Equal(t, ordering.Key("c/f"), key)
	require.True(t, f.Glance(nil).Covers("c/f/y"))
	require.Empty(t, f.Glance([]ordering.Key{"c/f/y"}).New())

	// A coarser key that guards nothing does not stand for what is below it.
	g = f.Glance([]ordering.Key{"c"})
	require.Empty(t, tell(g.Saw(quiet.shown(g))))
	g.Keep(nil)
	require.Equal(t, []string{`c above rvn "vc"`, "c/f fence 5"}, told(f.Needs()))
}

// The rows that are new to a run are those that it keeps from others of its process.
func TestNewRows(t *testing.T) {
	var f footprint.Footprint
	require.Equal(t, []string{"c above", "c/f"}, told(f.Glance([]ordering.Key{"c/f"}).New()))
	require.Empty(t, quiet.glance(&f, "c/f"))
	require.Equal(t, []string{"c/g"}, told(f.Glance([]ordering.Key{"c/g"}).New()), "c is known")
	require.Equal(t, []string{`c rvn "vc"`}, told(f.Glance([]ordering.Key{"c"}).New()), "as a key it is new")
}

// Keys that cover others stand for them, and others are added.
func TestKeysForLocks(t *testing.T) {
	var f footprint.Footprint
	require.Empty(t, quiet.glance(&f, "c/f"))
	f.Write("d")
	require.Equal(t, "c d e", join(f.Keys("c", "e", "d/x")))
}

// What is needed grows with what is read and written, also after it was asked for.
func TestNeedsGrow(t *testing.T) {
	var f footprint.Footprint
	rows := state{}
	require.Empty(t, f.Needs())
	f.Write("w")
	require.Len(t, f.Needs(), 1)
	require.Equal(t, "", rows.glance(&f, "a/b"))
	require.Len(t, f.Needs(), 3)
	f.Write("c")
	require.Len(t, f.Needs(), 4)
}
