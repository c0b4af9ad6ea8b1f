package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/browser"
	"github.com/holdall/holdall/integration/engines"
)

// webEvery is the time between two readings.
const webEvery = 300 * time.Millisecond

// served is a holdall web that runs until the end of the test.
type served struct {
	*ongoing
	url string
}

// web starts holdall web, on a port that is free.
func (b *bed) web(t *testing.T, args ...string) *served {
	t.Helper()
	usual := []string{"web", "--listen", "127.0.0.1:0", "--every", webEvery.String(), "--lease", b.lease.String()}
	s := b.begin(t, append(usual, args...)...)
	return &served{s, next(t, s.lines)}
}

func (s *served) key(key string) string { return s.url + "key?key=" + url.QueryEscape(key) }

// crowd has one of each that a page shows.
type crowd struct {
	*scene
	alive, dead, large, stuck *actor
}

const nasty = `<script>alert(1)</script>"'&`

func newCrowd(t *testing.T) *crowd {
	c := &crowd{scene: newScene(t, engines.Dynoxide(t))}
	c.recordsTable(t)
	c.stuck = c.actor(t, "decides", "host-19 41aa09c3", "invoice:7", "invoice:8", "invoice:9").ready(t)
	c.stuck.Kill()
	c.truncate(t, c.stuck.nonce)
	c.large = c.actor(t, "prepares", "host-17 77f1a0c2", "order:1", "order:2", "order:3").ready(t)
	c.large.Kill()
	c.dead = c.actor(t, "holds", "host-17 5b3d6bd8", "customer:7/account:1").ready(t)
	c.dead.Kill()
	c.actorLease = max(livingLease, 4*c.lease)
	c.alive = c.actor(t, "holds", "host-18 0be1f2d4", "customer:42", nasty, "tenant:"+strings.Repeat("0123456789", 20)).ready(t)
	for n := range 3 {
		c.waits(t, n+1, "host-20 "+string(rune('a'+n)), "customer:42")
	}
	c.put(t, c.locks, map[string]any{"key": "foreign", "unit": 7})
	return c
}

// looks are the ways in which a page is looked at for pictures of it.
var looks = map[string]browser.Options{
	"light": {}, "dark": {Dark: true}, "narrow": {Width: 360, Height: 740}, "narrow-dark": {Width: 360, Height: 740, Dark: true}, "wide": {Width: 1600, Height: 1000},
}

// pictures looks at a page in all ways: it is never wider than its window.
func pictures(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	for look, o := range looks {
		if testing.Short() && look != "narrow-dark" && look != "wide" { // the widths between which the others are
			continue
		}
		p.Look(o)
		require.Zero(t, p.Overflow(), "%s, %s", name, look)
		p.Screenshot("web-" + name + "-" + look)
	}
	p.Look(browser.Options{})
}

// metrics is a page of metrics on which units are committed all the time.
func metrics(t *testing.T) string {
	units := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		units += 10
		fmt.Fprintf(w, "# TYPE holdall_unit_duration_seconds histogram\n"+
			"holdall_unit_duration_seconds_count{holdall_outcome=\"committed\"} %d\nholdall_unit_duration_seconds_sum{holdall_outcome=\"committed\"} %d\nholdall_sets_held 4\n", units, units/10)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/metrics"
}

// inList is a row of the list of all keys that are wanted.
func inList(key string) string {
	return `section[aria-labelledby=all-title] tr[data-key="` + key + `"]`
}

func TestWebIsSeenAndFiltered(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	s := c.web(t, "--metrics", metrics(t))
	p := browser.Start(t).Open(s.url, browser.Options{})
	p.UntilText("#link", "Live")
	p.UntilText(inList("customer:42"), "alive")
	p.UntilText(inList("customer:7/account:1"), "dead")
	p.UntilText(inList("invoice:9"), "dead")
	p.UntilText(inList("order:3"), "dead")
	require.Contains(t, p.Text("section[aria-labelledby=hot-title] tbody tr:first-child"), "customer:42")
	require.Regexp(t, `held\s+host-18 0be1f2d4 for payment\s+(\d+m)?\d+s\s+alive\s+3$`, p.Text(inList("customer:42")))
	require.Contains(t, p.Text(inList("order:1")), "prepared")
	require.Contains(t, p.Text(inList("foreign")), "damaged")
	require.Contains(t, p.Text("section[aria-labelledby=stuck-title]"), c.stuck.nonce)
	require.Equal(t, map[string]string{"": "13", "held": "10", "waiting": "1", "dead": "7", "prepared": "6", "stuck": "3", "damaged": "1"}, counts(p))
	p.UntilText(".rates", "0.1 s on average")
	pictures(t, p, "overview")

	p.Click("#q")
	p.Type("ORDER:")
	p.Until("document.querySelectorAll('section[aria-labelledby=all-title] tbody tr').length === 3")
	p.Until("location.pathname + location.search === '/?q=ORDER%3A'")
	require.Equal(t, "q", browser.Eval[string](p, "document.activeElement.id"), "typing goes on")
	p.Click("#kind-held")
	p.Until("location.search.includes('only=held')")
	require.Equal(t, "ORDER:", browser.Eval[string](p, "document.querySelector('#q').value"))
	p.Click("#kind-stuck")
	p.UntilText("section[aria-labelledby=all-title]", "No such keys")
}

// counts are those of each kind.
func counts(p *browser.Page) map[string]string {
	return browser.Eval[map[string]string](p, `Object.fromEntries([...document.querySelectorAll(".kinds a")].map(a => [a.id.slice(5), a.querySelector("b").textContent]))`)
}

func TestWebIsUsedByKeyboardAndReadAloud(t *testing.T) {
	t.Parallel()
	b := newLivingBed(t)
	b.actor(t, "holds", "host-1", "a", "b", "c").ready(t)
	s := b.web(t)
	p := browser.Start(t).Open(s.url, browser.Options{})
	p.UntilText("#link", "Live")
	for _, next := range []string{
		"link Skip to the content", "link holdall", "button Pause", "searchbox Filter by key, owner, purpose or unit", "button Filter",
		"link 3 All", "link 3 Held", "link 0 Waited for", "link 0 Dead", "link 0 Prepared", "link 0 Stuck", "link a", "link b",
	} {
		require.Equal(t, next, p.Tab())
	}
	var all []string
	for _, n := range p.Accessible() {
		all = append(all, n.Role+" "+n.Name)
	}
	for _, part := range []string{
		"banner ", "main ", "navigation Pages", "navigation Kinds of keys", "search ", "heading Keys", "region All",
		"table 3 keys, in their order", "columnheader Waiting", "rowheader b",
	} {
		require.Contains(t, all, part)
	}
	require.Contains(t, p.Text(".unseen[aria-live=polite]"), "3 keys: 3 held")

	// What is new does not take the focus, and comes above it.
	b.actor(t, "holds", "host-2", "_").ready(t)
	p.UntilText(inList("_"), "host-2")
	seen := p.Text("footer time")
	p.Until("document.querySelector('footer time').innerText !== '" + seen + "'")
	require.Equal(t, "b", browser.Eval[string](p, "document.activeElement.innerText"))
	p.Type(kb.Enter)
	p.UntilText("h1", "b")
	p.Do(chromedp.NavigateBack())
	p.UntilText("h1", "Keys")

	p.Click("#pause")
	require.Equal(t, "true", browser.Eval[string](p, "document.querySelector('#pause').getAttribute('aria-pressed')"))
	p.UntilText("#link", "Paused")
	b.actor(t, "holds", "host-3", "z").ready(t)
	p.Click("#pause")
	p.UntilText(inList("z"), "host-3")
}

func TestWebWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	b := newLivingBed(t)
	b.actor(t, "holds", "host-1", "apple", "berry").ready(t)
	s := b.web(t)
	// The filter matches nonces, too: a text of five letters is in none of them by chance.
	p := browser.Start(t).Open(s.url+"?q=APPLE&only=held", browser.Options{NoScript: true})
	require.Contains(t, p.Text(inList("apple")), "host-1")
	require.Contains(t, p.Text("caption"), "1 key with")
	for _, n := range p.Accessible() {
		require.NotEqual(t, "Pause", n.Name, "which does nothing here")
	}
	p.Click("#q")
	p.Type("-nothing" + kb.Enter)
	p.UntilText("section[aria-labelledby=all-title]", "No such keys")
	b.actor(t, "holds", "host-2", "apple-nothing").ready(t)
	time.Sleep(webEvery) // so long the last reading is shown
	p.Click("#link a")
	p.UntilText(inList("apple-nothing"), "host-2")

	p.Click(inList("apple-nothing") + " a")
	p.UntilText("h1", "apple-nothing")
	b.waits(t, 1, "host-3", "apple-nothing")
	p.UntilText(".queue", "host-3") // by itself
}

func TestWebTellsAKeysStory(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	s := c.web(t)
	b := browser.Start(t)
	p := b.Open(s.key("customer:42"), browser.Options{})
	card := "section[aria-labelledby=holder-title]"
	p.UntilText(card, "alive")
	for _, part := range []string{"host-18 0be1f2d4", "payment", c.alive.nonce, c.actorLease.String()} {
		require.Contains(t, p.Text(card), part)
	}
	require.Contains(t, p.Text("section[aria-labelledby=words-title]"), "showed a sign of life while this was watching")
	require.Regexp(t, `(?s)host-20 a.*host-20 b.*host-20 c`, p.Text(".queue"))
	require.NotContains(t, p.Text("main"), "Take the key")
	pictures(t, p, "story")

	c.actor(t, "holds", "host-21", "customer:42")
	p.UntilText(".queue", "host-21")
	p.UntilText(".events", "host-21\" for \"payment\" waits, 4 in the queue")
	c.alive.Kill()
	p.UntilText(card, "host-20 a") // who was first
	require.Contains(t, p.Text(".events"), "unit "+c.alive.nonce+" has it no more")
	require.Regexp(t, `taken by unit \S{22} of "host-20 a" for "payment", with token \d+`, p.Text(".events"))
	require.NotContains(t, p.Text(".queue"), "host-20 a")

	dead := b.Open(s.key("customer:7/account:1"), browser.Options{})
	dead.UntilText(".events", "unit "+c.dead.nonce+" is dead: no sign of life for a lease")
	hostile := b.Open(s.key(nasty), browser.Options{})
	require.Equal(t, nasty, hostile.Text("h1"))
	stuck := b.Open(s.key("invoice:7"), browser.Options{})
	require.Contains(t, stuck.Text(card), "committed, and stuck")
	require.Contains(t, stuck.Text("main"), "holdall mend leads through it")
	pictures(t, stuck, "stuck")
	require.Contains(t, b.Open(s.key("nobody"), browser.Options{}).Text("main"), "is free: it has no row")
}

func TestWebFrees(t *testing.T) {
	t.Parallel()
	b := newLivingBed(t)
	holder := b.actor(t, "watches", "host-18 0be1f2d4", "customer:42", "customer:43").ready(t)
	other := b.actor(t, "holds", "host-19 7ab31c55", "customer:50").ready(t)
	s := b.web(t, "--allow-free")
	chromium := browser.Start(t)
	p := chromium.Open(s.key("customer:42"), browser.Options{})
	p.UntilText("section[aria-labelledby=holder-title]", "alive")
	p.Click(".button.danger")
	p.UntilText("h1", "Take this key?")
	for _, part := range []string{"customer:42", "host-18 0be1f2d4", "payment", holder.nonce, "It is alive", "with this one customer:43", "a lease of " + b.actorLease.String()} {
		require.Contains(t, p.Text("main"), part)
	}
	pictures(t, p, "free")
	p.Click("#reason")
	p.Type("deploy hangs")
	p.Click("button.danger")
	p.UntilText("h1", "Taken")
	require.Contains(t, p.Text("main"), `was taken from unit `+holder.nonce)
	p.Screenshot("web-freed-light")
	holder.says(t, "lost")
	p.Click("main a")
	p.UntilText("section[aria-labelledby=holder-title]", "deploy hangs") // until others can have it

	// Somebody else frees it while the page asks.
	p = chromium.Open(s.key("customer:50"), browser.Options{})
	p.Click(".button.danger")
	p.UntilText("h1", "Take this key?")
	require.Equal(t, exitDone, b.run(t, "free", "customer:50", "--unit", other.nonce, "--now", "--yes").code)
	p.Click("button.danger")
	p.UntilText("h1", "Not taken")
	require.Contains(t, p.Text("main"), "Nothing was changed")
	require.Contains(t, p.Text("main"), "it is free")
	require.Regexp(t, "409", strings.Join(p.Complaints(), "\n"))
	p.Screenshot("web-not-taken-light")

	s.interrupted(t, syscall.SIGINT)
	require.Contains(t, s.stderr.String(), `an operator took a key" key=customer:42 unit=`+holder.nonce)
	require.Contains(t, s.stderr.String(), `reason="deploy hangs"`)
	require.NotContains(t, s.stderr.String(), `key=customer:50`)
}

// It ends as ls --watch does, with whoever still looks.
func TestWebEndsWhenInterrupted(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	s := b.web(t)
	p := browser.Start(t).Open(s.url, browser.Options{})
	p.UntilText("#link", "Live")
	s.interrupted(t, syscall.SIGINT)
	require.Equal(t, "holdall: ended by a signal: interrupt\n", s.stderr.String())
	p.Excuse("ERR_") // it is gone
	p.UntilText("#link", "Not connected")
}

// A proxy that answers in the server's place, while that starts again, does not end a page.
func TestAPageGoesOnAfterAnotherAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	b.actor(t, "holds", "host-1", "a").ready(t)
	s := b.web(t, "--host", "localhost")
	target, err := url.Parse(s.url)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.FlushInterval = -1
	var refused atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" && refused.Add(1) == 1 {
			http.Error(w, "nobody is there", http.StatusBadGateway)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	p := browser.Start(t).Open(proxy.URL, browser.Options{})
	p.Excuse("502")
	p.UntilText("#link", "Live")
	require.EqualValues(t, 2, refused.Load())
}

// A table that does not answer is not called live.
func TestAPageSaysThatNothingWasRead(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	target, err := url.Parse(b.Endpoint)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	answers := make(chan struct{}, 1)
	answers <- struct{}{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answers: // for one that asks at a time
			forward.ServeHTTP(w, r)
			answers <- struct{}{}
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(proxy.Close)
	s := b.web(t, "--endpoint-url", proxy.URL)
	p := browser.Start(t).Open(s.url, browser.Options{})
	p.UntilText("#link", "Live")
	<-answers
	p.UntilText("#link", "Nothing was read for long")
	answers <- struct{}{}
	p.UntilText("#link", "Live")
}
