package chaos

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdall/holdall/examples/bank/archive"
	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/hooks"
)

// testimony is what all branches wrote in their diaries, including those that were killed.
type testimony struct {
	begun  map[string]bool // jobs; a job's name is the branch's and a number
	done   map[string]bool // jobs told committed that must be in the history
	not    map[string]bool // jobs told not committed
	failed []string        // jobs that failed unexpectedly, and why

	held    map[branchUnit]fencing.Token // units that had all their locks
	lost    map[branchUnit]bool          // units told that they had lost their locks
	tried   map[branchUnit]bool          // units without locks that began to commit
	nothing map[branchUnit]bool          // units told that nothing was written
	led     map[branchUnit]string        // units that another unit of their branch led: the nonce of that

	// Of statements. Jobs told refused are left out: a job may have written and lost its locks before
	// it released them, and was repeated.
	sent    map[books.Statement]bool // whatever the outcome
	written map[books.Statement]bool // the archive said that it has them
	stale   map[books.Statement]bool // the archive rejected them
	filing  map[string]bool          // jobs whose tellers were told that the statements are written
	filed   map[string]bool          // jobs whose statements the archive said that it has

	overviews []entry
}

// branchUnit is a unit of a branch.
type branchUnit struct{ branch, nonce string }

// hear reads the diaries that match a pattern.
func hear(pattern string) (*testimony, error) {
	t := &testimony{
		begun: map[string]bool{}, done: map[string]bool{}, not: map[string]bool{},
		held: map[branchUnit]fencing.Token{}, lost: map[branchUnit]bool{}, tried: map[branchUnit]bool{}, nothing: map[branchUnit]bool{}, led: map[branchUnit]string{},
		sent: map[books.Statement]bool{}, written: map[books.Statement]bool{}, stale: map[books.Statement]bool{},
		filing: map[string]bool{}, filed: map[string]bool{},
	}
	names, err := filepath.Glob(pattern)
	if err == nil && len(names) == 0 {
		err = errors.New("no diary is called " + pattern)
	}
	for _, name := range names {
		entries, err := readDiary(name)
		if err != nil {
			return nil, err
		}
		t.add(strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)), entries)
	}
	return t, err
}

// add adds the diary of a branch.
func (t *testimony) add(branch string, entries []entry) {
	kinds := map[string]string{}
	for _, e := range entries {
		u := branchUnit{branch, e.Unit}
		switch e.Is {
		case began:
			t.begun[e.Job], kinds[e.Job] = true, e.Kind
		case told:
			t.told(e, kinds[e.Job])
		case shown:
			t.overviews = append(t.overviews, e)
		case sends:
			addAll(t.sent, e.Statements)
		case filed:
			switch staff.Outcome(e.Outcome) {
			case staff.Committed:
				addAll(t.written, e.Statements)
				t.filed[e.Job] = true
			case staff.Refused:
				addAll(t.stale, e.Statements)
			}
		case holds:
			t.held[u] = e.Token
		case loses:
			t.lost[u] = true
		case tries:
			t.tried[u] = true
		case ended:
			switch e.Outcome {
			case hooks.NotCommitted, hooks.FellBack, hooks.CommittedBefore:
				t.nothing[u] = true
			default:
				if e.Leader != "" {
					t.led[u] = e.Leader
				}
			}
		}
	}
}

func (t *testimony) told(e entry, kind string) {
	switch outcome := staff.Outcome(e.Outcome); {
	case outcome == staff.Failed:
		t.failed = append(t.failed, e.Job+": "+e.Why)
	case outcome == staff.Refused:
		t.not[e.Job] = true
	case outcome != staff.Committed || kind == kindOverviews:
	case kind == staff.KindStatement || kind == staff.KindStatements:
		t.filing[e.Job] = true
	default:
		t.done[e.Job] = true
	}
}

func addAll(set map[books.Statement]bool, statements []books.Statement) {
	for _, s := range statements {
		set[s] = true
	}
}

// check compares the diaries with the books and the archive.
func (t *testimony) check(r books.Records, all []books.Statement) []books.Result {
	byJob := map[string]map[string]bool{} // the units of each job's changes
	for _, c := range r.History {
		if byJob[c.Job] == nil {
			byJob[c.Job] = map[string]bool{}
		}
		byJob[c.Job][c.Unit] = true
	}
	halves, nowhere := halves(t.overviews, r)
	return []books.Result{
		{Count: "jobs that failed unexpectedly", Findings: t.failed},
		{Count: "jobs told committed that are not in the books", Findings: each(t.done, func(job string) bool { return byJob[job] == nil }, byJob)},
		{Count: "jobs told not committed that are in the books", Findings: each(t.not, func(job string) bool { return byJob[job] != nil }, byJob)},
		{Count: "jobs done by two units", Findings: each(byJob, func(job string) bool { return len(byJob[job]) > 1 }, byJob)},
		{Count: "changes of jobs that were not begun", Findings: each(byJob, func(job string) bool { return !t.begun[job] }, byJob)},
		{Count: "changes by units that had lost their locks, or never had any and never began to commit", Findings: t.unlocked(r)},
		{Count: "changes by units that were told that nothing was written", Findings: t.void(r)},
		{Count: "changes by units that were committed together, and not as one", Findings: t.apart(r)},
		{Count: "changes that did not see each other", Findings: skews(r)},
		{Count: "overviews of half a unit", Findings: halves},
		{Count: "records that never were as an overview has them", Findings: nowhere},
		{Count: "statements told written that are not in the archive, or stand behind an older one", Findings: t.unfiled(all)},
		{Count: "statements told stale that are in the archive", Findings: t.filedStale(all)},
		{Count: "statements in the archive that were never sent", Findings: t.unsent(all)},
		{Count: "statement jobs told committed without the archive's answer", Findings: each(t.filing, func(job string) bool { return !t.filed[job] }, byJob)},
	}
}

// each returns a finding for each job, in order, of which wrong is true.
func each[V any](jobs map[string]V, wrong func(string) bool, byJob map[string]map[string]bool) (findings []string) {
	for _, job := range slices.Sorted(maps.Keys(jobs)) {
		if wrong(job) {
			findings = append(findings, fmt.Sprintf("job %q, by the units %v", job, slices.Sorted(maps.Keys(byJob[job]))))
		}
	}
	return findings
}

// eachChange returns a finding for each change about which judge says something.
func eachChange(r books.Records, judge func(books.Change, branchUnit) string) (findings []string) {
	for _, c := range r.History {
		branch, _, _ := strings.Cut(c.Job, "/")
		if why := judge(c, branchUnit{branch, c.Unit}); why != "" {
			findings = append(findings, fmt.Sprintf("%s: change %d, job %s: its unit %s %s", c.Record, c.Seq, c.Job, c.Unit, why))
		}
	}
	return findings
}

// unlocked: a unit that changed something had its locks, or began to commit without any. A month's end
// is decided by one write and applied afterwards. Its unit, if it is stopped during that write, learns
// that it has lost its locks and then that it was in time.
func (t *testimony) unlocked(r books.Records) []string {
	return eachChange(r, func(c books.Change, u branchUnit) string {
		token, held := t.held[u]
		switch {
		case !held && !t.tried[u]:
			return "never had its locks, and never began to commit without them"
		case held && token != c.Stamp:
			return fmt.Sprintf("had the token %v, and the change has %v", token, c.Stamp)
		case held && t.lost[u] && c.Kind != books.KindMonthEnd:
			return "had lost its locks"
		}
		return ""
	})
}

// void: a unit that was told that nothing was written has changed nothing, not even later.
func (t *testimony) void(r books.Records) []string {
	return eachChange(r, func(_ books.Change, u branchUnit) string {
		if t.nothing[u] {
			return "was told that nothing was written"
		}
		return ""
	})
}

// apart: units that were committed together have one token, the leader's, and the leader had not lost
// its locks, if it had any.
func (t *testimony) apart(r books.Records) []string {
	tokens := maps.Clone(t.held) // and of leaders without locks, as in the first change
	return eachChange(r, func(c books.Change, u branchUnit) string {
		leader := u
		if nonce, led := t.led[u]; led {
			leader.nonce = nonce
		}
		if _, known := tokens[leader]; !known {
			tokens[leader] = c.Stamp
		}
		switch token := tokens[leader]; {
		case leader == u && t.held[u] != 0: // unlocked checks it
		case token != c.Stamp:
			return fmt.Sprintf("has the token %v, and another of the group of %s has %v", c.Stamp, leader.nonce, token)
		case leader != u && t.lost[leader]:
			return fmt.Sprintf("was led by %s, which had lost its locks", leader.nonce)
		}
		return ""
	})
}

// saw returns the note of a change whose unit has read another account, which had so many changes.
func saw(account string, changes int) string { return fmt.Sprintf("saw %d %s", changes, account) }

// skews: if two units each changed an account that the other had read, one of them saw the other's
// change. There is one finding for each two accounts.
func skews(r books.Records) (findings []string) {
	read := func(c books.Change) (record string, changes int) {
		var account string
		if n, _ := fmt.Sscanf(c.Note, "saw %d %s", &changes, &account); n == 2 {
			record = books.AccountRecord(account)
		}
		return record, changes
	}
	of := books.Histories(r)
	for _, record := range slices.Sorted(maps.Keys(of)) {
		for _, one := range of[record] {
			beside, seen := read(one)
			if beside < record { // also none
				continue
			}
			i := slices.IndexFunc(of[beside], func(other books.Change) bool {
				back, known := read(other)
				return back == record && other.Seq > seen && known < one.Seq
			})
			if i >= 0 {
				findings = append(findings, fmt.Sprintf("change %d of %s and change %d of %s, by the units %s and %s",
					one.Seq, record, of[beside][i].Seq, beside, one.Unit, of[beside][i].Unit))
				break
			}
		}
	}
	return findings
}

// halves: an overview has all that a unit changed in its records, or nothing (half), and the records
// were once as the overview has them (nowhere).
func halves(overviews []entry, r books.Records) (half, nowhere []string) {
	of, opening := books.Histories(r), map[string]int64{}
	for _, a := range r.Accounts {
		opening[books.AccountRecord(a.ID)] = a.Opening
	}
	for _, o := range overviews {
		after, before := map[string]string{}, map[string]string{} // by unit, a record that has its change, or not
		for _, p := range o.Positions {
			was := books.Change{Balance: opening[p.Record]}
			for _, c := range of[p.Record] {
				if c.Seq == p.Changes {
					was = c
				}
				if c.Seq <= p.Changes {
					after[c.Unit+" of job "+c.Job] = p.Record
				} else {
					before[c.Unit+" of job "+c.Job] = p.Record
				}
			}
			if was.Seq != p.Changes || was.Balance != p.Balance {
				nowhere = append(nowhere, fmt.Sprintf("%s: %s with %s after change %d", o.Job, p.Record, books.Hundredths(p.Balance), p.Changes))
			}
		}
		for _, u := range slices.Sorted(maps.Keys(after)) {
			if other, both := before[u]; both {
				half = append(half, fmt.Sprintf("%s: %s as the unit %s left it, and %s as it was before", o.Job, after[u], u, other))
			}
		}
	}
	return half, nowhere
}

// unfiled: the archive has every statement of which it said so, and the present one of the account is
// that or a later one.
func (t *testimony) unfiled(all []books.Statement) (findings []string) {
	present, there := map[string]books.Statement{}, map[books.Statement]bool{}
	for _, s := range all {
		present[s.Account], there[s] = s, true
	}
	for s := range t.written {
		switch now := present[s.Account]; {
		case !there[s]:
			findings = append(findings, fmt.Sprintf("account %s: %s, was never written", s.Account, archive.Describe(s)))
		case now.Token < s.Token:
			findings = append(findings, fmt.Sprintf("account %s: %s, was written, and there is %s", s.Account, archive.Describe(s), archive.Describe(now)))
		}
	}
	slices.Sort(findings)
	return findings
}

// filedStale: a unit has one token and writes once, so a statement with the token of a rejected one is
// the rejected one, whatever it says.
func (t *testimony) filedStale(all []books.Statement) []string {
	tokenOf := func(s books.Statement) books.Statement { return books.Statement{Account: s.Account, Token: s.Token} }
	stale := map[books.Statement]bool{}
	for s := range t.stale {
		stale[tokenOf(s)] = true
	}
	return eachStatement(all, func(s books.Statement) bool { return stale[tokenOf(s)] })
}

// unsent: a statement is in the diary before it is sent.
func (t *testimony) unsent(all []books.Statement) []string {
	return eachStatement(all, func(s books.Statement) bool { return !t.sent[s] })
}

func eachStatement(all []books.Statement, wrong func(books.Statement) bool) (findings []string) {
	for _, s := range all {
		if wrong(s) {
			findings = append(findings, fmt.Sprintf("account %s: %s, balance %s", s.Account, archive.Describe(s), books.Hundredths(s.Balance)))
		}
	}
	slices.Sort(findings)
	return slices.Compact(findings)
}
