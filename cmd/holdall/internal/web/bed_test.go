package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// tables are those of a test: what is read, how often, and what was freed.
type tables struct {
	mu      sync.Mutex
	list    List
	stories map[ordering.Key]Story
	failed  error // of every reading
	reads   map[string]int
	freed   []string
	refusal error // of every freeing

	takes    time.Duration // of every list
	watching atomic.Int64  // how many looks watch
}

// look is one at a subject.
type look[T any] struct {
	*tables
	subject string
	value   func() T
}

func (l look[T]) Read(ctx context.Context) (none T, err error) {
	if l.subject == "rows" && l.takes > 0 {
		select {
		case <-time.After(l.takes):
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reads == nil {
		l.reads = map[string]int{}
	}
	l.reads[l.subject]++
	return l.value(), l.failed
}

func (l look[T]) Watch(ctx context.Context) error {
	l.watching.Add(1)
	defer l.watching.Add(-1)
	<-ctx.Done()
	return context.Cause(ctx)
}

func (t *tables) Rows() Look[List] {
	return look[List]{t, "rows", func() List { return t.list }}
}

func (t *tables) Story(key ordering.Key) Look[Story] {
	return look[Story]{t, string(key), func() Story { return t.stories[key] }}
}

func (t *tables) Free(_ context.Context, key ordering.Key, unit, reason string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refusal != nil {
		return "", t.refusal
	}
	t.freed = append(t.freed, string(key)+" from "+unit+" because "+reason)
	return "It was taken.", nil
}

func (t *tables) Hint(error) string { return "; look it up" }

func (t *tables) change(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

func (t *tables) readsOf(subject string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads[subject]
}

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8765}

// held is a row with so many units in its queue.
func held(key ordering.Key, by inspect.Holder, life string, waiting int) Row {
	r := inspect.Row{Key: key, Fence: 41, Holder: &by, Queue: make([]inspect.Waiter, waiting)}
	return Row{Sighting: inspect.Sighting{Row: r, Life: life}}
}

// storyOf is what a key's page has of its row.
func storyOf(r Row) Story { return Story{Row: r.Row, Life: r.Sighting} }

// town has a key that is held, and one that is dead.
func town() *tables {
	a := held("a", inspect.Holder{Unit: "unit-a", Owner: "host-1", Purpose: "pay", RVN: "1", Lease: time.Second}, "alive", 2)
	dead := held("dead", inspect.Holder{Unit: "unit-d", Owner: "host-2", RVN: "7"}, "dead", 0)
	prepared := held("j", inspect.Holder{Unit: "unit-j", Owner: "host-3", Prepared: "units"}, "", 0)
	return &tables{
		list:    List{Rows: []Row{a, held("b", inspect.Holder{Unit: "unit-a", Owner: "host-1"}, "", 0), dead}},
		stories: map[ordering.Key]Story{"a": storyOf(a), "dead": storyOf(dead), "j": storyOf(prepared)},
	}
}

// serve returns what serves pages of tables.
func serve(t *testing.T, tables *tables, change ...func(*Config)) http.Handler {
	cfg := Config{Tables: tables, Title: "table locks", Every: time.Hour, Host: "127.0.0.1"}
	for _, c := range change {
		c(&cfg)
	}
	return newServer(t.Context(), loopback, cfg).handler()
}

// browse sends a request as a browser does that is at a page of this server.
func browse(h http.Handler, method, path string, form url.Values, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "127.0.0.1:8765"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://127.0.0.1:8765")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func with(header, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(header, value) }
}

func without(header string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(header) }
}

func from(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// formOf are the hidden fields of a page's form, and the cookies to send with it.
func formOf(t *testing.T, page *http.Response) (url.Values, func(*http.Request)) {
	t.Helper()
	form := url.Values{}
	for _, field := range hidden.FindAllStringSubmatch(bodyOf(t, page), -1) {
		form.Set(field[1], field[2])
	}
	return form, func(r *http.Request) {
		for _, c := range page.Cookies() {
			r.AddCookie(c)
		}
	}
}
