package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/ledger"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
)

// replay enters a ledger, each row as one unit under its trans_id.
type replay struct {
	office.Options
	transactions, balances string
	repeat                 int
	skipBad                bool
}

// Do implements [office.Command].
func (r *replay) Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error) {
	entries, err := r.readLedger(stderr)
	if err != nil {
		return false, err
	}
	of, err := office.Open(ctx, &r.Options, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.Close(ctx)) }()

	for round := 1; round <= r.repeat; round++ {
		tally, took, err := of.Work(ctx, fmt.Sprintf("round %d of %d", round, r.repeat), len(entries), rows(entries), func(cfg *staff.Config) {
			cfg.Churn = r.Churn
		})
		if err != nil {
			return false, err
		}
		r.report(stdout, round, tally, took)
		switch {
		case ctx.Err() != nil:
			return false, errors.New("interrupted: not all rows were entered")
		case len(tally.Unexpected) > 0:
			return false, errors.New("not all rows could be entered")
		}
	}
	results, records, err := of.Audit(ctx, nil)
	if err != nil {
		return false, err
	}
	office.Say(stdout, "\n%d accounts\n", len(records.Accounts))
	if !office.ReportAudit(stdout, results) {
		return false, nil
	}
	return true, writeBalances(r.balances, records)
}

// readLedger reports bad rows, and stops at them unless they are to be skipped.
func (r *replay) readLedger(stderr io.Writer) ([]books.Entry, error) {
	entries, bad, err := ledger.ReadFile(r.transactions)
	if err != nil {
		return nil, err
	}
	for _, row := range bad {
		office.Say(stderr, "%v\n", row)
	}
	switch {
	case len(bad) > 0 && !r.skipBad:
		return nil, fmt.Errorf("%d malformed rows, nothing was entered; -skip-bad leaves them out", len(bad))
	case len(bad) > 0:
		office.Say(stderr, "left out %d malformed rows\n", len(bad))
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

func (r *replay) report(w io.Writer, round int, t *staff.Tally, took time.Duration) {
	committed := t.Total(staff.Committed)
	again := int(t.Repeated.Load())
	office.Say(w, "round %d: %s: %d entered, %d found entered already\n",
		round, office.Pace(t.Over.Load(), "rows", took, r.Where), committed-again, again)
	office.ReportWays(w, t)
	office.ReportRequests(w, t)
	office.ReportWaiting(w, t)
	office.ReportEvents(w, t)
	office.ReportFailures(w, t.Unexpected)
}

// Flags implements [office.Command].
func (r *replay) Flags(fs *flag.FlagSet) {
	r.PlaceFlags(fs)
	r.StaffFlags(fs)
	r.LockFlag(fs)
	fs.StringVar(&r.transactions, "transactions", "", "`file` of the ledger, semicolon-separated, with the columns trans_id, account_id, date, type, operation, amount, balance, k_symbol, bank, account (required)")
	fs.StringVar(&r.balances, "balances", "", "`file` to write all balances to, as account,balance in hundredths")
	fs.IntVar(&r.repeat, "repeat", 1, "`number` of times to enter the whole ledger; all but the first change nothing")
	fs.BoolVar(&r.skipBad, "skip-bad", false, "leave out malformed rows instead of stopping at them")
	fs.DurationVar(&r.Churn, "churn", 0, "`time` after which an owner dies or leaves and another takes its place; 0: never")
}

// Complete implements [office.Command].
func (r *replay) Complete(given office.Given) {
	r.Options.Complete(given)
	r.NewPrefix(given)
}

// Check implements [office.Command].
func (r *replay) Check(given office.Given) []office.Check {
	return slices.Concat(r.CheckPlace(), r.CheckStaff(given), []office.Check{
		{Wrong: r.transactions == "", Flag: "transactions", Reason: "is required: the ledger's file"},
		{Wrong: r.balances != "" && !office.IsDir(filepath.Dir(r.balances)), Flag: "balances", Reason: "names a file in no folder that exists"},
		{Wrong: r.repeat < 1, Flag: "repeat", Reason: "must be at least 1"},
	})
}
