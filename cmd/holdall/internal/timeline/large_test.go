package timeline_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/browser"
	"github.com/holdall/holdall/cmd/holdall/internal/timeline"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/trace"
)

// stats are what the page says of its last frame.
type stats struct {
	Bars, Rows, Marks int
	Took              float64
}

// However many units there are: the page has a bounded number of bytes for each, and a frame a
// bounded number of bars for each row that is seen. What it took is logged.
func TestALargePage(t *testing.T) {
	sizes := []int{1, 70, 700} // a hundred units, ten thousand, a hundred thousand
	if testing.Short() {
		sizes = []int{1, 5}
	}
	b := browser.Start(t)
	for _, times := range sizes {
		t.Run(fmt.Sprint(times), func(t *testing.T) {
			sources := multiplied(t, times, busy(t))
			began := time.Now()
			m, err := timeline.Read(t.Context(), sources...)
			require.NoError(t, err)
			took := time.Since(began)
			require.Greater(t, len(m.Units), times*100)
			html, url := page(t, m)
			require.Less(t, len(html)/len(m.Units), 300+100_000/len(m.Units), "bytes for each unit")

			p := b.Open(url, browser.Options{})
			p.Until("window.timeline && timeline.stats.frames > 0")
			most := frames(t, p)
			browser.Eval[any](p, "timeline.choose(timeline.units.n >> 1, true)")
			p.UntilText("#panel", "Its way")
			runtime.GC()
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			t.Logf("%d units, %d events: read in %v into %d MB; a page of %d kB, drawn after %.0f ms, a frame in at most %.0f ms, %d MB on the heap", len(m.Units), m.Lines,
				took.Round(10*time.Millisecond), memory.HeapAlloc>>20, len(html)>>10, browser.Eval[float64](p, "performance.getEntriesByName('drawn')[0].startTime"), most,
				browser.Eval[int](p, "performance.memory.usedJSHeapSize >> 20"))
			runtime.KeepAlive(m)
		})
	}
}

// What cannot be told apart is not drawn apart: a row costs its pixels, not its bars.
func TestADenseRowCostsItsPixels(t *testing.T) {
	units := 20_000
	if testing.Short() {
		units = 5_000 // twice as many as there are bars
	}
	var events []record.Event
	for n := range units {
		unit := fmt.Sprintf("u%06d", n)
		events = append(events, acquired(n, n, uint64(n+1), unit, "k")...)
		events = append(events, tell(n, "Dropped", record.Event{Event: trace.Event{Key: "k", Unit: unit}}), tell(n+1, "Released", record.Event{Event: trace.Event{Unit: unit}}))
	}
	p := open(t, browser.Start(t), read(t, taped("f", events...)), browser.Options{})
	for _, script := range []string{"fit()", "pan(0.1)", "zoom(0.5)"} {
		s := browser.Eval[stats](p, "(timeline."+script+", timeline.draw(), {...timeline.stats})")
		require.Equal(t, 2, s.Rows)
		require.Positive(t, s.Marks)
		require.LessOrEqual(t, s.Bars, 2*1280)
		require.LessOrEqual(t, s.Marks, 2*1280/4)
	}
}

// frames moves and zooms, and returns how long a frame took at most.
func frames(t *testing.T, p *browser.Page) (most float64) {
	wide := browser.Eval[int](p, "timeline.view.width")
	for _, script := range []string{"fit()", "pan(0.01)", "zoom(0.5)", "zoom(0.1)", "zoom(0.1)", "zoom(0.1)", "zoom(0.1)", "pan(3)", "fit()"} {
		s := browser.Eval[stats](p, "(timeline."+script+", timeline.draw(), {...timeline.stats})")
		require.Positive(t, s.Rows)
		require.LessOrEqual(t, s.Rows, 900/5, "no more rows than there is room for")
		require.LessOrEqual(t, s.Bars, s.Rows*wide, script)
		require.LessOrEqual(t, s.Marks, s.Rows*wide, script)
		most = max(most, s.Took)
	}
	return most
}
