package staff

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/unitofwork"
)

// Quirk is what is peculiar about a unit's function, or about the account that it changes.
type Quirk string

// Quirks. None of them makes a change of the books another one.
const (
	Usual   Quirk = ""
	Fails   Quirk = "fails"      // it is refused when it has staged everything
	Panics  Quirk = "panics"     // when it has staged everything; its caller recovers
	GoesOn  Quirk = "goes on"    // after its caller's context has ended
	Lingers Quirk = "lingers"    // for longer than others of its process wait for it
	Updates Quirk = "updates"    // an account by an expression, so that what it leaves is not known
	Insists Quirk = "insists on" // a condition on an account
)

// ErrPanicked says that a function panicked, as it was to. Nothing of it is written.
var ErrPanicked = errors.New("the teller dropped everything")

// errLeft says that the caller of a unit left, which then did not commit.
var errLeft = errors.New("the teller was called away")

// lingering is longer than a group waits for functions.
const lingering = 40 * time.Millisecond

// Odd runs units whose functions have a quirk.
type Odd struct {
	books.Runner
	Quirk Quirk
	// Nameless takes the unit's ID from it.
	Nameless bool
}

// Do calls the runner's Do.
func (o Odd) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) (err error) {
	if o.Nameless {
		work.ID, work.Payload = "", nil
	}
	outer := ctx
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	defer func() {
		switch p := recover(); p {
		case nil:
		case ErrPanicked:
			err = ErrPanicked
		default:
			panic(p)
		}
		if errors.Is(err, context.Canceled) && ctx.Err() != nil && outer.Err() == nil && unitofwork.NextOf(err) == unitofwork.Decide {
			err = fmt.Errorf("%w: %w", errLeft, err)
		}
	}()
	return o.Runner.Do(ctx, work, func(ctx context.Context, u books.Unit) error {
		if err := fn(ctx, o.writer(u)); err != nil {
			return err
		}
		switch o.Quirk {
		case Fails:
			return books.ErrFunds
		case Panics:
			panic(ErrPanicked)
		case GoesOn:
			leave()
		case Lingers:
			pause(ctx, lingering)
		}
		return nil
	})
}

// writer writes accounts as the quirk says, and all else as u does.
func (o Odd) writer(u books.Unit) books.Unit {
	staging, is := u.(staging)
	if is && (o.Quirk == Updates || o.Quirk == Insists) {
		return accounts{staging, o.Quirk}
	}
	return u
}

// staging is what *unitofwork.Unit has besides.
type staging interface {
	books.Unit
	PutIf(record unitofwork.Record, condition expression.ConditionBuilder) error
	Update(record unitofwork.Record, e unitofwork.Expression) error
}

// accounts writes accounts otherwise than as a whole.
type accounts struct {
	staging
	quirk Quirk
}

// Put calls the unit's Put, but for accounts.
func (a accounts) Put(records ...unitofwork.Record) error {
	for _, r := range records {
		account, is := r.(*unitofwork.Ref[books.Account])
		var err error
		switch {
		case !is:
			err = a.staging.Put(r)
		case a.quirk == Updates:
			err = a.Update(account, unitofwork.Expression{
				Update: "SET #balance = :balance, #changes = #changes + :one",
				Names:  map[string]string{"#balance": "balance", "#changes": "changes"},
				Values: map[string]any{":balance": account.T.Balance, ":one": 1},
			})
		default: // the condition holds unless somebody has overwritten it meanwhile
			err = a.PutIf(account, expression.Name("changes").Equal(expression.Value(account.T.Changes-1)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
