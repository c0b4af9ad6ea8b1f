package web

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"ago":     func(t time.Time) string { return plain.Ago(time.Since(t)) },
	"plain":   plain.Line,
	"state":   plain.State,
	"life":    plain.Life,
	"key":     func(key ordering.Key) string { return plain.Line(string(key)) },
	"clock":   func(t time.Time) string { return t.UTC().Format(time.TimeOnly) + "Z" },
	"date":    func(t time.Time) string { return t.UTC().Format(time.DateTime) + "Z" },
	"rfc":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"count":   plain.Count,
	"seconds": func(d time.Duration) int { return max(int(d.Seconds()), 1) },
	"page":    func(key ordering.Key) string { return "/key?key=" + url.QueryEscape(string(key)) },
	"lines":   func(lines []string) string { return strings.Join(lines, "\n") },
}).ParseFS(assets, "assets/*.html"))

// page is what the templates are about: a part of it, by template.
type page struct {
	Title, Tables string
	Every         time.Duration
	Refresh       string // to where the page goes by itself; empty: nowhere
	Events        string // the URL of the stream that goes on with the page; empty: nothing does
	Reload        bool   // it is loaded again and again where no script does that: in it, nobody types
	Here          string // its own URL

	Overview Overview
	Story    Story
	At       time.Time
	Failed   string // why the last reading failed; empty if it did not
	Free     string // the URL of the page that asks whether to take the key; empty: not offered

	Ask   ask
	Wrong bool
	Words []string
}

func (s *Server) render(w http.ResponseWriter, code int, name string, p page) {
	p.Tables, p.Every = s.cfg.Title, s.cfg.Every
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, p); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes())
}

// say answers with a few words.
func (s *Server) say(w http.ResponseWriter, code int, title string, words ...string) {
	s.render(w, code, "message", page{Title: title, Words: words})
}

func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("token") && !streams(r) { // which has done its work, and is not to stay in sight
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	f := filterOf(r.URL.Query())
	answer(s, w, r, s.rows, "overview", func(reading Reading[List]) page {
		return page{
			Title: "Keys", Events: href("/events", f), Here: href("/", f), At: reading.At, Failed: s.failure(reading.Err),
			Overview: overview(reading.Value, f), Every: s.cfg.Every, Tables: s.cfg.Title,
		}
	})
}

func (s *Server) story(w http.ResponseWriter, r *http.Request) {
	if feed, ok := s.storyAsked(w, r); ok {
		answer(s, w, r, feed, "story", func(reading Reading[Story]) page { return s.storyPage(keyOf(r), reading) })
	}
}

func keyOf(r *http.Request) ordering.Key { return ordering.Key(r.URL.Query().Get("key")) }

// storyAsked is the feed of the key in a URL; if there is none, the answer says why.
func (s *Server) storyAsked(w http.ResponseWriter, r *http.Request) (*Feed[Story], bool) {
	key := keyOf(r)
	if err := key.Validate(); err != nil {
		s.say(w, http.StatusBadRequest, "No key", err.Error())
		return nil, false
	}
	feed, err := s.storyOf(key)
	if err != nil {
		s.say(w, http.StatusServiceUnavailable, "Busy", err.Error())
		return nil, false
	}
	return feed, true
}

func (s *Server) storyPage(key ordering.Key, reading Reading[Story]) page {
	q := "?key=" + url.QueryEscape(string(key))
	p := page{
		Title: plain.Line(string(key)), Events: "/key/events" + q, Here: "/key" + q, Reload: true, At: reading.At, Failed: s.failure(reading.Err),
		Story: reading.Value, Every: s.cfg.Every, Tables: s.cfg.Title,
	}
	if h := p.Story.Row.Holder; h != nil && h.Prepared == "" && !s.cfg.ReadOnly {
		p.Free = "/free" + q + "&unit=" + url.QueryEscape(h.Unit)
	}
	return p
}

// failure is why a reading failed, with what to do about it.
func (s *Server) failure(err error) string {
	if err == nil {
		return ""
	}
	return plain.Error(err) + s.cfg.Tables.Hint(err)
}

// ask is what the page says that asks whether to take a key.
type ask struct {
	Key    ordering.Key
	Holder inspect.Holder
	Life   string // the holder's, in a word
	Fence  fencing.Token
	Others []Row // that the unit has, and loses, too
	Partly bool  // it may have more than those
	Proof  string
	Sign   string // that of a dead holder: it must not have shown another since
	Reason string
}

// askToFree names the holder, and what is lost.
func (s *Server) askToFree(w http.ResponseWriter, r *http.Request) {
	feed, ok := s.storyAsked(w, r)
	if !ok {
		return
	}
	soon, cancel := context.WithTimeoutCause(r.Context(), patience, errSlow)
	defer cancel()
	reading, err := feed.Latest(soon)
	if err == nil {
		err = reading.Err
	}
	if err != nil {
		s.say(w, http.StatusServiceUnavailable, "Not known", "Who has the key could not be read: "+s.failure(err))
		return
	}
	row, key := reading.Value.Row, keyOf(r)
	h := row.Holder
	if h == nil || h.Unit != r.URL.Query().Get("unit") || h.Prepared != "" {
		s.changed(w, key, "Somebody else has the key by now, or nobody, or a journal decides about it.")
		return
	}
	a := ask{Key: key, Holder: *h, Life: plain.Life(reading.Value.Life), Fence: row.Fence}
	if reading.Value.Life.Life == "dead" {
		a.Sign = h.RVN
	}
	list, err := s.rows.Latest(soon)
	a.Partly = err != nil || list.Err != nil || list.Value.More > 0 || s.cfg.Partly
	if err == nil {
		for _, row := range list.Value.Rows {
			if row.Who().Unit == h.Unit && row.Row.Key != key {
				a.Others = append(a.Others, row)
			}
		}
	}
	session := s.guard.session(r)
	if session == "" {
		session = s.guard.begin(w)
	}
	a.Proof = s.guard.sign("form", session)
	s.render(w, http.StatusOK, "free", page{Title: "Take " + plain.Line(string(key)), At: reading.At, Ask: a})
}

func (s *Server) changed(w http.ResponseWriter, key ordering.Key, why string) {
	s.freed(w, http.StatusConflict, key, "Not taken", "Nothing was changed.", why)
}

// freed says what became of a form.
func (s *Server) freed(w http.ResponseWriter, code int, key ordering.Key, title string, words ...string) {
	s.render(w, code, "freed", page{Title: title, Ask: ask{Key: key}, Words: words})
}

// free takes the key, from the unit that was shown and no other.
func (s *Server) free(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		s.say(w, http.StatusBadRequest, "Refused", "The form cannot be read: "+err.Error())
		return
	}
	if !s.guard.isForm(r, r.PostForm.Get("proof")) {
		s.say(w, http.StatusForbidden, "Refused", "The form is not of this session: open the key's page again.")
		return
	}
	key, unit := keyOf(r), r.PostForm.Get("unit") // a form changes the ends of lines in what it sends
	if err := key.Validate(); err != nil || unit == "" {
		s.say(w, http.StatusBadRequest, "Refused", "The form names no key, or no unit.")
		return
	}
	if sign := r.PostForm.Get("sign"); sign != "" { // it was shown as dead
		now, err := s.cfg.Tables.Story(key).Read(r.Context())
		if err != nil {
			s.say(w, http.StatusBadGateway, "Not taken", "Nothing was changed: the row could not be read: "+s.failure(err))
			return
		}
		if h := now.Row.Holder; h != nil && h.Unit == unit && h.RVN != sign {
			s.changed(w, key, "Unit "+unit+" was shown as dead, and has shown a sign of life since.")
			return
		}
	}
	told, err := s.cfg.Tables.Free(r.Context(), key, unit, strings.TrimSpace(r.PostForm.Get("reason")))
	switch {
	case errors.As(err, new(*inspect.FreeError)):
		s.changed(w, key, plain.Error(err)+".")
	case errors.As(err, new(*locks.ConfigError)):
		s.freed(w, http.StatusBadRequest, key, "Not taken", "Nothing was changed.", plain.Error(err)+".")
	case err != nil:
		s.freed(w, http.StatusBadGateway, key, "Not known", "Whether the key was taken is not known.", s.failure(err))
	default:
		s.freed(w, http.StatusOK, key, "Taken", told)
	}
}
