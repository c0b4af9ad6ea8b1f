package web

import (
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// What stands in rows is text, wherever it is shown, and never a part of a page.
func TestRowsAreNeverMarkup(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'{{.}}` + "\u202e\x1b[2J"
	row := held(evil, inspect.Holder{Unit: evil, Owner: evil, Purpose: evil}, "", 1)
	row.Stuck = true
	shown := inspect.Row{
		Key: "k", CommittedBy: evil, LastOwner: evil,
		Holder: &inspect.Holder{Unit: "u", Owner: evil, Purpose: evil},
		Queue:  []inspect.Waiter{{Unit: evil, Owner: evil, Purpose: evil}},
	}
	tables := &tables{
		list: List{
			Rows:    []Row{row, held("o", inspect.Holder{Unit: "unit-o"}, "", 0)},
			Unasked: evil, RatesFailed: evil,
		},
		stories: map[ordering.Key]Story{"k": {
			Row: shown, Becomes: evil, Words: []string{evil}, Picture: []string{"<script>"},
			Around: []Row{row}, Events: []Event{{Words: evil}},
		}},
	}
	h := serve(t, tables, func(c *Config) { c.Title = evil })
	for _, path := range []string{"/", "/?q=" + url.QueryEscape(evil), "/key?key=" + url.QueryEscape(evil), "/key?key=k", "/free?key=k&unit=u"} {
		page := bodyOf(t, browse(h, http.MethodGet, path, nil))
		require.NotContains(t, page, "<script>", path)
		require.NotContains(t, page, "<img src=x", path)
		require.Contains(t, page, "&lt;script&gt;", path)
	}
	page := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(bodyOf(t, browse(h, http.MethodGet, "/key?key=k", nil)), "")
	require.NotContains(t, page, "\u202e", "which turns what follows around")
	require.NotContains(t, page, "\x1b")
}

func TestAnOverviewCountsAndFilters(t *testing.T) {
	b := held("b", inspect.Holder{Unit: "u1", Purpose: "payments", Prepared: "units"}, "", 0)
	d := held("d", inspect.Holder{Unit: "u1", Prepared: "units"}, "dead", 0)
	b.Stuck, d.Stuck = true, true
	c := held("c", inspect.Holder{}, "", 5)
	c.Row.Holder = nil
	l := List{Rows: []Row{held("a", inspect.Holder{Owner: "Host-1"}, "", 2), b, c, d}}
	o := overview(l, Filter{})
	counts := map[string]int{}
	for _, k := range o.Kinds {
		counts[k.Title] = k.Count
	}
	require.Equal(t, map[string]int{"All": 4, "Held": 3, "Waited for": 2, "Dead": 1, "Prepared": 2, "Stuck": 2}, counts)
	require.Equal(t, []ordering.Key{"c", "a"}, keysOf(o.Hot))
	require.Len(t, o.Stuck, 1)
	require.Equal(t, []ordering.Key{"b", "d"}, keysOf(o.Stuck[0].Keys))
	for text, want := range map[string][]ordering.Key{
		"host-1": {"a"}, "PAY": {"b"}, "u1": {"b", "d"}, "nothing": nil, " ": {"a", "b", "c", "d"},
	} {
		o := overview(l, filterOf(url.Values{"q": {text}}))
		require.Equal(t, want, keysOf(o.Rows), text)
		require.Len(t, o.Stuck, 1, "they wait for somebody, whatever is filtered")
	}
	for only, want := range map[string][]ordering.Key{
		"held": {"a", "b", "d"}, "waiting": {"a", "c"}, "dead": {"d"}, "prepared": {"b", "d"}, "stuck": {"b", "d"}, "damaged": nil, "no such kind": {"a", "b", "c", "d"},
	} {
		f := filterOf(url.Values{"only": {only}})
		require.Equal(t, want, keysOf(overview(l, f).Rows), only)
		values, err := url.ParseQuery(f.Query())
		require.NoError(t, err)
		require.Equal(t, f, filterOf(values))
	}
	var many List
	for range mostShown + 7 {
		many.Rows = append(many.Rows, held("k", inspect.Holder{}, "", 1))
	}
	o = overview(many, Filter{})
	require.Len(t, o.Rows, mostShown)
	require.Len(t, o.Hot, mostHot)
	require.Equal(t, mostShown+7, o.Found)
}

func TestAnOverviewSaysHowManyKeysItHasNot(t *testing.T) {
	tables := town()
	require.NotContains(t, bodyOf(t, browse(serve(t, tables), http.MethodGet, "/", nil)), "than this page keeps")
	tables.list.More = 7
	require.Contains(t, bodyOf(t, browse(serve(t, tables), http.MethodGet, "/", nil)), "7 more keys are held or waited for than this page keeps")
}

func keysOf(rows []Row) (keys []ordering.Key) {
	for _, r := range rows {
		keys = append(keys, r.Row.Key)
	}
	return keys
}

func TestAStorySaysWhatHasHappened(t *testing.T) {
	by := func(unit string, fence fencing.Token, change ...func(*Story)) Story {
		s := Story{Row: inspect.Row{Fence: fence, Holder: &inspect.Holder{Unit: unit, Owner: "o-" + unit}}}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	alive := func(s *Story) { s.Life.Life = "alive" }
	dead := func(s *Story) { s.Life.Life = "dead" }
	prepared := func(s *Story) { s.Row.Holder.Prepared = "units" }
	committed := func(s *Story) { s.Row.Holder.Prepared, s.Becomes = "units", "committed" }
	queue := func(waiters ...inspect.Waiter) Story { return Story{Row: inspect.Row{Queue: waiters}} }
	free := Story{}
	for name, c := range map[string]struct {
		before, after Story
		want          []string
	}{
		"nothing":     {by("a", 7, alive), by("a", 7, alive), nil},
		"taken":       {free, by("a", 7), []string{`taken by unit a of "o-a", with token 7`}},
		"released":    {by("a", 7), free, []string{"unit a has it no more"}},
		"committed":   {by("a", 7), Story{Row: inspect.Row{CommittedBy: "a"}}, []string{"unit a committed, and let go of it"}},
		"handed over": {by("a", 7), by("b", 8), []string{"unit a has it no more", `taken by unit b of "o-b", with token 8`}},
		"died":        {by("a", 7, alive), by("a", 7, dead), []string{"unit a is dead: no sign of life for a lease"}},
		"was silent":  {by("a", 7, dead), by("a", 7, alive), []string{"unit a showed a sign of life"}},
		"prepared":    {by("a", 7), by("a", 7, prepared), []string{"unit a is prepared: its journal decides"}},
		"decided":     {by("a", 7, prepared), by("a", 7, committed), []string{"unit a is committed"}},
		"waits":       {free, queue(inspect.Waiter{Unit: "w", Owner: "x", Purpose: "pay"}), []string{`unit w of "x" for "pay" waits, 1 in the queue`}},
		"gave up":     {queue(inspect.Waiter{Unit: "w"}, inspect.Waiter{Unit: "v"}), queue(inspect.Waiter{Unit: "v"}), []string{"unit w waits no more"}},
		"its turn":    {queue(inspect.Waiter{Unit: "w"}), by("w", 9), []string{`taken by unit w of "o-w", with token 9`}},
	} {
		require.Equal(t, c.want, changes(c.before, c.after), name)
	}
}

// A page that asks whether to take a key names who loses what, as of now.
// partly are reasons for which not all keys of a unit are known.
var partly = []func(*tables, *Config){
	func(_ *tables, c *Config) { c.Partly = true },
	func(s *tables, _ *Config) { s.list.More = 1 },
}

func TestAPageThatAsksNamesTheHolder(t *testing.T) {
	tables := town()
	h := serve(t, tables)
	page := bodyOf(t, browse(h, http.MethodGet, "/free?key=a&unit=unit-a", nil))
	for _, part := range []string{"host-1", "pay", "unit-a", "41", "It is alive", "with this one b", `name="reason"`, `maxlength="256"`} {
		require.Contains(t, page, part)
	}
	require.NotContains(t, page, `name="sign"`)
	require.NotContains(t, page, "it may have more")
	for _, c := range partly {
		some := town()
		page := bodyOf(t, browse(serve(t, some, func(cfg *Config) { c(some, cfg) }), http.MethodGet, "/free?key=a&unit=unit-a", nil))
		require.Contains(t, page, "with this one b; it may have more than are known here.")
	}
	for path, why := range map[string]string{
		"/free?key=a&unit=another": "Somebody else has the key by now",
		"/free?key=j&unit=unit-j":  "a journal decides about it",
		"/free?key=free&unit=u":    "or nobody",
	} {
		got := browse(h, http.MethodGet, path, nil)
		require.Equal(t, http.StatusConflict, got.StatusCode, path)
		require.Contains(t, bodyOf(t, got), why)
	}
	require.NotContains(t, bodyOf(t, browse(h, http.MethodGet, "/key?key=j", nil)), "/free", "nobody frees what a journal decides about")
	require.Equal(t, http.StatusBadRequest, browse(h, http.MethodGet, "/free?key=&unit=u", nil).StatusCode)
}

func TestAKeyIsNotTakenIfItsRowHasChanged(t *testing.T) {
	for name, c := range map[string]struct {
		key, unit string
		change    func(*tables)
		code      int
		says      string
	}{
		"nothing has changed": {"dead", "unit-d", func(*tables) {}, 200, "It was taken."},
		"the dead lives": {"dead", "unit-d", func(s *tables) {
			s.stories["dead"] = storyOf(held("dead", inspect.Holder{Unit: "unit-d", RVN: "8"}, "alive", 0))
		}, 409, "has shown a sign of life since"},
		"the row cannot be read": {"dead", "unit-d", func(s *tables) { s.failed = errors.New("throttled") }, 502, "throttled"},
		"another has it": {"a", "unit-a", func(s *tables) {
			s.refusal = &inspect.FreeError{Key: "a", Unit: "unit-a", Reason: "unit other of owner <host-9> has it"}
		}, 409, "unit other of owner &lt;host-9&gt; has it"},
		"the reason is none": {"a", "unit-a", func(s *tables) { s.refusal = &locks.ConfigError{Field: "Freeing.Reason", Reason: "is too long"} }, 400, "Nothing was changed"},
		"no answer":          {"a", "unit-a", func(s *tables) { s.refusal = errors.New("timeout") }, 502, "Whether the key was taken is not known"},
	} {
		tables := town()
		h := serve(t, tables)
		form, cookies := formOf(t, browse(h, http.MethodGet, "/free?key="+c.key+"&unit="+c.unit, nil))
		require.Equal(t, c.unit, form.Get("unit"))
		tables.change(func() { c.change(tables) })
		got := browse(h, http.MethodPost, "/free?key="+c.key, form, cookies)
		require.Equal(t, c.code, got.StatusCode, name)
		require.Contains(t, bodyOf(t, got), c.says, name)
		require.Equal(t, c.code == 200, len(tables.freed) == 1, name)
	}
}

// A page goes on with what it has begun with.
func TestAPageGoesOnFiltered(t *testing.T) {
	page := bodyOf(t, browse(serve(t, town()), http.MethodGet, "/?q=a+b&only=held", nil))
	require.Contains(t, html.UnescapeString(page), `data-events="/events?only=held&q=a+b"`)
}

func TestPagesSayWhatTheyCannotRead(t *testing.T) {
	tables := town()
	tables.failed = errors.New("table \"locks\":\n does not exist")
	h := serve(t, tables)
	for _, path := range []string{"/", "/key?key=a"} {
		page := bodyOf(t, browse(h, http.MethodGet, path, nil))
		require.Contains(t, page, "could not be read: table &#34;locks&#34;: does not exist; look it up", path)
		require.NotContains(t, page, "No such keys")
	}
	require.Equal(t, http.StatusServiceUnavailable, browse(h, http.MethodGet, "/free?key=a&unit=unit-a", nil).StatusCode)
	require.Equal(t, http.StatusBadRequest, browse(h, http.MethodGet, "/key?key=a//b", nil).StatusCode)
	require.Equal(t, http.StatusNotFound, browse(h, http.MethodGet, "/absent", nil).StatusCode)
	require.True(t, strings.HasPrefix(browse(h, http.MethodGet, "/page.js", nil).Header.Get("Content-Type"), "text/javascript"))
}

// A key may be any text, and the one that was shown is the one that is taken.
func TestAnyKeyIsTaken(t *testing.T) {
	const key = "line 1\nline 2&unit=x%2F+\u00e9"
	tables := town()
	tables.stories[key] = storyOf(held(key, inspect.Holder{Unit: "unit-x"}, "", 0))
	h := serve(t, tables)
	page := bodyOf(t, browse(h, http.MethodGet, "/key?key="+url.QueryEscape(key), nil))
	link := regexp.MustCompile(`href="(/free[^"]*)"`).FindStringSubmatch(page)
	require.NotNil(t, link)
	asked := browse(h, http.MethodGet, html.UnescapeString(link[1]), nil)
	page = bodyOf(t, asked)
	asked.Body = io.NopCloser(strings.NewReader(page))
	action := regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch(page)
	form, cookies := formOf(t, asked)
	require.Equal(t, http.StatusOK, browse(h, http.MethodPost, html.UnescapeString(action[1]), form, cookies).StatusCode)
	require.Equal(t, []string{key + " from unit-x because "}, tables.freed)
}
