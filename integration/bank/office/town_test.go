package office

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
)

func TestMix(t *testing.T) {
	m := DefaultMix()
	require.Equal(t, "interest=179,merge=20,month-end=1,move=200,payment=1600", m.String())
	require.NoError(t, m.Set("move=3,merge=1"))
	require.Equal(t, "merge=1,move=3", m.String())
	var picked []string
	for n := range 4 {
		picked = append(picked, m.pick(func(total int) int {
			require.Equal(t, 4, total)
			return n
		}))
	}
	require.Equal(t, []string{books.KindMerge, books.KindMove, books.KindMove, books.KindMove}, picked)
}

// The work is a function of the seed.
func TestTheWorkIsDrawnFromTheSeed(t *testing.T) {
	mix := DefaultMix()
	require.NoError(t, mix.Set("payment=6,move=2,interest=2,merge=1,month-end=1"))
	kinds := func(seed uint64) (kinds string) {
		next := NewTown(&Options{Customers: 200, Accounts: 2, Seed: seed, Mix: mix}).Jobs(200)
		for {
			job, ok := next()
			if !ok {
				return kinds
			}
			kinds += job.Kind + " "
		}
	}
	require.Equal(t, kinds(3), kinds(3))
	require.NotEqual(t, kinds(3), kinds(4))
	for _, kind := range []string{books.KindPayment, books.KindMove, books.KindInterest, books.KindMerge, books.KindMonthEnd} {
		require.Contains(t, kinds(3), kind)
	}
	draw := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		a, b := twoOf(draw, 2)
		require.Equal(t, 1, a+b, "two different ones of two")
	}
}

func TestIDsOfBranchesDiffer(t *testing.T) {
	require.Equal(t, "payment-7", NewTown(&Options{}).id("payment", 7), "there is one bank")
	require.Equal(t, "b1-payment-7", NewTown(&Options{Name: "b1"}).id("payment", 7))
}

func TestTownOfATable(t *testing.T) {
	town := TownOf(&Options{}, []books.Customer{
		{ID: "c1", Accounts: []books.Child{{ID: "a3", Home: "c2"}, {ID: "a1", Home: "c1"}}}, {ID: "c2", MergedInto: "c1"},
	})
	require.Equal(t, []books.Child{{ID: "a1", Home: "c1"}, {ID: "a3", Home: "c2"}}, town.Accounts)
	require.Equal(t, []string{"c1", "c2"}, town.Everybody())
}

func TestProgressLine(t *testing.T) {
	require.Equal(t, "working: 30 of 60, 15/s", progressLine("working", 30, 60, 2*time.Second, false))
	require.Equal(t, "working: [===============               ] 30 of 60, 15/s", progressLine("working", 30, 60, 2*time.Second, true))
	require.Equal(t, "working: 30, 15/s", progressLine("working", 30, 0, 2*time.Second, true))
}
