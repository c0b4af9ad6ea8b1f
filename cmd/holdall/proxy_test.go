package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxied starts a proxy in front of the engine. What handle has answered itself, which it
// reports, does not reach the engine; change, which may be nil, is given the engine's answers.
func (b *bed) proxied(t *testing.T, handle func(http.ResponseWriter, request) bool, change func(*http.Response) error) (endpoint string) {
	to, err := url.Parse(b.Endpoint)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = change
	server := &http.Server{ReadHeaderTimeout: aLongTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		signed, _ := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if !handle(w, request{op, body, signed}) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, r)
		}
	})}
	listener := listen(t)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return "http://" + listener.Addr().String()
}

// request is what a proxy sees of one.
type request struct {
	op     string
	body   []byte
	signed time.Time // by its sender's clock
}

// names reports whether it is about a table.
func (r request) names(table string) bool { return bytes.Contains(r.body, []byte(`"`+table+`"`)) }

// refuse answers as DynamoDB does with an error, whose names in JSON are those that it has.
func refuse(w http.ResponseWriter, kind, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": message})
}

// withholding answers as AWS does to a role that lacks permissions on a table: a statement of
// PartiQL is denied within an answer that is no error.
func withholding(table string, permissions ...string) func(http.ResponseWriter, request) bool {
	return func(w http.ResponseWriter, r request) bool {
		for _, p := range permissions {
			says := fmt.Sprintf("User: arn:aws:sts::123456789012:assumed-role/on-call/ann is not authorized to perform: dynamodb:%s on resource: "+
				"arn:aws:dynamodb:us-east-1:123456789012:table/%s because no identity-based policy allows the dynamodb:%s action", p, table, p)
			switch {
			case r.op == p && r.names(table):
				refuse(w, "com.amazon.coral.service#AccessDeniedException", says)
				return true
			case r.op == "BatchExecuteStatement" && p == "PartiQLUpdate" && bytes.Contains(r.body, []byte("UPDATE")):
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				_ = json.NewEncoder(w).Encode(map[string]any{"Responses": []any{map[string]any{
					"Error": map[string]string{"Code": "AccessDenied", "Message": says},
				}}})
				return true
			}
		}
		return false
	}
}

// throttling refuses every nth request for items.
func throttling(n int64) func(http.ResponseWriter, request) bool {
	var seen atomic.Int64
	return func(w http.ResponseWriter, r request) bool {
		if strings.HasPrefix(r.op, "Describe") || seen.Add(1)%n != 0 {
			return false
		}
		refuse(w, "com.amazon.coral.availability#ThrottlingException", "Rate of requests exceeds the allowed throughput.")
		return true
	}
}

// late refuses what was signed too long before, or after, the time that dated tells.
func late(off time.Duration) func(http.ResponseWriter, request) bool {
	return func(w http.ResponseWriter, r request) bool {
		now := time.Now().Add(off)
		if now.Sub(r.signed).Abs() <= 5*time.Minute {
			return false
		}
		const form = "20060102T150405Z"
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		refuse(w, "com.amazon.coral.service#InvalidSignatureException", fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)",
			r.signed.UTC().Format(form), now.Add(-5*time.Minute).UTC().Format(form), now.UTC().Format(form)))
		return true
	}
}

// dated changes the time that answers tell.
func dated(off time.Duration) func(*http.Response) error {
	return func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		return nil
	}
}
