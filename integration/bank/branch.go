package main

import (
	"context"
	"errors"
	"flag"
	"hash/fnv"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/archive"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
)

// join connects to a bank that is open.
func join(ctx context.Context, o *office.Options, stderr io.Writer) (*office.Office, *office.Town, error) {
	of, err := office.Join(ctx, o, stderr)
	if err != nil {
		return nil, nil, err
	}
	customers, err := customersOf(ctx, of, o.Lease)
	if err != nil {
		return nil, nil, errors.Join(err, of.Leave())
	}
	return of, office.TownOf(o, customers), nil
}

// customersOf asks until there is an answer: a process may be started while DynamoDB
// is out of reach.
func customersOf(ctx context.Context, of *office.Office, lease time.Duration) ([]books.Customer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, lease) // an answer may never come
		customers, err := of.Tables.Customers(attempt)
		cancel()
		if !errors.Is(err, books.ErrUnanswered) || ctx.Err() != nil {
			return customers, err
		}
		select {
		case <-time.After(lease / 10):
		case <-ctx.Done():
		}
	}
}

// branch is one owner, which works on tables that others work on, too. With a
// diary, whoever comes after it under its name does again what it had begun.
type branch struct {
	office.Options
	diary    string
	rate     float64
	think    time.Duration
	duration time.Duration
	rush     int
	every    time.Duration
}

// Do implements [office.Command].
func (o *branch) Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error) {
	of, town, err := join(ctx, &o.Options, stderr)
	switch {
	case ctx.Err() != nil:
		office.Say(stderr, "%s: told to end before the work began\n", o.Name)
		return true, nil
	case err != nil:
		return false, err
	}
	defer func() { err = errors.Join(err, of.Leave()) }()
	var arch *archive.Archive
	if o.Archive != "" {
		if arch, err = archive.Open(ctx, archive.Config{Where: o.Archive, Prefix: o.Prefix, Made: true}); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, arch.Close(context.WithoutCancel(ctx))) }()
	}
	desk := &branchDesk{Options: &o.Options, town: town, statements: arch != nil}
	if o.rate > 0 {
		pace := time.NewTicker(time.Duration(float64(time.Second) / o.rate))
		defer pace.Stop()
		desk.pace = pace.C
	}
	if o.diary != "" {
		if err := desk.takeOver(o.diary); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, desk.diary.Close()) }()
	}
	working := ctx
	if o.duration > 0 {
		var cancel context.CancelFunc
		working, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	rush := staff.NewDesk(desk.nextOfRush)
	stop := context.AfterFunc(working, rush.Close)
	defer stop()
	tally, took, err := of.Work(working, o.Name, 0, desk.next, func(cfg *staff.Config) {
		cfg.Owners, cfg.Locks.Owner, cfg.Think = 1, o.Name, o.think
		cfg.Rush = staff.Rush{Desk: rush, Tellers: o.rush, From: time.Now(), Every: o.every}
		if arch != nil {
			cfg.Archive = arch
		}
		if desk.diary != nil {
			cfg.Acquired, cfg.Lost = desk.diary.Acquired, desk.diary.Lost
			cfg.Tries, cfg.Ended = desk.diary.Tries, desk.diary.Ended
			cfg.Watch = desk.vitals
		}
	})
	if err != nil {
		return false, err
	}
	office.Say(stdout, "%s: %s\n\n", o.Name, office.Pace(tally.Over.Load(), "units", took, o.Where))
	office.ReportWork(stdout, tally, "done")
	return len(tally.Unexpected) == 0, nil
}

// Flags implements [office.Command].
func (o *branch) Flags(fs *flag.FlagSet) {
	o.Owners = 1
	o.PlaceFlags(fs)
	o.PrefixFlag(fs)
	o.StatementsFlag(fs)
	fs.StringVar(&o.Name, "name", "", "`name` of the branch, which no other has at the same time (required)")
	fs.StringVar(&o.diary, "diary", "", "`file` to write down in what was begun and told; who finds one does again what was begun under an ID")
	o.TellersFlag(fs, "`number` of tellers")
	fs.Float64Var(&o.rate, "rate", 0, "units a `second` that are begun at most (default: as many as can be)")
	fs.DurationVar(&o.think, "think", 0, "`time` that a teller takes, at most, between reading and writing, with the locks held if there are any")
	fs.IntVar(&o.rush, "rush", 0, "`number` of more tellers, who all want the same accounts at the same moments, and do not take their time (default: none)")
	fs.DurationVar(&o.every, "rush-every", time.Second, "`time` from one such moment to the next")
	fs.DurationVar(&o.duration, "for", 0, "begin no new unit after this `time` (default: until SIGTERM or Ctrl-C)")
	o.MixFlag(fs, "what changes there are")
	o.LockFlag(fs)
	fs.Uint64Var(&o.Seed, "seed", 1, "`number` from which the work is drawn, with the branch's name")
	o.WaitFlag(fs)
	o.QuietFlag(fs)
}

// Complete implements [office.Command]. Branches with one seed do different work.
func (o *branch) Complete(given office.Given) {
	o.Options.Complete(given)
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.Name)) // never fails
	o.Seed ^= h.Sum64()
	o.Where.Connections += o.rush
}

// branchNames are also part of names of jobs, before a slash.
var branchNames = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,60}$`)

const minRate, maxRate = 1e-3, 1e6

// Check implements [office.Command].
func (o *branch) Check(given office.Given) []office.Check {
	return slices.Concat(o.CheckShared(), o.CheckStaff(given), []office.Check{
		{Wrong: o.Prefix == "", Flag: "prefix", Reason: "is required: that of the tables"},
		{Wrong: !branchNames.MatchString(o.Name), Flag: "name", Reason: "is required, and may have letters, digits, _, . and -, at most 60"},
		{Wrong: o.diary != "" && !office.IsDir(filepath.Dir(o.diary)), Flag: "diary", Reason: "names a file in no folder that exists"},
		{Wrong: o.rate != 0 && !(o.rate >= minRate && o.rate <= maxRate), Flag: "rate", Reason: "must be 0, for as many as can be, or 0.001 to 1e6"},
		{Wrong: o.think < 0, Flag: "think", Reason: "must not be negative"},
		{Wrong: o.rush < 0, Flag: "rush", Reason: "must not be negative"},
		{Wrong: o.every <= 0, Flag: "rush-every", Reason: "must be more than 0"},
		{Wrong: given["for"] && o.duration <= 0, Flag: "for", Reason: "must be more than 0"},
	})
}
