package timeline_test

import (
	"bytes"
	"fmt"
	gohtml "html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/browser"
	"github.com/holdall/holdall/cmd/holdall/internal/timeline"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

func TestMain(m *testing.M) {
	code := m.Run()
	browser.End()
	os.Exit(code)
}

// page writes the page of a model, and returns it and the URL of its file.
func page(t testing.TB, m *timeline.Model) (html, url string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, timeline.WritePage(&out, m))
	file := filepath.Join(t.TempDir(), "out.html")
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	return out.String(), "file://" + file
}

// open opens the page of a model, and waits until it is drawn.
func open(t testing.TB, b *browser.Browser, m *timeline.Model, o browser.Options) *browser.Page {
	t.Helper()
	_, url := page(t, m)
	p := b.Open(url, o)
	p.Until("window.timeline && timeline.stats.frames > 0")
	return p
}

// drawn waits for what is drawn next, and so has seen what was done before.
func drawn(p *browser.Page) { p.Until("timeline.draw() || true") }

var busy = once(func(t *testing.T) []timeline.Source {
	return recorded(t, 3, 2*time.Second, func(tn *town) { tn.busy(120, 4, 6) })
})

// The page has all that the model has.
func TestThePageHasTheModel(t *testing.T) {
	m := read(t, crash(t)...)
	p := open(t, browser.Start(t), m, browser.Options{})
	us := func(ns int64) int64 { return (ns - m.Begin) / 1000 }
	var held []int64
	for _, w := range m.Waits {
		held = append(held, each(w.Held, func(_ int, k int32) int64 { return int64(k) })...)
	}
	for column, want := range map[string][]int64{
		"units.start":  each(m.Units, func(_ int, u timeline.Unit) int64 { return us(u.Start) }),
		"units.end":    each(m.Units, func(_ int, u timeline.Unit) int64 { return us(u.End) }),
		"spans.start":  each(m.Spans, func(_ int, s timeline.Span) int64 { return us(s.Start) }),
		"waits.holder": each(m.Waits, func(_ int, w timeline.Wait) int64 { return int64(w.Holder) }),
		"waits.held":   each(m.Waits, func(_ int, w timeline.Wait) int64 { return int64(len(w.Held)) }),
		"held.key":     held,
		"holds.end":    each(m.Holds, func(_ int, h timeline.Hold) int64 { return us(h.End) }),
		"marks.at":     each(m.Marks, func(_ int, k timeline.Mark) int64 { return us(k.At) }),
		"spans.back": each(m.Spans, func(i int, s timeline.Span) int64 {
			if s.In < 0 {
				return 0
			}
			return int64(i) - int64(s.In)
		}),
	} {
		require.Equal(t, want, browser.Eval[[]int64](p, "Array.from(timeline."+column+")"), column)
	}
	require.Equal(t, m.Strings, browser.Eval[[]string](p, "timeline.strings"))
}

func each[T any](list []T, number func(int, T) int64) (all []int64) {
	for i, of := range list {
		all = append(all, number(i, of))
	}
	return all
}

// What others wrote is text, wherever it stands; and if it were not, nothing would run it.
func TestTextsAreNoMarkup(t *testing.T) {
	const evil = `</script><script>console.error("run")</script><img src=x onerror='console.error("run")'>"&amp;<b>`
	m := read(t, taped(evil+".jsonl",
		tell(0, "UnitStart", record.Event{Span: 1, Process: evil, Event: trace.Event{ID: evil}}),
		tell(1, "AcquireStart", record.Event{Span: 2, In: 1, Process: evil, Event: trace.Event{Unit: evil, Keys: []ordering.Key{evil}}}),
		tell(1, "WaitStart", record.Event{Span: 3, In: 2, Process: evil, Event: trace.Event{Unit: evil, Key: evil, Holder: evil + "2", Owner: evil, Purpose: evil}}),
		tell(2, "WaitEnd", record.Event{Span: 3, Process: evil, Err: evil}),
		tell(2, "Note", record.Event{Process: evil, Text: evil}),
		tell(3, "AcquireEnd", record.Event{Span: 2, Process: evil, Err: evil, Event: trace.Event{Unit: evil}}),
		tell(9, "UnitEnd", record.Event{Span: 1, Process: evil, Err: evil, Event: trace.Event{Unit: evil, Outcome: "not committed"}})))
	html, url := page(t, m)
	require.NotContains(t, html, "<img")
	require.Equal(t, 2, strings.Count(html, "</script"), "that of the data, and that of the script")
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(html)
	require.NotNil(t, policy)
	require.Regexp(t, `^default-src 'none'; img-src data:; style-src 'sha256-\S{44}'; script-src 'sha256-\S{44}'; base-uri 'none'; form-action 'none'$`, gohtml.UnescapeString(policy[1]))

	p := browser.Start(t).Open(url, browser.Options{}) // which fails for whatever is logged as an error
	browser.Eval[any](p, "timeline.choose(0, true)")
	require.Contains(t, p.Text("#panel"), evil)
	require.Contains(t, p.Text("#panel"), "behind unit </script…, which is not recorded")
	p.Click("#list")
	require.Contains(t, p.Text("#table"), evil)
	require.Zero(t, browser.Eval[int](p, "document.querySelectorAll('img, b b, #panel script').length"))

	// The policy holds: what is put into the page is not run.
	browser.Eval[any](p, `document.body.append(Object.assign(document.createElement("script"), {textContent: "window.ran = true"}))`)
	require.Regexp(t, "Content Security Policy", strings.Join(p.Complaints(), "\n"))
	require.False(t, browser.Eval[bool](p, "!!window.ran"))
}

// A click shows a unit, its way leads to those that it waited for, and Esc closes it.
func TestAUnitIsClicked(t *testing.T) {
	m := read(t, crash(t)...)
	p := open(t, browser.Start(t), m, browser.Options{})
	at := func(script string) (x, y float64) {
		xy := browser.Eval[[]float64](p, "(() => { const t = timeline; "+script+" })()")
		return xy[0], xy[1]
	}
	// The middle of the first bar of a wait for a key whose holder is known.
	x, y := at(`let w = 0; while (t.waits.holder[w] < 0 || t.waits.end[w] - t.waits.start[w] < 1e5) w++; window.w = w;
		const pane = t.panes.keys, lane = pane.lanes.find((l) => l.key === t.waits.key[w]), box = pane.scroller.getBoundingClientRect();
		pane.scroller.scrollTop = lane.top; t.draw();
		return [t.X((t.waits.start[w] + t.waits.end[w]) / 2), box.top + lane.top - pane.scroller.scrollTop + 4 + lane.holders * 15 + t.waits.row[w] * 9 + 4];`)
	p.Do(chromedp.MouseClickXY(x, y))
	p.Until("!document.querySelector('#panel').hidden && timeline.chosen.unit === timeline.waits.unit[w]")
	require.Contains(t, p.Text("#panel"), "waited for")
	require.Regexp(t, `behind \S+ of web-\d 5b3d6bd8`, p.Text("#panel .way"))
	holder := browser.Eval[int](p, "timeline.waits.holder[w]")
	browser.Eval[any](p, `[...document.querySelectorAll("#panel .way li")].find((l) => l.textContent.includes("behind")).querySelectorAll(".link")[1].id = "holder"`)
	p.Click("#holder")
	p.Until(fmt.Sprintf("timeline.units.name[timeline.chosen.unit] === timeline.units.name[%d] || timeline.chosen.unit >= 0", holder))
	require.Contains(t, p.Text("#panel"), "waited behind it")
	require.NotEmpty(t, browser.Eval[string](p, "location.hash"))
	require.True(t, browser.Eval[bool](p, "document.activeElement.id === 'panel'"))
	p.Type(kb.Escape)
	p.Until("document.querySelector('#panel').hidden && timeline.chosen.unit === -1")
}

// The unit that died is shown as dead, until another freed what it had.
func TestADeadUnitIsShown(t *testing.T) {
	m := read(t, crash(t)...)
	p := open(t, browser.Start(t), m, browser.Options{})
	browser.Eval[any](p, "document.querySelector('#search').value = 'outcome: its process died'; document.querySelector('#search').dispatchEvent(new Event('input'))")
	p.UntilText("#matches", "units")
	browser.Eval[any](p, "document.querySelector('#search').focus()")
	p.Type(kb.Enter)
	p.UntilText("#matches", "1 of ")
	require.Contains(t, p.Text("#panel"), "its process died")
	require.Contains(t, p.Text("#panel"), "until another freed it")
	require.Contains(t, p.Text("#panel"), "its key customer:1 was freed: it was dead")
	// In the middle of what the dead still had there is something to be seen.
	require.Greater(t, browser.Eval[int](p, `(() => { const t = timeline, pane = t.panes.keys;
		t.fit();
		const h = [...t.holds.left.keys()].find((h) => t.holds.left[h] === 2 && t.holds.unit[h] === t.chosen.unit);
		const lane = pane.lanes.find((l) => l.key === t.holds.key[h]);
		pane.scroller.scrollTop = lane.top;
		t.draw();
		const x = t.X((t.units.end[t.chosen.unit] + t.holds.end[h]) / 2), c = pane.canvas.getContext("2d").getImageData(x, lane.top - pane.scroller.scrollTop + 6 + 15 * t.holds.row[h], 12, 6).data;
		return new Set(Array.from({length: c.length / 4}, (_, i) => c.slice(4 * i, 4 * i + 4).join())).size; })()`), 3)
}

func TestSearch(t *testing.T) {
	m := read(t, busy(t)...)
	p := open(t, browser.Start(t), m, browser.Options{})
	about := func(u timeline.Unit) map[string]bool { // the keys that it had, waited for, or fell back for
		keys := map[string]bool{}
		note := func(k int32) { keys[m.Strings[m.Keys[k].Name]] = true }
		for _, h := range m.Holds {
			if h.Unit != -1 && m.Units[h.Unit] == u {
				note(h.Key)
			}
		}
		for _, w := range m.Waits {
			if m.Units[m.Spans[w.Span].Unit] == u {
				note(w.Key)
			}
		}
		if u.Key != -1 {
			note(u.Key)
		}
		return keys
	}
	for words, matches := range map[string]func(timeline.Unit) bool{
		"way: together":             func(u timeline.Unit) bool { return u.Way == timeline.Together },
		"outcome: fell back":        func(u timeline.Unit) bool { return m.Strings[u.Outcome] == "fell back" },
		"process: WEB-2":            func(u timeline.Unit) bool { return m.Strings[m.Processes[u.Process].Name] == "web-2" },
		"id: web-1-2-":              func(u timeline.Unit) bool { return strings.Contains(m.Strings[u.ID], "web-1-2-") },
		m.Strings[m.Units[7].Name]:  func(u timeline.Unit) bool { return u.Name == m.Units[7].Name },
		"key: customer:0/account:1": func(u timeline.Unit) bool { return about(u)["customer:0/account:1"] },
		"nowhere to be found":       func(timeline.Unit) bool { return false },
	} {
		want := 0
		for _, u := range m.Units {
			if matches(u) {
				want++
			}
		}
		browser.Eval[any](p, fmt.Sprintf("document.querySelector('#search').value = %q; document.querySelector('#search').dispatchEvent(new Event('input'))", words))
		p.Until(fmt.Sprintf("timeline.found.words === %q", words))
		require.Equal(t, want, browser.Eval[int](p, "timeline.found.list.length"), words)
	}
	p.Type("/")
	require.Equal(t, "search", browser.Eval[string](p, "document.activeElement.id"))
	p.Type(kb.Escape + "way: under") // Esc empties it
	p.Until("timeline.found.words === 'way: under'")
	under := browser.Eval[int](p, "timeline.found.list.length")
	require.Greater(t, under, 2)
	for n, key := range []string{kb.Enter, kb.Enter} {
		p.Type(key)
		p.UntilText("#matches", fmt.Sprintf("%d of %d", n+1, under))
	}
	p.Type(kb.Escape + kb.Escape) // once to empty it, once to leave it
	p.Until("document.activeElement.id !== 'search'")
}

func TestKeyboardAndMouseMoveTheView(t *testing.T) {
	p := open(t, browser.Start(t), read(t, busy(t)...), browser.Options{})
	wide := func() float64 { return browser.Eval[float64](p, "timeline.view.to - timeline.view.from") }
	from := func() float64 { return browser.Eval[float64](p, "timeline.view.from") }
	browser.Eval[any](p, "document.querySelector('#keys').focus()")
	all := wide()
	p.Type("+")
	require.Less(t, wide(), all)
	near := wide()
	p.Type(kb.ArrowRight)
	left := from()
	p.Type(kb.ArrowLeft)
	require.Less(t, from(), left)
	p.Type("-")
	require.Greater(t, wide(), near)
	p.Type("0")
	require.InDelta(t, all, wide(), 1)

	// The wheel zooms around the mouse; with Shift it does not.
	wheel := func(shift bool) {
		browser.Eval[any](p, fmt.Sprintf(`document.querySelector("#keys").dispatchEvent(new WheelEvent("wheel", {deltaY: -50, clientX: 700, clientY: 300, shiftKey: %v, bubbles: true, cancelable: true}))`, shift))
	}
	under := "timeline.T(700)"
	before := browser.Eval[float64](p, under)
	wheel(false)
	require.Less(t, wide(), all)
	require.InDelta(t, before, browser.Eval[float64](p, under), all/1000)
	near = wide()
	wheel(true)
	require.Equal(t, near, wide())

	// Dragged, the picture follows the mouse.
	p.Type("0")
	p.Type("+")
	near = wide()
	browser.Eval[any](p, `(() => { const t = timeline, s = document.querySelector("#processes"), u = [...t.units.row.keys()].find((u) => t.units.row[u] === 0 && t.units.process[u] === 0 && t.units.start[u] > t.view.from),
			top = s.getBoundingClientRect().top, x = t.X((t.units.start[u] + t.units.end[u]) / 2);
		t.before = t.T(x); t.at = x;
		s.setPointerCapture = () => {};
		t.go = (type, x) => s.dispatchEvent(new PointerEvent(type, {pointerId: 1, pointerType: "mouse", button: 0, clientX: x, clientY: top + 24, bubbles: true}));
		t.go("pointerdown", x); t.go("pointermove", x + 50); t.go("pointermove", x + 100); t.go("pointerup", x + 100); })()`)
	require.InDelta(t, browser.Eval[float64](p, "timeline.before"), browser.Eval[float64](p, "timeline.T(timeline.at + 100)"), all/1000)
	require.InDelta(t, near, wide(), 1)
	require.EqualValues(t, -1, browser.Eval[int](p, "timeline.chosen.unit"), "a drag is no click")
	browser.Eval[any](p, `timeline.go("pointerdown", timeline.at + 100); timeline.go("pointerup", timeline.at + 100)`)
	require.NotEqualValues(t, -1, browser.Eval[int](p, "timeline.chosen.unit"), "where a click chooses")

	// A key is unfolded and folded by a click on its name.
	lanes := func() int { return browser.Eval[int](p, "timeline.panes.keys.lanes.length") }
	many := lanes()
	name := func() {
		y := browser.Eval[float64](p, "document.querySelector('#keys').getBoundingClientRect().top")
		p.Do(chromedp.MouseClickXY(60, y+10))
	}
	name()
	p.Until(fmt.Sprintf("timeline.panes.keys.lanes.length < %d", many))
	name()
	p.Until(fmt.Sprintf("timeline.panes.keys.lanes.length === %d", many))

	// By keyboard, all are; and the processes, while they have the focus.
	p.Type("f")
	p.Until(fmt.Sprintf("timeline.panes.keys.lanes.length < %d", many))
	p.Type("f")
	p.Until(fmt.Sprintf("timeline.panes.keys.lanes.length >= %d", many))
	high := browser.Eval[int](p, "timeline.panes.processes.height")
	browser.Eval[any](p, "document.querySelector('#processes').focus()")
	p.Type("f")
	p.Until(fmt.Sprintf("timeline.panes.processes.height > %d", high))
}

// The time of day is as exact as what was recorded.
func TestTheTimeOfDay(t *testing.T) {
	start := record.Event{At: noon.Add(456_789), Process: "p", Name: "UnitStart", Span: 1}
	end := record.Event{At: noon.Add(123_456_789), Process: "p", Name: "UnitEnd", Span: 1, Event: trace.Event{Unit: "u"}}
	p := open(t, browser.Start(t), read(t, taped("f", start, end)), browser.Options{})
	browser.Eval[any](p, `(() => { const c = document.querySelector("#clock"); c.value = "wall"; c.dispatchEvent(new Event("change")); document.querySelector("#list").click(); })()`)
	p.UntilText("#table", "12:00:00.000456")
}

// An address that somebody has typed is no reason to draw nothing; and a recording of a year has days.
func TestThePageOfAYear(t *testing.T) {
	_, url := page(t, read(t, taped("f", tell(0, "Started", record.Event{}), tell(2e10, "Note", record.Event{}))))
	p := browser.Start(t).Open(url+"#100%", browser.Options{})
	p.Until("window.timeline && timeline.stats.frames > 0")
	require.Contains(t, p.Text("#summary"), "231 d 11 h")
}

// Only keys that are in use in the time that is shown are shown, if that is asked for.
func TestOnlyKeysInUse(t *testing.T) {
	m := read(t, taped("f", append(append(acquired(0, 1, 1, "u", "a/b"), tell(10, "Released", record.Event{Event: trace.Event{Unit: "u"}})),
		append(acquired(900, 901, 2, "v", "c"), tell(1000, "Released", record.Event{Event: trace.Event{Unit: "v"}}))...)...))
	p := open(t, browser.Start(t), m, browser.Options{})
	p.Click("#busy")
	lanes := func() string {
		return browser.Eval[string](p, "(timeline.draw(), timeline.panes.keys.lanes.map((l) => timeline.strings[timeline.keys.name[l.key]]).join())")
	}
	require.Equal(t, []string{"a", "a/b", "c"}, slices.Sorted(strings.SplitSeq(lanes(), ",")))
	browser.Eval[any](p, "timeline.show(800e3, 1000e3)")
	require.Equal(t, "c", lanes())
	browser.Eval[any](p, "timeline.show(0, 5e3)")
	require.Equal(t, "a,a/b", lanes())
}

// Who does not see the picture has the table, and names for everything that can be used.
func TestThePageForScreenReaders(t *testing.T) {
	m := read(t, crash(t)...)
	p := open(t, browser.Start(t), m, browser.Options{})
	for {
		at := p.Tab()
		if strings.Contains(at, "Keys") {
			break
		}
		require.Regexp(t, `^\S+ \S+`, at, "it has no name")
	}
	p.Type("t")
	p.UntilText("#table", "by their start")
	require.Equal(t, len(m.Units), browser.Eval[int](p, "document.querySelectorAll('#table tbody tr').length"))
	var seen []string
	for _, n := range p.Accessible() {
		seen = append(seen, n.Role+" "+n.Name)
	}
	for _, want := range []string{"columnheader outcome", "columnheader waited", "button Close the table", "searchbox Search for a unit, key, ID, process or error", "slider What part of the time is shown", "separator Height of the keys"} {
		require.Contains(t, seen, want)
	}
	require.Contains(t, p.Text("#table"), "its process died")
	p.Click("#table [data-by=took]")
	p.UntilText("#table caption", "the longest first")
	browser.Eval[any](p, "document.querySelector('#table tbody .link').click()")
	p.UntilText("#status", ", ")
	require.True(t, browser.Eval[bool](p, "timeline.units.length[timeline.chosen.unit] === Math.max(...timeline.units.length)"))
	require.True(t, browser.Eval[bool](p, "document.querySelector('#table').hidden && document.activeElement.id === 'panel'"), "it leads to the unit")
	p.Type("t")
	p.UntilText("#table", "the longest first")
	p.Type(kb.Escape)
	p.Until("document.querySelector('#table').hidden")
	p.Type("?")
	p.UntilText("#legend", "heartbeat failed")
}

// The header counts, and a click on what it counts searches for it.
func TestTheHeader(t *testing.T) {
	sources := append(crash(t), timeline.Source{Name: "x.jsonl", Reader: strings.NewReader("no event\n")})
	m := read(t, sources...)
	p := open(t, browser.Start(t), m, browser.Options{})
	require.Contains(t, p.Text("#summary"), "4 processes")
	require.Contains(t, p.Text("#summary"), "1 line was no event")
	require.Equal(t, "web-1.jsonl and 4 more", p.Text("#sources"))
	counts := map[string]int{}
	for _, u := range m.Units {
		counts[m.Strings[u.Outcome]]++
	}
	require.Contains(t, strings.Join(strings.Fields(p.Text("#counts")), " "), fmt.Sprintf("committed %d", counts["committed"]))
	browser.Eval[any](p, "[...document.querySelectorAll('.chip')].find((c) => c.textContent.startsWith('fell back')).click()")
	p.UntilText("#matches", fmt.Sprintf("%d units", counts["fell back"]))
}

// Light and dark, narrow and wide: everything fits, and the picture has the colours of the scheme.
func TestThePageInEveryLook(t *testing.T) {
	b := browser.Start(t)
	models := map[string]*timeline.Model{"crash": read(t, crash(t)...)}
	if !testing.Short() {
		models["busy"], models["queue"], models["many"] = read(t, busy(t)...), read(t, queue(t)...), read(t, multiplied(t, 60, busy(t))...)
	}
	for name, m := range models {
		p := open(t, b, m, browser.Options{})
		for _, look := range []browser.Options{{Width: 360, Height: 740}, {Width: 360, Height: 740, Dark: true}, {Width: 1600, Height: 1000}, {Width: 1600, Height: 1000, Dark: true}, {}} {
			p.Look(look)
			drawn(p)
			p.Until(fmt.Sprintf(`(timeline.draw(), (([r, g, b]) => r + g + b < 384)(document.querySelector("#keys canvas").getContext("2d").getImageData(2, 2, 1, 1).data)) === %v`, look.Dark))
			file := fmt.Sprintf("timeline-%s-%d", name, look.Width)
			if look.Dark {
				file += "-dark"
			}
			browser.Eval[any](p, "timeline.choose(-1); timeline.fit()")
			drawn(p)
			require.Zero(t, p.Overflow(), file)
			p.Screenshot(file)
			browser.Eval[any](p, "timeline.choose(timeline.waits.unit[timeline.waits.n >> 1], true)")
			drawn(p)
			require.Zero(t, p.Overflow(), file)
			p.Screenshot(file + "-chosen")
		}
	}
}
