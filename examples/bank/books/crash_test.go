package books_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/unitofwork"
)

// An owner dies at any request of a payment and a move: of runs without locks, once or again, of
// those under locks that follow when somebody was in the way, and in a bank that locks first. The
// books are whole, and whoever pays again under the same ID pays once.
func TestOwnersDieAtPaymentsAndMoves(t *testing.T) {
	for name, c := range map[string]struct {
		overtaken int // how often
		lock      bool
		least     int // requests
	}{
		"without locks":     {least: 5}, // two, and three: a move finds the children in what it reads
		"overtaken":         {overtaken: 1, least: 10},
		"in somebody's way": {overtaken: 5, least: 30},
		"locked first":      {lock: true, least: 8},
	} {
		for _, executed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %t", name, executed), func(t *testing.T) {
				sent := int64(0)
				synctest.Test(t, func(t *testing.T) { sent = diesAt(t, 0, executed, c.overtaken, c.lock) })
				require.GreaterOrEqual(t, sent, int64(c.least))
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

// later tries again if that is what the error says: whoever meets a dead unit at one key after another
// waits for a lease at each of them, and a unit waits for two.
func later(t *testing.T, do func() error) {
	t.Helper()
	err := do()
	if unitofwork.NextOf(err) == unitofwork.TryLater {
		err = do()
	}
	require.NoError(t, err)
}

// diesAt has an owner die at its n-th request, before or after that is carried out; at none
// if n is 0. It returns how many it sent.
func diesAt(t *testing.T, n int64, executed bool, overtaken int, lock bool) int64 {
	t.Helper()
	b := newBank(t, 4)
	heir, _ := b.owner(b.db)
	var sent atomic.Int64
	dies, _ := b.owner(faults.Wrap(b.db, faults.Config{Script: func(faults.Call) faults.Fault {
		if sent.Add(1) == n {
			return faults.CrashHere(executed)
		}
		return faults.Pass()
	}}))
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
	told := dies.Pay(t.Context(), pay)
	moved := dies.Move(t.Context(), "c1", "2 Oak Street", "2")
	r := b.sound()
	if told == nil {
		require.Equal(t, int64(107_00), balance(t, r, "a2"))
	}
	if moved == nil {
		require.Equal(t, "2 Oak Street", find(t, r.Addresses, func(a books.Address) bool { return a.ID == "at-c1" }).Street)
	}

	heir.Lock = lock // an ID is that of the keys that are named, too
	require.NoError(t, heir.Pay(t.Context(), pay))
	later(t, func() error { return heir.Move(t.Context(), "c1", "3 Elm Street", "3") })
	r = b.sound()
	require.Equal(t, int64(107_00), balance(t, r, "a2"))
	require.Equal(t, int64(93_00)-int64(others), balance(t, r, "a1"))
	require.Equal(t, "3 Elm Street", find(t, r.Addresses, func(a books.Address) bool { return a.ID == "at-c1" }).Street)
	return sent.Load()
}
