package books_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// owner returns an owner of the bank. It sends nothing.
func owner(db books.DB) *books.Bank {
	tables := books.NewTables("test-")
	cfg := tables.Units
	cfg.Locks = tables.Locks
	units, err := unitofwork.Open(db, cfg)
	if err != nil {
		panic(err) // the configuration is wrong
	}
	return &books.Bank{Tables: tables, Run: books.Units(units), Units: units, Look: books.Looker{DB: db}}
}

// open opens customers: c1 has the accounts a1, a1-2, and so on.
func open(ctx context.Context, db books.DB, customers, accounts int) error {
	b := owner(db)
	if err := b.Tables.Create(ctx, db); err != nil {
		return err
	}
	for n := range customers {
		opening := books.Opening{ID: fmt.Sprint("c", n+1), Accounts: []books.Child{account(n + 1)}, Balance: 100_00, Street: "1 Elm Street", Phone: "1"}
		for n := 2; n <= accounts; n++ {
			opening.Accounts = append(opening.Accounts, books.Child{ID: fmt.Sprintf("%s-%d", opening.Accounts[0].ID, n), Home: opening.ID})
		}
		for range 2 { // the second time it changes nothing
			if err := b.Open(ctx, opening); err != nil {
				return err
			}
		}
	}
	return nil
}

func account(n int) books.Child {
	return books.Child{ID: fmt.Sprintf("a%d", n), Home: fmt.Sprintf("c%d", n)}
}

// customers returns the IDs of so many.
func customers(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("c%d", i+1))
	}
	return ids
}

// bank is an owner, and the tables that it shares with others.
type bank struct {
	*books.Bank
	t  *testing.T
	db *dynamodb.Client
}

func newBank(t *testing.T, customers, accounts int) bank {
	t.Helper()
	db := holdalltest.DynamoDB().Client()
	require.NoError(t, open(t.Context(), db, customers, accounts))
	return bank{t: t, db: db}.another()
}

// another returns another owner of the bank.
func (b bank) another() bank {
	return bank{owner(b.db), b.t, b.db}
}

func (b bank) pay(id string, from, to int, amount int64) error {
	return b.Pay(b.t.Context(), books.Payment{ID: id, From: account(from), To: account(to), Amount: amount})
}

// sound returns the records, which must pass the audit.
func (b bank) sound() books.Records {
	b.t.Helper()
	r, err := sound(b.t.Context(), b.db)
	require.NoError(b.t, err)
	return r
}

func sound(ctx context.Context, db books.DB) (books.Records, error) {
	r, err := books.NewTables("test-").Load(ctx, db)
	if results := books.Audit(r); err == nil && !books.Sound(results) {
		err = fmt.Errorf("%+v", results)
	}
	return r, err
}

// find returns the record that is as asked for, or an empty one.
func find[T any](records []T, is func(T) bool) (found T) {
	if i := slices.IndexFunc(records, is); i >= 0 {
		found = records[i]
	}
	return found
}

func balance(r books.Records, id string) int64 {
	return find(r.Accounts, func(a books.Account) bool { return a.ID == id }).Balance
}

func detail(r books.Records, id string) books.Detail {
	return find(r.Details, func(d books.Detail) bool { return d.ID == id })
}

func TestPay(t *testing.T) {
	b := newBank(t, 2, 1)
	for range 3 {
		require.NoError(t, b.pay("p1", 1, 2, 30_00))
	}
	r := b.sound()
	require.Equal(t, int64(70_00), balance(r, "a1"))
	require.Equal(t, int64(130_00), balance(r, "a2"))
	require.Len(t, r.History, 2)

	require.ErrorAs(t, b.pay("p1", 1, 2, 1), new(*unitofwork.IDError), "one ID is one payment")
	require.ErrorIs(t, b.pay("p2", 1, 2, 70_01), books.ErrFunds)
	require.ErrorIs(t, b.pay("p3", 1, 3, 1), books.ErrAbsent)
	require.Equal(t, r, b.sound(), "a refused payment changes nothing")
	require.NoError(t, b.pay("p4", 2, 1, 1_00))
	require.NoError(t, b.pay("p2", 1, 2, 70_01), "it may be made later, under its ID")
	b.sound()
}

// A row of a ledger opens the accounts that it names. It has two sides, unless it is cash.
func TestRecord(t *testing.T) {
	b := newBank(t, 0, 0)
	record := func(id, partner string, amount int64) error {
		return b.Record(t.Context(), books.Entry{ID: id, Account: "7", Partner: partner, Amount: amount})
	}
	for range 2 {
		require.NoError(t, record("1", "", -12))
		require.NoError(t, record("2", "A/8", 30))
	}
	require.ErrorAs(t, record("2", "A/8", 31), new(*unitofwork.IDError), "one ID is one row")
	r := b.sound()
	require.Equal(t, int64(18), balance(r, "7"))
	require.Equal(t, int64(-30), balance(r, "A/8"))
	require.Len(t, r.History, 3)
}

func TestMoveAndMerge(t *testing.T) {
	for _, lock := range []bool{false, true} {
		b := newBank(t, 3, 1)
		b.Lock = lock
		require.NoError(t, b.Move(t.Context(), "c1", "2 Oak Street", "2"))
		require.Equal(t, "2 Oak Street", detail(b.sound(), "street-c1").Text)
		require.ErrorIs(t, b.Move(t.Context(), "c9", "x", "y"), books.ErrAbsent)
		require.NoError(t, b.Merge(t.Context(), "c1", "c2"))
		require.NoError(t, b.Merge(t.Context(), "c2", "c3"))
		for _, a := range b.sound().Accounts {
			require.Equal(t, "c3", a.Owner)
			require.Equal(t, "c"+a.ID[1:], a.Home, "its home, and so its guard, stays")
		}
		for _, err := range []error{
			b.Merge(t.Context(), "c1", "c3"), b.Merge(t.Context(), "c3", "c1"), b.Move(t.Context(), "c1", "x", "y"),
		} {
			require.ErrorIs(t, err, books.ErrMerged)
		}
		require.NoError(t, b.pay("p", 1, 2, 1))
		require.NoError(t, b.Move(t.Context(), "c3", "3 Mill Street", "3"))
		b.sound()
	}
}

// Two customers with many accounts become one, as one unit that does not fit into one transaction.
func TestMergeOfManyAccounts(t *testing.T) {
	b := newBank(t, 2, 60)
	require.NoError(t, b.Merge(t.Context(), "c1", "c2"))
	require.Len(t, find(b.sound().Customers, func(c books.Customer) bool { return c.ID == "c2" }).Accounts, 2*60)
}

func TestCloseMonth(t *testing.T) {
	b := newBank(t, 4, 40)
	require.NoError(t, b.pay("p", 1, 2, 99_99))
	require.NoError(t, b.Merge(t.Context(), "c3", "c4"))
	for range 3 {
		require.NoError(t, b.CloseMonth(t.Context(), "m1", customers(4)))
	}
	r := b.sound()
	require.Equal(t, int64(199_99+49), balance(r, "a2"), "49.9975 is rounded down")
	require.Equal(t, int64(100_25), balance(r, "a3"), "an account of a merged customer")
	require.Equal(t, int64(-(4*40-2)*25-49), balance(r, "bank"))
	require.NoError(t, b.CloseMonth(t.Context(), "m2", customers(4)))
	require.ErrorAs(t, b.CloseMonth(t.Context(), "m2", customers(3)), new(*unitofwork.IDError), "a month includes all customers")
	require.ErrorIs(t, b.CloseMonth(t.Context(), "m3", customers(5)), books.ErrAbsent)
	b.sound()
}

// between runs units in which something happens once, after the function has read.
func between(run books.Run, then func()) books.Run {
	calls := 0
	return func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
		return run(ctx, work, func(ctx context.Context, u books.Unit) error {
			err := fn(ctx, u)
			if calls++; calls == 1 {
				then()
			}
			return err
		})
	}
}

// The run that was overtaken is aborted, and the next one sees the other payment.
func TestAnOvertakenPayment(t *testing.T) {
	b := newBank(t, 3, 1)
	other := b.another()
	b.Run = between(b.Run, func() { require.NoError(t, other.pay("p2", 1, 3, 70_00)) })
	require.ErrorIs(t, b.pay("p1", 1, 2, 30_01), books.ErrFunds)
	require.Equal(t, int64(30_00), balance(b.sound(), "a1"))
}

// In a bank that locks first, the other payment waits for the account's key, and a move does not.
func TestPaymentsWaitForEachOtherAndNotForMoves(t *testing.T) {
	b := newBank(t, 3, 1)
	other := b.another()
	b.Lock = true
	b.Run = between(b.Run, func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var held *lockset.HeldError
		require.ErrorAs(t, other.Pay(ctx, books.Payment{ID: "p2", From: account(3), To: account(1), Amount: 5}), &held)
		require.Equal(t, books.AccountKey(account(1)), held.Key)
		require.NoError(t, other.Move(t.Context(), "c1", "2 Oak Street", "2"))
	})
	require.NoError(t, b.pay("p1", 1, 2, 1))
	b.sound()
}

// A move finds the children that came with a merge after it had read the customer's row: before a unit
// without locks commits; or before one has its locks, which is then to be done again.
func TestChildrenThatCameMeanwhile(t *testing.T) {
	for _, lock := range []bool{false, true} {
		b := newBank(t, 2, 1)
		b.Lock = lock
		run, merge := b.Run, b.another().Merge
		if lock {
			merged := false
			b.Run = func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
				if !merged {
					merged = true
					require.NoError(t, merge(ctx, "c1", "c2"))
				}
				return run(ctx, work, fn)
			}
			require.ErrorIs(t, b.Move(t.Context(), "c2", "2 Oak Street", "2"), books.ErrChanged, "it has locked what the old row lists")
		} else {
			b.Run = between(run, func() { require.NoError(t, merge(t.Context(), "c1", "c2")) })
		}
		require.NoError(t, b.Move(t.Context(), "c2", "2 Oak Street", "2"))
		require.Equal(t, 2, detail(b.sound(), "street-c1").Version)
	}
}

// Create refuses existing tables, and Remove deletes only those that Create created.
func TestTablesOfAnotherBank(t *testing.T) {
	for _, theirs := range []string{"test-locks", "test-units", "test-details"} {
		db, tables := holdalltest.DynamoDB(), books.NewTables("test-")
		require.NoError(t, db.CreateTable(t.Context(), theirs, "id", ""))
		require.ErrorContains(t, tables.Create(t.Context(), db.Client()), fmt.Sprintf("table %q exists already: choose another -prefix", theirs))
		require.NoError(t, tables.Remove(t.Context(), db.Client()))
		left, err := db.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
		require.NoError(t, err)
		require.Equal(t, []string{theirs}, left.TableNames)
	}
	b := newBank(t, 0, 0)
	require.NoError(t, b.Tables.Remove(t.Context(), b.db), "another process created them")
	require.Empty(t, b.sound())
}

// A process dies, or is cut off, or meets a rival at any request of a payment and a move, without locks and
// in a bank that locks first: the books are whole, what was done is in them, and a payment that is repeated
// under its ID is made once.
func TestPaymentsAndMovesUnderFaults(t *testing.T) {
	for _, lock := range []bool{false, true} {
		t.Run(fmt.Sprint("locks first: ", lock), func(t *testing.T) {
			work := func(id, street string, to int) func(context.Context, *holdalltest.Process) error {
				return func(ctx context.Context, p *holdalltest.Process) error {
					b := owner(p.Client())
					b.Lock = lock
					if err := b.Pay(ctx, books.Payment{ID: id, From: account(1), To: account(to), Amount: 7_00}); err != nil {
						return err
					}
					return b.Move(ctx, "c1", street, "2")
				}
			}
			faults := []holdalltest.Fault{"crash", "crash-after", "in-doubt-after"}
			if lock && testing.Short() { // they take several times as many requests
				faults = faults[1:2]
			}
			holdalltest.Check{
				Setup:  func(ctx context.Context, db *holdalltest.DB) error { return open(ctx, db.Client(), 3, 1) },
				Work:   work("p", "2 Oak Street", 2),
				Faults: faults,
				Again:  true,
				Rival:  work("rival", "4 Mill Street", 3),
				Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
					r, err := sound(ctx, p.Client())
					switch a2, a3 := balance(r, "a2"), balance(r, "a3"); {
					case err != nil:
						return err
					case told.OK() && a2 != 107_00, a2 != 100_00 && a2 != 107_00:
						return fmt.Errorf("the payment was not made once: %d", a2)
					case told.Rivalled && told.Rival == nil && a3 != 107_00:
						return errors.New("the payment of the rival was not made")
					case told.OK() && !told.Rivalled && detail(r, "street-c1").Text != "2 Oak Street":
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
		Setup: func(ctx context.Context, db *holdalltest.DB) error { return open(ctx, db.Client(), 2, 26) },
		Work: func(ctx context.Context, p *holdalltest.Process) error {
			b := owner(p.Client())
			return b.CloseMonth(ctx, "m", customers(2))
		},
		Faults: []holdalltest.Fault{"crash-after"},
		Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
			b := owner(p.Client())
			_, first := b.Units.Recover(ctx)
			left, err := b.Units.Recover(ctx)
			if err := errors.Join(first, err); err != nil || len(left.Committed)+len(left.Aborted)+len(left.Alive) > 0 {
				return fmt.Errorf("the second recovery finds %v, %w", left, err)
			}
			r, err := sound(ctx, p.Client())
			if err == nil && balance(r, "bank") != -2*26*25 {
				err = fmt.Errorf("interest was paid of %d", -balance(r, "bank"))
			}
			return err
		},
	}.Run(t)
}
