package requests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// foreignError is the error of an answer that is not DynamoDB's: a proxy, a login page or a server
// of another kind sent it.
type foreignError struct {
	err    error
	status int    // 0 if the answer was not even HTTP
	target string // where a redirect leads to
	// unreached: DynamoDB did not receive the request. Any other answer may be that of a proxy that
	// passed the request on.
	unreached bool
	speaksTLS bool // and the request was sent without
}

func (e *foreignError) Error() string {
	switch {
	case e.status == 0:
		return "it answers in TLS"
	case e.target != "":
		return fmt.Sprintf("HTTP status %d %s, to %s", e.status, http.StatusText(e.status), e.target)
	}
	return strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", e.status, http.StatusText(e.status)))
}

func (e *foreignError) Unwrap() error { return e.err }

// diagnosis says what is wrong, and what to do.
func (e *foreignError) diagnosis() (problem, do string) {
	switch {
	case e.speaksTLS:
		return "the endpoint speaks HTTPS, and the request was HTTP", "begin the endpoint with https://"
	case e.status == http.StatusProxyAuthRequired:
		return "a proxy asks for a user and a password", adviceOnProxy
	}
	return "the answer is not DynamoDB's", "correct the endpoint, and see which proxies are in between"
}

const adviceOnProxy = "give them in HTTPS_PROXY or HTTP_PROXY, or name the endpoint in NO_PROXY"

// speaksTLS reports whether an answer says that the endpoint expects TLS, and the request had none.
func speaksTLS(err error) bool {
	var other *foreignError
	return errors.As(err, &other) && other.unreached && other.speaksTLS
}

// Texts by which servers that expect TLS tell a client that it sends none: of net/http and of nginx.
var expectsTLS = []string{"Client sent an HTTP request to an HTTPS server", "The plain HTTP request was sent to HTTPS port"}

func saysTLS(page []byte) bool {
	return slices.ContainsFunc(expectsTLS, func(text string) bool { return bytes.Contains(page, []byte(text)) })
}

// noLocation is the path to which the SDK's HTTP client redirects where an answer says none.
const noLocation = "/badhttpredirectlocation"

// beginsAsTLS is how net/http quotes an answer that is an alert of TLS.
const beginsAsTLS = `malformed HTTP response "\x15\x03`

// foreign returns what is known of an answer that is not DynamoDB's, and nil if it may be
// DynamoDB's: it has a request ID, or a code. Other engines than AWS's need not send the former.
// head is how the answer begins, if its status is 400; once: the request was sent over one
// connection at most.
func foreign(err error, head []byte, once bool) *foreignError {
	if once && strings.Contains(err.Error(), beginsAsTLS) {
		return &foreignError{err: err, unreached: true, speaksTLS: true}
	}
	var identified interface{ ServiceRequestID() string }
	var response *smithyhttp.ResponseError
	var unreadable *smithy.DeserializationError
	switch {
	case !errors.As(err, &response) || response.Response == nil || response.Response.Response == nil,
		errors.As(err, &identified) && identified.ServiceRequestID() != "":
		return nil
	case errors.Is(err, errNoObject), errors.Is(err, errUnmarked), hasCode(err, codeUnknown):
	case errors.As(err, new(smithy.APIError)):
		return nil
	case !errors.As(err, &unreadable) || len(unreadable.Snapshot) == 0: // the connection broke
		return nil
	}
	e := &foreignError{err: err, status: response.HTTPStatusCode()}
	e.speaksTLS = saysTLS(head)
	redirects := e.status/100 == 3
	if target, err := url.Parse(response.Response.Header.Get("Location")); err == nil && redirects && target.Path != noLocation {
		e.target = target.Host
	}
	e.unreached = once && (redirects || e.status == http.StatusProxyAuthRequired || e.speaksTLS)
	return e
}

// errNoObject is the error of reading an answer that says that all went well, and nothing else.
var errNoObject = errors.New("the answer has no JSON object")

// objectBody is the body of an answer of status 2xx. Every such answer of DynamoDB is a JSON object;
// the SDK takes an empty one for success, too, which a proxy may send.
type objectBody struct {
	io.ReadCloser
	begun bool
}

func (b *objectBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.begun {
		return n, err
	}
	text := bytes.TrimLeft(p[:n], " \t\r\n")
	switch {
	case len(text) > 0 && text[0] == '{':
		b.begun = true
	case len(text) > 0, errors.Is(err, io.EOF):
		return n, errNoObject
	}
	return n, err
}

// mostOfHead is how much of a refusal is looked at.
const mostOfHead = 1 << 10

// headOf reads how an answer begins, and leaves its body as if nothing had been read. How much a
// decoder reads before it finds that this is no JSON, and the SDK quotes, is theirs to choose. A
// server that expects TLS hangs up on a request that it has not read, so that the connection may
// break behind the refusal.
func headOf(answer *http.Response) []byte {
	head, err := io.ReadAll(io.LimitReader(answer.Body, mostOfHead))
	rest := io.Reader(answer.Body) // it fails again, if it has
	if err != nil && saysTLS(head) {
		rest = http.NoBody
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), answer.Body}
	return head
}

var errUnmarked = errors.New("the answer is not marked as DynamoDB's")

// marked reports whether an answer is marked as DynamoDB's, and of every engine that we know: by its
// content type, application/x-amz-json-1.0, or by a request ID.
func marked(answer *http.Response) bool {
	return answer.Header.Get("X-Amzn-Requestid") != "" || strings.Contains(answer.Header.Get("Content-Type"), "x-amz-json")
}

// withObject makes reading an answer of status 2xx fail unless it is DynamoDB's, and has a JSON
// object: what another server answers to a write is no success, though it be an object. What is
// compressed is not looked into: a compressed nothing is not sent by accident.
func withObject(answer *http.Response) {
	switch {
	case answer.StatusCode/100 != 2:
	case !marked(answer):
		answer.Body = &unmarkedBody{answer.Body}
	case answer.Header.Get("Content-Encoding") == "":
		answer.Body = &objectBody{ReadCloser: answer.Body}
	}
}

// unmarkedBody is a body that nobody reads.
type unmarkedBody struct{ io.ReadCloser }

func (*unmarkedBody) Read([]byte) (int, error) { return 0, errUnmarked }
