package books_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// bank is a bank with customers who have one account each: customer c1 has account a1.
type bank struct {
	*books.Bank
	t  *testing.T
	db *memdynamo.DB
}

func newBank(t *testing.T, customers int) bank {
	t.Helper()
	b := bank{t: t, db: memdynamo.New(memdynamo.Config{})}
	tables := books.NewTables("test-")
	require.NoError(t, tables.Create(t.Context(), b.db))
	b.Bank = &books.Bank{Tables: tables}
	b.Bank = b.owner(b.db)
	for n := range customers {
		b.open(fmt.Sprintf("c%d", n+1), account(n+1))
	}
	return b
}

// database is what an owner needs of DynamoDB.
type database interface {
	lockset.DynamoDB
	books.Items
}

// owner returns another owner of the bank.
func (b bank) owner(db database) *books.Bank {
	b.t.Helper()
	locks, err := lockset.New(db, b.Tables.Locks)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { // cleanup of a dead owner in the background ends before the test
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = locks.Close(ended)
	})
	units, err := unitofwork.New(locks, b.Tables.Units)
	require.NoError(b.t, err)
	return &books.Bank{Tables: b.Tables, Run: books.Units(units), Units: units, Look: books.Looker{DB: db}, Lock: b.Lock}
}

func (b bank) open(id string, accounts ...books.Child) {
	b.t.Helper()
	opening := books.Opening{ID: id, Accounts: accounts, Balance: 100_00, Street: "1 Elm Street", Phone: "1"}
	require.NoError(b.t, b.Open(b.t.Context(), opening))
	require.NoError(b.t, b.Open(b.t.Context(), opening), "which changes nothing")
}

func account(n int) books.Child {
	return books.Child{ID: fmt.Sprintf("a%d", n), Home: fmt.Sprintf("c%d", n)}
}

func (b bank) load() books.Records {
	b.t.Helper()
	records, err := b.Tables.Load(b.t.Context(), b.db)
	require.NoError(b.t, err)
	return records
}

// sound returns the records, which must pass the audit.
func (b bank) sound() books.Records {
	b.t.Helper()
	records := b.load()
	require.True(b.t, books.Sound(books.Audit(records)), "%+v", books.Audit(records))
	return records
}

func find[T any](t *testing.T, records []T, is func(T) bool) T {
	t.Helper()
	for _, r := range records {
		if is(r) {
			return r
		}
	}
	require.Fail(t, "not found")
	return *new(T)
}

func balance(t *testing.T, r books.Records, id string) int64 {
	t.Helper()
	return find(t, r.Accounts, func(a books.Account) bool { return a.ID == id }).Balance
}

func address(t *testing.T, r books.Records, id string) books.Detail {
	t.Helper()
	return find(t, r.Addresses, func(d books.Detail) bool { return d.ID == id })
}

func TestPay(t *testing.T) {
	b := newBank(t, 2)
	pay := books.Payment{ID: "p1", From: account(1), To: account(2), Amount: 30_00}
	for range 3 {
		require.NoError(t, b.Pay(t.Context(), pay))
	}
	r := b.sound()
	require.Equal(t, int64(70_00), balance(t, r, "a1"))
	require.Equal(t, int64(130_00), balance(t, r, "a2"))
	require.Len(t, r.History, 2)

	pay.Amount = 1
	require.ErrorAs(t, b.Pay(t.Context(), pay), new(*unitofwork.IDError), "one ID is one payment")
	refused := books.Payment{ID: "p2", From: account(1), To: account(2), Amount: 70_01}
	require.ErrorIs(t, b.Pay(t.Context(), refused), books.ErrFunds)
	require.ErrorIs(t, b.Pay(t.Context(), books.Payment{ID: "p3", From: account(1), To: account(3), Amount: 1}), books.ErrAbsent)
	require.Equal(t, r, b.sound(), "a refused payment changes nothing")
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p4", From: account(2), To: account(1), Amount: 1_00}))
	require.NoError(t, b.Pay(t.Context(), refused), "it may be made later, under its ID")
	b.sound()
}

func TestRecord(t *testing.T) {
	b := newBank(t, 0)
	for range 2 {
		require.NoError(t, b.Record(t.Context(), books.Entry{ID: "1", Account: "7", Amount: -500}))
		require.NoError(t, b.Record(t.Context(), books.Entry{ID: "2", Account: "7", Partner: "YZ/5", Amount: 200}))
	}
	r := b.sound()
	require.Equal(t, int64(-300), balance(t, r, "7"))
	require.Equal(t, int64(-200), balance(t, r, "YZ/5"))
	require.Len(t, r.Accounts, 2)
}

func TestMoveAndMerge(t *testing.T) {
	for _, lock := range []bool{false, true} {
		b := newBank(t, 3)
		b.Lock = lock
		require.NoError(t, b.Move(t.Context(), "c1", "2 Oak Street", "2"))
		require.Equal(t, "2 Oak Street", address(t, b.sound(), "at-c1").Text)
		require.ErrorIs(t, b.Move(t.Context(), "c9", "x", "y"), books.ErrAbsent)
		require.NoError(t, b.Merge(t.Context(), "c1", "c2"))
		require.NoError(t, b.Merge(t.Context(), "c2", "c3"))
		r := b.sound()
		for _, a := range r.Accounts {
			require.Equal(t, "c3", a.Owner)
			require.Equal(t, "c"+a.ID[1:], a.Home, "its home, and so its guard, stays")
		}
		for _, err := range []error{
			b.Merge(t.Context(), "c1", "c3"), b.Merge(t.Context(), "c3", "c1"), b.PayInterest(t.Context(), "c2"), b.Move(t.Context(), "c1", "x", "y"),
		} {
			require.ErrorIs(t, err, books.ErrMerged)
		}
		require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p", From: account(1), To: account(2), Amount: 1}))
		require.NoError(t, b.PayInterest(t.Context(), "c3"))
		require.NoError(t, b.Move(t.Context(), "c3", "3 Mill Street", "3"))
		r = b.sound()
		require.Equal(t, int64(29), find(t, r.Customers, func(c books.Customer) bool { return c.ID == "c3" }).Interest, "10 + 10 + 9")
	}
}

// Two customers with many accounts and thousands of rows of history become one, as one unit.
func TestMergeOfThousandsOfRows(t *testing.T) {
	const accounts, rounds = 100, 10
	b := newBank(t, 1)
	for _, id := range []string{"c2", "c3"} {
		var children []books.Child
		for n := range accounts {
			children = append(children, books.Child{ID: fmt.Sprintf("%s-%d", id, n), Home: id})
		}
		b.open(id, children...)
		for range rounds {
			require.NoError(t, b.PayInterest(t.Context(), id))
		}
	}
	require.NoError(t, b.Merge(t.Context(), "c2", "c3"))
	require.NoError(t, b.Merge(t.Context(), "c3", "c1"))
	theirs := 0
	for _, c := range b.sound().History {
		if c.Owner == "c1" {
			theirs++
		}
	}
	require.Equal(t, 2*accounts*(rounds+1)+accounts, theirs, "the rows of all rounds, and of the merges")
}

// A merge notices that a Query has missed a row.
func TestMergeDoesNotMissRows(t *testing.T) {
	b := newBank(t, 2)
	require.NoError(t, b.PayInterest(t.Context(), "c1"))
	_, err := b.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String(b.Tables.History.Name),
		Key: map[string]types.AttributeValue{
			"record": &types.AttributeValueMemberS{Value: books.AccountRecord("a1")},
			"change": &types.AttributeValueMemberS{Value: b.sound().History[0].Key},
		},
	})
	require.NoError(t, err)
	before := b.load()
	require.ErrorIs(t, b.Merge(t.Context(), "c1", "c2"), books.ErrRowsMissing)
	require.Equal(t, before, b.load())
}

// between runs units in which something happens after the function has read: in the first run of each
// unit, or in so many runs without locks.
func between(run books.Run, times int, then func()) books.Run {
	return func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
		calls := 0
		return run(ctx, work, func(ctx context.Context, u books.Unit) error {
			err := fn(ctx, u)
			unit, is := u.(interface{ Locked() bool })
			if calls++; calls == 1 || calls <= times && is && !unit.Locked() {
				then()
			}
			return err
		})
	}
}

// Without units, one of two payments is lost.
func TestWithoutUnitsUpdatesAreLost(t *testing.T) {
	b := newBank(t, 3)
	b.Run = books.Plain(b.Tables, b.Look, b.Units.Locks().Clock())
	other := *b.Bank
	b.Run = between(b.Run, 1, func() {
		require.NoError(t, other.Pay(t.Context(), books.Payment{ID: "p2", From: account(3), To: account(1), Amount: 5}))
	})
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p1", From: account(1), To: account(2), Amount: 1}))
	found := map[string]int{}
	for _, result := range books.Audit(b.load()) {
		if len(result.Findings) > 0 {
			found[result.Count] = len(result.Findings)
		}
	}
	require.Equal(t, map[string]int{"lost updates": 1, "balances that differ from opening and history": 1, "sums of money made or gone": 1}, found)
}

// With units, the run that was overtaken is aborted, and the next one sees the other payment.
func TestAnOvertakenPaymentStartsOver(t *testing.T) {
	b := newBank(t, 3)
	other := b.owner(b.db)
	b.Run = between(b.Run, 1, func() {
		require.NoError(t, other.Pay(t.Context(), books.Payment{ID: "p2", From: account(1), To: account(3), Amount: 70_00}))
	})
	require.ErrorIs(t, b.Pay(t.Context(), books.Payment{ID: "p1", From: account(1), To: account(2), Amount: 30_01}), books.ErrFunds)
	require.Equal(t, int64(30_00), balance(t, b.sound(), "a1"))
}

// In a bank that locks first, the other payment waits for the account's key, and a move does not.
func TestPaymentsWaitForEachOtherAndNotForMoves(t *testing.T) {
	b := newBank(t, 3)
	other := b.owner(b.db)
	b.Lock = true
	b.Run = between(b.Run, 1, func() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var held *lockset.HeldError
		require.ErrorAs(t, other.Pay(ctx, books.Payment{ID: "p2", From: account(3), To: account(1), Amount: 5}), &held)
		require.Equal(t, books.AccountKey(account(1)), held.Key)
		require.NoError(t, other.Move(t.Context(), "c1", "2 Oak Street", "2"))
	})
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p1", From: account(1), To: account(2), Amount: 1}))
	b.sound()
}

// A move, or interest, finds the children that came with a merge after it had read the customer's row.
func TestChildrenThatCameMeanwhile(t *testing.T) {
	for _, lock := range []bool{false, true} {
		b := newBank(t, 2)
		other := b.owner(b.db)
		b.Lock = lock
		merged := false
		merge := func() {
			if !merged {
				merged = true
				require.NoError(t, other.Merge(t.Context(), "c1", "c2"))
			}
		}
		if lock { // the merge comes before the locks
			run := b.Run
			b.Run = func(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
				merge()
				return run(ctx, work, fn)
			}
		} else {
			b.Run = between(b.Run, 1, merge)
		}
		require.NoError(t, b.Move(t.Context(), "c2", "2 Oak Street", "2"))
		require.Equal(t, 3, address(t, b.sound(), "at-c1").Version)
		require.NoError(t, b.PayInterest(t.Context(), "c2"))
		require.Equal(t, int64(100_10), balance(t, b.sound(), "a1"))
	}
}

// Create refuses existing tables, and Remove deletes only those that Create created.
func TestTablesOfAnotherBank(t *testing.T) {
	for _, theirs := range []string{"x-locks", "x-units", "x-contacts"} {
		db := memdynamo.New(memdynamo.Config{})
		other := books.NewTables("x-")
		require.NoError(t, other.Create(t.Context(), db))
		all, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		require.NoError(t, err)
		require.Len(t, all.TableNames, 7)
		for _, name := range all.TableNames {
			if name != theirs {
				_, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name})
				require.NoError(t, err)
			}
		}
		ours := books.NewTables("x-")
		require.ErrorContains(t, ours.Create(t.Context(), db), fmt.Sprintf("table %q exists already: choose another -prefix", theirs))
		require.NoError(t, ours.Remove(t.Context(), db))
		left, err := db.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		require.NoError(t, err)
		require.Equal(t, []string{theirs}, left.TableNames)
	}
}
