package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/examples/bank/internal/staff"
	"github.com/holdall/holdall/ordering"
)

// demo opens customers, lets the staff work, and audits.
func demo(ctx context.Context, o *options, stdout, stderr io.Writer) (sound bool, err error) {
	of, err := open(ctx, o, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.close(ctx)) }()

	town := newTown(o)
	if err := of.openTown(ctx, town, stdout); err != nil {
		return false, err
	}

	working := ctx
	if o.duration > 0 {
		var cancel context.CancelFunc
		working, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	tally, took, err := of.work(working, "working", o.units, o.churn, town.jobs())
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		say(stderr, "interrupted: no new work was begun, what was under way has ended\n")
	}
	reportDemo(stdout, o, tally, took)

	var keys []ordering.Key
	if !o.unsafe {
		if err := of.recover(ctx, stdout); err != nil {
			return false, err
		}
		keys = append(town.keys(), books.AccountKey(books.BankAccount))
	}
	results, _, err := of.audit(ctx, keys)
	if err != nil {
		return false, err
	}
	return reportAudit(stdout, results) && len(tally.Unexpected) == 0, nil
}

// town is who the customers are, and what they want: a function of the seed.
type town struct {
	o        *options
	accounts []books.Child
}

func newTown(o *options) *town {
	t := &town{o: o}
	for c := range o.customers {
		for a := range o.accounts {
			t.accounts = append(t.accounts, books.Child{ID: fmt.Sprintf("a%d-%d", c+1, a+1), Home: customer(c)})
		}
	}
	return t
}

func customer(n int) string { return fmt.Sprintf("c%d", n+1) }

func (t *town) everybody() []string {
	ids := make([]string, t.o.customers)
	for c := range ids {
		ids[c] = customer(c)
	}
	return ids
}

// keys are the coarse locks that cover everything of the customers.
func (t *town) keys() []ordering.Key {
	var keys []ordering.Key
	for _, id := range t.everybody() {
		keys = append(keys, books.CustomerKey(id))
	}
	return keys
}

// openings are the jobs that open the customers.
func (t *town) openings() func() (staff.Job, bool) {
	n := 0
	return func() (staff.Job, bool) {
		if n == t.o.customers {
			return staff.Job{}, false
		}
		id := customer(n)
		opening := books.Opening{
			Customer: books.Customer{
				ID: id, Name: fmt.Sprintf("Customer %d", n+1),
				Accounts:  t.accounts[n*t.o.accounts : (n+1)*t.o.accounts],
				Addresses: []books.Child{{ID: "at-" + id, Home: id}},
				Contacts:  []books.Child{{ID: "to-" + id, Home: id}},
			},
			Street: street(n), Phone: phone(n), Balance: 1000_00,
		}
		n++
		return staff.Job{Kind: "opening", Do: func(ctx context.Context, b *books.Bank) error { return b.Open(ctx, opening) }}, true
	}
}

// jobs are the work. The n-th is a function of the seed and n.
func (t *town) jobs() func() (staff.Job, bool) {
	n := 0
	return func() (staff.Job, bool) {
		if t.o.units > 0 && n == t.o.units {
			return staff.Job{}, false
		}
		n++
		return t.job(n), true
	}
}

func (t *town) job(n int) staff.Job {
	draw := rand.New(rand.NewPCG(t.o.seed, uint64(n)))
	one := draw.IntN(t.o.customers)
	switch kind := t.o.mix.pick(draw.IntN); kind {
	case books.KindMove:
		to, tel := street(draw.IntN(10_000)), phone(draw.IntN(10_000))
		return staff.Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.Move(ctx, customer(one), to, tel) }}
	case books.KindInterest:
		return staff.Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.PayInterest(ctx, customer(one)) }}
	case books.KindMerge:
		// Every other customer stays: else, in the end, there would be one.
		from, into := 1+2*draw.IntN(t.o.customers/2), 2*draw.IntN((t.o.customers+1)/2)
		return staff.Job{Kind: kind, Do: func(ctx context.Context, b *books.Bank) error { return b.Merge(ctx, customer(from), customer(into)) }}
	case books.KindMonthEnd:
		month := books.Month{ID: t.id("month", n), Customers: t.everybody()}
		return staff.Job{Kind: kind, Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.CloseMonth(ctx, month) }}
	default:
		return t.payment(n, draw)
	}
}

// id is unlike those of other branches.
func (t *town) id(of string, n int) string {
	if t.o.name == "" {
		return fmt.Sprintf("%s-%d", of, n)
	}
	return fmt.Sprintf("%s-%s-%d", t.o.name, of, n)
}

func (t *town) payment(n int, draw *rand.Rand) staff.Job {
	from, to := twoOf(draw, len(t.accounts))
	payment := books.Payment{
		ID: t.id("payment", n), From: t.accounts[from], To: t.accounts[to], Amount: 1 + draw.Int64N(300_00),
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

// perSecond is for people.
func perSecond(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 0.001) }
