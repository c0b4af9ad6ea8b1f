package office

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/ordering"
)

// Town is who the customers are, and what they want: a function of the seed.
type Town struct {
	Accounts []books.Child

	o *Options
}

// NewTown has customers that are to be opened.
func NewTown(o *Options) *Town {
	t := &Town{o: o}
	for c := range o.Customers {
		for a := range o.Accounts {
			t.Accounts = append(t.Accounts, books.Child{ID: fmt.Sprintf("a%d-%d", c+1, a+1), Home: Customer(c)})
		}
	}
	return t
}

// TownOf has customers as their table has them.
func TownOf(o *Options, customers []books.Customer) *Town {
	t := &Town{o: o}
	o.Customers = len(customers)
	for _, c := range customers {
		t.Accounts = append(t.Accounts, c.Accounts...) // a merge moves them: all are somebody's
	}
	slices.SortFunc(t.Accounts, func(a, b books.Child) int { return strings.Compare(a.ID, b.ID) })
	return t
}

// Customer names the n-th one, from 0.
func Customer(n int) string { return fmt.Sprintf("c%d", n+1) }

// Everybody names all customers.
func (t *Town) Everybody() []string {
	ids := make([]string, t.o.Customers)
	for c := range ids {
		ids[c] = Customer(c)
	}
	return ids
}

// Pair are two accounts of nobody: whoever changes one of them has read both.
var Pair = [2]string{"left", "right"}

// Keys are the coarse locks that cover everything of the customers, the bank's own
// account, and the pair.
func (t *Town) Keys() []ordering.Key {
	keys := []ordering.Key{books.AccountKey(books.BankAccount)}
	for _, id := range Pair {
		keys = append(keys, books.AccountKey(books.Child{ID: id}))
	}
	for _, id := range t.Everybody() {
		keys = append(keys, books.CustomerKey(id))
	}
	return keys
}

// openings are the jobs that open the customers.
func (t *Town) openings() func() (staff.Job, bool) {
	n := 0
	return func() (staff.Job, bool) {
		if n == t.o.Customers {
			return staff.Job{}, false
		}
		id := Customer(n)
		opening := books.Opening{
			Customer: books.Customer{
				ID: id, Name: fmt.Sprintf("Customer %d", n+1),
				Accounts:  t.Accounts[n*t.o.Accounts : (n+1)*t.o.Accounts],
				Addresses: []books.Child{{ID: "at-" + id, Home: id}},
				Contacts:  []books.Child{{ID: "to-" + id, Home: id}},
			},
			Street: street(n), Phone: phone(n), Balance: 1000_00,
		}
		n++
		return staff.Job{Kind: "opening", Do: func(ctx context.Context, b *books.Bank) error { return b.Open(ctx, opening) }}, true
	}
}

// Jobs are the work: so many units, zero for without end.
func (t *Town) Jobs(units int) func() (staff.Job, bool) {
	n := 0
	return func() (staff.Job, bool) {
		if units > 0 && n == units {
			return staff.Job{}, false
		}
		n++
		return t.Job(n), true
	}
}

// Job is the n-th, a function of the seed and n.
func (t *Town) Job(n int) staff.Job {
	draw := rand.New(rand.NewPCG(t.o.Seed, uint64(n)))
	one := draw.IntN(t.o.Customers)
	switch kind := t.o.Mix.pick(draw.IntN); kind {
	case books.KindMove:
		to, tel := street(draw.IntN(10_000)), phone(draw.IntN(10_000))
		return staff.Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.Move(ctx, Customer(one), to, tel) }}
	case books.KindInterest:
		return staff.Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.PayInterest(ctx, Customer(one)) }}
	case books.KindMerge:
		// Every other customer stays: else, in the end, there would be one.
		from, into := 1+2*draw.IntN(t.o.Customers/2), 2*draw.IntN((t.o.Customers+1)/2)
		return staff.Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.Merge(ctx, Customer(from), Customer(into)) }}
	case books.KindMonthEnd:
		month := books.Month{ID: t.id("month", n), Customers: t.Everybody()}
		return staff.Job{Kind: kind, Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.CloseMonth(ctx, month) }}
	default:
		return t.Payment(n, draw)
	}
}

// id is unlike those of other branches.
func (t *Town) id(of string, n int) string {
	if t.o.Name == "" {
		return fmt.Sprintf("%s-%d", of, n)
	}
	return fmt.Sprintf("%s-%s-%d", t.o.Name, of, n)
}

// Payment is one as drawn, the n-th job.
func (t *Town) Payment(n int, draw *rand.Rand) staff.Job {
	from, to := twoOf(draw, len(t.Accounts))
	payment := books.Payment{
		ID: t.id("payment", n), From: t.Accounts[from], To: t.Accounts[to], Amount: 1 + draw.Int64N(300_00),
	}
	return staff.Job{Kind: books.KindPayment, Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.Pay(ctx, payment) }}
}

// twoOf draws two different numbers below n.
func twoOf(draw *rand.Rand, n int) (int, int) {
	a, b := draw.IntN(n), draw.IntN(n-1)
	if b >= a {
		b++
	}
	return a, b
}

func street(n int) string {
	names := []string{"Elm", "Oak", "Mill", "Church", "Station", "Harbour", "Garden"}
	return fmt.Sprintf("%d %s Street", 1+n/len(names), names[n%len(names)])
}

func phone(n int) string { return fmt.Sprintf("555-%04d", n%10_000) }

// Kinds of jobs that are no change of the books.
const (
	KindStatement  = "statement"
	KindStatements = "statements" // of all accounts of a customer
)

// Statement writes that of one account.
func (t *Town) Statement(account int) staff.Job {
	of := t.Accounts[account]
	return staff.Job{Kind: KindStatement, Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveAccount(ctx, of) }}
}

// Statements writes those of all accounts of a customer.
func (t *Town) Statements(id string) staff.Job {
	return staff.Job{Kind: KindStatements, Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveCustomer(ctx, id) }}
}
