package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
)

// archive writes statements to SQL while payments continue, and pauses owners that are about to write
// one. It audits the books and the archive.
func (c *call) archive(ctx context.Context) (sound bool, err error) {
	to, err := archive.Open(ctx, archive.Config{Where: c.where, Prefix: c.Prefix, Ungated: c.ungated})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.closeArchive(ctx, to)) }()
	customers := staff.NewCustomers(&c.Config)
	c.Archive, c.Overtakings = to, c.overtakings(customers)
	s, err := c.open(ctx, customers)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	tally, took, err := c.work(ctx, s, 0, c.archiveJobs(customers))
	if err != nil {
		return false, err
	}
	gate := map[bool]string{false: "behind a gate", true: "WITHOUT A GATE"}[c.ungated]
	say(c.stdout, "%s\n", c.pace(tally.Over(), "units", took))
	say(c.stdout, "%d owners with %d tellers each, %d customers, lease %v, seed %d\n", c.Owners, c.Tellers, c.Customers, c.Lease, c.Seed)
	say(c.stdout, "archive: %v, %s\n\n", to, gate)
	reportUnits(c.stdout, tally)
	reportWays(c.stdout, tally)
	reportEvents(c.stdout, tally)

	records, err := s.Load(ctx, customers.Keys())
	if err != nil {
		return false, err
	}
	statements, err := to.Load(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	sound = c.reportAudit("audit of the books, after all work", "The books are", books.Audit(records))
	return c.reportAudit("audit of the archive, against the books", "The archive is", archive.Audit(statements, records)) && sound &&
		len(tally.Unexpected) == 0, nil
}

// closeArchive deletes the tables, even after an interrupt, unless they are to be kept.
func (c *call) closeArchive(ctx context.Context, to *archive.Archive) error {
	if c.Keep {
		say(c.stderr, "kept the tables %s* of the archive (%v)\n", c.Prefix, to)
		to.Keep()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return to.Close(ctx)
}

// archiveJobs returns payments and statements without end. The n-th is a function of the seed and n.
func (c *call) archiveJobs(customers *staff.Customers) func() (staff.Job, bool) {
	n := 0
	return func() (staff.Job, bool) {
		n++
		draw := rand.New(rand.NewPCG(c.Seed, uint64(n)))
		switch draw.IntN(6) {
		case 0:
			return customers.Statements(staff.Customer(draw.IntN(c.Customers))), true
		case 1:
			return customers.Statement(draw.IntN(len(customers.Accounts))), true
		default:
			return customers.Payment(n, draw), true
		}
	}
}

// overtakings alternate: the late owner has locked one account, and the other all accounts of the
// customer, or the reverse. The account changes in between.
func (c *call) overtakings(customers *staff.Customers) func() (staff.Overtaking, bool) {
	n := 0
	return func() (staff.Overtaking, bool) {
		if n == c.pauses {
			return staff.Overtaking{}, false
		}
		n++
		account := rand.New(rand.NewPCG(c.Seed, uint64(n))).IntN(len(customers.Accounts))
		home := customers.Accounts[account].Home
		late, newer := customers.Statement(account), customers.Statements(home)
		if n%2 == 0 {
			late, newer = newer, late
		}
		changes := staff.Job{Kind: books.KindInterest, Do: func(ctx context.Context, b *books.Bank) error { return b.PayInterest(ctx, home) }}
		return staff.Overtaking{Late: late, Meanwhile: []staff.Job{changes, newer}}, true
	}
}
