package requests_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// sendTo sends one GetItem to an endpoint.
func sendTo(t *testing.T, endpoint string, change ...func(*dynamodb.Options)) (requests.Kind, error) {
	t.Helper()
	db := served(t, nil)
	caller := &requests.Caller{Attempt: 5 * time.Second, Patience: time.Minute}
	in := &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key("v")}
	_, kind, err := requests.Once(t.Context(), caller, "GetItem", 1, in, func(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
		change = append(change, func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(endpoint) })
		return db.GetItem(ctx, in, append(change, opts...)...)
	})
	return kind, err
}

// What net/http and the SDK do not send, and what a server cannot have understood, was not carried
// out, and never will be.
func TestAnEndpointThatCannotBeRight(t *testing.T) {
	secure := httptest.NewUnstartedServer(answer(200, `{}`))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(answer(200, `{}`))
	defer plain.Close()
	https, found := strings.CutPrefix(plain.URL, "http://")
	require.True(t, found)
	for name, endpoint := range map[string]string{
		"no host":                   "http://",
		"no scheme":                 "localhost:8000",
		"a scheme of another kind":  "ftp://127.0.0.1:1",
		"a port that cannot be":     "http://127.0.0.1:99999",
		"a port that is no number":  "http://127.0.0.1:port",
		"HTTP to a server of HTTPS": strings.Replace(secure.URL, "https", "http", 1),
		"HTTPS to a server of HTTP": "https://" + https,
		"an unknown authority":      secure.URL,
	} {
		t.Run(name, func(t *testing.T) {
			kind, err := sendTo(t, endpoint)
			for range 9 { // a server that hangs up on what it has not read may break the connection before its answer
				if kind == requests.NoAnswer {
					kind, err = sendTo(t, endpoint)
				}
			}
			require.Equal(t, requests.Invalid, kind, "%v", err)
			require.True(t, requests.ConcernsAll(err))
		})
	}
}

// A proxy's answers are named for what they are. Only those prove something that a server gives
// instead of passing a request on.
func TestAnAnswerThatIsNotDynamoDBs(t *testing.T) {
	page := `<html><head><title>no</title></head></html>`
	headed := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const foreign = "the answer is not DynamoDB's (HTTP status "
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		kind    requests.Kind
		says    string
	}{
		"moved":                       {headed(301, "", "Location", "https://elsewhere.example/x?secret"), requests.Invalid, foreign + "301 Moved Permanently, to elsewhere.example)"},
		"moved, nobody knows where":   {headed(302, page), requests.Invalid, foreign + "302 Found)"},
		"a proxy's password":          {headed(407, page), requests.Invalid, "a proxy asks for a user and a password (HTTP status 407 Proxy Authentication Required): give them in HTTPS_PROXY"},
		"forbidden":                   {headed(403, page), requests.NoAnswer, foreign + "403 Forbidden): correct the endpoint, and see which proxies are in between"},
		"forbidden, in JSON":          {headed(403, `{"message":"Forbidden"}`), requests.NoAnswer, foreign + "403 Forbidden)"},
		"not found":                   {headed(404, page), requests.NoAnswer, foreign + "404 Not Found)"},
		"a bad gateway":               {headed(502, page), requests.NoAnswer, foreign + "502 Bad Gateway)"},
		"a status without a name":     {headed(599, page), requests.NoAnswer, foreign + "599)"},
		"nothing":                     {headed(200, ""), requests.NoAnswer, foreign + "200 OK)"},
		"blanks":                      {headed(200, " \r\n"), requests.NoAnswer, foreign + "200 OK)"},
		"a page":                      {headed(200, page), requests.NoAnswer, foreign + "200 OK)"},
		"null":                        {headed(200, "null"), requests.NoAnswer, foreign + "200 OK)"},
		"a list":                      {headed(200, "[]"), requests.NoAnswer, foreign + "200 OK)"},
		"no content":                  {headed(204, ""), requests.NoAnswer, foreign + "204 No Content)"},
		"too large for a proxy":       {headed(413, page), requests.Invalid, "the request is too large: HTTP status 413 Request Entity Too Large"},
		"another server's object":     {headed(200, `{"ok":true}`, "Content-Type", "application/json"), requests.NoAnswer, foreign + "200 OK)"},
		"an object with an ID":        {headed(200, "{}", "X-Amzn-Requestid", "r"), requests.Done, ""},
		"an object behind blanks":     {headed(200, " \n{}", "Content-Type", "application/x-amz-json-1.0"), requests.Done, ""},
		"DynamoDB's, though a page":   {headed(403, page, "X-Amzn-Requestid", "r"), requests.NoAnswer, "the last attempt: deserialization failed"},
		"DynamoDB's, without an ID":   {headed(400, `{"__type":"x#ValidationException","message":"m"}`), requests.Invalid, "ValidationException: m"},
		"DynamoDB's, broken off":      {broken(400, failed), requests.NoAnswer, "the last attempt: "},
		"DynamoDB's, with no content": {headed(200, "", "X-Amzn-Requestid", "r"), requests.NoAnswer, "the answer has no JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			kind, err := sendTo(t, server.URL)
			require.Equal(t, c.kind, kind, "%v", err)
			switch kind {
			case requests.Done:
				return
			case requests.Invalid:
				err = &requests.TableError{Op: "Op", Tables: []string{"a"}, Err: err}
			default:
				require.False(t, requests.ConcernsAll(err), "its sending counts")
				err = &requests.NoAnswerError{Op: "Op", Last: err, End: requests.ErrPatience}
			}
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// over is an HTTP client that sends each request over two connections.
type over struct{ first, second string }

func (o over) Do(r *http.Request) (*http.Response, error) {
	for _, address := range []string{o.first, o.second} {
		again := r.Clone(r.Context())
		again.URL.Host, again.Body = address, http.NoBody
		again.ContentLength = 0
		answered, err := http.DefaultTransport.RoundTrip(again)
		if err != nil || address == o.second {
			return answered, err
		}
		_ = answered.Body.Close()
	}
	return nil, nil
}

// A refusal of the last connection proves nothing about an earlier one.
func TestARedirectAfterAnotherSending(t *testing.T) {
	first, second := httptest.NewServer(answer(200, `{}`)), httptest.NewServer(answer(302, ``))
	defer first.Close()
	defer second.Close()
	kind, err := sendTo(t, first.URL, func(o *dynamodb.Options) {
		o.HTTPClient = over{first.Listener.Addr().String(), second.Listener.Addr().String()}
	})
	require.Equal(t, requests.NoAnswer, kind, "%v", err)
}
