package books_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
)

// soundRecords are of two customers, one of whom moved, a payment, cash, a third customer who was merged
// into the second, and a month's interest.
func soundRecords() books.Records {
	return books.Records{
		Customers: []books.Customer{
			{ID: "1", Changes: 1, Accounts: []books.Child{{ID: "a", Home: "1"}}, Details: []books.Child{{ID: "x", Home: "1"}, {ID: "y", Home: "1"}}},
			{ID: "2", Accounts: []books.Child{{ID: "b", Home: "3"}}, Details: []books.Child{{ID: "u", Home: "2"}}},
			{ID: "3", MergedInto: "2"},
		},
		Accounts: []books.Account{
			{ID: "a", Home: "1", Owner: "1", Opening: 100, Balance: 65, Changes: 2},
			{ID: "b", Home: "3", Owner: "2", Opening: 100, Balance: 140, Changes: 1},
			{ID: "7", Balance: -12, Changes: 1}, {ID: "bank", Balance: -6, Changes: 1}, {ID: "9", Balance: 6, Changes: 1},
		},
		Details: []books.Detail{{ID: "x", Customer: "1", Version: 1}, {ID: "y", Customer: "1", Version: 1}, {ID: "u", Customer: "2"}},
		History: []books.Change{
			{Record: "account:b", Stamp: 10, Seq: 1, Kind: books.KindPayment, Entry: "p", Amount: 40},
			{Record: "account:a", Stamp: 11, Seq: 2, Kind: books.KindCash, Entry: "7", Amount: 5},
			{Record: "customer:1", Stamp: 11, Seq: 1, Kind: books.KindMove},
			{Record: "account:a", Stamp: 10, Seq: 1, Kind: books.KindPayment, Entry: "p", Amount: -40},
			{Record: "account:7", Stamp: 12, Seq: 1, Kind: books.KindCash, Entry: "8", Amount: -12},
			{Record: "account:9", Stamp: 14, Seq: 1, Kind: books.KindMonthEnd, Entry: "m", Amount: 6},
			{Record: "account:bank", Stamp: 14, Seq: 1, Kind: books.KindMonthEnd, Entry: "m", Amount: -6},
		},
	}
}

// Checks.
const (
	lost    = "lost updates"
	wrong   = "histories that do not lead to their record"
	torn    = "torn customers"
	entries = "payments or months not whole, or made twice"
	money   = "sums of money made or gone"
)

// found has the findings of each check.
type found map[string]string

var wrongs = map[string]struct {
	bad  func(*books.Records)
	want found
}{
	"nothing":           {func(*books.Records) {}, found{}},
	"no records":        {func(r *books.Records) { *r = books.Records{} }, found{}},
	"one token in both": {func(r *books.Records) { r.History[1].Stamp = r.History[3].Stamp }, found{}},
	"a balance too high": {func(r *books.Records) { r.Accounts[0].Balance++ }, found{
		wrong: "account:a: it has 0.66, its history says 0.65", money: "the accounts hold 1.94, they should hold 1.93"}},
	"balances that make up for each other": {func(r *books.Records) {
		r.Accounts[0].Balance, r.Accounts[2].Balance, r.History[4].Amount = 66, -13, -13
	}, found{wrong: "account:a: it has 0.66, its history says 0.65", money: "the accounts hold 1.93, they should hold 1.92"}},
	"a change that no customer counts": {func(r *books.Records) { r.Customers[0].Changes = 0 }, found{
		wrong: "customer:1: it counts 0 changes, its history 1",
		torn:  "customer 1: detail x of version 0 is listed +1 times more than it exists"}},
	"cash paid twice": {func(r *books.Records) { r.History[2].Entry, r.History[2].Kind = "8", books.KindCash }, found{
		entries: "cash 8: its history has 2 rows, not 1"}},
	"an account that is gone": {func(r *books.Records) { r.Accounts = slices.Delete(r.Accounts, 2, 3) }, found{
		wrong: "account:7: it counts 0 changes, its history 1", money: "the accounts hold 2.05, they should hold 1.93"}},
	"two made the same change": {func(r *books.Records) {
		again := r.History[2]
		again.Stamp = 13
		r.History = append(r.History, again)
	}, found{lost: "customer:1: change 1 was made by two units, with tokens 11 and 13"}},
	"a gap in a history": {func(r *books.Records) { r.History[1].Seq = 3; r.Accounts[0].Changes = 3 }, found{
		wrong: "account:a: change 2 is not in its history"}},
	"a change without its row": {func(r *books.Records) { r.History = slices.Delete(r.History, 2, 3) }, found{
		wrong: "customer:1: it counts 1 changes, its history 0"}},
	"a token lower than before": {func(r *books.Records) { r.History[1].Stamp = 9 }, found{
		wrong: "account:a: change 2 has token 9, the one before 10"}},
	"no token":       {func(r *books.Records) { r.History[4].Stamp = 0 }, found{wrong: "account:7: change 1 has no token"}},
	"half a payment": {func(r *books.Records) { r.History[0].Entry = "" }, found{entries: "payment p: its history has 1 rows, not 2"}},
	"a payment made twice": {func(r *books.Records) { r.History[1].Entry, r.History[1].Kind = "p", books.KindPayment }, found{
		entries: "payment p: its history has 3 rows, not 2", money: "the accounts hold 1.93, they should hold 1.88"}},
	"sides that differ": {func(r *books.Records) { r.History[0].Amount, r.Accounts[1].Balance = 41, 141 }, found{
		entries: "payment p: its sides differ by 0.01", money: "the accounts hold 1.94, they should hold 1.93"}},
	"both sides of one account": {func(r *books.Records) {
		r.History[0].Record, r.History[0].Seq, r.History[0].Stamp = "account:a", 3, 12
		r.Accounts[0].Changes, r.Accounts[0].Balance, r.Accounts[1].Changes, r.Accounts[1].Balance = 3, 105, 0, 100
	}, found{entries: "payment p: it changed an account twice"}},
	"a month paid twice": {func(r *books.Records) {
		again := r.History[5]
		again.Seq, again.Stamp, again.Amount = 2, 15, 0
		r.History = append(r.History, again)
		r.Accounts[4].Changes = 2
	}, found{entries: "month-end m: it changed an account twice"}},
	"a detail of a version": {func(r *books.Records) { r.Details[1].Version = 3 }, found{
		torn: "customer 1: detail y of version 1 is listed +1 times more than it exists"}},
	"a child that is gone": {func(r *books.Records) { r.Details = r.Details[1:] }, found{
		torn: "customer 1: detail x of version 1 is listed +1 times more than it exists"}},
	"a child of another": {func(r *books.Records) { r.Details[2].Customer = "1" }, found{
		torn: "customer 1: detail u of version 0 is listed -1 times more than it exists; " +
			"customer 2: detail u of version 0 is listed +1 times more than it exists"}},
	"a child that is not listed": {func(r *books.Records) { r.Customers[1].Accounts = nil }, found{torn: "customer 2: account b of version 0 is listed -1 times more than it exists"}},
	"a child listed twice": {func(r *books.Records) {
		r.Customers[1].Accounts = append(r.Customers[1].Accounts, r.Customers[1].Accounts[0])
	}, found{torn: "customer 2: account b of version 0 is listed +1 times more than it exists"}},
}

// Every check finds what is wrong, once, and no other check finds it.
func TestEveryCheckCanFail(t *testing.T) {
	for name, c := range wrongs {
		t.Run(name, func(t *testing.T) {
			r := soundRecords()
			c.bad(&r)
			got := found{}
			for _, result := range books.Audit(r) {
				if len(result.Findings) > 0 {
					got[result.Count] = strings.Join(result.Findings, "; ")
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestHundredths(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0.00", 7: "0.07", -7: "-0.07", 100: "1.00", -12345: "-123.45", math.MinInt64: "-92233720368547758.08",
	} {
		require.Equal(t, want, books.Hundredths(n))
	}
}
