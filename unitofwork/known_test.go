package unitofwork_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/wire"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What is known not to have happened is never told as in doubt (P5), whatever call it ends: with the
// SDK's own client, and the errors that it really makes.

// outage is a way in which requests come to nothing.
type outage struct {
	region      bool
	credentials func(context.Context) (aws.Credentials, error)
	endpoint    string
	dial        func(context.Context) error
	says        string // what a server says, whatever it receives
	code        string // of every answer,
	message     string // and what it says
	page        *page
}

// network is the way of a client to the engine, until it is broken.
type network struct {
	outage
	broken atomic.Bool
}

// page is what a server answers that is not DynamoDB.
type page struct {
	status int
	body   string
	header http.Header
}

// Credentials and connections as they are when all is well.
var given = aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}

func (o *network) Retrieve(ctx context.Context) (aws.Credentials, error) {
	if o.broken.Load() && o.credentials != nil {
		return o.credentials(ctx)
	}
	return given, nil
}

func (o *network) ResolveEndpoint(ctx context.Context, params dynamodb.EndpointParameters) (smithyendpoints.Endpoint, error) {
	switch {
	case o.broken.Load() && o.region:
		params.Region = nil
	case o.broken.Load() && o.endpoint != "":
		uri, err := url.Parse(o.endpoint)
		if err != nil {
			return smithyendpoints.Endpoint{}, err
		}
		return smithyendpoints.Endpoint{URI: *uri}, nil
	}
	return dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, params)
}

// over is an HTTP client that reaches the engine unless there is an outage.
type over struct {
	*network
	wire.Transport
}

func (o over) Do(r *http.Request) (*http.Response, error) {
	switch {
	case !o.broken.Load():
		return o.Transport.Do(r)
	case o.dial != nil:
		return through(func(ctx context.Context) (net.Conn, error) { return nil, o.dial(ctx) }).Do(r)
	case o.says != "":
		return through(func(context.Context) (net.Conn, error) { return talking(o.says), nil }).Do(r)
	case o.endpoint != "":
		return http.DefaultClient.Do(r)
	case o.page != nil:
		return response(r, *o.page), nil
	case o.code != "":
		body := fmt.Sprintf(`{"__type":"com.amazon.coral.service#%s","message":%q}`, o.code, o.message)
		return response(r, page{http.StatusBadRequest, body, http.Header{"X-Amzn-Requestid": {"ABCDEFGH"}}}), nil
	}
	return o.Transport.Do(r)
}

// through is an HTTP client that connects by dial.
func through(dial func(context.Context) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}
}

// talking is a connection to a server that answers the first request it receives, or the first
// bytes of TLS.
func talking(says string) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		reader := bufio.NewReader(server)
		if begin, _ := reader.Peek(1); string(begin) == "P" { // of POST
			if r, err := http.ReadRequest(reader); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
		}
		_, _ = io.WriteString(server, says)
		_, _ = io.Copy(io.Discard, server) // until the client hangs up
	}()
	return client
}

func response(r *http.Request, p page) *http.Response {
	header := p.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: p.status, Header: header, Request: r, ContentLength: int64(len(p.body)),
		Body: io.NopCloser(strings.NewReader(p.body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// on is a client of the SDK that the outage concerns.
func (o *network) on(b *bed, change func(*unitofwork.Config)) *unitofwork.Client {
	b.t.Helper()
	db := dynamodb.New(dynamodb.Options{
		Region: "eu-west-1", Credentials: o,
		EndpointResolverV2: o, HTTPClient: over{o, wire.Transport{Engine: b.db}},
	})
	cfg := unitofwork.Config{Table: "units", Locks: lockset.Config{Table: "locks", Lease: lease}}
	if change != nil {
		change(&cfg)
	}
	client, err := unitofwork.Open(db, cfg)
	require.NoError(b.t, err)
	return client
}

// said is an outage, and what the error is to say of it.
type said struct {
	outage outage
	says   string
}

// dialing is an outage in which no connection is made.
func dialing(err error) outage { return outage{dial: func(context.Context) error { return err }} }

// notDialed is dialing with an error of package net.
func notDialed(err error) outage { return dialing(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }

// forbidden is an outage in which a policy denies an action on a resource.
func forbidden(action, resource, why string) outage {
	const who = "User: arn:aws:iam::1:user/u is not authorized to perform: "
	return outage{code: "AccessDeniedException", message: who + action + " on resource: arn:aws:" + resource + why}
}

const (
	updating  = "dynamodb:UpdateItem"
	lockTable = "dynamodb:eu-west-1:1:table/locks"
	noKMSKey  = "The ciphertext refers to a customer master key that does not exist, does not exist in this region, " +
		"or you are not allowed to access."
	plainHTTP = "HTTP/1.1 400 Bad Request\r\nContent-Length: 48\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
	tooOld    = "Signature expired: 20261126T010000Z is now earlier than 20261126T025500Z (20261126T030000Z - 5 min.)"
	notYet    = "Signature not yet current: 20261126T050000Z is still later than 20261126T030500Z (20261126T030000Z + 5 min.)"
)

// a page of nginx, whose title is far from its beginning
var plainToNginx = "<html><!--" + strings.Repeat(" ", 600) +
	"--><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>"

// outages that no later call can escape, by name.
var forGood = map[string]said{
	"no Region":      {outage{region: true}, "no Region is set"},
	"no credentials": {outage{credentials: credentials.NewStaticCredentialsProvider("", "", "").Retrieve}, "there are no credentials"},
	"no such host": {
		notDialed(&net.DNSError{Err: "no such host", Name: "dynamodb.nowhere", IsNotFound: true}), `there is no host "dynamodb.nowhere"`,
	},
	"an unknown key": {
		outage{code: "UnrecognizedClientException", message: "The security token included in the request is invalid."},
		"the credentials were rejected: AWS does not know the access key",
	},
	"an endpoint without a host":   {outage{endpoint: "http://"}, `the endpoint "http:///" is wrong`},
	"an endpoint without a scheme": {outage{endpoint: "localhost:8000"}, `the endpoint "localhost:///" is wrong`},
	"a port that cannot be":        {outage{endpoint: "http://127.0.0.1:99999"}, `the endpoint "http://127.0.0.1:99999/" is wrong`},
	"HTTPS to a server of HTTP": {
		outage{endpoint: "https://here:8000", says: "HTTP/1.0 400 Bad Request\r\n\r\n"},
		`the endpoint "https://here:8000/" does not speak HTTPS`,
	},
	"HTTPS to a server of something else": {
		outage{endpoint: "https://here:22", says: "SSH-2.0-OpenSSH_9.9\r\n"}, `the endpoint "https://here:22/" does not speak HTTPS`,
	},
	"HTTP to a server of HTTPS": {
		outage{endpoint: "http://here:443", says: plainHTTP}, "the endpoint speaks HTTPS, and the request was HTTP",
	},
	"HTTP to nginx with HTTPS": {
		outage{page: &page{status: 400, body: plainToNginx}}, "the endpoint speaks HTTPS, and the request was HTTP",
	},
	"HTTP to a server of TLS": {
		outage{endpoint: "http://here:443", says: "\x15\x03\x01\x00\x02\x02\x46\r\n"}, "the endpoint speaks HTTPS, and the request was HTTP",
	},
	"a redirect": {
		outage{page: &page{http.StatusFound, "", http.Header{"Location": {"https://login.example/?token=secret"}}}},
		"the answer is not DynamoDB's (HTTP status 302 Found, to login.example): correct the endpoint, and see which proxies are in between",
	},
	"a proxy with a password": {
		outage{page: &page{http.StatusProxyAuthRequired, "<html>who are you?</html>", nil}}, "a proxy asks for a user and a password",
	},
	"a tunnel with a password": {dialing(errors.New(http.StatusText(http.StatusProxyAuthRequired))), "a proxy asks for a user and a password"},
	"a line break in the credentials": {
		outage{endpoint: "http://127.0.0.1:1", credentials: credentials.NewStaticCredentialsProvider("id\n", "secret", "").Retrieve},
		"a header has a character that is not allowed, such as a line break",
	},
	"an account without DynamoDB": {
		outage{code: "SubscriptionRequiredException", message: "The AWS Access Key Id needs a subscription for the service"},
		"the account may not use DynamoDB here",
	},
	"a Region that is not enabled": {outage{code: "OptInRequired", message: "m"}, "enable the Region"},
	"a policy that forbids": {
		forbidden(updating, lockTable, " with an explicit deny in a service control policy"),
		"change the service control policy that forbids dynamodb:UpdateItem: no other policy can allow it",
	},
	"a policy of the network": {
		forbidden(updating, lockTable, " because no VPC endpoint policy allows the dynamodb:UpdateItem action"),
		"allow dynamodb:UpdateItem in the VPC endpoint policy",
	},
	"no permission for the KMS key": {
		forbidden("kms:Decrypt", "kms:eu-west-1:1:key/k", " because no identity-based policy allows the kms:Decrypt action"),
		"enable the table's KMS key, and allow kms:Decrypt in the identity-based policy",
	},
	"a KMS key that is gone":  {outage{code: "AccessDeniedException", message: noKMSKey}, "its encryption key cannot be used"},
	"a key of another kind":   {outage{code: "InvalidAccessKeyId", message: "m"}, "the credentials were rejected"},
	"an incomplete signature": {outage{code: "IncompleteSignatureException", message: "m"}, "the signature is wrong"},
	"a wrong signature": {
		outage{code: "InvalidSignatureException", message: "The request signature we calculated does not match the signature you provided."},
		"the signature is wrong",
	},
	"an unsigned request": {
		outage{code: "MissingAuthenticationTokenException", message: "Request is missing Authentication Token"},
		"the request had no credentials",
	},
	"a denied key":  {outage{code: "KMSAccessDeniedException", message: "m"}, "its encryption key cannot be used"},
	"no permission": {forbidden(updating, lockTable, ""), "may not be accessed"},
	"no table":      {outage{code: "ResourceNotFoundException", message: "Requested resource not found"}, "does not exist"},
}

// outages that may be over soon.
var forNow = map[string]said{
	"a resolver that times out": {
		notDialed(&net.DNSError{Err: "i/o timeout", Name: "dynamodb.here", IsTimeout: true}), `the host "dynamodb.here" cannot be looked up`,
	},
	"a connection refused": {notDialed(syscall.ECONNREFUSED), "DynamoDB cannot be connected to"},
	"a connection not made": {outage{dial: func(context.Context) error { // net/http does not end it with the attempt
		time.Sleep(lease / 5)
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT}
	}}, "DynamoDB cannot be connected to"},
	"a silent metadata service": {outage{credentials: func(ctx context.Context) (aws.Credentials, error) {
		<-ctx.Done()
		return aws.Credentials{}, ctx.Err()
	}}, "the credentials cannot be fetched"},
	"a clock that is late":  {outage{code: "InvalidSignatureException", message: tooOld}, "this machine's clock is 2h0m0s behind AWS's"},
	"a clock that is early": {outage{code: "InvalidSignatureException", message: notYet}, "this machine's clock is 2h0m0s ahead of AWS's"},
	"a clock that is wrong": {outage{code: "RequestTimeTooSkewed", message: "m"}, "this machine's clock is wrong"},
	"an expired token": {
		outage{code: "ExpiredTokenException", message: "The security token included in the request is expired"},
		"the credentials have expired",
	},
}

// callsThatEnd are those that meet the outage: from the first request, or once breaks was called, after
// the unit has read.
var callsThatEnd = map[string]callThatEnds{
	"Do, reading": atOnce(func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{}, transfer(30))
	}),
	"Do, writing": atOnce(func(ctx context.Context, c *unitofwork.Client) error { return c.Do(ctx, unitofwork.Work{}, setTo(0)) }),
	"Do, locking": atOnce(func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{Lock: true, Keys: transferKeys}, transfer(30))
	}),
	"Do, committing":             committing(unitofwork.Work{}, transfer(30)),
	"Do, committing an ID":       committing(unitofwork.Work{ID: "p"}, transfer(30)),
	"Do, committing under locks": committing(unitofwork.Work{Lock: true, Keys: transferKeys}, transfer(30)),
	"Do, with a journal": func(ctx context.Context, c *unitofwork.Client, breaks func()) error {
		keys, refs := largeKeys(fewKeys)
		return committing(unitofwork.Work{Keys: keys, Lock: true}, deposit(refs, 7))(ctx, c, breaks)
	},
	"Begin": atOnce(func(ctx context.Context, c *unitofwork.Client) error {
		_, err := c.Begin(ctx, unitofwork.Work{Keys: transferKeys})
		return err
	}),
	"Commit": func(ctx context.Context, c *unitofwork.Client, breaks func()) error {
		u, err := c.Begin(ctx, unitofwork.Work{Keys: transferKeys})
		if err == nil {
			err = transfer(30)(ctx, u)
		}
		if breaks(); err != nil {
			return err
		}
		return u.Commit(ctx)
	},
	"Acquire": atOnce(func(ctx context.Context, c *unitofwork.Client) error {
		_, err := c.Locks().Acquire(ctx, []ordering.Key{"a", "b"})
		return err
	}),
	"TryAcquire": atOnce(func(ctx context.Context, c *unitofwork.Client) error {
		_, err := c.Locks().TryAcquire(ctx, []ordering.Key{"a"})
		return err
	}),
	"Read": atOnce(func(ctx context.Context, c *unitofwork.Client) error {
		return c.Read(ctx, accounts.Ref("1", "a"), customers.Ref("2"))
	}),
	"Recover":          atOnce(func(ctx context.Context, c *unitofwork.Client) error { _, err := c.Recover(ctx); return err }),
	"Outcome of an ID": atOnce(func(ctx context.Context, c *unitofwork.Client) error { _, err := c.Outcome(ctx, "p"); return err }),
	"Outcome of a unit": atOnce(func(ctx context.Context, c *unitofwork.Client) error {
		_, err := c.Outcome(ctx, "unit:n:17:1::customer:1")
		return err
	}),
	"Check":          atOnce(func(ctx context.Context, c *unitofwork.Client) error { return c.Check(ctx) }),
	"Check of locks": atOnce(func(ctx context.Context, c *unitofwork.Client) error { return c.Locks().Check(ctx) }),
}

type callThatEnds = func(ctx context.Context, c *unitofwork.Client, breaks func()) error

func atOnce(call func(context.Context, *unitofwork.Client) error) callThatEnds {
	return func(ctx context.Context, c *unitofwork.Client, breaks func()) error {
		breaks()
		return call(ctx, c)
	}
}

func committing(work unitofwork.Work, fn func(context.Context, *unitofwork.Unit) error) callThatEnds {
	return func(ctx context.Context, c *unitofwork.Client, breaks func()) error {
		return c.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
			defer breaks()
			return fn(ctx, u)
		})
	}
}

// told is what every error of an outage is like.
func told(t *testing.T, b *bed, err error) {
	t.Helper()
	require.Error(t, err)
	require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
	for _, words := range []string{"StatusCode", "RequestID", "ABCDEFGH", "operation error"} {
		require.NotContains(t, err.Error(), words)
	}
	said := map[string]bool{}
	for _, part := range regexp.MustCompile(`: |; |\n`).Split(err.Error(), -1) {
		require.False(t, said[part] && len(part) > 20 && !errors.As(err, new(*requests.CheckError)), "%q is said twice: %v", part, err)
		said[part] = true
	}
	require.Equal(t, [2]int64{100, 100}, b.balances())
}

// eachCall makes every call on a client of its own.
func eachCall(t *testing.T, out outage, judge func(t *testing.T, b *bed, err error, took time.Duration)) {
	for name, call := range callsThatEnd {
		runInBed(t, name, func(t *testing.T, b *bed) {
			o := &network{outage: out}
			client := o.on(b, func(cfg *unitofwork.Config) { cfg.TransactionSize = 20 })
			broke := time.Now()
			err := call(t.Context(), client, func() { broke = time.Now(); o.broken.Store(true) })
			judge(t, b, err, time.Since(broke))
			time.Sleep(2 * lease) // it may still be cleaning up in the background, and net/http be connecting
		})
	}
}

// What no later call can escape is told at once, with the table and what to do.
func TestWhatIsOverForGoodIsToldAtOnce(t *testing.T) {
	for name, c := range forGood {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachCall(t, c.outage, func(t *testing.T, b *bed, err error, took time.Duration) {
				told(t, b, err)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
				require.LessOrEqual(t, took, lease/10, "%v", err)
				require.Regexp(t, `"(locks|units|accounts|customers)"`, err.Error())
				if !strings.Contains(err.Error(), c.says) { // a check finds what is denied by name
					require.Contains(t, err.Error(), "is denied (AccessDeniedException: ")
				}
			})
		})
	}
}

// An operation that is denied on one table alone is told once, whoever met it first.
func TestAnOperationThatIsDeniedOnOneTable(t *testing.T) {
	for _, op := range []string{"GetItem", "TransactGetItems", "TransactWriteItems", "UpdateItem"} {
		for _, table := range []string{"locks", "units", "accounts"} {
			for name, do := range map[string]func(context.Context, *client) error{
				"without locks": func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, transfer(0)) },
				"without locks, with an ID": func(ctx context.Context, c *client) error {
					return c.freely(ctx, unitofwork.Work{ID: "p"}, transfer(0))
				},
				"under locks": func(ctx context.Context, c *client) error {
					return c.Do(ctx, unitofwork.Work{Keys: transferKeys, Lock: true}, transfer(0))
				},
				"under locks, with an ID": func(ctx context.Context, c *client) error {
					return c.Do(ctx, unitofwork.Work{ID: "p", Keys: transferKeys, Lock: true}, transfer(0))
				},
				"the outcome of an ID": func(ctx context.Context, c *client) error { _, err := c.Outcome(ctx, "p"); return err },
			} {
				runInBed(t, fmt.Sprintf("%s on %s, %s", op, table, name), func(t *testing.T, b *bed) {
					c := b.client("c", denies(table, op))
					for range 2 { // the second time its ID has been used, if it went well
						if err := do(t.Context(), c); err != nil {
							told(t, b, err)
							require.Contains(t, []lockset.Next{lockset.FixCall, lockset.AskLater}, lockset.NextOf(err))
						}
					}
					time.Sleep(2 * lease)
				})
			}
		}
	}
}

// What may be over soon is tried for as long as the client is patient.
func TestWhatMayBeOverSoonIsTriedForALease(t *testing.T) {
	for name, c := range forNow {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachCall(t, c.outage, func(t *testing.T, b *bed, err error, took time.Duration) {
				told(t, b, err)
				next := lockset.NextOf(err)
				require.Contains(t, []lockset.Next{lockset.TryLater, lockset.StartOver}, next, "%v", err)
				if !strings.HasSuffix(t.Name(), "/TryAcquire") { // which waits for nobody, and asks twice
					require.GreaterOrEqual(t, took, lease/2)
				}
				require.Contains(t, err.Error(), c.says)
			})
		})
	}
}

// An answer that says that all went well, and nothing else, is not DynamoDB's: what it was to answer
// may not have happened.
func TestAnAnswerWithoutContentIsNoSuccess(t *testing.T) {
	for name, body := range map[string]string{"nothing": "", "a page": "<html>log in, please</html>", "null": "null"} {
		if testing.Short() && name == "null" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			eachCall(t, outage{page: &page{http.StatusOK, body, nil}}, func(t *testing.T, b *bed, err error, _ time.Duration) {
				require.ErrorContains(t, err, "HTTP status 200 OK")
				require.Contains(t, []lockset.Next{lockset.TryLater, lockset.AskLater, lockset.StartOver}, lockset.NextOf(err))
				require.Equal(t, [2]int64{100, 100}, b.balances())
			})
		})
	}
}

// A table that is not what it is named for is known by its keys, whichever request meets it.
func TestATableOfAnotherUse(t *testing.T) {
	one := []ordering.Key{"a"}
	nothing := func(context.Context, *unitofwork.Unit) error { return nil }
	do := func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{Keys: one, Lock: true}, nothing)
	}
	look := func(ctx context.Context, c *unitofwork.Client) error { _, err := c.Outcome(ctx, "p"); return err }
	odd := unitofwork.Table[account]{Name: "customers", PartitionKey: "Customer", Guard: accounts.Guard}
	long := unitofwork.Table[account]{Name: "customers", PartitionKey: "ID", SortKey: "Customer", Guard: accounts.Guard}
	read := func(ctx context.Context, c *unitofwork.Client) error { return c.Read(ctx, odd.Ref("1")) }
	get := func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{}, readOnly(accounts.Ref("1", "a"), long.Ref("1", "1")))
	}
	put := func(ctx context.Context, c *unitofwork.Client) error {
		return c.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(odd.Ref("1")) })
	}
	check := func(ctx context.Context, c *unitofwork.Client) error { return c.Check(ctx) }
	for name, c := range map[string]struct {
		locks, units string
		call         func(context.Context, *unitofwork.Client) error
		table, says  string
	}{
		"swapped, locking":         {"units", "locks", do, "units", "it is a unit table, not a lock table: the names of the lock table and the unit table are swapped"},
		"swapped, looking":         {"units", "locks", look, "locks", "it is a lock table, not a unit table: the names of the lock table and the unit table are swapped"},
		"swapped, checked":         {"units", "locks", check, "units", "the names of the lock table and the unit table are swapped"},
		"a user's for the locks":   {"accounts", "units", do, "accounts", `it is not a lock table, whose only key is "key" (S)`},
		"a user's for the units":   {"locks", "accounts", look, "accounts", `it is not a unit table, whose keys are "part" (S) and "unit" (S)`},
		"another key":              {"locks", "units", read, "customers", `its keys are not "Customer" (S): correct the Name, PartitionKey and SortKey of its unitofwork.Table`},
		"one key too many, read":   {"locks", "units", get, "customers", `its keys are not "Customer" (S) and "ID" (S)`},
		"another key, in a commit": {"locks", "units", put, "customers", `its keys are not "Customer" (S)`},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			client, err := unitofwork.Open(b.db, unitofwork.Config{Table: c.units, Locks: lockset.Config{Table: c.locks, Lease: lease}})
			require.NoError(t, err)
			err = c.call(t.Context(), client)
			told(t, b, err)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, `table "`+c.table+`"`)
		})
	}
}

// A decision that is denied, with everything after it, was not carried out: the unit is not in doubt.
// Its rows stay prepared until another unit takes them over, and aborts it.
func TestADecisionThatIsDenied(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var denying atomic.Bool
		c := b.client("denied", func(c faults.Call) faults.Fault {
			if in, is := c.Input.(*dynamodb.TransactWriteItemsInput); is && in.TransactItems[0].Update != nil {
				if part, has := in.TransactItems[0].Update.Key["part"].(*types.AttributeValueMemberS); has && part.Value == "record" {
					denying.Store(true)
				}
			}
			if denying.Load() {
				return denied()
			}
			return faults.Pass()
		}, inSmallTransactions)
		keys, refs := largeKeys(fewKeys)
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 7))
		require.True(t, denying.Load())
		require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
		require.Equal(t, map[string]int{"not": 1}, c.outcomes())

		other := b.client("other", nil, inSmallTransactions)
		require.NoError(t, other.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 1)))
		for _, ref := range refs {
			require.Equal(t, int64(1), ref.T.Balance)
		}
	})
}
