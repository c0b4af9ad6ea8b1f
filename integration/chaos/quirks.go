package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// quirk is a peculiarity of a unit's function, or of how it writes an account. None changes what the
// unit does to the books.
type quirk string

const (
	usually quirk = ""
	fails   quirk = "fails"      // is refused when it has staged everything
	panics  quirk = "panics"     // when it has staged everything; its caller recovers
	goesOn  quirk = "goes on"    // after its caller's context has ended
	lingers quirk = "lingers"    // for longer than a group waits for a function
	updates quirk = "updates"    // an account by an expression, so its new content is unknown
	insists quirk = "insists on" // a condition on an account
)

// quirks are drawn in turn. Most units have none, so that they are committed together.
var quirks = []quirk{
	usually, usually, fails, usually, usually, panics, usually,
	usually, goesOn, fails, usually, usually, lingers, usually,
	usually, updates, usually, fails, usually, insists, usually,
}

// errPanicked says that a function panicked on purpose. Nothing of its unit is written.
var errPanicked = fmt.Errorf("%w: the function panicked", staff.ErrRefused)

// lingering is longer than a group waits for functions.
const lingering = 40 * time.Millisecond

// odd runs units with a quirk.
type odd struct {
	run      books.Run
	quirk    quirk
	nameless bool // drops the unit's ID
}

func (o odd) do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) (err error) {
	if o.nameless {
		work.ID, work.Payload = "", nil
	}
	outer := ctx
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	defer func() {
		if p := recover(); p == errPanicked { //nolint:errorlint // the very value
			err = errPanicked
		} else if p != nil {
			panic(p)
		}
		if errors.Is(err, context.Canceled) && ctx.Err() != nil && outer.Err() == nil && lockset.NextOf(err) == lockset.Decide {
			err = fmt.Errorf("%w: its caller left: %w", staff.ErrAgain, err)
		}
	}()
	return o.run(ctx, work, func(ctx context.Context, u books.Unit) error {
		if s, is := u.(staging); is && (o.quirk == updates || o.quirk == insists) {
			u = accounts{s, o.quirk}
		}
		if err := fn(ctx, u); err != nil {
			return err
		}
		switch o.quirk {
		case fails:
			return books.ErrFunds
		case panics:
			panic(errPanicked)
		case goesOn:
			leave()
		case lingers:
			staff.Pause(ctx, lingering)
		}
		return nil
	})
}

// staging has more methods of *unitofwork.Unit.
type staging interface {
	books.Unit
	PutIf(record unitofwork.Record, condition expression.ConditionBuilder) error
	Update(record unitofwork.Record, e unitofwork.Expression) error
}

// accounts writes accounts by an expression or under a condition.
type accounts struct {
	staging
	quirk quirk
}

// Put implements books.Unit.
func (a accounts) Put(records ...unitofwork.Record) error {
	for _, r := range records {
		account, is := r.(*unitofwork.Ref[books.Account])
		var err error
		switch {
		case !is:
			err = a.staging.Put(r)
		case a.quirk == updates:
			err = a.Update(account, unitofwork.Expression{
				Update: "SET #balance = :balance, #changes = #changes + :one",
				Names:  map[string]string{"#balance": "balance", "#changes": "changes"},
				Values: map[string]any{":balance": account.T.Balance, ":one": 1},
			})
		default: // the condition holds unless another unit has overwritten the account
			err = a.PutIf(account, expression.Name("changes").Equal(expression.Value(account.T.Changes-1)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
