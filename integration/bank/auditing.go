package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/holdall/holdall/integration/bank/archive"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/office"
)

// auditing finishes what dead branches left, and audits the books, the archive and
// what the branches were told.
type auditing struct {
	office.Options
	diaries string
}

// Do implements [office.Command].
func (o *auditing) Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error) {
	of, town, err := join(ctx, &o.Options, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.Leave()) }()
	if err := of.Recover(ctx, stdout, false); err != nil {
		return false, err
	}
	results, records, err := of.Audit(ctx, town.Keys())
	if err != nil {
		return false, err
	}
	sound = office.ReportAudit(stdout, results)
	var archived audit.Archive
	if o.Archive != "" {
		if archived, err = o.loadArchive(ctx); err != nil {
			return false, err
		}
		sound = office.ReportArchive(stdout, audit.CheckArchive(archived, records)) && sound
	}
	if o.diaries != "" {
		testimony, err := hear(o.diaries)
		if err != nil {
			return false, err
		}
		office.Say(stdout, "\n%d jobs were begun; %d changes told committed, %d told refused\n", len(testimony.Begun), len(testimony.Done), len(testimony.Not))
		sound = office.ReportChecks(stdout, "audit of what was told, against the books", "What was told is", audit.CheckTestimony(testimony, records)) && sound
		office.Say(stdout, "\n%d overviews were read without locks\n", len(testimony.Overviews))
		sound = office.ReportChecks(stdout, "audit of what was read without locks, against the books", "What was read is",
			audit.CheckOverviews(testimony.Overviews, records)) && sound
		if o.Archive != "" {
			office.Say(stdout, "\n%d statements were sent to the archive; %d told written, %d told stale\n",
				len(testimony.Filing.Sent), len(testimony.Filing.Written), len(testimony.Filing.Stale))
			sound = office.ReportChecks(stdout, "audit of what was told, against the archive", "What was told of statements is",
				audit.CheckFiling(testimony.Filing, archived)) && sound
		}
	}
	return sound, nil
}

func (o *auditing) loadArchive(ctx context.Context) (all audit.Archive, err error) {
	arch, err := archive.Open(ctx, archive.Config{Where: o.Archive, Prefix: o.Prefix, Made: true})
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, arch.Close(ctx)) }()
	return arch.Load(ctx)
}

// Flags implements [office.Command].
func (o *auditing) Flags(fs *flag.FlagSet) {
	o.PlaceFlags(fs)
	o.PrefixFlag(fs)
	o.StatementsFlag(fs)
	fs.StringVar(&o.diaries, "diaries", "", "`pattern` of the branches' diaries, such as 'logs/*.diary': what they were told is compared with the books")
	o.QuietFlag(fs)
}

// Check implements [office.Command].
func (o *auditing) Check(office.Given) []office.Check {
	return append(o.CheckShared(), office.Check{Wrong: o.Prefix == "", Flag: "prefix", Reason: "is required: that of the tables"})
}
