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
	to, err := archive.Open(ctx, archive.Config{Where: c.where, Prefix: c.Prefix, Keep: c.Keep, Ungated: c.ungated})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.closeArchive(ctx, to)) }()
	customers := staff.NewCustomers(&c.Config)
	c.Archive = to
	s, err := c.open(ctx, customers)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	tally, took, err := c.work(ctx, s, endless, func(n int) staff.Job { return c.archiveJob(customers, n) })
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
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return to.Close(ctx)
}

// archiveJob returns a payment or statements. The n-th is a function of the seed and n.
func (c *call) archiveJob(customers *staff.Customers, n int) staff.Job {
	draw := rand.New(rand.NewPCG(c.Seed, uint64(n)))
	switch draw.IntN(6) {
	case 0:
		return customers.Statements(staff.Customer(draw.IntN(c.Customers)))
	case 1:
		return customers.Statement(draw.IntN(len(customers.Accounts)))
	default:
		return customers.Payment(n, draw)
	}
}
