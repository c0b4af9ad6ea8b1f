package office

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/integration/bank/store"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
)

// Office is where the work is done: a DynamoDB with the bank's tables, and a staff.
type Office struct {
	Tables *store.Tables

	o         *Options
	db        store.DB
	stderr    io.Writer
	recording *record.Recording // nil if nothing is recorded
}

// Open connects and makes the tables. The caller must close.
func Open(ctx context.Context, o *Options, stderr io.Writer) (*Office, error) {
	of, err := Join(ctx, o, stderr)
	if err != nil {
		return nil, err
	}
	if of.Tables, err = store.Create(ctx, of.db, o.Prefix); err != nil {
		return nil, errors.Join(fmt.Errorf("create the tables: %w", err), of.Close(ctx))
	}
	of.configure()
	return of, nil
}

// Join connects to tables that somebody else made.
func Join(ctx context.Context, o *Options, stderr io.Writer) (*Office, error) {
	db, err := store.Open(ctx, o.Where)
	if err != nil {
		return nil, err
	}
	of := &Office{Tables: store.Under(db, o.Prefix), o: o, db: db, stderr: stderr}
	if o.Record != "" {
		if of.recording, err = record.Open(o.Record, record.Options{}); err != nil {
			return nil, fmt.Errorf("-record: %w", err)
		}
	}
	of.configure()
	return of, nil
}

func (of *Office) configure() {
	of.Tables.Locks.Lease = of.o.Lease
	of.Tables.Locks.Logger = of.o.logger(of.stderr)
}

// Leave ends what Join began.
func (of *Office) Leave() error {
	if of.recording == nil {
		return nil
	}
	return of.recording.Close()
}

// Close ends what Open began: it deletes the tables, also after an interrupt.
func (of *Office) Close(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, of.Leave()) }()
	if of.o.Keep {
		if !of.o.Where.Embedded() {
			Say(of.stderr, "kept the tables %s*\n", of.o.Prefix)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return of.Tables.Remove(ctx)
}

// Work lets the staff do a number of jobs, zero if nobody knows how many. When
// ctx ends no new ones are begun, and those under way are brought to an end.
func (of *Office) Work(ctx context.Context, what string, jobs int, next func() (staff.Job, bool),
	options ...func(*staff.Config),
) (*staff.Tally, time.Duration, error) {
	tally, desk := staff.NewTally(), staff.NewDesk(next)
	stop := context.AfterFunc(ctx, desk.Close)
	defer stop()
	if !of.o.Quiet {
		defer showProgress(of.stderr, what, jobs, tally)()
	}
	cfg := staff.Config{
		DB: of.db, Tables: of.Tables.Books, Locks: of.Tables.Locks, Units: of.Tables.Units,
		Recording: of.recording,
		Lock:      of.o.Lock, Unsafe: of.o.Unsafe, Owners: of.o.Owners, Tellers: of.o.Tellers, Seed: of.o.Seed, Wait: of.o.Wait,
	}
	for _, option := range options {
		option(&cfg)
	}
	start := time.Now()
	err := staff.Run(cfg, desk, tally)
	return tally, time.Since(start), err
}

// OpenTown opens the customers.
func (of *Office) OpenTown(ctx context.Context, t *Town, stdout io.Writer) error {
	opened, _, err := of.Work(ctx, "opening", of.o.Customers, t.openings())
	if err != nil {
		return err
	}
	if failures := opened.Unexpected; len(failures) > 0 {
		ReportFailures(stdout, failures)
		return errors.New("not all customers could be opened")
	}
	if ctx.Err() != nil {
		return errors.New("interrupted before the work began")
	}
	return nil
}

// Audit reads and checks the books. It holds keys meanwhile, which should be
// all there are: a commit of a dead owner that is still on its way then either
// is seen as a whole or never happens.
func (of *Office) Audit(ctx context.Context, keys []ordering.Key) ([]audit.Result, audit.Records, error) {
	ctx = context.WithoutCancel(ctx) // what was done is audited, interrupted or not
	if len(keys) > 0 {
		locks, _, err := of.auditor()
		if err != nil {
			return nil, audit.Records{}, err
		}
		if !of.o.Quiet {
			Say(of.stderr, "locking everything for the audit; the locks of the dead end with their leases\n")
		}
		waiting, cancel := context.WithTimeout(ctx, time.Minute+10*of.o.Lease)
		defer cancel()
		set, err := locks.Acquire(waiting, keys)
		if err != nil {
			return nil, audit.Records{}, fmt.Errorf("lock the books for the audit: %w", err)
		}
		defer func() { _ = set.Release(ctx) }() // reading is done; a lease frees the rest
		ctx = set.Context()
	}
	records, err := of.Tables.Load(ctx)
	if err != nil {
		return nil, records, fmt.Errorf("audit: %w", errors.Join(err, context.Cause(ctx)))
	}
	return audit.Check(records), records, nil
}
