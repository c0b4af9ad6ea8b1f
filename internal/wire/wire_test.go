package wire_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/wire"
)

// post sends a request as any client may.
func post(t *testing.T, server *httptest.Server, target, body string) (status int, answer map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("X-Amz-Target", target)
	response, err := server.Client().Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return response.StatusCode, answer
}

// Whatever is sent, the answer says what is wrong with it, and the server goes on.
func TestRequestsThatAreNone(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	server := httptest.NewServer(wire.Handler(db))
	defer server.Close()
	const get = "DynamoDB_20120810.GetItem"
	for _, c := range []struct{ target, body, code, message string }{
		{"", "{}", "UnknownOperationException", `""`},
		{"GetItem", "{}", "UnknownOperationException", `"GetItem"`},
		{"DynamoDB_20120810.Usage", "{}", "UnknownOperationException", "Usage"},
		{"DynamoDB_20120810.Options", "{}", "UnknownOperationException", "Options"},
		{"DynamoDB_20120810.CreateBackup", "{}", "UnknownOperationException", "CreateBackup"},
		{get, "", "SerializationException", "the request is not an object"},
		{get, "[]", "SerializationException", "the request is not an object"},
		{get, `{"Key":{"k":` + strings.Repeat(`{"L":[`, 4_000) + strings.Repeat(`]}`, 4_000) + `}}`, "ValidationException", "Nesting Levels have exceeded supported limits"},
		{get, `{"TableName":"table","Key":{"k":{"S":"` + strings.Repeat(`{`, 200) + `\""}}}`, "ResourceNotFoundException", "not found"},
		{get, `{"TableName":"t","Key":{"k":{}}}`, "ValidationException", "is empty"},
		{get, `{"TableName":3}`, "SerializationException", "TableName is not a string"},
		{get, `{"TableName":"t","Key":[]}`, "SerializationException", "Key is not an object"},
		{get, `{"TableName":"t","Key":{"k":{"S":1}}}`, "SerializationException", "Key.k.S is not a string"},
		{get, `{"TableName":"t","Key":{"k":{"B":"?"}}}`, "SerializationException", "Key.k.B is not base64"},
		{get, `{"TableName":"t","Key":{"k":{"S":"1","N":"1"}}}`, "ValidationException", "more than one datatypes"},
		{get, `{"TableName":"t","Key":{"k":{"X":"1"}}}`, "ValidationException", "is empty"},
		{get, `{"TableName":"table","Key":{"k":{"S":"1"}}}`, "ResourceNotFoundException", "not found"},
		{get, `{}`, "ValidationException", "TableName"},
	} {
		status, answer := post(t, server, c.target, c.body)
		require.Equal(t, http.StatusBadRequest, status, c)
		require.Equal(t, "com.amazonaws.dynamodb.v20120810#"+c.code, answer["__type"], c)
		require.Contains(t, answer["message"], c.message, c)
	}
	response, err := server.Client().Get(server.URL) //nolint:noctx // of this test
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	status, answer := post(t, server, "DynamoDB_20120810.ListTables", `{"Unknown":[]}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []any{}, answer["TableNames"])
}

// Who is gone hears nothing, whichever way it came.
func TestAnEndedContext(t *testing.T) {
	slow := memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return time.Minute }})
	server := httptest.NewServer(wire.Handler(slow))
	defer server.Close()
	for name, options := range map[string]dynamodb.Options{
		"in process": {BaseEndpoint: aws.String("http://dynamodb"), HTTPClient: wire.Transport{Engine: slow}},
		"by network": {BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client()},
	} {
		options.Region, options.Credentials, options.Retryer = "local", aws.AnonymousCredentials{}, aws.NopRetryer{}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := dynamodb.New(options).ListTables(ctx, &dynamodb.ListTablesInput{})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
}

// Answers and refusals have the engine's own date, whichever way they come, and none if it tells none.
func TestAnswersTellTheEnginesTime(t *testing.T) {
	for name, date := range map[string]time.Time{"a date": time.Date(2033, 3, 3, 3, 3, 3, 0, time.UTC), "none": {}} {
		db := memdynamo.New(memdynamo.Config{Date: func() time.Time { return date }})
		server := httptest.NewServer(wire.Handler(db))
		t.Cleanup(server.Close)
		for way, client := range map[string]aws.HTTPClient{"in process": wire.Transport{Engine: db}, "by network": server.Client()} {
			for operation, status := range map[string]int{"ListTables": http.StatusOK, "GetItem": http.StatusBadRequest} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{"TableName":"absent","Key":{}}`))
				require.NoError(t, err)
				r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
				response, err := client.Do(r)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.Equal(t, status, response.StatusCode)
				want := ""
				if !date.IsZero() {
					want = date.Format(http.TimeFormat)
				}
				require.Equal(t, want, response.Header.Get("Date"), "%s, %s, %s", name, way, operation)
			}
		}
	}
}
