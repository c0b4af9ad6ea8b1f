package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/archive"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
)

// archiving writes statements to SQL while payments go on, and has owners paused
// that are about to write one. It audits the books and the archive.
type archiving struct {
	office.Options
	pauses    int
	unguarded bool
}

// Do implements [office.Command].
func (a *archiving) Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error) {
	arch, err := archive.Open(ctx, archive.Config{Where: a.Archive, Prefix: a.Prefix, Unguarded: a.unguarded})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, a.closeArchive(ctx, arch, stderr)) }()
	of, err := office.Open(ctx, &a.Options, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.Close(ctx)) }()

	town := office.NewTown(&a.Options)
	if err := of.OpenTown(ctx, town, stdout); err != nil {
		return false, err
	}
	tally, took, err := of.Work(ctx, "archiving", 0, a.jobs(town), func(cfg *staff.Config) {
		cfg.Archive, cfg.Overtakings = arch, a.overtakings(town)
	})
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		office.Say(stderr, "interrupted: no new work was begun, what was under way has ended\n")
	}
	a.report(stdout, arch, tally, took)

	results, records, err := of.Audit(ctx, town.Keys())
	if err != nil {
		return false, err
	}
	archived, err := arch.Load(context.WithoutCancel(ctx))
	if err != nil {
		return false, err
	}
	booksHold := office.ReportAudit(stdout, results)
	archiveHolds := office.ReportArchive(stdout, audit.CheckArchive(archived, records))
	return booksHold && archiveHolds && len(tally.Unexpected) == 0, nil
}

// closeArchive deletes the tables, also after an interrupt.
func (a *archiving) closeArchive(ctx context.Context, arch *archive.Archive, stderr io.Writer) error {
	if a.Keep {
		office.Say(stderr, "kept the tables %s* of the archive (%v)\n", a.Prefix, arch)
		arch.Keep()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return arch.Close(ctx)
}

// report says what was done, and who was overtaken at it.
func (a *archiving) report(w io.Writer, arch fmt.Stringer, t *staff.Tally, took time.Duration) {
	guard := "behind a guard"
	if a.unguarded {
		guard = "WITHOUT A GUARD"
	}
	office.Say(w, "%s\n", office.Pace(t.Over.Load(), "units", took, a.Where))
	office.Say(w, "%d owners with %d tellers each, %d customers, lease %v, seed %d\n", a.Owners, a.Tellers, a.Customers, a.Lease, a.Seed)
	office.Say(w, "archive: %v, %s\n\n", arch, guard)
	office.ReportUnits(w, t, "done")
	office.ReportWays(w, t)
	office.ReportWaiting(w, t)
	office.ReportEvents(w, t)
	office.Say(w, "\n")
	office.ReportAll(w, []office.Event{
		{Times: t.Paused.Load(), What: "times an owner was paused at a statement, until another had taken over and written a newer one"},
		{Times: t.Archived.Load(), What: "statements written to the archive"},
		{Times: t.Stale.Load(), What: "late statements refused by the archive"},
	})
	office.ReportFailures(w, t.Unexpected)
}

// jobs are payments and statements, without end. The n-th is a function of
// the seed and n.
func (a *archiving) jobs(t *office.Town) func() (staff.Job, bool) {
	n := 0
	return func() (staff.Job, bool) {
		n++
		draw := rand.New(rand.NewPCG(a.Seed, uint64(n)))
		switch draw.IntN(6) {
		case 0:
			return t.Statements(office.Customer(draw.IntN(a.Customers))), true
		case 1:
			return t.Statement(draw.IntN(len(t.Accounts))), true
		default:
			return t.Payment(n, draw), true
		}
	}
}

// overtakings are as many as there are to be. Who is overtaken has locked one
// account, and the other all of its customer; or the reverse. In between the
// account changes. The n-th is a function of the seed and n.
func (a *archiving) overtakings(t *office.Town) func() (staff.Overtaking, bool) {
	n := 0
	return func() (staff.Overtaking, bool) {
		if n == a.pauses {
			return staff.Overtaking{}, false
		}
		n++
		account := rand.New(rand.NewPCG(a.Seed, uint64(n))).IntN(len(t.Accounts))
		home := t.Accounts[account].Home
		fine, coarse := t.Statement(account), t.Statements(home)
		changes := staff.Job{Kind: books.KindInterest, Do: func(ctx context.Context, b *books.Bank) error { return b.PayInterest(ctx, home) }}
		if n%2 == 1 {
			return staff.Overtaking{Late: fine, Meanwhile: []staff.Job{changes, coarse}}, true
		}
		return staff.Overtaking{Late: coarse, Meanwhile: []staff.Job{changes, fine}}, true
	}
}

// Flags implements [office.Command].
func (a *archiving) Flags(fs *flag.FlagSet) {
	a.PlaceFlags(fs)
	a.StaffFlags(fs)
	a.TownFlags(fs, 40)
	a.LockFlag(fs)
	fs.StringVar(&a.Archive, "archive", "", "`file` of SQLite, or postgres://… URL, to write statements to (default: a file in a temporary folder)")
	fs.IntVar(&a.pauses, "pauses", 4, "`number` of times that an owner is paused while it writes a statement, and overtaken; then the work ends")
	fs.BoolVar(&a.unguarded, "unsafe", false, "leave out the archive's guard, to see what goes wrong")
}

// Complete implements [office.Command].
func (a *archiving) Complete(given office.Given) {
	a.Options.Complete(given)
	a.NewPrefix(given)
}

// Check implements [office.Command].
func (a *archiving) Check(given office.Given) []office.Check {
	return slices.Concat(a.CheckPlace(), a.CheckStaff(given), a.CheckTown(), []office.Check{
		{Wrong: a.Owners < 2, Flag: "owners", Reason: "must be at least 2: one is paused, another takes over"},
		{Wrong: a.pauses < 1, Flag: "pauses", Reason: "must be at least 1"},
	}, a.CheckArchive())
}
