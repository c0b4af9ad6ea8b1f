package audit_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
)

// sound are books with nothing wrong: two customers, one of whom got interest,
// a payment, cash, a third customer who was merged into the second, and a month's
// interest.
func sound() audit.Records {
	child := func(id, home string) []books.Child { return []books.Child{{ID: id, Home: home}} }
	return audit.Records{
		Customers: []books.Customer{
			{ID: "1", Version: 2, Changes: 1, Interest: 5, Accounts: child("a", "1"), Addresses: child("x", "1"), Contacts: child("y", "1")},
			{ID: "2", Version: 1, Accounts: child("b", "3"), Addresses: child("u", "2"), Contacts: child("v", "2")},
			{ID: "3", Version: 7, MergedInto: "2"},
		},
		Accounts: []books.Account{
			{ID: "a", Home: "1", Owner: "1", Opening: 100, Balance: 65, Changes: 2},
			{ID: "b", Home: "3", Owner: "2", Opening: 100, Balance: 140, Changes: 1},
			{ID: "7", Balance: -12, Changes: 1},
			{ID: "bank", Balance: -6, Changes: 1},
			{ID: "9", Balance: 6, Changes: 1},
		},
		Addresses: []books.Address{{ID: "x", Customer: "1", Version: 2}, {ID: "u", Customer: "2", Version: 1}},
		Contacts:  []books.Contact{{ID: "y", Customer: "1", Version: 2}, {ID: "v", Customer: "2", Version: 1}},
		History: []books.Change{
			{Record: "account:b", Stamp: 10, Owner: "2", Seq: 1, Kind: books.KindPayment, Entry: "p", Amount: 40},
			{Record: "account:a", Stamp: 11, Owner: "1", Seq: 2, Kind: books.KindInterest, Amount: 5},
			{Record: "customer:1", Stamp: 11, Seq: 1, Kind: books.KindInterest},
			{Record: "account:a", Stamp: 10, Owner: "1", Seq: 1, Kind: books.KindPayment, Entry: "p", Amount: -40},
			{Record: "account:7", Stamp: 12, Seq: 1, Kind: books.KindCash, Entry: "8", Amount: -12},
			{Record: "account:9", Stamp: 14, Seq: 1, Kind: books.KindMonthEnd, Entry: "m", Amount: 6},
			{Record: "account:bank", Stamp: 14, Seq: 1, Kind: books.KindMonthEnd, Entry: "m", Amount: -6},
		},
	}
}

func TestSoundBooks(t *testing.T) {
	for _, r := range []audit.Records{{}, sound()} {
		results := audit.Check(r)
		require.True(t, audit.Sound(results), "%+v", results)
	}
}

// What the checks count.
const (
	lost     = "lost updates"
	skews    = "changes that did not see each other"
	torn     = "torn customers"
	payments = "payments not whole, or made twice"
	owners   = "accounts whose history has another owner"
	months   = "months' interest not whole, or paid twice"
	missing  = "changes without history"
	balances = "balances that differ from opening and history"
	tokens   = "tokens out of order"
	money    = "sums of money made or gone"
)

// broken are books that only the checks named must not pass.
var broken = []struct {
	name string
	bad  func(*audit.Records)
	want map[string]string // check: its only finding
}{
	{"a balance too high", func(r *audit.Records) { r.Accounts[0].Balance++ }, map[string]string{
		balances: "account:a has 0.66, its history says 0.65", money: "the accounts hold 1.94, they should hold 1.93: 0.01 too much"}},
	{"balances that make up for each other", func(r *audit.Records) {
		r.Accounts[0].Balance++
		r.Accounts[2].Balance = -13
		r.History[4].Amount = -13
	}, map[string]string{
		balances: "account:a has 0.66, its history says 0.65", money: "the accounts hold 1.93, they should hold 1.92: 0.01 too much"}},
	{"interest that no customer counts", func(r *audit.Records) { r.Customers[0].Interest = 0 }, map[string]string{
		money: "the accounts hold 1.93, they should hold 1.88: 0.05 too much"}},
	{"interest that no account got", func(r *audit.Records) { r.Customers[1].Interest = 300 }, map[string]string{
		money: "the accounts hold 1.93, they should hold 4.93: 3.00 too little"}},
	{"an account that is gone", func(r *audit.Records) { r.Accounts = slices.Delete(r.Accounts, 2, 3) }, map[string]string{
		balances: "account:7 has a history of -0.12 and no account", missing: "account:7: it has a history, and is not there",
		money: "the accounts hold 2.05, they should hold 1.93: 0.12 too much"}},
	{"two that made the same change", func(r *audit.Records) {
		again := r.History[2]
		again.Stamp = 13
		r.History = append(r.History, again)
	}, map[string]string{lost: "customer:1: change 1 was made by two units, with tokens 11 and 13"}},
	{"two that wrote what the other had read", func(r *audit.Records) {
		r.History[1].Note, r.History[1].Unit = audit.Saw("b", 0), "one"
		r.History[0].Note, r.History[0].Unit = audit.Saw("a", 1), "other"
	}, map[string]string{skews: "change 2 of account:a and change 1 of account:b, by the units one and other"}},
	{"a gap in a history", func(r *audit.Records) { r.History[1].Seq = 3; r.Accounts[0].Changes = 3 }, map[string]string{
		missing: "account:a: change 2 is not in its history"}},
	{"a change without its row", func(r *audit.Records) { r.History = slices.Delete(r.History, 2, 3) }, map[string]string{
		missing: "customer:1: it counts 1 changes, its history 0"}},
	{"a row without its change", func(r *audit.Records) { r.Customers[0].Changes = 0 }, map[string]string{
		missing: "customer:1: it counts 0 changes, its history 1"}},
	{"a token lower than the one before", func(r *audit.Records) { r.History[1].Stamp = 9 }, map[string]string{
		tokens: "account:a: change 2 has token 9, the one before 10"}},
	{"no token", func(r *audit.Records) { r.History[4].Stamp = 0 }, map[string]string{tokens: "account:7: change 1 has no token"}},
	{"a row written again by somebody earlier", func(r *audit.Records) { r.History[4].Token = 13 }, map[string]string{
		tokens: "account:7: change 1 was made with token 13, and written again with 12"}},
	{"half a payment", func(r *audit.Records) { r.History[0].Entry = "" }, map[string]string{payments: "payment p: one side is missing"}},
	{"a payment made twice", func(r *audit.Records) { r.History[1].Entry, r.History[1].Kind = "p", books.KindPayment }, map[string]string{
		payments: "payment p: made more than once, its history has 3 rows"}},
	{"cash paid twice", func(r *audit.Records) { r.History[2].Entry, r.History[2].Kind = "8", books.KindCash }, map[string]string{
		payments: "payment 8: made more than once, its history has 2 rows"}},
	{"a payment that gives less than it takes", func(r *audit.Records) { r.History[0].Amount, r.Accounts[1].Balance = 39, 139 }, map[string]string{
		payments: "payment p: its sides differ by -0.01", money: "the accounts hold 1.92, they should hold 1.93: 0.01 too little"}},
	{"a payment to oneself", func(r *audit.Records) {
		r.History[0].Record, r.History[0].Seq, r.History[0].Stamp, r.History[0].Owner = "account:a", 3, 12, "1"
		r.Accounts[0].Balance, r.Accounts[0].Changes = 105, 3
		r.Accounts[1].Balance, r.Accounts[1].Changes = 100, 0
	}, map[string]string{payments: "payment p: both sides are of account:a"}},
	{"an address of another version", func(r *audit.Records) { r.Addresses[0].Version = 1 }, map[string]string{
		torn: "customer 1: has version 2, its address x version 1"}},
	{"a contact of another version", func(r *audit.Records) { r.Contacts[1].Version = 2 }, map[string]string{
		torn: "customer 2: has version 1, its contact v version 2"}},
	{"a customer of another version", func(r *audit.Records) { r.Customers[0].Version = 3 }, map[string]string{
		torn: "customer 1: has version 3, its address x version 2"}},
	{"a child that is gone", func(r *audit.Records) { r.Contacts = r.Contacts[:1] }, map[string]string{
		torn: "customer 2: lists contact v, which is not there"}},
	{"a child of somebody else", func(r *audit.Records) { r.Accounts[1].Owner = "3" }, map[string]string{
		torn:   "customer 2: lists account b, which says it is of customer 3",
		owners: `account:b is of customer "3", change 1 of its history of customer "2"`}},
	{"a history that was left behind", func(r *audit.Records) { r.History[3].Owner = "2" }, map[string]string{
		owners: `account:a is of customer "1", change 1 of its history of customer "2"`}},
	{"a month's interest that was not taken from the bank", func(r *audit.Records) { r.History[6].Amount, r.Accounts[3].Balance = -5, -5 }, map[string]string{
		months: "month m: what was paid and what was taken differ by 0.01", money: "the accounts hold 1.94, they should hold 1.93: 0.01 too much"}},
	{"a month's interest paid twice", func(r *audit.Records) {
		again := r.History[5]
		again.Seq, again.Stamp, again.Amount = 2, 15, 0
		r.History = append(r.History, again)
		r.Accounts[4].Changes = 2
	}, map[string]string{months: "month m to account:9: paid 2 times"}},
	{"a child that nobody lists", func(r *audit.Records) { r.Customers[1].Accounts = nil }, map[string]string{
		torn: "customer 2: account b is its own but not in its list"}},
	{"a child listed twice", func(r *audit.Records) {
		r.Customers[1].Accounts = append(r.Customers[1].Accounts, r.Customers[1].Accounts[0])
	}, map[string]string{
		torn: "customer 2: lists account b, as customer 2 does"}},
}

// Changes that were committed together have one token.
func TestChangesWithOneToken(t *testing.T) {
	r := sound()
	r.History[1].Stamp = r.History[3].Stamp
	require.True(t, audit.Sound(audit.Check(r)))
}

// Of two that each wrote what the other had read, the later one has seen the earlier one's change.
func TestChangesThatSawEachOther(t *testing.T) {
	for _, saw := range [][2]int{{1, 1}, {0, 2}, {1, 0}} {
		r := sound()
		r.History[1].Note, r.History[0].Note = audit.Saw("b", saw[0]), audit.Saw("a", saw[1])
		require.True(t, audit.Sound(audit.Check(r)), saw)
	}
}

func TestEveryCheckCanFail(t *testing.T) {
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			r := sound()
			c.bad(&r)
			results := audit.Check(r)
			require.False(t, audit.Sound(results))
			found := map[string]string{}
			for _, result := range results {
				if len(result.Findings) > 0 {
					require.Len(t, result.Findings, 1, result.Findings)
					found[result.Count] = result.Findings[0]
				}
			}
			require.Equal(t, c.want, found)
		})
	}
}

func TestHundredths(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0.00", 7: "0.07", -7: "-0.07", 100: "1.00", -12345: "-123.45", math.MinInt64: "-92233720368547758.08",
	} {
		require.Equal(t, want, audit.Hundredths(n))
	}
}
