// Package functions is the code of the guide beside it: a function of AWS Lambda's kind that makes
// the payments of a queue.
package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Account is a record, as the table has it.
type Account struct {
	ID      string
	Balance int64
}

// Accounts says where accounts live, and which key guards each of them.
var Accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "ID",
	Guard: func(a *Account) ordering.Key { return ordering.Join("account:" + a.ID) },
}

// Payment is what a message asks for. Its ID is that of whoever ordered it.
type Payment struct {
	ID, From, To string
	Amount       int64
}

// ErrFunds refuses a payment for good: no repetition helps.
var ErrFunds = errors.New("not enough money")

// Event has the JSON of events.SQSEvent in github.com/aws/aws-lambda-go, and Response that of
// events.SQSEventResponse: use those.
type Event struct {
	Records []Message
}

// Message is one of an event's.
type Message struct {
	MessageID string `json:"messageId"`
	Body      string `json:"body"`
}

// Response has the messages that are to be delivered again.
type Response struct {
	BatchItemFailures []Failure `json:"batchItemFailures"`
}

// Failure is a message, by its ID.
type Failure struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

// Function is what an instance has from its start to its end.
type Function struct {
	units *unitofwork.Client
	room  time.Duration
	lock  bool // payments take their locks first
}

// New is for outside the handler: once for each instance. db is a *dynamodb.Client made with
// lockset.HTTPClient().
func New(db lockset.DynamoDB, lease time.Duration) (*Function, error) {
	locks := lockset.Config{Table: "locks", Lease: lease}
	units, err := unitofwork.Open(db, unitofwork.Config{Locks: locks, Table: "units"})
	return &Function{units: units, room: lease + lease/10}, err
}

// Warm opens a connection, by one read of a record that need not be there.
func (f *Function) Warm(ctx context.Context) error {
	return f.units.Read(ctx, Accounts.Ref("none"))
}

// Handle makes the payments of an event, all at a time. Those that it returns are delivered again.
func (f *Function) Handle(ctx context.Context, event Event) (Response, error) {
	ctx, cancel, err := WithRoom(ctx, f.room)
	if err != nil {
		return Response{}, err // all are delivered again
	}
	defer cancel()
	errs := make([]error, len(event.Records))
	var payments sync.WaitGroup
	for i, message := range event.Records {
		payments.Go(func() { errs[i] = f.pay(ctx, message) })
	}
	payments.Wait() // when the handler returns, the instance is frozen: nothing may be under way
	response := Response{BatchItemFailures: []Failure{}}
	for i, message := range event.Records {
		switch err := errs[i]; {
		case err == nil:
		case errors.Is(err, ErrFunds): // but if it comes twice, it may be paid the second time
			slog.WarnContext(ctx, "refused", "message", message.MessageID, "err", err)
		default: // unitofwork.ErrInDoubt, too: the same ID makes the next delivery safe
			slog.ErrorContext(ctx, "to be delivered again", "message", message.MessageID, "err", err)
			response.BatchItemFailures = append(response.BatchItemFailures, Failure{message.MessageID})
		}
	}
	return response, nil
}

// WithRoom ends a context some time before its own deadline, at which the process is killed.
func WithRoom(ctx context.Context, room time.Duration) (context.Context, context.CancelFunc, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	if left := time.Until(deadline); left <= room {
		return nil, nil, fmt.Errorf("only %v are left, and the last %v are not for work: the function's timeout is too short", left, room)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(-room))
	return ctx, cancel, nil
}

// pay makes a payment once, however often its message is delivered.
func (f *Function) pay(ctx context.Context, message Message) error {
	var p Payment
	if err := json.Unmarshal([]byte(message.Body), &p); err != nil {
		return err // the queue's dead-letter queue gets it in the end
	}
	if p.Amount <= 0 {
		return fmt.Errorf("the amount is %d", p.Amount)
	}
	from, to := Accounts.Ref(p.From), Accounts.Ref(p.To)
	return f.units.Do(ctx, f.work(ctx, p), func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, from, to); err != nil {
			return err
		}
		if !from.Found || !to.Found || from.T.Balance < p.Amount {
			return ErrFunds
		}
		from.T.Balance -= p.Amount
		to.T.Balance += p.Amount
		return u.Put(from, to)
	})
}

// work is the unit of a payment.
func (f *Function) work(ctx context.Context, p Payment) unitofwork.Work {
	work := unitofwork.Work{
		ID: "payment:" + p.ID, Payload: fmt.Appendf(nil, "%d from %q to %q", p.Amount, p.From, p.To),
		Wait: halfOf(ctx),
	}
	if f.lock {
		work.Lock, work.Keys = true, []ordering.Key{Accounts.Guard(&Account{ID: p.From}), Accounts.Guard(&Account{ID: p.To})}
	}
	return work
}

// halfOf is how long to wait for others: half of the time that is left, so that the work has the
// other half.
func halfOf(ctx context.Context) lockset.Wait {
	deadline, ok := ctx.Deadline()
	if !ok {
		return lockset.For(time.Second)
	}
	return lockset.For(max(0, time.Until(deadline)/2))
}

// Tidy is for a schedule of its own, every few minutes: it finishes units larger than one
// transaction whose instances were killed.
func (f *Function) Tidy(ctx context.Context) error {
	ctx, cancel, err := WithRoom(ctx, f.room)
	if err != nil {
		return err
	}
	defer cancel()
	found, err := f.units.Recover(ctx)
	slog.InfoContext(ctx, "recovered", "committed", len(found.Committed), "aborted", len(found.Aborted))
	return err
}
