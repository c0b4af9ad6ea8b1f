package books_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/unitofwork"
)

// Two customers with many accounts and thousands of rows of history become one,
// as one.
func TestMergeOfThousandsOfRows(t *testing.T) {
	const accounts = 100
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
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
	r := b.sound()
	theirs := 0
	for _, c := range r.History {
		if c.Owner == "c1" {
			theirs++
		}
	}
	require.Equal(t, 2*accounts*(rounds+1)+accounts, theirs, "the rows of all rounds, and of the merges: one in two")
	require.NoError(t, b.PayInterest(t.Context(), "c1"))
	require.NoError(t, b.Move(t.Context(), "c1", "3 Mill Street", "3"))
	b.sound()
}

// A Query that misses a row is not taken for all there is.
func TestMergeDoesNotMissRows(t *testing.T) {
	b := newBank(t, 2)
	require.NoError(t, b.PayInterest(t.Context(), "c1"))
	row := b.sound().History[0]
	_, err := b.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String(b.Tables.History.Name),
		Key: map[string]types.AttributeValue{
			"record": &types.AttributeValueMemberS{Value: books.AccountRecord("a1")},
			"change": &types.AttributeValueMemberS{Value: row.Key},
		},
	})
	require.NoError(t, err)
	before := b.load()
	require.ErrorIs(t, b.Merge(t.Context(), "c1", "c2"), books.ErrRowsMissing)
	require.Equal(t, before, b.load())
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
	require.Equal(t, int64(1), balance(t, r, "a1"), "a hundredth has no interest")
	require.Equal(t, int64(199_99+50), balance(t, r, "a2"), "49.9975 is rounded")
	require.Equal(t, int64(100_25), balance(t, r, "a3"), "who was merged has interest, too")
	require.Equal(t, int64(-(customers-2)*25-50), balance(t, r, "bank"))

	require.NoError(t, b.CloseMonth(t.Context(), month("m2", customers)))
	require.Equal(t, int64(100_50), balance(t, b.sound(), "a3"))

	err := b.CloseMonth(t.Context(), month("m2", customers-1))
	require.ErrorAs(t, err, new(*unitofwork.IDError), "a month is of all customers")
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

// An owner dies at random requests of the interest run. Whatever it was at, after
// Recover all accounts have their interest, or none has; and whoever pays it again
// under the same ID pays it once.
func TestOwnersDieAtTheInterestRun(t *testing.T) {
	const customers = 60
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	sent := int64(0)
	synctest.Test(t, func(t *testing.T) {
		sent = crashAt(t, 0, false, customers)
	})
	seed := rand.Uint64()
	t.Logf("seed %d, %d requests", seed, sent)
	draw := rand.New(rand.NewPCG(seed, 0))
	for range rounds {
		n, executed := 1+draw.Int64N(sent), draw.IntN(2) == 0
		t.Run(fmt.Sprintf("request %d, %t", n, executed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crashAt(t, n, executed, customers) })
		})
	}
}

// crashAt has the owner of an interest run die at its n-th request, before or
// after that is carried out; at none if n is 0. It returns how many it sent.
func crashAt(t *testing.T, n int64, executed bool, customers int) int64 {
	t.Helper()
	b := newBank(t, customers)
	require.NoError(t, b.PayInterest(t.Context(), "c1"))
	require.NoError(t, b.Merge(t.Context(), "c2", "c3"))
	var sent atomic.Int64
	dies, _ := b.owner(faults.Wrap(b.db, faults.Config{Script: func(faults.Call) faults.Fault {
		if sent.Add(1) == n {
			return faults.CrashHere(executed)
		}
		return faults.Pass()
	}}))
	told := dies.CloseMonth(t.Context(), month("m", customers))

	heir, units := b.owner(b.db)
	_, err := units.Recover(t.Context())
	require.NoError(t, err)
	paid := int64(0)
	for _, a := range b.sound().Accounts {
		if a.ID == books.BankAccount.ID {
			paid = -a.Balance
		}
	}
	want := int64(customers) * 25
	require.Contains(t, []int64{0, want}, paid)
	if told == nil {
		require.Equal(t, want, paid)
	}
	require.NoError(t, heir.CloseMonth(t.Context(), month("m", customers)))
	require.Equal(t, -want, balance(t, b.sound(), "bank"))
	left, err := units.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left to do")
	return sent.Load()
}
