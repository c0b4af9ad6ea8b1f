package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What show says of states that a test of processes does not come to.
func TestWords(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	held := func(prepared string) inspect.Row {
		return inspect.Row{Key: "k", Exists: true, Fence: 7, Holder: &inspect.Holder{
			Unit: "u", Owner: "o", Since: now.Add(-time.Minute), Lease: 10 * time.Second, RVN: "1", Prepared: prepared,
		}}
	}
	early := held("")
	early.Holder.Since = now.Add(2 * time.Hour)
	awaited := func(r inspect.Row) inspect.Row {
		r.Queue = []inspect.Waiter{{Unit: "first"}, {Unit: "second", Owner: "o", Purpose: "p"}}
		return r
	}
	is := func(life string, head bool) map[ordering.Key]inspect.Sighting {
		return map[ordering.Key]inspect.Sighting{"k": {Life: life, Unit: "u", Head: head, For: 10 * time.Second, Limit: 10 * time.Second}}
	}
	free := inspect.Row{Key: "k", Exists: true, Fence: 7, CommittedBy: "before"}
	fine := inspect.Row{Key: "k", Exists: true, Fence: 7, Intents: []inspect.Intent{{Unit: "a", Witness: "k/1"}, {Unit: "b", Witness: "k/2"}, {Unit: "c", Witness: "k/3"}}}
	witnesses := []inspect.Row{{Key: "k/1", Exists: true, Holder: &inspect.Holder{Unit: "another", Owner: "o"}}, {Key: "k/2", Damage: "strange"}}
	for name, c := range map[string]struct {
		shown shown
		says  []string
	}{
		"dead, and awaited": {shown{View: inspect.View{Row: awaited(held(""))}, lives: is("dead", false)},
			[]string{"It is dead", "takes it over within a lease", "--units has not said where", "2 units wait", "1. unit first", `2. unit second of "o" for "p"`}},
		"dead, and awaited above": {shown{View: inspect.View{Row: held(""), Above: []inspect.Row{awaited(inspect.Row{Key: "above", Exists: true})}}, lives: is("dead", false)},
			[]string{"It is dead", "Above it, 2 units wait in the queue of above, for it or for a key below it."}},
		"stuck": {shown{View: inspect.View{Row: held("units")}, lives: is("dead", false), units: "units",
			journal: &unitofwork.JournalState{Outcome: unitofwork.Committed, Rows: 1, Decided: 2, Steps: 3, Writes: 4, Problem: "a tear"}},
			[]string{"1 of 2 rows; 3 keys and 4 writes", "a tear", "stuck", "holdall mend"}},
		"aborted": {shown{View: inspect.View{Row: held("units")}, lives: is("dead", false), units: "units",
			journal: &unitofwork.JournalState{Outcome: unitofwork.NotCommitted, DecidedAt: now}},
			[]string{"aborted and never will commit", "holdall recover"}},
		"done": {shown{View: inspect.View{Row: held("units")}, units: "units", journal: &unitofwork.JournalState{Outcome: unitofwork.Committed, Done: true}},
			[]string{"is committed, and all that it wrote is done", "was not watched"}},
		"committed, alive": {shown{View: inspect.View{Row: held("units")}, lives: is("alive", false), units: "units",
			journal: &unitofwork.JournalState{Outcome: unitofwork.Committed, Rows: 1, Decided: 1, DecidedAt: now}},
			[]string{"was committed at 2026-01-01 00:00:00Z (0s ago)", "goes on by itself"}},
		"nothing names it": {shown{View: inspect.View{Row: held("units")}, lives: is("silent", false), units: "units",
			journal: &unitofwork.JournalState{Outcome: unitofwork.Forgotten}},
			[]string{"Nothing in that table names the unit", "no sign of life for 10s; it is dead after 10s"}},
		"not to be read": {shown{View: inspect.View{Row: held("units")}, lives: is("dead", false), unasked: errors.New("denied")},
			[]string{`journal in table "units"`, "could not be read: denied"}},
		"taken by a clock that is ahead": {shown{View: inspect.View{Row: early}},
			[]string{"since 2026-01-01 02:00:00Z (2h0m ahead of this host's clock), by its clock"}},
		"a dead head": {shown{View: inspect.View{Row: awaited(free)}, lives: is("dead", true)},
			[]string{"is free", "1. unit first, dead: it left the key untaken", "committed with it was before", "last token was 7"}},
		"a queue that moves": {shown{View: inspect.View{Row: awaited(free)}, lives: is("alive", true)},
			[]string{"1. unit first, and the queue moves"}},
		"intents": {shown{View: inspect.View{Row: fine, Witnesses: witnesses}},
			[]string{"3 units hold keys below it", "k/1: unit a, which has it no more", "k/2: unit b, but that row is no row that holdall wrote: strange", "k/3: unit c, which came just now"}},
		"above": {shown{View: inspect.View{Row: free, Above: []inspect.Row{{Key: "above", Damage: "strange"}, held("")}}, lives: is("alive", false)},
			[]string{"Above it, above is no row that holdall wrote: strange", `Above it, k is held by unit u of "o", alive`}},
	} {
		t.Run(name, func(t *testing.T) {
			c.shown.now = now
			words := strings.Join(c.shown.words(), "\n")
			for _, text := range c.says {
				require.Contains(t, words, text)
			}
			require.True(t, strings.HasPrefix(words, "k\n"), words)
		})
	}
}

// A row that was watched and has changed hands since is not called what its last holder was.
func TestShowForgetsThoseWhoAreGone(t *testing.T) {
	s := shown{View: inspect.View{
		Row:       inspect.Row{Key: "k", Holder: &inspect.Holder{Unit: "new"}},
		Witnesses: []inspect.Row{{Key: "same", Holder: &inspect.Holder{Unit: "u"}}},
	}, lives: map[ordering.Key]inspect.Sighting{
		"k": {Unit: "old", Life: "dead"}, "same": {Unit: "u", Life: "dead"}, "gone": {Unit: "u"}, "nobody": {},
	}}
	s.forgetOthers()
	require.Equal(t, map[ordering.Key]inspect.Sighting{"same": {Unit: "u", Life: "dead"}}, s.lives)
}
