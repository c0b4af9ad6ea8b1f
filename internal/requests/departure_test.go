package requests_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// twice is an HTTP client that sends a request, loses the answer, and cannot connect the second time.
type twice struct{}

func (twice) Do(r *http.Request) (*http.Response, error) {
	if answered, err := http.DefaultClient.Do(r); err == nil {
		_ = answered.Body.Close()
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// An error of the last connection proves nothing about an earlier one.
func TestWhatHadAConnectionMayHaveBeenSent(t *testing.T) {
	db := served(t, answer(200, `{}`))
	server := httptest.NewServer(answer(200, `{}`))
	defer server.Close()
	caller := &requests.Caller{Attempt: 5 * time.Second, Patience: time.Minute}
	in := &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key("v")}
	_, kind, err := requests.Once(t.Context(), caller, "GetItem", 1, in, func(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
		before := func(o *dynamodb.Options) { o.HTTPClient, o.BaseEndpoint = twice{}, aws.String(server.URL) }
		return db.GetItem(ctx, in, append([]func(*dynamodb.Options){before}, opts...)...)
	})
	require.Equal(t, requests.NoAnswer, kind, "%v", err)
}
