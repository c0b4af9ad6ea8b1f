package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/browser"
)

func TestMain(m *testing.M) {
	code := m.Run()
	browser.End()
	os.Exit(code)
}

const page = `<!doctype html><html lang="en"><title>T</title><link rel=icon href="data:,"><style>
body{background:white;color:black;margin:0} @media (prefers-color-scheme: dark){body{background:black;color:white}} .far{width:500px}</style>
<h1>Keys</h1><p id=p>before</p><label>Filter <input id=i></label><a href="/next">Next page</a><p hidden>unseen</p>
<div class=far>.</div><script>document.querySelector("#p").textContent = "after"; %s</script></html>`

// serve serves the page with a script.
func serve(t *testing.T, script string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/next":
			fmt.Fprint(w, "<!doctype html><title>N</title><link rel=icon href=\"data:,\"><p id=p>the next one</p>")
		case "/slow":
			fmt.Fprint(w, "<!doctype html><title>S</title><link rel=icon href=\"data:,\"><p>the beginning</p>", strings.Repeat(" ", 4096))
			w.(http.Flusher).Flush()
			time.Sleep(300 * time.Millisecond)
			fmt.Fprint(w, "<p id=p>the end</p>")
		case "/":
			fmt.Fprintf(w, page, script)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestAPageIsSeenAndUsed(t *testing.T) {
	t.Setenv(browser.Screenshots, t.TempDir())
	b := browser.Start(t)
	p := b.Open(serve(t, ""), browser.Options{})
	require.Equal(t, "after", p.Text("#p"))
	require.Equal(t, "rgb(255, 255, 255)", browser.Eval[string](p, "getComputedStyle(document.body).backgroundColor"))
	require.Zero(t, p.Overflow())
	p.Screenshot("light")

	require.Equal(t, "textbox Filter", p.Tab())
	p.Type("abc")
	require.Equal(t, "abc", browser.Eval[string](p, "document.querySelector('#i').value"))
	require.Equal(t, "link Next page", p.Tab())
	var seen []string
	for _, n := range p.Accessible() {
		seen = append(seen, n.Role+" "+n.Name)
	}
	require.Contains(t, seen, "heading Keys")
	require.NotContains(t, strings.Join(seen, "\n"), "unseen")

	p.Look(browser.Options{Width: 360, Height: 640, Dark: true})
	require.Equal(t, "rgb(0, 0, 0)", browser.Eval[string](p, "getComputedStyle(document.body).backgroundColor"))
	require.Equal(t, 140, p.Overflow())
	p.Screenshot("narrow")
	for _, name := range []string{"light", "narrow"} {
		require.FileExists(t, filepath.Join(os.Getenv(browser.Screenshots), name+".png"))
	}
	p.Type(kb.Enter)
	p.UntilText("#p", "the next one")

	file := filepath.Join(t.TempDir(), "a file.html")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, page, ""), 0o600))
	require.Equal(t, "after", b.Open("file://"+file, browser.Options{}).Text("#p"))
	require.Equal(t, "before", b.Open("file://"+file, browser.Options{NoScript: true}).Text("#p"))
}

// The location of a page is there before the page is.
func TestAPageIsLoadedBeforeItIsRead(t *testing.T) {
	p := browser.Start(t).Open(serve(t, ""), browser.Options{})
	browser.Eval[any](p, "document.querySelector('a').href = '/slow'")
	p.Click("a")
	p.Until("location.pathname === '/slow'")
	require.Equal(t, "the end", p.Text("#p"))
}

func TestAPageComplains(t *testing.T) {
	b := browser.Start(t)
	for script, want := range map[string]string{
		`console.error("said so")`:                                                      "console: .*said so",
		`setTimeout(() => { throw new Error("not caught") })`:                           "exception: .*not caught",
		`fetch("/gone")`:                                                                "network: .*404.*/gone",
		`fetch("http://other.example/x").catch(() => {})`:                               "a request to another host: http://other.example/x",
		`document.body.append(Object.assign(new Image(), {src: "http://192.0.2.1/x"}))`: "a request to another host: http://192.0.2.1/x",
		`new WebSocket("ws://other.example/y")`:                                         "a connection to another host: ws://other.example/y",
	} {
		t.Run(want, func(t *testing.T) {
			p := b.Open(serve(t, script+`; setTimeout(() => document.title = "done", 100)`), browser.Options{})
			var all []string
			for require.NoError(t, t.Context().Err()); len(all) == 0; all = append(all, p.Complaints()...) {
				p.Until("document.title == 'done'")
				time.Sleep(10 * time.Millisecond)
			}
			require.Regexp(t, want, strings.Join(all, "\n"))
		})
	}
	excused := b.Open(serve(t, `console.error("said so"); document.title = "done"`), browser.Options{})
	excused.Until("document.title == 'done'")
	excused.Excuse("said")
	require.Empty(t, excused.Complaints())
	for _, fine := range []string{`console.log("quiet")`, `fetch("/next")`, `new Image().src = "data:image/gif;base64,R0lGODlhAQABAAAAACw="`} {
		p := b.Open(serve(t, fine+`; setTimeout(() => document.title = "done", 100)`), browser.Options{})
		p.Until("document.title == 'done'")
		require.Empty(t, p.Complaints())
	}
}

func TestABrowserThatIsMissingIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	fails := &failing{TB: t}
	func() {
		defer func() { require.Equal(t, fails, recover()) }()
		browser.Start(fails)
	}()
	require.Equal(t, "pages cannot be tested, chromium is missing; run: make engines", fails.said)
}

// failing notes what a test fails with.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatal(args ...any) {
	f.said = fmt.Sprint(args...)
	panic(f)
}
