// Package requests sends one request to DynamoDB until it is answered: our own
// retries and timeouts, because a lock must know how often and when a write was
// sent, and what each answer proves.
package requests

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/trace"
)

// Backoff between attempts: the first is drawn from [minBackoff, maxBackoff],
// each further one from twice that, up to half an attempt's timeout.
const (
	minBackoff = 10 * time.Millisecond
	maxBackoff = 25 * time.Millisecond
)

// ErrPatience ends the retries of a request without an answer when the
// caller's context sets no earlier end.
var ErrPatience = errors.New("DynamoDB did not answer for too long")

// Caller sends requests. It is safe for concurrent use; its fields are not to
// be changed.
type Caller struct {
	DB DynamoDB
	// Attempt bounds one sending.
	Attempt time.Duration
	// Patience bounds all sendings of one request: there is none after it, but always a
	// first one.
	Patience time.Duration
	// Trace is told of every sending. It may be nil.
	Trace *trace.Trace
	// Dated, if set, is told of every answer that has the server's time, and how long
	// the answer took.
	Dated func(server time.Time, took time.Duration)
}

// Sent is what is known of the sendings of one request after it ended.
type Sent struct {
	// First is a reading of the clock from before the first sending.
	First time.Time
	// Sendings counts all of them.
	Sendings int
	// Unanswered counts the sendings that had no answer, or heard of an earlier
	// one under way. They may be carried out, also later, unless the request's
	// own conditions prevent it.
	Unanswered int
}

// Request names a request: Op for people, ID for its jitter, which is a
// function of ID and the attempt's number, so that a simulation replays.
type Request struct {
	Op     string
	ID     string
	Tables []string
}

// Method is a method of *dynamodb.Client.
type Method[I, O any] func(context.Context, *I, ...func(*dynamodb.Options)) (*O, error)

// Do sends in until it is carried out, refused or found invalid, or until ctx
// ends or the caller's patience does. Every sending is the same, so a request
// token in it makes them one.
//
// The error is that of the SDK if the request was refused, a *[TableError] if
// it is invalid, else a *[NoAnswerError]. A transaction that is too large to be sent
// is invalid, and not sent: who gets too much need not read it to its end, so that
// the answer may be lost.
func Do[I, O any](ctx context.Context, c *Caller, r Request, in *I, send Method[I, O]) (*O, Sent, error) {
	misuse.Context(ctx, "holdall", r.Op)
	sent := Sent{First: time.Now()}
	if size := sizeSent(in); size > MaxSent {
		return nil, sent, &TableError{Op: r.Op, Tables: r.Tables, Err: &notSentError{size}}
	}
	var last error
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return nil, sent, &NoAnswerError{Op: r.Op, Last: last, End: context.Cause(ctx)}
		}
		if n > 1 && time.Since(sent.First) >= c.Patience {
			return nil, sent, &NoAnswerError{Op: r.Op, Last: last, End: ErrPatience}
		}
		sent.Sendings++
		out, kind, err := Once(ctx, c, r.Op, n, in, send)
		switch kind {
		case Done:
			return out, sent, nil
		case Refused:
			return nil, sent, err
		case Invalid:
			return nil, sent, &TableError{Op: r.Op, Tables: r.Tables, Err: err}
		case NoAnswer, InProgress:
			sent.Unanswered++
		case Busy:
		}
		last = err
		_ = Sleep(ctx, c.backoff(r.ID, n))
	}
}

// Once sends in a single time.
func Once[I, O any](ctx context.Context, c *Caller, op string, n int, in *I, send Method[I, O]) (*O, Kind, error) {
	if c.Trace != nil {
		ctx = hooks.Start(ctx, c.Trace.RequestStart, trace.RequestStart{Op: op, N: n})
	}
	attempt, cancel := context.WithTimeout(ctx, c.Attempt)
	defer cancel()
	start := time.Now()
	out, err := send(attempt, in, noRetries)
	kind := KindOf(err)
	if c.observed() {
		end := trace.RequestEnd{Op: op, N: n, Took: time.Since(start), Err: err, Kind: string(kind)}
		if err == nil {
			end.Capacity = consumed(out)
		}
		c.Trace.RequestEnd(ctx, end)
	}
	if c.Dated != nil {
		if server, told := serverTime(out, err); told {
			c.Dated(server, time.Since(start))
		}
	}
	return out, kind, err
}

func noRetries(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// backoff grows with n and is jittered by a hash of id and n.
func (c *Caller) backoff(id string, n int) time.Duration {
	grown := minBackoff << min(n-1, 20)
	limit := max(c.Attempt/2, minBackoff)
	return min(grown+time.Duration(Jitter(id, n)*float64(grown)*float64(maxBackoff-minBackoff)/float64(minBackoff)), limit)
}

// Jitter returns a number in [0, 1) that depends on id and n alone.
func Jitter(id string, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id + "#" + strconv.Itoa(n)))
	x := h.Sum64()
	x ^= x >> 33 // FNV mixes its last bytes poorly: finish as MurmurHash3 does
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// Sleep waits for d, or returns the cause of ctx's end, also if that came at the same
// moment: what happens next is not to be a matter of chance.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// observed reports whether somebody wants to know how each sending has ended.
func (c *Caller) observed() bool { return c.Trace != nil && c.Trace.RequestEnd != nil }

// capacity asks for the consumed capacity only when somebody looks at it.
func (c *Caller) capacity() types.ReturnConsumedCapacity {
	if !c.observed() {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

// consumed is the capacity that an answer reports, of all tables.
func consumed(out any) float64 {
	var units float64
	add := func(cs ...types.ConsumedCapacity) {
		for _, c := range cs {
			units += aws.ToFloat64(c.CapacityUnits)
		}
	}
	one := func(c *types.ConsumedCapacity) {
		if c != nil {
			add(*c)
		}
	}
	switch o := out.(type) {
	case *dynamodb.GetItemOutput:
		one(o.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		one(o.ConsumedCapacity)
	case *dynamodb.QueryOutput:
		one(o.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		add(o.ConsumedCapacity...)
	case *dynamodb.TransactGetItemsOutput:
		add(o.ConsumedCapacity...)
	case *dynamodb.BatchExecuteStatementOutput:
		add(o.ConsumedCapacity...)
	}
	return units
}
