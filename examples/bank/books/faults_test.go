package books_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/holdalltest"
)

// A process dies, or is cut off, or meets a rival at any request of a payment and a move, without locks and
// in a bank that locks first: the books are whole, what was done is in them, and a payment that is repeated
// under its ID is made once.
func TestPaymentsAndMovesUnderFaults(t *testing.T) {
	for _, lock := range []bool{false, true} {
		t.Run(fmt.Sprint("locks first: ", lock), func(t *testing.T) {
			work := func(id, street string, to int) func(context.Context, *holdalltest.Process) error {
				return func(ctx context.Context, p *holdalltest.Process) error {
					b, err := owner(p.Client())
					if err != nil {
						return err
					}
					b.Lock = lock
					if err := b.Pay(ctx, books.Payment{ID: id, From: account(1), To: account(to), Amount: 7_00}); err != nil {
						return err
					}
					return b.Move(ctx, "c1", street, "2")
				}
			}
			holdalltest.Check{
				Setup:  func(ctx context.Context, db *holdalltest.DB) error { return open(ctx, db.Client(), 3, 1) },
				Work:   work("p", "2 Oak Street", 2),
				Faults: []holdalltest.Fault{holdalltest.Crash, holdalltest.CrashAfter, holdalltest.InDoubtAfter},
				Again:  true,
				Rival:  work("rival", "4 Mill Street", 3),
				Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
					r, err := sound(ctx, p)
					switch a2, a3 := balance(r, "a2"), balance(r, "a3"); {
					case err != nil:
						return err
					case told.OK() && a2 != 107_00, a2 != 100_00 && a2 != 107_00:
						return fmt.Errorf("the payment was not made once: %d", a2)
					case told.Rivalled && told.Rival == nil && a3 != 107_00:
						return errors.New("the payment of the rival was not made")
					case told.OK() && !told.Rivalled && address(r, "at-c1").Text != "2 Oak Street":
						return errors.New("the move was not made")
					}
					return nil
				},
			}.Run(t)
		})
	}
}

// A process dies at any request of a month's end, which does not fit into one transaction. All accounts
// have their interest when the month was repeated under its ID, once, and nothing is left to recover.
func TestOwnersDieAtAMonthsEnd(t *testing.T) {
	holdalltest.Check{
		Setup: func(ctx context.Context, db *holdalltest.DB) error { return open(ctx, db.Client(), 2, 60) },
		Work: func(ctx context.Context, p *holdalltest.Process) error {
			b, err := owner(p.Client())
			if err != nil {
				return err
			}
			return b.CloseMonth(ctx, month("m", 2))
		},
		Faults: []holdalltest.Fault{holdalltest.CrashAfter},
		Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
			b, err := owner(p.Client())
			if err != nil {
				return err
			}
			_, first := b.Units.Recover(ctx)
			left, err := b.Units.Recover(ctx)
			if err := errors.Join(first, err); err != nil || len(left.Committed)+len(left.Aborted)+len(left.Alive) > 0 {
				return fmt.Errorf("the second recovery finds %v, %w", left, err)
			}
			r, err := sound(ctx, p)
			if err == nil && balance(r, "bank") != -2*60*25 {
				err = fmt.Errorf("interest was paid of %d", -balance(r, "bank"))
			}
			return err
		},
	}.Run(t)
}

// sound returns the records, which must pass the audit.
func sound(ctx context.Context, p *holdalltest.Process) (books.Records, error) {
	r, err := books.NewTables("test-").Load(ctx, p.Client())
	if results := books.Audit(r); err == nil && !books.Sound(results) {
		err = fmt.Errorf("%+v", results)
	}
	return r, err
}
