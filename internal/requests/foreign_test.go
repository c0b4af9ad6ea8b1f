package requests_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

// sendTo sends one GetItem to an endpoint.
func sendTo(t *testing.T, endpoint string, change ...func(*dynamodb.Options)) (requests.Kind, error) {
	t.Helper()
	db := served(t, nil)
	kind, err := getOnce(t, func(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
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

// A server that expects TLS may cut the connection before its words are read. Once they are, nothing
// that was sent there has reached DynamoDB.
func TestNoSendingReachesAnEndpointThatExpectsTLS(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	go func() {
		for n := 1; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			if n > 2 {
				const says = "Client sent an HTTP request to an HTTPS server.\n"
				_, _ = fmt.Fprintf(conn, "HTTP/1.0 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s", len(says), says)
			}
			_ = conn.Close()
		}
	}()
	db := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("x", "x", ""), BaseEndpoint: aws.String("http://" + listener.Addr().String()),
	})
	caller := &requests.Caller{DB: db, Attempt: 5 * time.Second, Patience: time.Minute}
	sent, err := caller.Update(t.Context(), "id", &types.Update{
		TableName: aws.String("t"), Key: key("v"), UpdateExpression: aws.String("REMOVE a"),
	})
	require.ErrorContains(t, err, "begin the endpoint with https://")
	require.Zero(t, sent.Unanswered)
}

// The error of a request that was not answered says what every sending came to.
func TestTheWordsOfNoAnswer(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	conflict := coded("TransactionConflictException", "m")
	cause := errors.New("the work is over")
	for name, c := range map[string]struct {
		errs  []error // of the sendings, the last one again and again
		after time.Duration
		says  string
	}{
		"nothing sent":           {[]error{refused}, 0, "GetItem: nothing could be sent for 20s: DynamoDB cannot be connected to (dial tcp: connection refused): see whether this host reaches the endpoint"},
		"nothing sent in time":   {[]error{refused}, 50 * time.Millisecond, "GetItem: the work is over; nothing could be sent: DynamoDB cannot be connected to (dial tcp: connection refused): see whether this host reaches the endpoint"},
		"throttled":              {[]error{coded("ThrottlingException", "m")}, 0, "GetItem: DynamoDB was too busy for 20s: api error ThrottlingException: m"},
		"throttled in time":      {[]error{coded("ThrottlingException", "m")}, time.Second, "GetItem: the work is over; DynamoDB was too busy: api error ThrottlingException: m"},
		"conflicts":              {[]error{conflict}, 0, "GetItem: transactions of others were in the way for 20s: api error TransactionConflictException: m"},
		"a limit":                {[]error{coded("LimitExceededException", "m")}, 0, "GetItem: DynamoDB was too busy for 20s: a limit of the account is reached (api error LimitExceededException: m): wait until other operations on its tables are over, or have the limit raised"},
		"another Region":         {[]error{coded("ReplicatedWriteConflictException", "m")}, 0, "GetItem: transactions of others were in the way for 20s: a write in another Region is in the way (api error ReplicatedWriteConflictException: m): write each item in one Region at a time"},
		"expired credentials":    {[]error{coded("ExpiredTokenException", "m")}, 0, "GetItem: no request was accepted for 20s: the credentials have expired (api error ExpiredTokenException: m): renew them"},
		"silence":                {[]error{errHang}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt was not answered within 1s"},
		"silence, ended":         {[]error{errHang}, 300 * time.Millisecond, "GetItem: the work is over; the last attempt was not answered within 300ms"},
		"a connection that ends": {[]error{errReset}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt: connection reset by peer"},
		"silence, then busy":     {[]error{errHang, coded("ThrottlingException", "m")}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt: api error ThrottlingException: m"},
		"unsent, then silence":   {[]error{refused, errHang}, 0, "GetItem: DynamoDB did not answer for too long; the last attempt was not answered within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.after > 0 {
					var cancel func()
					ctx, cancel = context.WithTimeoutCause(ctx, c.after, cause)
					defer cancel()
				}
				s := &script{errs: c.errs}
				for len(s.errs) < 1000 {
					s.errs = append(s.errs, c.errs[len(c.errs)-1])
				}
				_, err := do(t, s, ctx)
				require.EqualError(t, err, strings.ReplaceAll(c.says, "api error ", ""))
			})
		})
	}
}

// A wrong clock is named with how wrong it is, by DynamoDB's words or by the time of its answer.
func TestTheWordsOfAWrongClock(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		off     time.Duration // by the header
		says    string
	}{
		"behind, by words":  {"Signature expired: 20261126T010000Z is now earlier than 20261126T025500Z (20261126T030000Z - 5 min.)", 0, "this machine's clock is 2h0m0s behind AWS's ("},
		"ahead, by words":   {"Signature not yet current: 20261126T050000Z is still later than 20261126T030500Z (20261126T030000Z + 5 min.)", 0, "this machine's clock is 2h0m0s ahead of AWS's ("},
		"behind, by header": {"Signature expired", time.Hour, "this machine's clock is 1h0m0s behind AWS's ("},
		"ahead, by header":  {"Signature not yet current", -time.Hour, "this machine's clock is 1h0m0s ahead of AWS's ("},
		"nothing to see":    {"Signature expired", 0, "this machine's clock is wrong ("},
	} {
		t.Run(name, func(t *testing.T) {
			db := served(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Date"] = nil
				if c.off != 0 {
					signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
					if err != nil {
						panic(err)
					}
					w.Header().Set("Date", signed.Add(c.off).Format(http.TimeFormat))
				}
				answer(400, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"`+c.message+`"}`)(w, r)
			})
			caller := &requests.Caller{Attempt: 5 * time.Second, Patience: 30 * time.Millisecond}
			_, sent, err := requests.Do(t.Context(), caller, requests.Request{Op: "GetItem"}, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key("v")}, db.GetItem)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "): set it, and keep it right by NTP")
			require.NotContains(t, err.Error(), "secret")
			require.Zero(t, sent.Sendings, "none was accepted")
		})
	}
}

// What AWS says of a policy decides what is to be done.
func TestTheWordsOfADenial(t *testing.T) {
	const who = "User: arn:aws:iam::1:user/u is not authorized to perform: dynamodb:GetItem on resource: arn:aws:dynamodb:eu-west-1:1:table/a"
	const kms = "User: arn:aws:iam::1:user/u is not authorized to perform: kms:Decrypt on resource: arn:aws:kms:eu-west-1:1:key/k"
	for said, want := range map[string]string{
		who: "allow dynamodb:GetItem",
		who + " because no identity-based policy allows the dynamodb:GetItem action":       "allow dynamodb:GetItem in the identity-based policy",
		who + " because no permissions boundary allows the dynamodb:GetItem action":        "allow dynamodb:GetItem in the permissions boundary",
		who + " because no VPC endpoint policy allows the dynamodb:GetItem action":         "allow dynamodb:GetItem in the VPC endpoint policy",
		who + " because no service control policy allows the dynamodb:GetItem action":      "allow dynamodb:GetItem in the service control policy",
		who + " with an explicit deny in an identity-based policy":                         "change the identity-based policy that forbids dynamodb:GetItem: no other policy can allow it",
		who + " with an explicit deny in a VPC endpoint policy":                            "change the VPC endpoint policy that forbids dynamodb:GetItem: no other policy can allow it",
		who + " with an explicit deny in a resource control policy: arn:aws:organizations": "change the resource control policy that forbids dynamodb:GetItem: no other policy can allow it",
		"no": "allow what `holdall init --print iam` prints",
		kms:  "enable the table's KMS key, and allow kms:Decrypt",
		kms + " with an explicit deny in a service control policy":                                                          "enable the table's KMS key, and change the service control policy that forbids kms:Decrypt: no other policy can allow it",
		"The ciphertext refers to a customer master key that does not exist, or you are not allowed to access.":             "enable the table's KMS key, and allow this process to use it",
		"KMS key access denied error: KMS key is disabled, or a policy of it does not let this user have what it asks for.": "enable the table's KMS key, and allow this process to use it",
	} {
		err := &requests.TableError{Op: "Op", Tables: []string{"a"}, Err: coded("AccessDeniedException", said)}
		require.True(t, strings.HasSuffix(err.Error(), "): "+want), "%s\n%s", err, want)
	}
}

// A long key is cut in the middle, between two characters.
func TestShortened(t *testing.T) {
	short := strings.Repeat("k", 100)
	require.Equal(t, short, requests.Shortened(short))
	long := requests.Shortened("head" + strings.Repeat("ä", 1000) + "tail")
	require.LessOrEqual(t, len(long), 105)
	require.Equal(t, "head", long[:4])
	require.Contains(t, long, "ä…ä")
	require.True(t, strings.HasSuffix(long, "ätail"))
	require.NotContains(t, long, "\ufffd")
	require.NotEmpty(t, requests.Shortened(strings.Repeat("\x80", 1000)), "what is not UTF-8 has no place to cut")
}
