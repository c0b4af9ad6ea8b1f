package requests

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// departure observes whether one sending leaves this process. It proves that it did not in two
// cases: the SDK's client began the request and never handed it to its HTTP client, for want of
// a Region, an endpoint or credentials; or net/http asked for a connection and never had one.
// A DynamoDB that is not the SDK's client proves nothing.
type departure struct {
	began, handed atomic.Bool
	asked         atomic.Bool
	connections   atomic.Int32
	head          atomic.Value // []byte: of an answer of status 400
}

// options are those of the sending. The SDK's own retries are off: their sendings could not be
// told apart.
func (d *departure) options(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	if o.HTTPClient == nil {
		return
	}
	o.HTTPClient = &observed{o.HTTPClient, d}
	o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("holdall:departure", d.begin), middleware.Before)
	})
}

func (d *departure) begin(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	d.began.Store(true)
	return next.HandleInitialize(ctx, in)
}

// observed is the HTTP client of one sending. What fetches credentials has another.
type observed struct {
	client dynamodb.HTTPClient
	*departure
}

// Do implements aws.HTTPClient.
func (o *observed) Do(r *http.Request) (*http.Response, error) {
	o.handed.Store(true)
	answer, err := o.client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { o.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { o.connections.Add(1) },
	})))
	switch {
	case err != nil || answer.Body == nil:
	case answer.StatusCode == http.StatusBadRequest:
		o.head.Store(headOf(answer))
	default:
		withObject(answer)
	}
	return answer, err
}

// mark wraps an error for [KindOf] if more is known of its sending than the error shows.
func (d *departure) mark(err error) error {
	if err == nil {
		return nil
	}
	connections := d.connections.Load()
	switch {
	case d.began.Load() && !d.handed.Load(), d.asked.Load() && connections == 0:
		return &observedError{err, false}
	case connections > 0 && isUnsent(err): // an HTTP client that tries twice, say
		return &observedError{err, true}
	}
	head, _ := d.head.Load().([]byte)
	if other := foreign(err, head, connections <= 1); other != nil {
		return other
	}
	return err
}

// observedError is the error of a sending of which is known whether it left this process.
type observedError struct {
	err  error
	left bool
}

func (e *observedError) Error() string { return e.err.Error() }
func (e *observedError) Unwrap() error { return e.err }

// isUnsent reports whether a sending is known not to have left this process. Without a departure
// the types of errors tell: one sending is one attempt, so if that found no host or no
// connection, nothing was sent.
func isUnsent(err error) bool {
	var known *observedError
	var op *net.OpError
	switch {
	case err == nil:
		return false
	case errors.As(err, &known):
		return !known.left
	}
	return neverSent(err) || hasNoRegion(err) ||
		errors.As(err, new(*net.DNSError)) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") ||
		errors.As(err, new(*tls.CertificateVerificationError)) || isMalformed(err) || errors.As(err, new(*v4.SigningError))
}

// neverSent reports errors of the SDK about the request itself.
func neverSent(err error) bool {
	return errors.As(err, new(*smithy.SerializationError)) || errors.As(err, new(smithy.InvalidParamsError))
}

// hasNoRegion: the rules by which the SDK finds an endpoint have no type for it.
func hasNoRegion(err error) bool {
	return errors.As(err, new(*aws.MissingRegionError)) || strings.Contains(err.Error(), "Invalid Configuration: Missing Region")
}

// isMalformed reports whether net/http rejected a request before it asked for a connection. It has
// no types for that.
func isMalformed(err error) bool {
	return !errors.As(err, new(smithy.APIError)) && slices.ContainsFunc([]string{
		"unsupported protocol scheme", "http: no Host in request URL", invalidHeader, "net/http: invalid method",
	}, func(words string) bool { return strings.Contains(err.Error(), words) })
}

const invalidHeader = "net/http: invalid header field"

// isOfAnotherProtocol reports whether a server that was connected to does not speak TLS: its first
// bytes were none of TLS, so it had no request to look at. Once a connection is there, the same
// error means that it broke.
func isOfAnotherProtocol(err error) bool {
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(tls.RecordHeaderError))
}

// wantsProxyPassword reports whether a proxy refused to connect to the endpoint. net/http returns
// the text of the status alone.
func wantsProxyPassword(err error) bool {
	return !errors.As(err, new(smithy.APIError)) && strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired))
}

// mayLeaveLater reports whether what kept a sending in this process may be over by itself: a
// service did not answer, or was busy, or time ran out. What no service was asked about, such
// as a Region that is not set, and what one has denied, stays.
func mayLeaveLater(err error) bool {
	var dns *net.DNSError
	switch {
	case neverSent(err), hasNoRegion(err), isMalformed(err), errors.As(err, new(*tls.CertificateVerificationError)),
		errors.As(err, new(*net.AddrError)), isOfAnotherProtocol(err), wantsProxyPassword(err):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), serverSide(err), statusOf(err) == http.StatusTooManyRequests:
		return true
	case errors.As(err, new(smithy.APIError)): // of the service that gives credentials
		return hasCode(err, slices.Concat(busyCodes, noAnswerCodes, expiredCodes)...) || hasCode(err, "IDPCommunicationError")
	case statusOf(err) != 0:
		return false
	}
	return errors.As(err, new(net.Error))
}
