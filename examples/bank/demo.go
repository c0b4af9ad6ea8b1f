package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
)

// demo has the staff work for customers, and audits the books.
func (c *call) demo(ctx context.Context) (sound bool, err error) {
	about := fmt.Sprintf("lease %v", c.Lease)
	if c.Unsafe {
		about = "WITHOUT UNITS"
	}
	customers := staff.NewCustomers(&c.Config)
	_, sound, err = c.bank(ctx, about, customers, c.units, customers.Job)
	return sound, err
}

// bank opens customers, has the staff do n jobs, and returns the records and whether they are sound.
func (c *call) bank(ctx context.Context, about string, customers *staff.Customers, n int, job func(int) staff.Job) (r books.Records, sound bool, err error) {
	s, err := c.open(ctx, customers)
	if err != nil {
		return r, false, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	tally, took, err := c.work(ctx, s, n, job)
	if err != nil {
		return r, false, err
	}
	if ctx.Err() != nil {
		say(c.stderr, "interrupted: no new work was begun, and what was under way has ended\n")
	}
	say(c.stdout, "%s\n", c.pace(tally.Over(), "units", took))
	say(c.stdout, "%d owners with %d tellers each, %d customers, seed %d, %s\n\n", c.Owners, c.Tellers, c.Customers, c.Seed, about)
	reportUnits(c.stdout, tally)
	reportEvents(c.stdout, tally)

	if !c.Unsafe {
		if err := c.finish(context.WithoutCancel(ctx), s); err != nil {
			return r, false, err
		}
	}
	if r, err = s.Load(ctx, customers.Keys()); err != nil {
		return r, false, err
	}
	return r, c.reportAudit("audit of the books, after all work", "The books are", books.Audit(r)) && len(tally.Unexpected) == 0, nil
}

// work has the staff do n jobs.
func (c *call) work(ctx context.Context, s *staff.Session, n int, job func(n int) staff.Job) (*staff.Tally, time.Duration, error) {
	const often = 1000
	next := staff.Numbered(n, func(n int) staff.Job {
		if n%often == 0 && !c.quiet {
			say(c.stderr, "working: %d are begun\n", n)
		}
		return job(n)
	})
	tally, start := staff.NewTally(), time.Now()
	err := s.Run(ctx, tally, staff.NewDesk(c.Tellers, next))
	return tally, time.Since(start), err
}

// open creates the tables and opens the customers, if there are any.
func (c *call) open(ctx context.Context, customers *staff.Customers) (*staff.Session, error) {
	s, err := staff.Open(ctx, &c.Config)
	if err != nil {
		return nil, err
	}
	if c.Keep && !c.InMemory() {
		say(c.stderr, "the tables %s* will be kept\n", c.Prefix)
	}
	if err := s.OpenCustomers(ctx, customers); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// recover finishes what dead owners left in tables that another process created. Run it as a scheduled
// job in a real bank.
func (c *call) recover(ctx context.Context) (sound bool, err error) {
	c.Keep = true
	s, err := staff.Join(ctx, &c.Config)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	return true, c.finish(ctx, s)
}

// finish reports what became of the large units of dead owners, as far as it is known.
func (c *call) finish(ctx context.Context, s *staff.Session) error {
	found, err := s.Recover(ctx)
	if err == nil || len(found.Committed)+len(found.Aborted)+len(found.Alive) > 0 {
		say(c.stdout, "\nrecovery of large units: %d had committed, and are done now %v; %d had not, and never will %v; %d are alive %v\n",
			len(found.Committed), found.Committed, len(found.Aborted), found.Aborted, len(found.Alive), found.Alive)
	}
	return err
}

// archive writes statements to SQL while payments continue, and pauses owners that are about to write
// one. It audits the books and the archive.
func (c *call) archive(ctx context.Context) (sound bool, err error) {
	to, err := archive.Open(ctx, archive.Config{Where: c.where, Prefix: c.Prefix, Keep: c.Keep, Ungated: c.ungated})
	if err != nil {
		return false, err
	}
	defer func() { // even after an interrupt
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, to.Close(ctx))
	}()
	if c.Keep {
		say(c.stderr, "the tables %s* of the archive (%v) will be kept\n", c.Prefix, to)
	}
	c.Archive = to
	gate := map[bool]string{false: "behind a gate", true: "WITHOUT A GATE"}[c.ungated]
	customers := staff.NewCustomers(&c.Config)
	job := func(n int) staff.Job { // a function of the seed and n
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
	records, sound, err := c.bank(ctx, fmt.Sprintf("lease %v\narchive: %v, %s", c.Lease, to, gate), customers, staff.Endless, job)
	if err != nil {
		return false, err
	}
	statements, err := to.Load(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	return c.reportAudit("audit of the archive, against the books", "The archive is", archive.Audit(statements, records)) && sound, nil
}
