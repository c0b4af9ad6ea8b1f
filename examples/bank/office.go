package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/audit"
	"github.com/holdall/holdall/examples/bank/internal/staff"
	"github.com/holdall/holdall/examples/bank/internal/store"
	"github.com/holdall/holdall/ordering"
)

// office is what the demo, the replay and the archive have in common: a DynamoDB
// with the bank's tables, and a staff.
type office struct {
	o      *options
	db     store.DB
	tables *store.Tables
	stderr io.Writer
}

// open connects and makes the tables. The caller must close.
func open(ctx context.Context, o *options, stderr io.Writer) (*office, error) {
	db, err := store.Open(ctx, o.where)
	if err != nil {
		return nil, err
	}
	of := &office{o: o, db: db, stderr: stderr}
	of.tables, err = store.Create(ctx, db, o.prefix)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create the tables: %w", err), of.close(ctx))
	}
	of.tables.Locks.Lease = o.lease
	of.tables.Locks.Logger = o.logger(stderr)
	return of, nil
}

// close deletes the tables that open made, also after an interrupt.
func (of *office) close(ctx context.Context) error {
	if of.o.keep {
		if !of.o.where.Embedded() {
			say(of.stderr, "kept the tables %s*\n", of.o.prefix)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return of.tables.Remove(ctx)
}

// work lets the staff do a number of jobs, zero if nobody knows how many. When
// ctx ends no new ones are begun, and those under way are brought to an end.
func (of *office) work(ctx context.Context, what string, jobs int, churn time.Duration, next func() (staff.Job, bool),
	options ...func(*staff.Config),
) (*staff.Tally, time.Duration, error) {
	tally, desk := staff.NewTally(), staff.NewDesk(next)
	stop := context.AfterFunc(ctx, desk.Close)
	defer stop()
	if !of.o.quiet {
		defer showProgress(of.stderr, what, jobs, tally)()
	}
	cfg := staff.Config{
		DB: of.db, Tables: of.tables.Books, Locks: of.tables.Locks, Units: of.tables.Units,
		Unsafe: of.o.unsafe, Owners: of.o.owners, Tellers: of.o.tellers,
		Churn: churn, Crash: of.o.crash, Seed: of.o.seed, Wait: of.o.wait,
	}
	for _, option := range options {
		option(&cfg)
	}
	start := time.Now()
	err := staff.Run(cfg, desk, tally)
	return tally, time.Since(start), err
}

// openTown opens the customers.
func (of *office) openTown(ctx context.Context, t *town, stdout io.Writer) error {
	opened, _, err := of.work(ctx, "opening", of.o.customers, 0, t.openings())
	if err != nil {
		return err
	}
	if failures := opened.Unexpected; len(failures) > 0 {
		reportFailures(stdout, failures)
		return errors.New("not all customers could be opened")
	}
	if ctx.Err() != nil {
		return errors.New("interrupted before the work began")
	}
	return nil
}

// recover finishes large units that dead owners left, and says so if it matters.
func (of *office) recover(ctx context.Context, stdout io.Writer) error {
	found, err := recoverOnce(context.WithoutCancel(ctx), of.db, of.tables)
	if foundAny(found) || of.o.crash && err == nil {
		say(stdout, "\n")
		reportRecovery(stdout, found)
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}

// audit reads and checks the books. It holds keys meanwhile, which should be
// all there are: a commit of a dead owner that is still on its way then either
// is seen as a whole or never happens.
func (of *office) audit(ctx context.Context, keys []ordering.Key) ([]audit.Result, audit.Records, error) {
	ctx = context.WithoutCancel(ctx) // what was done is audited, interrupted or not
	if len(keys) > 0 {
		locks, _, err := auditor(of.db, of.tables)
		if err != nil {
			return nil, audit.Records{}, err
		}
		if !of.o.quiet {
			say(of.stderr, "locking everything for the audit; the locks of the dead end with their leases\n")
		}
		waiting, cancel := context.WithTimeout(ctx, time.Minute+10*of.o.lease)
		defer cancel()
		set, err := locks.Acquire(waiting, keys)
		if err != nil {
			return nil, audit.Records{}, fmt.Errorf("lock the books for the audit: %w", err)
		}
		defer func() { _ = set.Release(ctx) }() // reading is done; a lease frees the rest
		ctx = set.Context()
	}
	records, err := of.tables.Load(ctx)
	if err != nil {
		return nil, records, fmt.Errorf("audit: %w", errors.Join(err, context.Cause(ctx)))
	}
	return audit.Check(records), records, nil
}
