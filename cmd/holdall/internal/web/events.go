package web

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// answer shows what a feed has read last, or streams the part of it that changes.
func answer[T any](
	s *Server, w http.ResponseWriter, r *http.Request, feed *Feed[T], name string, of func(Reading[T]) page,
) {
	if !streams(r) {
		reading, err := feed.LatestWithin(r.Context(), patience)
		if err != nil {
			s.say(w, http.StatusServiceUnavailable, "Ended", err.Error())
			return
		}
		s.render(w, http.StatusOK, name, of(reading))
		return
	}
	out := stream(w)
	for reading := range feed.Follow(r.Context()) {
		if !out.send(name+"-live", of(reading)) {
			return
		}
	}
}

// streams reports whether a request is for a page's stream.
func streams(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") }

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
