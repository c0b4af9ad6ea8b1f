package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdall/holdall/examples/bank/internal/audit"
	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/examples/bank/internal/ledger"
	"github.com/holdall/holdall/examples/bank/internal/staff"
)

// replay enters a ledger, each row as one unit under its trans_id.
func replay(ctx context.Context, o *options, stdout, stderr io.Writer) (sound bool, err error) {
	entries, err := readLedger(o, stderr)
	if err != nil {
		return false, err
	}
	of, err := open(ctx, o, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.close(ctx)) }()

	for round := 1; round <= o.repeat; round++ {
		tally, took, err := of.work(ctx, fmt.Sprintf("round %d of %d", round, o.repeat), len(entries), o.churn, rows(entries))
		if err != nil {
			return false, err
		}
		reportRound(stdout, o, round, tally, took)
		switch {
		case ctx.Err() != nil:
			return false, errors.New("interrupted: not all rows were entered")
		case len(tally.Unexpected) > 0:
			return false, errors.New("not all rows could be entered")
		}
	}
	results, records, err := of.audit(ctx, nil)
	if err != nil {
		return false, err
	}
	say(stdout, "\n%d accounts\n", len(records.Accounts))
	if !reportAudit(stdout, results) {
		return false, nil
	}
	return true, writeBalances(o.balances, records)
}

// readLedger reports bad rows, and stops at them unless they are to be skipped.
func readLedger(o *options, stderr io.Writer) ([]books.Entry, error) {
	entries, bad, err := ledger.ReadFile(o.transactions)
	if err != nil {
		return nil, err
	}
	for _, row := range bad {
		say(stderr, "%v\n", row)
	}
	switch {
	case len(bad) > 0 && !o.skipBad:
		return nil, fmt.Errorf("%d malformed rows, nothing was entered; -skip-bad leaves them out", len(bad))
	case len(bad) > 0:
		say(stderr, "left out %d malformed rows\n", len(bad))
	}
	return entries, nil
}

func rows(entries []books.Entry) func() (staff.Job, bool) {
	return func() (staff.Job, bool) {
		if len(entries) == 0 {
			return staff.Job{}, false
		}
		entry := entries[0]
		entries = entries[1:]
		return staff.Job{Kind: "row", Once: true, Do: func(ctx context.Context, b *books.Bank) error {
			return b.Record(ctx, entry)
		}}, true
	}
}

func writeBalances(name string, records audit.Records) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name) //nolint:gosec // the user says where
	if err != nil {
		return fmt.Errorf("-balances: %w", err)
	}
	if err := errors.Join(ledger.WriteBalances(f, records.Accounts), f.Close()); err != nil {
		return fmt.Errorf("-balances: %w", err)
	}
	return nil
}

func reportRound(w io.Writer, o *options, round int, t *staff.Tally, took time.Duration) {
	committed := t.Total(staff.Committed)
	again := int(t.Repeated.Load())
	say(w, "round %d: %d rows in %.1f s (%.0f/s) on %v: %d entered, %d found entered already\n",
		round, t.Over.Load(), took.Seconds(), perSecond(t.Over.Load(), took), o.where, committed-again, again)
	reportRequests(w, t)
	reportWaiting(w, t)
	reportEvents(w, t)
	reportFailures(w, t.Unexpected)
}
