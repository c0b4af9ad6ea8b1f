package main

import (
	"fmt"
	"slices"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// words say what was found, a line for each fact, and what follows from it.
func (s *shown) words() []string {
	r := s.Row
	lines := []string{string(r.Key)}
	add := func(text string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(text, args...)) }
	s.rowWords(add)
	if r.Damage == "" {
		s.aboveWords(add)
		s.queueWords(add)
		s.lastWords(add)
	}
	return lines
}

// rowWords say who has the key, and what that means.
func (s *shown) rowWords(add func(string, ...any)) {
	r := s.Row
	switch {
	case r.Damage != "":
		add("is no row that holdall wrote: %s", r.Damage)
		add("Every unit that asks for it gets an error. Find out who else writes to this table.")
	case r.Held():
		s.holderWords(add)
	case len(r.Intents) > 0:
		s.intentWords(add)
	case r.Exists:
		add("is free")
	default:
		add("is free: it has no row, for nobody has asked for it, or not for long")
	}
}

func (s *shown) holderWords(add func(string, ...any)) {
	h := s.Row.Holder
	add("is held by %s", plain.Unit(h.Unit, h.Owner, h.Purpose))
	add("since %s, by its clock; its lease is %v, its token %d", moment(h.Since, s.now), h.Lease, s.Row.Fence)
	life := s.lives[s.Row.Key]
	alive, dead := life.Life == "alive", life.Life == "dead"
	switch {
	case life.Life == "" && s.goesOn:
		add("Whether it is alive is being watched.")
	case life.Life == "":
		add("Whether it is alive was not watched.")
	case alive:
		add("It is alive: it showed a sign of life while this was watching.")
	case dead:
		add("It is dead: there was no sign of life for %s, as long as its lease.", plain.Ago(life.For))
	default:
		add("There was no sign of life for %s; it is dead after %v.", plain.Ago(life.For), life.Limit)
	}
	s.journalWords(add, dead)
	switch {
	case alive:
		add("Wait, or stop that process: then its locks are released, or others have them a lease later.")
	case dead && h.Prepared == "" && s.Row.Awaited():
		add("Who waits has watched it, too, and takes it over within a lease.")
	case dead && h.Prepared == "" && !slices.ContainsFunc(s.Above, inspect.Row.Awaited):
		add("Nobody waits: the first unit that asks for it has it within a lease.")
	}
}

func (s *shown) journalWords(add func(string, ...any), dead bool) {
	if s.Row.Prepared() {
		add("It waits for what the unit's journal in table %q says: nobody frees it before.", s.Row.Holder.Prepared)
	}
	j := s.journal
	switch {
	case s.unasked != nil:
		add("What is decided about the unit could not be read: %s", plain.Error(s.unasked))
		return
	case j == nil: // the row names no unit table, either
		add("Nothing of the unit is committed as long as it has this key, unless it has a journal: --units has not said where.")
		return
	}
	if j.Rows > 0 || j.Decided > 0 {
		add("The journal has %s; %s and %s.", journalRows(*j), plain.Count(j.Steps, "key", "keys"), plain.Count(j.Writes, "write", "writes"))
	}
	if j.Problem != "" {
		add("What is wrong with it: %s.", j.Problem)
	}
	settle := "Who waits for it settles that, or: holdall recover"
	if !dead {
		settle = "The unit goes on by itself if it is alive."
	}
	switch {
	case j.Stuck():
		add("The unit is committed and stuck: its journal cannot be used. holdall mend leads through it.")
	case j.Outcome == unitofwork.Committed && j.Done:
		add("The unit is committed, and all that it wrote is done.")
	case j.Outcome == unitofwork.Committed:
		add("The unit was committed at %s, and is not done yet. %s", moment(j.DecidedAt, s.now), settle)
	case j.Outcome == unitofwork.NotCommitted:
		add("The unit is aborted and never will commit. %s", settle)
	case j.Outcome == unitofwork.Undecided:
		add("The unit is not decided: it may still commit. %s", settle)
	case s.Row.Prepared():
		add("Nothing in that table names the unit: it is not decided. %s", settle)
	default:
		add("The unit has no journal: it has committed nothing as long as it has this key.")
	}
}

// journalRows is how many rows a journal has, of how many it is to have.
func journalRows(j unitofwork.JournalState) string {
	if j.Decided == 0 {
		return plain.Count(j.Rows, "row", "rows") + " so far"
	}
	return fmt.Sprintf("%d of %s", j.Rows, plain.Count(j.Decided, "row", "rows"))
}

func (s *shown) intentWords(add func(string, ...any)) {
	r := s.Row
	add("is free itself; %s below it, so nobody can have it as a whole:", plain.Count(len(r.Intents), "unit holds keys", "units hold keys"))
	for _, in := range r.Intents {
		add("  %s", s.intentLine(in))
	}
	if len(s.Below) == 0 {
		add("One key of each unit is named here; --below lists the others.")
	}
}

// intentLine says what has become of the unit that left an intent.
func (s *shown) intentLine(in inspect.Intent) string {
	w := s.witness(in.Witness)
	switch {
	case w == nil:
		return fmt.Sprintf("%s: unit %s, which came just now", in.Witness, in.Unit)
	case w.Damage != "":
		return fmt.Sprintf("%s: unit %s, but that row is no row that holdall wrote: %s", in.Witness, in.Unit, w.Damage)
	case w.Holder == nil || w.Holder.Unit != in.Unit:
		return fmt.Sprintf("%s: unit %s, which has it no more: the first unit that wants %s removes this", in.Witness, in.Unit, s.Row.Key)
	}
	return fmt.Sprintf("%s: %s%s", in.Witness, plain.Unit(in.Unit, w.Holder.Owner, w.Holder.Purpose), s.life(in.Witness))
}

func (s *shown) witness(key ordering.Key) *inspect.Row {
	if n := slices.IndexFunc(s.Witnesses, func(w inspect.Row) bool { return w.Key == key }); n >= 0 {
		return &s.Witnesses[n]
	}
	return nil
}

// aboveWords say what is held or damaged above the key: that keeps others out of it, too.
func (s *shown) aboveWords(add func(string, ...any)) {
	for _, r := range s.Above {
		switch {
		case r.Damage != "":
			add("Above it, %s is no row that holdall wrote: %s", r.Key, r.Damage)
		case r.Held():
			holder := plain.Unit(r.Holder.Unit, r.Holder.Owner, r.Holder.Purpose) + s.life(r.Key)
			add("Above it, %s is held by %s: so nobody else can have this key.", r.Key, holder)
		}
		if r.Awaited() {
			add("Above it, %s in the queue of %s, for it or for a key below it.", plain.Count(len(r.Queue), "unit waits", "units wait"), r.Key)
		}
	}
}

func (s *shown) queueWords(add func(string, ...any)) {
	r := s.Row
	if len(r.Queue) == 0 {
		return
	}
	add("%s, first come first:", plain.Count(len(r.Queue), "unit waits", "units wait"))
	for n, w := range r.Queue {
		words := ""
		if life := s.lives[r.Key]; n == 0 && life.Head {
			words = map[string]string{
				"dead":  ", dead: it left the key untaken, and is dropped by the next",
				"alive": ", and the queue moves",
			}[life.Life]
		}
		add("%3d. %s%s", n+1, plain.Unit(w.Unit, w.Owner, w.Purpose), words)
	}
}

func (s *shown) lastWords(add func(string, ...any)) {
	r := s.Row
	if !r.Held() && r.LastOwner != "" {
		add("The last to hold it was %q%s, from %s on.", r.LastOwner, plain.For(r.LastPurpose), moment(r.LastHeld, s.now))
	}
	if r.CommittedBy != "" {
		add("The last unit that committed with it was %s.", r.CommittedBy)
	}
	if !r.Held() && r.Fence > 0 {
		add("Its last token was %d.", r.Fence)
	}
}
