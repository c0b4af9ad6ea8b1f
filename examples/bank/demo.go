package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/ordering"
)

// demo opens customers, lets the staff work, and audits.
type demo struct {
	office.Options
	units    int
	duration time.Duration
	crash    bool
}

// Do implements [office.Command].
func (d *demo) Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error) {
	of, err := office.Open(ctx, &d.Options, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.Close(ctx)) }()

	town := office.NewTown(&d.Options)
	if err := of.OpenTown(ctx, town, stdout); err != nil {
		return false, err
	}

	working := ctx
	if d.duration > 0 {
		var cancel context.CancelFunc
		working, cancel = context.WithTimeout(ctx, d.duration)
		defer cancel()
	}
	tally, took, err := of.Work(working, "working", d.units, town.Jobs(d.units), func(cfg *staff.Config) {
		cfg.Churn, cfg.Crash = d.Churn, d.crash
	})
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		office.Say(stderr, "interrupted: no new work was begun, what was under way has ended\n")
	}
	d.report(stdout, tally, took)

	var keys []ordering.Key
	if !d.Unsafe {
		if err := of.Recover(ctx, stdout, d.crash); err != nil {
			return false, err
		}
		keys = town.Keys()
	}
	results, _, err := of.Audit(ctx, keys)
	if err != nil {
		return false, err
	}
	return office.ReportAudit(stdout, results) && len(tally.Unexpected) == 0, nil
}

func (d *demo) report(w io.Writer, t *staff.Tally, took time.Duration) {
	locks := fmt.Sprintf("lease %v", d.Lease)
	if d.Unsafe {
		locks = "WITHOUT UNITS"
	}
	office.Say(w, "%s\n", office.Pace(t.Over.Load(), "units", took, d.Where))
	office.Say(w, "%d owners with %d tellers each, %d customers, %s, seed %d\n\n", d.Owners, d.Tellers, d.Customers, locks, d.Seed)
	office.ReportWork(w, t, "committed")
}

// Flags implements [office.Command].
func (d *demo) Flags(fs *flag.FlagSet) {
	d.PlaceFlags(fs)
	d.StaffFlags(fs)
	d.TownFlags(fs, 200)
	d.MixFlag(fs, "what work there is")
	fs.IntVar(&d.units, "units", 6000, "`number` of units of work")
	fs.DurationVar(&d.duration, "for", 0, "begin no new unit after this `time` (then -units has no default)")
	fs.DurationVar(&d.Churn, "churn", 0, "`time` after which an owner dies or leaves and another takes its place (default so that each lives for 3 leases; 0: never)")
	fs.BoolVar(&d.crash, "crash", false, "let owners go at random instants, and every other one die in the midst of a unit larger than one transaction")
	d.LockFlag(fs)
	fs.BoolVar(&d.Unsafe, "unsafe", false, "do the same work without units, by plain reads and writes, to see what goes wrong")
}

// Complete implements [office.Command].
func (d *demo) Complete(given office.Given) {
	d.Options.Complete(given)
	d.NewPrefix(given)
	if !given["churn"] {
		d.Churn = 3 * d.Lease / time.Duration(max(d.Owners, 1))
	}
	if given["for"] && !given["units"] {
		d.units = 0 // no bound
	}
	if d.crash && !given["mix"] {
		d.Mix[books.KindMonthEnd] = 3 // more to die at
	}
}

// Check implements [office.Command].
func (d *demo) Check(given office.Given) []office.Check {
	return slices.Concat(d.CheckPlace(), d.CheckStaff(given), d.CheckTown(), []office.Check{
		{Wrong: given["units"] && d.units < 1, Flag: "units", Reason: "must be at least 1"},
		{Wrong: given["for"] && d.duration <= 0, Flag: "for", Reason: "must be more than 0"},
		{Wrong: d.crash && d.Unsafe, Flag: "crash", Reason: "is about units, and with -unsafe there are none"},
		{Wrong: d.Lock && d.Unsafe, Flag: "lock", Reason: "is about units, and with -unsafe there are none"},
		{Wrong: d.crash && d.Churn == 0, Flag: "crash", Reason: "needs -churn, by which owners go"},
	})
}
