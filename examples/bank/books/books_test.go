package books_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// bank is a bank of its own with a number of customers, who have one account
// each: customer c1 has account a1.
type bank struct {
	*books.Bank
	t      *testing.T
	db     *memdynamo.DB
	tables *store.Tables
}

func newBank(t *testing.T, customers int) bank {
	t.Helper()
	db := memdynamo.New(memdynamo.Config{})
	tables, err := store.Create(t.Context(), db, "test-")
	require.NoError(t, err)
	b := bank{t: t, db: db, tables: tables}
	b.Bank, _ = b.owner(db)
	for n := range customers {
		b.open(fmt.Sprintf("c%d", n+1), account(n+1))
	}
	return b
}

// database is what an owner asks of DynamoDB.
type database interface {
	lockset.DynamoDB
	books.Items
}

// owner is another one of the bank, with a connection of its own.
func (b bank) owner(db database) (*books.Bank, *unitofwork.Client) {
	b.t.Helper()
	locks, err := lockset.New(db, b.tables.Locks)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { // a dead owner's cleanup in the background ends before the test
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = locks.Close(over)
	})
	units, err := unitofwork.New(locks, b.tables.Units)
	require.NoError(b.t, err)
	look := books.Looker{DB: db, Observe: func(trace.RequestEnd) {}}
	return &books.Bank{Tables: b.tables.Books, Run: books.Units{Client: units}, Look: look}, units
}

// open opens a customer.
func (b bank) open(id string, accounts ...books.Child) {
	b.t.Helper()
	opening := books.Opening{Balance: 100_00, Street: "1 Elm Street", Phone: "1", Customer: books.Customer{
		ID: id, Accounts: accounts,
		Addresses: []books.Child{{ID: "at-" + id, Home: id}}, Contacts: []books.Child{{ID: "to-" + id, Home: id}},
	}}
	require.NoError(b.t, b.Open(b.t.Context(), opening))
	require.NoError(b.t, b.Open(b.t.Context(), opening), "which changes nothing")
}

// another runs units of another process.
func (b bank) another() books.Runner {
	b.t.Helper()
	bank, _ := b.owner(b.db)
	return bank.Run
}

func (b bank) clock() *fencing.Clock {
	b.t.Helper()
	locks, err := lockset.New(b.db, b.tables.Locks)
	require.NoError(b.t, err)
	return locks.Clock()
}

func account(n int) books.Child {
	return books.Child{ID: fmt.Sprintf("a%d", n), Home: fmt.Sprintf("c%d", n)}
}

// sound loads the records, which must pass the audit.
func (b bank) sound() audit.Records {
	b.t.Helper()
	records := b.load()
	results := audit.Check(records)
	require.True(b.t, audit.Sound(results), "%+v", results)
	return records
}

func (b bank) load() audit.Records {
	b.t.Helper()
	records, err := b.tables.Load(b.t.Context())
	require.NoError(b.t, err)
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

func balance(t *testing.T, r audit.Records, id string) int64 {
	t.Helper()
	return find(t, r.Accounts, func(a books.Account) bool { return a.ID == id }).Balance
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
	err := b.Pay(t.Context(), pay)
	require.ErrorAs(t, err, new(*unitofwork.IDError), "one ID is one payment")
	require.Equal(t, unitofwork.FixCall, unitofwork.NextOf(err))

	err = b.Pay(t.Context(), books.Payment{ID: "p2", From: account(1), To: account(2), Amount: 70_01})
	require.ErrorIs(t, err, books.ErrFunds)
	err = b.Pay(t.Context(), books.Payment{ID: "p3", From: account(1), To: account(3), Amount: 1})
	require.ErrorIs(t, err, books.ErrAbsent)
	require.Equal(t, r, b.sound(), "what is refused changes nothing")

	// A refused payment may be made later, under its ID.
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p4", From: account(2), To: account(1), Amount: 1_00}))
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p2", From: account(1), To: account(2), Amount: 70_01}))
	b.sound()
}

func TestRecord(t *testing.T) {
	b := newBank(t, 0)
	for range 2 {
		require.NoError(t, b.Record(t.Context(), books.Entry{ID: "1", Account: "7", Amount: -500}))
		require.NoError(t, b.Record(t.Context(), books.Entry{ID: "2", Account: "7", Partner: "YZ/5", Amount: 200}))
	}
	r := b.sound()
	require.Equal(t, int64(-300), balance(t, r, "7"), "a ledger is not asked whether it may be")
	require.Equal(t, int64(-200), balance(t, r, "YZ/5"))
	require.Len(t, r.Accounts, 2)
}

func TestMove(t *testing.T) {
	b := newBank(t, 1)
	require.NoError(t, b.Move(t.Context(), "c1", "2 Oak Street", "2"))
	r := b.sound()
	require.Equal(t, "2 Oak Street", r.Addresses[0].Street)
	require.Equal(t, "2", r.Contacts[0].Phone)
	require.Equal(t, 2, r.Customers[0].Version)
	require.ErrorIs(t, b.Move(t.Context(), "c9", "x", "y"), books.ErrAbsent)
}

func TestMerge(t *testing.T) {
	b := newBank(t, 3)
	require.NoError(t, b.Move(t.Context(), "c1", "2 Oak Street", "2"))
	require.NoError(t, b.Merge(t.Context(), "c1", "c2"))
	require.NoError(t, b.Merge(t.Context(), "c2", "c3"))
	r := b.sound()
	for _, a := range r.Accounts {
		require.Equal(t, "c3", a.Owner)
		require.Equal(t, "c"+a.ID[1:], a.Home, "its home, hence its guard, stays")
	}
	stays := find(t, r.Customers, func(c books.Customer) bool { return c.ID == "c3" })
	require.Equal(t, []books.Child{account(3), account(2), account(1)}, stays.Accounts)

	require.ErrorIs(t, b.Merge(t.Context(), "c1", "c3"), books.ErrMerged)
	require.ErrorIs(t, b.Merge(t.Context(), "c3", "c1"), books.ErrMerged)
	require.ErrorIs(t, b.PayInterest(t.Context(), "c2"), books.ErrMerged)
	require.ErrorIs(t, b.Move(t.Context(), "c1", "x", "y"), books.ErrMerged)

	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p", From: account(1), To: account(2), Amount: 1}))
	require.NoError(t, b.PayInterest(t.Context(), "c3"))
	require.NoError(t, b.Move(t.Context(), "c3", "3 Mill Street", "3"))
	r = b.sound()
	require.Equal(t, int64(29), find(t, r.Customers, func(c books.Customer) bool { return c.ID == "c3" }).Interest, "10 + 10 + 9")
}

// before is a runner before whose first unit something else happens.
type before struct {
	books.Runner
	first func()
}

func (r *before) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	if first := r.first; first != nil {
		r.first = nil
		first()
	}
	return r.Runner.Do(ctx, work, fn)
}

// What was read before locking, to know what to lock, may be old when the locks are
// held: interest reaches an account that came with a merge in between.
func TestChildrenThatCameMeanwhile(t *testing.T) {
	b := newBank(t, 2)
	late := *b.Bank
	late.Run = &before{b.Run, func() { require.NoError(t, b.Merge(t.Context(), "c1", "c2")) }}
	require.NoError(t, late.PayInterest(t.Context(), "c2"))
	r := b.sound()
	require.Equal(t, int64(100_10), balance(t, r, "a1"))
	require.Equal(t, int64(100_10), balance(t, r, "a2"))
}

// Without units, the same work in the same order loses one of two payments.
func TestWithoutUnitsUpdatesAreLost(t *testing.T) {
	b := newBank(t, 3)
	b.Run = books.Plain{Tables: b.Tables, Looker: b.Look, Clock: b.clock()}
	other := *b.Bank
	// It reads the balance, and pays when the other is done.
	b.Run = between{Runner: b.Run, then: func() {
		require.NoError(t, other.Pay(t.Context(), books.Payment{ID: "p2", From: account(3), To: account(1), Amount: 5}))
	}}
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p1", From: account(1), To: account(2), Amount: 1}))
	found := map[string]int{}
	for _, result := range audit.Check(b.load()) {
		found[result.Count] = len(result.Findings)
	}
	require.Equal(t, 1, found["lost updates"])
	require.Equal(t, 1, found["balances that differ from opening and history"])
	require.Equal(t, 1, found["sums of money made or gone"])
}

// between is a runner in whose units something happens between reading and
// writing: in the first run of each.
type between struct {
	books.Runner
	then  func()
	times int // how often in a unit, if not once: the others of them only without locks, or both wait
}

func (r between) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	calls := 0
	return r.Runner.Do(ctx, work, func(ctx context.Context, u books.Unit) error {
		err := fn(ctx, u)
		unit, is := u.(interface{ Locked() bool })
		if calls++; calls == 1 || calls <= r.times && is && !unit.Locked() {
			r.then()
		}
		return err
	})
}

// The same interleaving in units: the other pays in between, and the first run counts for
// nothing. The second one sees what the other did.
func TestWhoWasOvertakenBeginsAnew(t *testing.T) {
	b := newBank(t, 3)
	other := *b.Bank
	other.Run = b.another()
	b.Run = between{Runner: b.Run, then: func() {
		require.NoError(t, other.Pay(t.Context(), books.Payment{ID: "p2", From: account(1), To: account(3), Amount: 70_00}))
	}}
	err := b.Pay(t.Context(), books.Payment{ID: "p1", From: account(1), To: account(2), Amount: 30_01})
	require.ErrorIs(t, err, books.ErrFunds)
	require.Equal(t, int64(30_00), balance(t, b.sound(), "a1"))
}

// In a bank that locks first, the other waits, and has to give up.
func TestWithLocksTheOtherWaits(t *testing.T) {
	b := newBank(t, 3)
	b.Lock = true
	other := *b.Bank
	other.Run, other.Lock = b.another(), false // it does not, and finds the lock in its way
	b.Run = between{Runner: b.Run, then: func() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := other.Pay(ctx, books.Payment{ID: "p2", From: account(3), To: account(1), Amount: 5})
		var held *lockset.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, books.AccountKey(account(1)), held.Key)
	}}
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p1", From: account(1), To: account(2), Amount: 1}))
	b.sound()
}

// A move finds the children that came with a merge after it had read the customer's row.
func TestAMoveOvertakenByAMerge(t *testing.T) {
	b := newBank(t, 2)
	other := *b.Bank
	other.Run = b.another()
	b.Run = between{Runner: b.Run, then: func() { require.NoError(t, other.Merge(t.Context(), "c1", "c2")) }}
	require.NoError(t, b.Move(t.Context(), "c2", "2 Oak Street", "2"))
	r := b.sound()
	require.Equal(t, 3, find(t, r.Addresses, func(a books.Address) bool { return a.ID == "at-c1" }).Version)
	require.ErrorIs(t, other.Move(t.Context(), "c1", "x", "y"), books.ErrMerged)
}

// A bank that locks first does the same.
func TestLockingFirst(t *testing.T) {
	b := newBank(t, 0)
	b.Lock = true
	for n := range 3 {
		b.open(fmt.Sprintf("c%d", n+1), account(n+1))
	}
	require.NoError(t, b.Record(t.Context(), books.Entry{ID: "1", Account: "7", Partner: "YZ/5", Amount: -500}))
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p", From: account(1), To: account(2), Amount: 5_00}))
	require.NoError(t, b.Merge(t.Context(), "c1", "c2"))
	late := *b.Bank
	late.Run = &before{b.Run, func() { require.NoError(t, b.Merge(t.Context(), "c2", "c3")) }}
	require.NoError(t, late.Move(t.Context(), "c3", "2 Oak Street", "2"), "which looks again")
	b.sound()
}

// A move and a payment of the same customer share no lock.
func TestAMoveDoesNotStopAPayment(t *testing.T) {
	b := newBank(t, 2)
	other := *b.Bank
	b.Run = between{Runner: b.Run, then: func() {
		require.NoError(t, other.Pay(t.Context(), books.Payment{ID: "p", From: account(1), To: account(2), Amount: 5}))
	}}
	require.NoError(t, b.Move(t.Context(), "c1", "2 Oak Street", "2"))
	b.sound()
}
