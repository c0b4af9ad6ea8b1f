package staff

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/ordering"
)

// Kinds of jobs that do not change the books.
const (
	KindStatement  = "statement"
	KindStatements = "statements" // of all accounts of a customer
)

const accountsOfEach = 2

// Customers are the customers of a bank, and the work that they ask for. The work is a function of
// the seed.
type Customers struct {
	Accounts []books.Child // of all of them

	cfg *Config
}

// NewCustomers returns customers that are yet to be opened.
func NewCustomers(cfg *Config) *Customers {
	c := &Customers{cfg: cfg}
	for n := range cfg.Customers {
		for a := range accountsOfEach {
			c.Accounts = append(c.Accounts, books.Child{ID: fmt.Sprintf("a%d-%d", n+1, a+1), Home: Customer(n)})
		}
	}
	return c
}

// Customer returns the ID of the n-th customer, from 0.
func Customer(n int) string { return fmt.Sprintf("c%d", n+1) }

// All returns the IDs of all customers.
func (c *Customers) All() []string {
	ids := make([]string, c.cfg.Customers)
	for n := range ids {
		ids[n] = Customer(n)
	}
	return ids
}

// Keys returns the coarse keys of all customers, and the key of the bank's own account.
func (c *Customers) Keys() []ordering.Key {
	keys := []ordering.Key{books.AccountKey(books.BankAccount)}
	for _, id := range c.All() {
		keys = append(keys, books.CustomerKey(id))
	}
	return keys
}

// opening describes the n-th customer, from 0.
func (c *Customers) opening(n int) books.Opening {
	return books.Opening{
		ID: Customer(n), Street: street(n), Phone: phone(n),
		Accounts: c.Accounts[n*accountsOfEach : (n+1)*accountsOfEach], Balance: 1000_00,
	}
}

// Job returns the n-th job.
func (c *Customers) Job(n int) Job {
	draw := rand.New(rand.NewPCG(c.cfg.Seed, uint64(n)))
	id := Customer(draw.IntN(c.cfg.Customers))
	switch kind := c.cfg.Mix.pick(draw.IntN); kind {
	case books.KindMove:
		to, tel := street(draw.IntN(10_000)), phone(draw.IntN(10_000))
		return Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.Move(ctx, id, to, tel) }}
	case books.KindMerge:
		// Every other customer stays. Otherwise one would be left in the end.
		from, into := Customer(1+2*draw.IntN(c.cfg.Customers/2)), Customer(2*draw.IntN((c.cfg.Customers+1)/2))
		return Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.Merge(ctx, from, into) }}
	case books.KindMonthEnd:
		month, all := c.ID("month", n), c.All()
		return Job{Kind: kind, Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.CloseMonth(ctx, month, all) }}
	default:
		return c.Payment(n, draw)
	}
}

// ID returns the ID of the n-th job. Different processes have different IDs.
func (c *Customers) ID(of string, n int) string {
	return strings.TrimPrefix(fmt.Sprintf("%s-%s-%d", c.cfg.Name, of, n), "-")
}

// Payment draws the n-th job as a payment between two accounts.
func (c *Customers) Payment(n int, draw *rand.Rand) Job {
	from, to := draw.IntN(len(c.Accounts)), draw.IntN(len(c.Accounts)-1)
	if to >= from {
		to++
	}
	payment := books.Payment{ID: c.ID("payment", n), From: c.Accounts[from], To: c.Accounts[to], Amount: 1 + draw.Int64N(300_00)}
	return Job{Kind: books.KindPayment, Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.Pay(ctx, payment) }}
}

// Statement writes the statement of one account.
func (c *Customers) Statement(account int) Job {
	of := c.Accounts[account]
	return Job{Kind: KindStatement, Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveAccount(ctx, of) }}
}

// Statements writes the statements of all accounts of a customer.
func (c *Customers) Statements(id string) Job {
	return Job{Kind: KindStatements, Do: func(ctx context.Context, b *books.Bank) error { return b.ArchiveCustomer(ctx, id) }}
}

func street(n int) string { return fmt.Sprintf("%d Elm Street", n) }

func phone(n int) string { return fmt.Sprintf("555-%04d", n%10_000) }

// Mix is the share of each kind of work.
type Mix map[string]int

// DefaultMix returns the mix of the demo.
func DefaultMix() Mix {
	return Mix{books.KindPayment: 1780, books.KindMove: 200, books.KindMerge: 20, books.KindMonthEnd: 1}
}

// pick returns a kind. draw returns a number in [0, total).
func (m Mix) pick(draw func(total int) int) string {
	total := 0
	for _, share := range m {
		total += share
	}
	n := draw(total)
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if n -= m[kind]; n < 0 {
			return kind
		}
	}
	return books.KindPayment
}
