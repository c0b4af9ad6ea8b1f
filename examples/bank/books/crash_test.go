package books_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// mortal returns an owner that dies at its n-th request, before or after it is executed, or never if n
// is 0; and a counter of its requests.
func (b bank) mortal(n int64, executed bool) (*books.Bank, *atomic.Int64) {
	sent := new(atomic.Int64)
	return b.owner(faults.Wrap(b.db, faults.Config{Script: func(faults.Call) faults.Fault {
		if sent.Add(1) == n {
			return faults.CrashHere(executed)
		}
		return faults.Pass()
	}})), sent
}

// An owner dies at any request of a payment and a move: without locks, under locks after conflicts, and
// in a bank that locks first. The books are whole, and a payment repeated under its ID happens once.
func TestOwnersDieAtPaymentsAndMoves(t *testing.T) {
	for name, c := range map[string]struct {
		overtaken int // how often
		lock      bool
		least     int64 // requests
	}{
		"without locks":   {least: 5},
		"overtaken":       {overtaken: 1, least: 10},
		"in conflict":     {overtaken: 5, least: 30},
		"locked at first": {lock: true, least: 8},
	} {
		for _, executed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", name, executed), func(t *testing.T) {
				sent := int64(0)
				synctest.Test(t, func(t *testing.T) { sent = diesAt(t, 0, executed, c.overtaken, c.lock) })
				require.GreaterOrEqual(t, sent, c.least)
				step := int64(1)
				if testing.Short() { // the most requests are those of attempts that are alike
					step = max(1, sent/8)
				}
				for n := int64(0); n < sent; n += step {
					synctest.Test(t, func(t *testing.T) { diesAt(t, n+1, executed, c.overtaken, c.lock) })
				}
			})
		}
	}
}

func diesAt(t *testing.T, n int64, executed bool, overtaken int, lock bool) int64 {
	t.Helper()
	b := newBank(t, 4)
	heir := b.owner(b.db)
	dies, sent := b.mortal(n, executed)
	dies.Lock = lock
	others := 0
	if overtaken > 0 {
		dies.Run = between{Runner: dies.Run, times: overtaken, then: func() {
			others++
			id := fmt.Sprintf("other-%d", others)
			require.NoError(t, heir.Pay(t.Context(), books.Payment{ID: id, From: account(1), To: account(3), Amount: 1}))
			require.NoError(t, heir.Move(t.Context(), "c1", "4 Mill Street", "4"))
		}}
	}
	pay := books.Payment{ID: "p", From: account(1), To: account(2), Amount: 7_00}
	paid := dies.Pay(t.Context(), pay)
	moved := dies.Move(t.Context(), "c1", "2 Oak Street", "2")
	r := b.sound()
	if paid == nil {
		require.Equal(t, int64(107_00), balance(t, r, "a2"))
	}
	if moved == nil {
		require.Equal(t, "2 Oak Street", address(t, r, "at-c1").Text)
	}
	heir.Lock = lock // an ID includes the keys that are named
	require.NoError(t, heir.Pay(t.Context(), pay))
	err := heir.Move(t.Context(), "c1", "3 Elm Street", "3")
	if lockset.NextOf(err) == lockset.TryLater { // it met a dead unit at several keys, a lease at each
		err = heir.Move(t.Context(), "c1", "3 Elm Street", "3")
	}
	require.NoError(t, err)
	r = b.sound()
	require.Equal(t, int64(107_00), balance(t, r, "a2"))
	require.Equal(t, int64(93_00)-int64(others), balance(t, r, "a1"))
	require.Equal(t, "3 Elm Street", address(t, r, "at-c1").Text)
	return sent.Load()
}

func month(id string, customers int) books.Month {
	m := books.Month{ID: id}
	for n := range customers {
		m.Customers = append(m.Customers, fmt.Sprintf("c%d", n+1))
	}
	return m
}

func TestCloseMonth(t *testing.T) {
	const customers = 60
	b := newBank(t, customers)
	require.NoError(t, b.Pay(t.Context(), books.Payment{ID: "p", From: account(1), To: account(2), Amount: 99_99}))
	require.NoError(t, b.Merge(t.Context(), "c3", "c4"))
	for range 3 {
		require.NoError(t, b.CloseMonth(t.Context(), month("m1", customers)))
	}
	r := b.sound()
	require.Equal(t, int64(199_99+50), balance(t, r, "a2"), "49.9975 is rounded")
	require.Equal(t, int64(100_25), balance(t, r, "a3"), "an account of a merged customer")
	require.Equal(t, int64(-(customers-2)*25-50), balance(t, r, "bank"))
	require.NoError(t, b.CloseMonth(t.Context(), month("m2", customers)))
	require.ErrorAs(t, b.CloseMonth(t.Context(), month("m2", customers-1)), new(*unitofwork.IDError), "a month includes all customers")
	require.ErrorIs(t, b.CloseMonth(t.Context(), month("m3", customers+1)), books.ErrAbsent)
	b.sound()
}

func TestInterest(t *testing.T) {
	for balance, want := range map[int64]int64{
		0: 0, 1: 0, 200: 0, 201: 1, 599: 1, 600: 2, 601: 2, 1000: 2, 1001: 3, 1400: 4, 10_000: 25, 19_999: 50,
		-5_000: 0, math.MinInt64: 0, math.MaxInt64: 23_058_430_092_136_940,
	} {
		require.Equal(t, want, books.Interest(balance), "on %d", balance)
	}
}

// An owner dies at a random request of a month's end. After Recover all accounts have their interest, or
// none has, and a month repeated under its ID is paid once.
func TestOwnersDieAtAMonthsEnd(t *testing.T) {
	sent := int64(0)
	synctest.Test(t, func(t *testing.T) { sent = diesAtMonth(t, 0, false) })
	seed := rand.Uint64()
	t.Logf("seed %d, %d requests", seed, sent)
	draw := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		n, executed := 1+draw.Int64N(sent), draw.IntN(2) == 0
		t.Run(fmt.Sprintf("request %d, %t", n, executed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { diesAtMonth(t, n, executed) })
		})
	}
}

func diesAtMonth(t *testing.T, n int64, executed bool) int64 {
	t.Helper()
	const customers = 60
	b := newBank(t, customers)
	require.NoError(t, b.Merge(t.Context(), "c2", "c3"))
	dies, sent := b.mortal(n, executed)
	told := dies.CloseMonth(t.Context(), month("m", customers))
	heir := b.owner(b.db)
	_, err := heir.Units.Recover(t.Context())
	require.NoError(t, err)
	paid := int64(0)
	for _, a := range b.sound().Accounts {
		if a.ID == books.BankAccount.ID {
			paid = -a.Balance
		}
	}
	require.Contains(t, []int64{0, customers * 25}, paid)
	if told == nil {
		require.Equal(t, int64(customers*25), paid)
	}
	require.NoError(t, heir.CloseMonth(t.Context(), month("m", customers)))
	require.Equal(t, int64(-customers*25), balance(t, b.sound(), "bank"))
	left, err := heir.Units.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left to do")
	return sent.Load()
}
