package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/holdall/holdall/examples/bank/internal/archive"
	"github.com/holdall/holdall/examples/bank/internal/audit"
	"github.com/holdall/holdall/examples/bank/internal/books"
	"github.com/holdall/holdall/examples/bank/internal/diary"
	"github.com/holdall/holdall/examples/bank/internal/staff"
	"github.com/holdall/holdall/fencing"
)

// auditing finishes what dead branches left, and audits the books, the archive and
// what the branches were told.
func auditing(ctx context.Context, o *options, stdout, stderr io.Writer) (sound bool, err error) {
	of, town, err := join(ctx, o, stderr)
	if err != nil {
		return false, err
	}
	if err := of.recover(ctx, stdout); err != nil {
		return false, err
	}
	results, records, err := of.audit(ctx, append(town.keys(), books.AccountKey(books.BankAccount)))
	if err != nil {
		return false, err
	}
	sound = reportAudit(stdout, results)
	var archived audit.Archive
	if o.archive != "" {
		if archived, err = loadArchive(ctx, o); err != nil {
			return false, err
		}
		sound = reportArchive(stdout, audit.CheckArchive(archived, records)) && sound
	}
	if o.diaries != "" {
		testimony, err := hear(o.diaries)
		if err != nil {
			return false, err
		}
		say(stdout, "\n%d jobs were begun; %d changes told committed, %d told refused\n", len(testimony.Begun), len(testimony.Done), len(testimony.Not))
		sound = reportChecks(stdout, "audit of what was told, against the books", "What was told is", audit.CheckTestimony(testimony, records)) && sound
		say(stdout, "\n%d overviews were read without locks\n", len(testimony.Overviews))
		sound = reportChecks(stdout, "audit of what was read without locks, against the books", "What was read is",
			audit.CheckOverviews(testimony.Overviews, records)) && sound
		if o.archive != "" {
			say(stdout, "\n%d statements were sent to the archive; %d told written, %d told stale\n",
				len(testimony.Filing.Sent), len(testimony.Filing.Written), len(testimony.Filing.Stale))
			sound = reportChecks(stdout, "audit of what was told, against the archive", "What was told of statements is",
				audit.CheckFiling(testimony.Filing, archived)) && sound
		}
	}
	return sound, nil
}

func loadArchive(ctx context.Context, o *options) (all audit.Archive, err error) {
	arch, err := archive.Open(ctx, archive.Config{Where: o.archive, Prefix: o.prefix, Made: true})
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, arch.Close(ctx)) }()
	return arch.Load(ctx)
}

// hear reads the diaries of all branches.
func hear(pattern string) (audit.Testimony, error) {
	t := audit.Testimony{
		Begun: map[string]bool{}, Done: map[string]bool{}, Not: map[string]bool{},
		Held: map[audit.Hold]bool{}, Lost: map[audit.Hold]bool{},
		Filing: audit.Filing{
			Sent: map[books.Statement]bool{}, Written: map[books.Statement]bool{}, Stale: map[books.Statement]bool{},
			Done: map[string]bool{}, Filed: map[string]bool{},
		},
	}
	names, err := filepath.Glob(pattern)
	if err == nil && len(names) == 0 {
		err = errors.New("no diary is called " + pattern)
	}
	for _, name := range names {
		var lines []diary.Line
		if lines, err = diary.Read(name); err != nil {
			break
		}
		hearOne(&t, lines)
	}
	return t, err
}

// hearOne adds what one branch says. All its jobs begin with its name.
func hearOne(t *audit.Testimony, lines []diary.Line) {
	kinds, held, branch := map[string]string{}, map[string]fencing.Token{}, ""
	for _, l := range lines {
		if l.Began != nil {
			branch, _, _ = strings.Cut(l.Began.Job, "/")
			break
		}
	}
	for _, l := range lines {
		switch {
		case l.Began != nil:
			t.Begun[l.Began.Job] = true
			kinds[l.Began.Job] = l.Began.Kind
		case l.Told != nil && l.Told.Outcome == staff.Failed:
			t.Failed = append(t.Failed, l.Told.Job+": "+l.Told.Why)
		case l.Told != nil && l.Told.Outcome == staff.Refused:
			t.Not[l.Told.Job] = true
		case l.Told != nil && l.Told.Outcome == staff.Committed && changes(kinds[l.Told.Job]):
			t.Done[l.Told.Job] = true
		case l.Told != nil && l.Told.Outcome == staff.Committed && kinds[l.Told.Job] != kindOverviews:
			t.Filing.Done[l.Told.Job] = true
		case l.Shown != nil:
			t.Overviews = append(t.Overviews, audit.Overview(*l.Shown))
		case l.Sends != nil:
			addAll(t.Filing.Sent, l.Sends.Statements)
		case l.Archived != nil:
			hearArchived(&t.Filing, l.Archived)
		case l.Holds != nil:
			held[l.Holds.Unit] = l.Holds.Token
			t.Held[audit.Hold{Branch: branch, Token: l.Holds.Token}] = true
		case l.Lost != nil:
			t.Lost[audit.Hold{Branch: branch, Token: held[l.Lost.Unit]}] = true
		}
	}
}

func hearArchived(f *audit.Filing, a *diary.Archived) {
	switch a.Outcome {
	case staff.Committed:
		addAll(f.Written, a.Statements)
		f.Filed[a.Job] = true
	case staff.Refused:
		addAll(f.Stale, a.Statements)
	}
}

func addAll(set map[books.Statement]bool, statements []books.Statement) {
	for _, s := range statements {
		set[s] = true
	}
}

// changes reports whether jobs of this kind write to the history.
func changes(kind string) bool {
	return kind != kindStatement && kind != kindStatements && kind != kindOverviews
}
