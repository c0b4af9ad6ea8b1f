// Package browser opens pages in a headless Chromium, for tests of pages. Whatever a page
// complains of fails the test: an error on its console, an exception that it does not catch, a
// request that fails, a request to any host but this one.
package browser

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/holdall/holdall/integration/engines"
)

// Screenshots is the variable that names the folder for what [Page.Screenshot] takes. If it is
// not set, none is taken.
const Screenshots = "HOLDALL_TEST_SCREENSHOTS"

// aLongTime bounds what is waited for, and is never reached where all is well.
const aLongTime = time.Minute

// Browser is a profile of the Chromium that the tests of a binary share. Profiles share no cookies and no
// storage.
type Browser struct {
	t       testing.TB
	tab     context.Context // of Chromium, which stays empty, and is the parent of all others
	profile cdp.BrowserContextID
}

// using bounds how many tests use Chromium at a time: each keeps a core busy.
var using = make(chan struct{}, 2)

// Start returns a browser with a profile of its own, which ends with its test; a test may have one at a
// time. What serves its pages is to be started before it, so that it ends after it. A package whose
// tests call it calls [End] in its TestMain.
func Start(t testing.TB) *Browser {
	t.Helper()
	if _, err := engines.Chromium(); err != nil {
		t.Fatal(err)
	}
	tab, err := chromium()
	if err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	using <- struct{}{}
	t.Cleanup(func() { <-using })
	ctx, cancel := context.WithTimeout(tab, aLongTime)
	defer cancel()
	process := chromedp.FromContext(ctx).Browser
	made, err := cdp.Call(ctx, process, target.CreateBrowserContext, target.CreateBrowserContextParams{})
	if err != nil {
		t.Fatalf("Chromium gives no profile: %v", err)
	}
	profile := made.BrowserContextID
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(tab, aLongTime)
		defer cancel()
		_, err := cdp.Call(ctx, process, target.DisposeBrowserContext, target.DisposeBrowserContextParams{BrowserContextID: profile})
		if err != nil {
			t.Errorf("Chromium keeps a profile: %v", err)
		}
	})
	return &Browser{t, tab, profile}
}

// chromium starts the process that all tests of a binary share: a start costs seconds of a core.
var chromium = sync.OnceValues(func() (tab context.Context, err error) {
	program, err := engines.Chromium()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.UserDataDir(profile),
		chromedp.NoSandbox, // which root cannot have, and the pages are ours
		chromedp.DisableGPU,
		chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true), // what the environment names is not for tests
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.WSURLReadTimeout(aLongTime),
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	closeChromium = func() {
		_ = chromedp.Cancel(ctx) // closes it; what it says about that is of no use
		cancel()
		end()
		// Its children end a moment after it, and write until then.
		for began := time.Now(); os.RemoveAll(profile) != nil && time.Since(began) < aLongTime; {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return ctx, chromedp.Do(ctx)
})

var closeChromium = func() {}

// End ends the Chromium that tests have started, if any has.
func End() { closeChromium() }

// Options say how a page is looked at. The zero value is a light window of 1280 by 900.
type Options struct {
	Width, Height int
	Dark          bool
	NoScript      bool // scripts of the page are not run
}

// Page is a tab of a browser.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu         sync.Mutex
	complaints []string
	excused    []string
}

// Open opens the page at a URL, which may be one of a file, in a tab of its own, and returns when it is
// loaded. What it has complained of by the end of the test fails the test, unless
// [Page.Complaints] was told.
func (b *Browser) Open(where string, o Options) *Page {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.tab, chromedp.WithExistingBrowserContext(b.profile))
	p := &Page{t: b.t, ctx: ctx}
	b.t.Cleanup(func() {
		cancel()
		for _, complaint := range p.Complaints() {
			b.t.Errorf("%s: %s", where, complaint)
		}
	})
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		b.t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, log.Enable, cdp.Empty{})
	// The tabs of other tests do not take the focus from it.
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: o.NoScript})
	p.Look(o)
	p.Do(chromedp.Navigate(where))
	return p
}

// Look changes how the page is looked at, but for its scripts.
func (p *Page) Look(o Options) {
	p.t.Helper()
	if o.Width == 0 {
		o.Width = 1280
	}
	if o.Height == 0 {
		o.Height = 900
	}
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(o.Width), Height: int64(o.Height), DeviceScaleFactor: 1})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// Do runs actions, each to its end; that one fails ends the test.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	run(p, chromedp.Steps(actions...))
}

// run is Do for an action with a value.
func run[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, aLongTime)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("%v; the page complains of: %q", err, p.Complaints())
	}
	return value
}

// call sends a command of the protocol.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	return run(p, func(ctx context.Context, t *chromedp.Target) (R, error) {
		return cdp.Call(ctx, t, command, params)
	})
}

// Complaints returns what the page has complained of since it was last asked.
func (p *Page) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.DeleteFunc(p.complaints, func(complaint string) bool {
		return slices.ContainsFunc(p.excused, func(text string) bool { return strings.Contains(complaint, text) })
	})
	p.complaints = nil
	return all
}

// Excuse lets complaints pass that have one of these texts, whenever they are made.
func (p *Page) Excuse(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.excused = append(p.excused, texts...)
}

// hear is called for each event, one after another.
func (p *Page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			text += " " + thrown.Description
		}
		p.complain("exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var words []string
			for _, arg := range e.Args {
				words = append(words, string(arg.Value)+arg.Description)
			}
			p.complain("console: %s", strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			p.complain("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !here(e.Request.URL) {
			p.complain("a request to another host: %s", e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		if !here(e.URL) {
			p.complain("a connection to another host: %s", e.URL)
		}
	}
}

func (p *Page) complain(text string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = append(p.complaints, fmt.Sprintf(text, args...))
}

// here reports whether a URL leads nowhere but to this host.
func here(where string) bool {
	u, err := url.Parse(where)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "about", "blob", "data", "file":
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
