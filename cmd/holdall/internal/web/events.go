package web

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// overviewEvents streams the part of the first page that changes.
func (s *Server) overviewEvents(w http.ResponseWriter, r *http.Request) {
	f := filterOf(r.URL.Query())
	out := stream(w)
	for reading := range s.rows.Follow(r.Context()) {
		if !out.send("overview-live", s.overviewPage(f, reading)) {
			return
		}
	}
}

// storyEvents streams the part of a key's page that changes.
func (s *Server) storyEvents(w http.ResponseWriter, r *http.Request) {
	feed, ok := s.storyAsked(w, r)
	if !ok {
		return
	}
	key, out := keyOf(r), stream(w)
	for reading := range feed.Follow(r.Context()) {
		if !out.send("story-live", s.storyPage(key, reading)) {
			return
		}
	}
}

// events is a stream of server-sent events, each of which is a part of a page.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// stream begins at once, so that a browser knows that it is connected.
func stream(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	e := &events{w, http.NewResponseController(w)}
	e.write([]byte("retry: 2000\n\n"))
	return e
}

// send reports whether the browser still listens.
func (e *events) send(name string, p page) bool {
	var html, event bytes.Buffer
	if err := templates.ExecuteTemplate(&html, name, p); err != nil {
		return false
	}
	for line := range bytes.Lines(bytes.ReplaceAll(html.Bytes(), []byte("\r"), nil)) {
		fmt.Fprintf(&event, "data: %s\n", bytes.TrimSuffix(line, []byte("\n")))
	}
	event.WriteByte('\n')
	return e.write(event.Bytes())
}

func (e *events) write(b []byte) bool {
	// Not for the whole stream, which has no end, but for a browser that takes nothing.
	_ = e.control.SetWriteDeadline(time.Now().Add(slowest))
	if _, err := e.w.Write(b); err != nil {
		return false
	}
	return e.control.Flush() == nil
}
