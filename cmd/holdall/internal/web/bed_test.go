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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
}

// look is one at a subject.
type look[T any] struct {
	*tables
	subject string
	value   func() T
}

func (l look[T]) Read(context.Context) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reads == nil {
		l.reads = map[string]int{}
	}
	l.reads[l.subject]++
	return l.value(), l.failed
}

func (l look[T]) Watch(context.Context) error { return nil }

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

// town has a key that is held, and one that is dead.
func town() *tables {
	return &tables{
		list: List{Rows: []Row{
			{Key: "a", State: "held", Owner: "host-1", Unit: "unit-a", Held: true, Waiting: 2, Life: Life{Alive: true, Words: "alive"}},
			{Key: "b", State: "held", Owner: "host-1", Unit: "unit-a", Held: true},
			{Key: "dead", State: "held", Owner: "host-2", Unit: "unit-d", Held: true, Life: Life{Dead: true, Words: "dead"}},
		}},
		stories: map[ordering.Key]Story{
			"a":    {Key: "a", State: "held", Fence: 41, Holder: &Holder{Unit: "unit-a", Owner: "host-1", Purpose: "pay", Sign: "1", Lease: time.Second, Life: Life{Alive: true, Words: "alive"}}},
			"dead": {Key: "dead", State: "held", Fence: 42, Holder: &Holder{Unit: "unit-d", Owner: "host-2", Sign: "7", Life: Life{Dead: true, Words: "dead"}}},
			"j":    {Key: "j", State: "prepared", Holder: &Holder{Unit: "unit-j", Owner: "host-3", Prepared: true}},
		},
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

func listen(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}
