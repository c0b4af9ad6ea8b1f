package web

import (
	"context"
	"embed"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/ordering"
)

//go:embed assets
var assets embed.FS

// Config says what a server shows, and to whom.
type Config struct {
	Tables   Tables
	Title    string        // of the tables, on every page
	Partly   bool          // it shows only some of the keys, whatever is kept
	Every    time.Duration // between two readings
	ReadOnly bool
	Host     string   // at which it was asked to listen; empty for all
	Names    []string // further hosts by which browsers call it
	Token    string   // what whoever looks must show; empty: nothing
	Rates    *Metrics // nil: none are shown
}

// withRates reads the rates while it reads the rows.
type withRates struct {
	Look[List]
	rates *Metrics
}

// Read says in the list what is wrong with the rates.
func (l withRates) Read(ctx context.Context) (List, error) {
	if l.rates == nil {
		return l.Look.Read(ctx)
	}
	var rates []Rate
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		rates, failed = l.rates.Read(ctx)
	}()
	list, err := l.Look.Read(ctx)
	<-done
	list.Rates, list.RatesFailed = rates, plain.Error(failed)
	return list, err
}

// Server is the page. It is safe for concurrent use.
type Server struct {
	cfg   Config
	guard *guard
	ctx   context.Context
	rows  *Feed[List]

	mu      sync.Mutex
	stories map[ordering.Key]*Feed[Story]
}

// How much it does at the same time, and how long anybody may take.
const (
	mostStories   = 64 // keys that are looked at
	mostStreams   = 256
	slowest       = 30 * time.Second
	patience      = 10 * time.Second // a page waits for a reading; after that its stream does
	goodbye       = 5 * time.Second
	largestHeader = 16 << 10
	largestForm   = 16 << 10
)

// Serve serves until ctx ends, and returns its cause.
func Serve(ctx context.Context, listener net.Listener, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newServer(ctx, listener.Addr(), cfg)
	server := &http.Server{
		Handler:     s.handler(),
		BaseContext: func(net.Listener) context.Context { return ctx }, // so that streams end
		ErrorLog:    log.New(io.Discard, "", 0),                        // what clients do wrong is theirs
		// A stream sets the time for each of its writes itself.
		ReadHeaderTimeout: slowest / 3, ReadTimeout: slowest, WriteTimeout: slowest, IdleTimeout: 4 * slowest,
		MaxHeaderBytes: largestHeader,
	}
	var failed error
	served := make(chan struct{})
	go func() {
		defer close(served)
		failed = server.Serve(listener)
	}()
	select {
	case <-served:
		return failed
	case <-ctx.Done():
	}
	defer func() { <-served }()
	closing, end := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer end()
	if err := server.Shutdown(closing); err != nil {
		_ = server.Close() // who does not take an answer is not waited for
	}
	return context.Cause(ctx)
}

func newServer(ctx context.Context, address net.Addr, cfg Config) *Server {
	return &Server{
		cfg: cfg, guard: newGuard(address, cfg.Host, cfg.Names, cfg.Token), ctx: ctx,
		rows: newFeed[List](ctx, withRates{cfg.Tables.Rows(), cfg.Rates}, cfg.Every), stories: map[ordering.Key]*Feed[Story]{},
	}
}

// handler serves everything, each request once the guard has nothing against it.
func (s *Server) handler() http.Handler {
	pages, open := http.NewServeMux(), make(chan struct{}, mostStreams)
	pages.HandleFunc("GET /{$}", s.overview)
	pages.HandleFunc("GET /key", s.story)
	pages.HandleFunc("GET /events", s.limited(open, s.overview))
	pages.HandleFunc("GET /key/events", s.limited(open, s.story))
	if !s.cfg.ReadOnly {
		pages.HandleFunc("GET /free", s.askToFree)
		pages.HandleFunc("POST /free", s.free)
	}
	pages.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.say(w, http.StatusNotFound, "Not found", "There is no such page.")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header())
		if no := s.guard.check(r); no != nil {
			s.say(w, no.code, "Refused", no.why+".")
			return
		}
		if asset(w, r) { // which say nothing of the tables
			return
		}
		if s.cfg.Token != "" && s.guard.session(r) == "" {
			s.enter(w, r)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, largestForm)
		pages.ServeHTTP(w, r)
	})
}

// asset serves a file, if that is what is asked for.
func asset(w http.ResponseWriter, r *http.Request) bool {
	is := slices.Contains([]string{"/style.css", "/page.js", "/icon.svg"}, r.URL.Path)
	if is {
		http.ServeFileFS(w, r, assets, "assets"+r.URL.Path) //nolint:gosec // one of three files of this package
	}
	return is
}

// enter has a browser show the token, in the URL that was printed or in a form, and remembers it.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, largestForm)
	given := r.URL.Query().Get("token")
	if r.Method == http.MethodPost {
		given = r.PostFormValue("token")
	}
	if !s.guard.isToken(given) {
		s.render(w, http.StatusUnauthorized, "enter", page{Title: "Token", Wrong: given != ""})
		return
	}
	s.guard.begin(w)
	// Not a redirection: a browser that was led here by another site would not send the cookie with it.
	s.render(w, http.StatusOK, "entered", page{Title: "Welcome", Refresh: "0; url=/"})
}

// limited refuses what would be one stream too many.
func (s *Server) limited(open chan struct{}, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case open <- struct{}{}:
			defer func() { <-open }()
			serve(w, r)
		default:
			s.say(w, http.StatusServiceUnavailable, "Busy", "Too many pages are open.")
		}
	}
}

// storyOf is the feed of a key, which is kept for as long as it is one of the last that somebody
// asked for.
func (s *Server) storyOf(key ordering.Key) (*Feed[Story], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.stories[key]; f != nil {
		return f, nil
	}
	if len(s.stories) >= mostStories {
		for other, f := range s.stories {
			if f.retire() {
				delete(s.stories, other)
				break
			}
		}
	}
	if len(s.stories) >= mostStories {
		return nil, errors.New("too many keys are looked at at the same time: close some pages")
	}
	f := newFeed[Story](s.ctx, &chronicle{Look: s.cfg.Tables.Story(key)}, s.cfg.Every)
	s.stories[key] = f
	return f, nil
}
