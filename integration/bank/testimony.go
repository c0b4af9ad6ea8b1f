package main

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/audit"
	"github.com/holdall/holdall/integration/bank/diary"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
)

// hear reads the diaries of all branches.
func hear(pattern string) (audit.Testimony, error) {
	t := audit.Testimony{
		Begun: map[string]bool{}, Done: map[string]bool{}, Not: map[string]bool{},
		Held: map[audit.Unit]fencing.Token{}, Lost: map[audit.Unit]bool{}, Tried: map[audit.Unit]bool{}, Void: map[audit.Unit]bool{}, Led: map[audit.Unit]string{},
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
	kinds, branch := map[string]string{}, ""
	for _, l := range lines {
		if l.Began != nil {
			branch, _, _ = strings.Cut(l.Began.Job, "/")
			break
		}
	}
	unit := func(nonce string) audit.Unit { return audit.Unit{Branch: branch, Nonce: nonce} }
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
			t.Held[unit(l.Holds.Unit)] = l.Holds.Token
		case l.Lost != nil:
			t.Lost[unit(l.Lost.Unit)] = true
		case l.Tries != nil:
			t.Tried[unit(l.Tries.Unit)] = true
		case l.Ended != nil && l.Ended.Void():
			t.Void[unit(l.Ended.Unit)] = true
		case l.Ended != nil && l.Ended.Leader != "":
			t.Led[unit(l.Ended.Unit)] = l.Ended.Leader
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
	return kind != office.KindStatement && kind != office.KindStatements && kind != kindOverviews
}
