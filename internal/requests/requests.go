// Package requests sends one request to DynamoDB until it is answered: our own
// retries and timeouts, because a lock must know how often and when a write was
// sent, and what each answer proves.
package requests

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// ErrConflicts ends the retries of a request that met others' transactions too often.
var ErrConflicts = errors.New("transactions of others were in the way")

// Caller sends requests. It is safe for concurrent use; its fields are not to
// be changed.
type Caller struct {
	DB DynamoDB
	// Attempt bounds the first sending of a small request, unless Pace knows that answers take
	// longer.
	Attempt time.Duration
	// Most bounds a sending after others had no answer in time, apart from what its size needs.
	// Zero: Attempt.
	Most time.Duration
	// Pace is what all Callers of a client have observed. It may be nil.
	Pace *Pace
	// Patience bounds all sendings of one request: there is none after it, but always a
	// first one.
	Patience time.Duration
	// Conflicts is how many conflicts with transactions of others end a request: zero if
	// none does, and it is sent again for as long as Patience says.
	Conflicts int
	// Roles are for errors about the keys of tables.
	Roles Roles
	// Trace is told of every sending. It may be nil.
	Trace *trace.Trace
	// Dated, if set, is called before every sending. What it returns is called if the answer has the
	// server's time, with how long the answer took. It must be safe for concurrent use.
	Dated func() (heard func(server time.Time, took time.Duration))
}

// Sent is what is known of the sendings of one request after it ended.
type Sent struct {
	// First is a reading of the clock from before the first sending.
	First time.Time
	// Sendings counts those that were looked at, or may have been: not what never left this process,
	// nor what was rejected for its credentials, as every copy of it would be.
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
	sent := Sent{First: time.Now()}
	size := sizeSent(in)
	if size > MaxSent {
		return nil, sent, &TableError{Op: r.Op, Tables: r.Tables, Err: &notSentError{size}}
	}
	ctx, cancel, most := c.hurry(ctx, sent.First, size)
	defer cancel()
	var last error
	var tried attempts
	over := func(end error) *NoAnswerError {
		tried.took = time.Since(sent.First)
		return &NoAnswerError{Op: r.Op, Last: last, End: end, tried: tried}
	}
	conflicts, timeouts, unanswered, answers := 0, 0, 0, c.answers()
	var answered time.Duration // how long the last answer took
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return nil, sent, over(context.Cause(ctx))
		}
		left := c.Patience - time.Since(sent.First)
		if n > 1 && left <= 0 || most > 0 && unanswered == most {
			return nil, sent, over(ErrPatience)
		}
		sent.Sendings++
		s := sending{op: r.Op, n: n, timeouts: timeouts, bytes: size, timeout: c.allowance(doublings(timeouts, answers), size)}
		if timeouts > 0 { // what the size needs comes on top
			s.timeout = min(s.timeout, max(left, 0)+c.allowance(0, size))
		}
		began := time.Now()
		out, kind, timedOut, err := once(ctx, c, s, in, send)
		last = err
		tried.add(kind, time.Since(began))
		if speaksTLS(err) { // no sending there has reached DynamoDB
			sent.Unanswered = 0
		}
		if kind != Done && kind != Refused && ConcernsAll(err) {
			sent.Sendings--
		}
		switch kind {
		case Done:
			return out, sent, nil
		case Refused:
			return nil, sent, &reasonError{Said(err), err}
		case Invalid:
			return nil, sent, c.tableError(ctx, r, in, err)
		case NoAnswer, InProgress:
			sent.Unanswered++
		case Busy:
			if isConflict(err) {
				conflicts++
			}
			if conflicts == c.Conflicts && conflicts > 0 {
				return nil, sent, over(ErrConflicts)
			}
		}
		if kind == NoAnswer || kind == Unsent {
			unanswered++
		} else {
			answered = time.Since(began)
		}
		if timedOut {
			timeouts++
		}
		c.rest(ctx, c.backoff(r.ID, n), answered)
	}
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

// Jittered is a pause between half of longest and longest.
func Jittered(longest time.Duration, id string, n int) time.Duration {
	return time.Duration((1 + Jitter(id, n)) / 2 * float64(longest))
}

// Sleep waits for d, or returns the cause of ctx's end, also if that came at the same
// moment: what happens next is not to be a matter of chance.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// capacity asks for the consumed capacity only when somebody looks at it.
func (c *Caller) capacity() types.ReturnConsumedCapacity {
	if c.Trace == nil || !c.Trace.Capacity {
		return types.ReturnConsumedCapacityNone
	}
	return types.ReturnConsumedCapacityTotal
}

// consumed is the capacity that an answer reports, of all tables.
func consumed(out any) (units float64) {
	switch of := fieldOf(out, "ConsumedCapacity").(type) {
	case *types.ConsumedCapacity:
		if of != nil {
			units = aws.ToFloat64(of.CapacityUnits)
		}
	case []types.ConsumedCapacity:
		for _, one := range of {
			units += aws.ToFloat64(one.CapacityUnits)
		}
	}
	return units
}

// DynamoDB is what a Caller asks: methods of *dynamodb.Client.
type DynamoDB interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Item is an item of a table, or its key.
type Item = map[string]types.AttributeValue

// Each call below names its request by id: its repetitions are one with it. Errors are
// those of Do.

// Get reads one item, strongly consistent; nil if there is none.
func (c *Caller) Get(ctx context.Context, id, table string, key Item) (Item, error) {
	in := &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: c.capacity(),
	}
	out, _, err := Do(ctx, c, Request{Op: "GetItem", ID: id, Tables: []string{table}}, in, c.DB.GetItem)
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// Update sends a write that is no part of a transaction.
func (c *Caller) Update(ctx context.Context, id string, u *types.Update) (Sent, error) {
	in := &dynamodb.UpdateItemInput{
		TableName:                           u.TableName,
		Key:                                 u.Key,
		ConditionExpression:                 u.ConditionExpression,
		UpdateExpression:                    u.UpdateExpression,
		ExpressionAttributeNames:            u.ExpressionAttributeNames,
		ExpressionAttributeValues:           u.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
		ReturnConsumedCapacity:              c.capacity(),
	}
	_, sent, err := Do(ctx, c, Request{Op: "UpdateItem", ID: id, Tables: []string{*u.TableName}}, in, c.DB.UpdateItem)
	return sent, err
}

// Write sends a transaction of writes and checks. Its request token is id, which has 36
// characters at most.
func (c *Caller) Write(ctx context.Context, id string, actions []types.TransactWriteItem) (Sent, error) {
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String(id), TransactItems: actions, ReturnConsumedCapacity: c.capacity(),
	}
	_, sent, err := Do(ctx, c, Request{Op: "TransactWriteItems", ID: id, Tables: tablesOf(targetsOf(in))}, in, c.DB.TransactWriteItems)
	return sent, err
}

// Read reads items as of one moment, in the order of the gets.
func (c *Caller) Read(ctx context.Context, id string, gets []types.TransactGetItem) ([]Item, error) {
	in := &dynamodb.TransactGetItemsInput{TransactItems: gets, ReturnConsumedCapacity: c.capacity()}
	out, _, err := Do(ctx, c, Request{Op: "TransactGetItems", ID: id, Tables: tablesOf(targetsOf(in))}, in, c.DB.TransactGetItems)
	if err != nil {
		return nil, err
	}
	if len(out.Responses) != len(gets) {
		return nil, fmt.Errorf("TransactGetItems: %d answers to %d gets", len(out.Responses), len(gets))
	}
	items := make([]Item, len(gets))
	for i, response := range out.Responses {
		items[i] = response.Item
	}
	return items, nil
}

// Execute carries out statements on one table, each by itself, and returns an answer to
// each; [KindOfStatement] tells what it means.
func (c *Caller) Execute(ctx context.Context, id, table string, statements []types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	in := &dynamodb.BatchExecuteStatementInput{Statements: statements, ReturnConsumedCapacity: c.capacity()}
	out, _, err := Do(ctx, c, Request{Op: "BatchExecuteStatement", ID: id, Tables: []string{table}}, in, c.DB.BatchExecuteStatement)
	return answers(statements, out, err)
}

// ExecuteOnce is Execute by a single sending, after so many others in its place had no answer in
// time: for a heartbeat, which sends the next one instead.
func (c *Caller) ExecuteOnce(ctx context.Context, timeouts int, statements []types.BatchStatementRequest) (_ []types.BatchStatementResponse, timedOut bool, _ error) {
	in := &dynamodb.BatchExecuteStatementInput{Statements: statements, ReturnConsumedCapacity: c.capacity()}
	s := sending{op: "BatchExecuteStatement", n: 1, timeouts: timeouts, timeout: c.allowance(doublings(timeouts, c.answers()), 0)}
	out, _, timedOut, err := once(ctx, c, s, in, c.DB.BatchExecuteStatement)
	switch {
	case timedOut && !isUnsent(err):
		return nil, timedOut, &reasonError{"not answered within " + inWords(s.timeout), err}
	case err != nil:
		return nil, timedOut, &reasonError{Said(err), err}
	}
	responses, err := answers(statements, out, nil)
	return responses, timedOut, err
}

// ExecuteOne carries out a single statement. What the answer says of it is the error, as
// for a request of its own.
func (c *Caller) ExecuteOne(ctx context.Context, id, table string, statement types.BatchStatementRequest) error {
	in := &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{statement}, ReturnConsumedCapacity: c.capacity()}
	send := func(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
		out, err := c.DB.BatchExecuteStatement(ctx, in, opts...)
		responses, err := answers(in.Statements, out, err)
		if err != nil {
			return nil, err
		}
		return out, errorOf(responses[0].Error)
	}
	_, _, err := Do(ctx, c, Request{Op: "BatchExecuteStatement", ID: id, Tables: []string{table}}, in, send)
	return err
}

func answers(statements []types.BatchStatementRequest, out *dynamodb.BatchExecuteStatementOutput, err error) ([]types.BatchStatementResponse, error) {
	if err != nil {
		return nil, err
	}
	if len(out.Responses) != len(statements) {
		return nil, fmt.Errorf("BatchExecuteStatement: %d answers to %d statements", len(out.Responses), len(statements))
	}
	return out.Responses, nil
}

// Query lists all items that a query finds, page by page, strongly consistent; each page
// is a request with a name of its own.
func (c *Caller) Query(ctx context.Context, id func() string, in dynamodb.QueryInput) (items []Item, err error) {
	in.ConsistentRead, in.ReturnConsumedCapacity = aws.Bool(true), c.capacity()
	for {
		page := in // what was sent is not changed
		out, _, err := Do(ctx, c, Request{Op: "Query", ID: id(), Tables: []string{*in.TableName}}, &page, c.DB.Query)
		if err != nil {
			return nil, err
		}
		items = append(items, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items, nil
		}
	}
}
