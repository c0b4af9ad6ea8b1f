package engines

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"
)

func TestVirtualTimeOnAnEngine(t *testing.T) {
	Each(t, func(t *testing.T, e *Engine) {
		Virtual(t, e, func(t *testing.T, e *Engine) {
			table := e.CreateTable(t, "locks", "key", "")
			put(t, e, table, "Moe")
			time.Sleep(24 * time.Hour)
			require.True(t, has(t, e, table, "Moe"))

			before := time.Now()
			out, err := e.Client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
			require.NoError(t, err)
			require.Equal(t, RTT, time.Since(before))
			server, told := middleware.GetServerTime(out.ResultMetadata)
			require.True(t, told)
			require.WithinDuration(t, before, server, time.Second)
		})
	})
}

// However slow an engine is, a deadline does not pass while it answers, and a caller that gives up
// does not wait for it.
func TestVirtualTimeStandsStillDuringARequest(t *testing.T) {
	arrived, answer := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not notice that the caller is gone
		arrived <- struct{}{}
		select {
		case <-answer:
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_, _ = w.Write([]byte(`{"TableNames":[]}`))
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	Virtual(t, &Engine{Client: Client(server.URL)}, func(t *testing.T, e *Engine) {
		ask := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := e.Client.ListTables(ctx, &dynamodb.ListTablesInput{})
				done <- err
			}()
			<-arrived
			return done
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done := ask(ctx)
		answer <- struct{}{}
		require.NoError(t, <-done)

		done = ask(ctx)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}
