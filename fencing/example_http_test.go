package fencing_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/holdall/holdall/fencing"
)

// TokenHeader has the token of the lock under which a request was made.
const TokenHeader = "Fencing-Token"

// documents serves PUT /documents/{id}. It refuses a token that is older than the
// one that wrote the document last.
func documents(db *sql.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, err := strconv.ParseInt(r.Header.Get(TokenHeader), 10, 64)
		if err != nil || !fencing.Token(token).Valid() {
			http.Error(w, TokenHeader+" is missing, or not a token", http.StatusPreconditionRequired)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the body broke off", http.StatusBadRequest)
			return
		}
		// Compared and written by one statement: nobody comes between.
		result, err := db.ExecContext(r.Context(), `INSERT INTO documents (id, token, body) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET token = excluded.token, body = excluded.body
			WHERE documents.token <= excluded.token`, r.PathValue("id"), token, body)
		var written int64
		if err == nil {
			written, err = result.RowsAffected()
		}
		switch {
		case err != nil:
			http.Error(w, "not known to be written", http.StatusInternalServerError)
		case written == 0:
			http.Error(w, "token is stale", http.StatusPreconditionFailed)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}
}

// PutDocument writes a document under a lock whose token this is.
func PutDocument(ctx context.Context, url string, token fencing.Token, body string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set(TokenHeader, token.String())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err // it may have been written
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusPreconditionFailed:
		return fmt.Errorf("%s: %w", r.URL.Path, fencing.ErrStale)
	default:
		return fmt.Errorf("%s: %s", r.URL.Path, answer.Status)
	}
}

func ExampleToken_http() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	if _, err := db.ExecContext(ctx, "CREATE TABLE documents (id TEXT PRIMARY KEY, token BIGINT NOT NULL, body BLOB)"); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("PUT /documents/{id}", documents(db))
	server := httptest.NewServer(mux)
	defer server.Close()

	url := server.URL + "/documents/7"
	sleeper, successor := fencing.Token(1_753_000_000_000_001), fencing.Token(1_753_000_000_000_009)
	fmt.Println(PutDocument(ctx, url, successor, "new"))
	fmt.Println(PutDocument(ctx, url, successor, "new")) // a proxy sends it again
	fmt.Println(PutDocument(ctx, url, sleeper, "old"))
	fmt.Println(PutDocument(ctx, url, 0, "no token"))
	// Output:
	// <nil>
	// <nil>
	// /documents/7: token is stale
	// /documents/7: 428 Precondition Required
}
