package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/staff"
)

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
	records, sound, err := c.bank(ctx, fmt.Sprintf("lease %v\narchive: %v, %s", c.Lease, to, gate), customers, endless, job)
	if err != nil {
		return false, err
	}
	statements, err := to.Load(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	return c.reportAudit("audit of the archive, against the books", "The archive is", archive.Audit(statements, records)) && sound, nil
}
