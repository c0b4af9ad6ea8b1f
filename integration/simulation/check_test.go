package simulation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// past is a history in which all is well: two units that held conflicting keys
// one after the other and both committed, and one that was not committed.
type past struct {
	*history
	first, second, third *try
	stored               stored
	plan                 Plan
}

func at(seconds float64) time.Time {
	return time.UnixMilli(1_000_000_000).Add(time.Duration(seconds * float64(time.Second)))
}

func newPast() *past {
	h := &history{start: at(0), byMarker: map[string]*try{}, byUnit: map[string]*try{}}
	p := &process{name: "a.1", h: &host{lease: 10 * time.Second}}
	tried := func(name string, token fencing.Token, from, to float64, key ordering.Key) *try {
		j := h.begin(name, p)
		j.told, j.toldAt = true, at(to+2)
		t := h.try(j, "unit-"+name)
		t.token = token
		t.belief = &belief{
			who: name, p: p, unit: t.unit, keys: []ordering.Key{key}, token: token,
			start: at(from), end: at(to), ctx: context.Background(),
			deadline: func() time.Time { return at(to + 1) },
		}
		h.beliefs = append(h.beliefs, t.belief)
		return t
	}
	w := &past{
		history: h, plan: Plan{Lease: 10 * time.Second, Retention: time.Hour, MaxAge: 30 * time.Minute},
		first:  tried("first", 100, 1, 2, "f0/1"),
		second: tried("second", 101, 3, 4, "f0"),
		third:  tried("third", 102, 5, 6, "f0/1"),
	}
	w.first.reads = []state{{record{ID: "f0/1"}, false}, {record{ID: "f0/1/2"}, false}}
	w.first.changes = []change{putNew, putNew}
	w.first.landed = at(2.5)
	w.second.reads, w.second.changes = []state{{record{"f0/1", 1, "first#1"}, true}}, []change{addOne}
	w.second.landed = at(4.5)
	w.third.job.err = lockset.ErrLost
	w.stored = stored{
		records: map[string]storedRecord{"f0/1": {record{"f0/1", 2, "second#1"}, 101}, "f0/1/2": {record{"f0/1/2", 1, "first#1"}, 100}},
		log:     map[string]bool{"first#1": true, "second#1": true},
	}
	w.isShown(1, 2.2, none("f0/1"), none("f0/1/2"))
	w.isShown(2.3, 2.7, none("f0/1/2"), none("f0/1")) // one unit lands meanwhile: none of it,
	w.isShown(2.3, 2.7, byFirst("f0/1"), byFirst("f0/1/2"))
	w.isShown(2.3, 4.7, byFirst("f0/1"), byFirst("f0/1/2")) // or all
	w.isShown(2.3, 4.7, bySecond, byFirst("f0/1/2"), none("f0/3"))
	w.isShown(7, 8, bySecond)
	return w
}

// isShown notes what a reader without locks was shown.
func (w *past) isShown(from, to float64, found ...state) {
	w.shownTo(&reading{who: "reader", begin: at(from), end: at(to), found: found})
}

func none(id string) state    { return state{record{ID: id}, false} }
func byFirst(id string) state { return state{record{id, 1, "first#1"}, true} }

var bySecond = state{record{"f0/1", 2, "second#1"}, true}

// A unit that writes one record because of what another was before: write skew, if the unit that
// changed the other one did the same.
func TestTheChecksNoticeWriteSkew(t *testing.T) {
	w := newPast()
	w.second.reads = append(w.second.reads, none("f0/1/2"))
	w.second.changes = append(w.second.changes, justRead)
	require.Contains(t, strings.Join(w.judge(&w.plan, w.stored), "\n"), "by those before it it should have been")
}

// The checks see what they are for: each history here breaks one promise.
func TestTheChecksNotice(t *testing.T) {
	require.Empty(t, newPast().judge(&newPast().plan, newPast().stored), "a history in which all is well")
	for name, c := range map[string]struct {
		spoil func(w *past)
		want  string
	}{
		"two holders, coarse over fine":  {func(w *past) { w.second.belief.start = at(1.5) }, "two holders of f0"},
		"two holders, fine under coarse": {func(w *past) { w.third.belief.start = at(3.5) }, "two holders of f0"},
		"a token that does not rise":     {func(w *past) { w.third.belief.token = 101 }, "tokens do not rise"},
		"a belief without an end":        {func(w *past) { w.third.belief.end = time.Time{} }, "never stopped believing"},
		"a belief too old":               {func(w *past) { w.plan.MaxAge = 500 * time.Millisecond }, "longer than the maximum age"},
		"buried within the margin": {func(w *past) {
			w.burials = append(w.burials, burial{"unit-third", "f0/1", at(7.5)})
		}, "was buried"},
		"committed after a loss": {func(w *past) {
			w.second.belief.cause = lockset.ErrLost
		}, "had lost its locks at"},
		"committed without locks":  {func(w *past) { w.second.belief = nil }, "before it began"},
		"committed when overtaken": {func(w *past) { w.second.landed = at(5.5) }, "though third"},
		"told too good":            {func(w *past) { w.third.job.err = nil }, "told that it is committed, but it is not"},
		"told too bad":             {func(w *past) { w.second.job.err = lockset.ErrLost }, "told that it is not committed, but it is"},
		"told too early":           {func(w *past) { w.second.job.toldAt = at(4.2) }, "before it was"},
		"a wrong answer, yes": {func(w *past) {
			w.third.job.err, w.third.job.answers = &unitofwork.InDoubtError{}, []unitofwork.Outcome{unitofwork.Forgotten, unitofwork.Committed}
		}, "asked and was told that it is committed, but it is not"},
		"a wrong answer, no": {func(w *past) {
			w.second.job.err, w.second.job.answers = &unitofwork.InDoubtError{}, []unitofwork.Outcome{unitofwork.NotCommitted}
		}, "asked and was told that it is not committed, but it is"},
		"an ID done twice": {func(w *past) { w.first.job.id, w.second.job.id = "id", "id" }, "was done twice"},
		"a stale read": {func(w *past) {
			w.second.reads[0] = state{record{ID: "f0/1"}, false}
		}, "should have been"},
		"a stale read without a commit": {func(w *past) {
			w.third.safe, w.third.reads = true, []state{{record{"f0/1", 1, "first#1"}, true}}
		}, "should have been"},
		"a lost write":  {func(w *past) { w.stored.records["f0/1"] = storedRecord{record{"f0/1", 1, "first#1"}, 100} }, "ends as"},
		"half a unit":   {func(w *past) { delete(w.stored.records, "f0/1") }, "ends as"},
		"an old stamp":  {func(w *past) { w.stored.records["f0/1"] = storedRecord{record{"f0/1", 2, "second#1"}, 100} }, "ends as"},
		"a stray write": {func(w *past) { w.stored.records["f0/2"] = storedRecord{record{"f0/2", 1, "third#1"}, 102} }, "by no committed unit"},
		"a holder refused downstream": {func(w *past) {
			w.deliveries = []*delivery{{who: "first", keys: w.first.belief.keys, token: 100, held: true, found: 101}}
		}, "holds its locks and was refused"},
		"overtaken downstream": {func(w *past) {
			w.deliveries = []*delivery{
				{who: "second", keys: []ordering.Key{"f0"}, token: 101}, {who: "first", keys: []ordering.Key{"f0/1"}, token: 100},
			}
		}, "was admitted downstream"},
		"a log item gone":           {func(w *past) { delete(w.stored.log, "second#1") }, "log item is gone"},
		"a failed check":            {func(w *past) { w.second.changes[0] = refuse }, "did not hold"},
		"half staged":               {func(w *past) { w.second.changes = nil }, "had not staged everything"},
		"a read of half a unit":     {func(w *past) { w.isShown(2.3, 2.7, byFirst("f0/1"), none("f0/1/2")) }, "of no moment"},
		"a read of the other half":  {func(w *past) { w.isShown(2.3, 2.7, none("f0/1"), byFirst("f0/1/2")) }, "of no moment"},
		"a read of two moments":     {func(w *past) { w.isShown(2.3, 4.7, bySecond, none("f0/1/2")) }, "of no moment"},
		"a read of the past":        {func(w *past) { w.isShown(2.6, 2.7, none("f0/1"), none("f0/1/2")) }, "of no moment"},
		"a read of the future":      {func(w *past) { w.isShown(2.3, 2.4, byFirst("f0/1"), byFirst("f0/1/2")) }, "of no moment"},
		"a read of what is gone":    {func(w *past) { w.isShown(4.6, 5, byFirst("f0/1")) }, "so from 2.5s to 4.5s"},
		"a read of what never was":  {func(w *past) { w.isShown(6, 9, state{record{"f0/1", 3, "third#1"}, true}) }, "so never"},
		"a read of what is nowhere": {func(w *past) { w.isShown(6, 9, byFirst("f0/3")) }, "so never"},
		"committed and again": {func(w *past) {
			again := w.try(w.second.job, "unit-again")
			again.token, again.belief, again.landed = 103, w.third.belief, at(6)
			w.stored.log[again.marker] = true
		}, "committed 2 times"},
	} {
		w := newPast()
		c.spoil(w)
		problems := strings.Join(w.judge(&w.plan, w.stored), "\n")
		require.Contains(t, problems, c.want, name)
	}
}

// A process that has died believes nothing any more.
func TestTheDeadBelieveNothing(t *testing.T) {
	w := newPast()
	dead, died := &process{name: "b.1", h: w.first.belief.p.h}, at(2)
	dead.diedAt.Store(&died)
	w.first.belief.p, w.first.belief.end = dead, at(9)
	require.Empty(t, w.judge(&w.plan, w.stored))
}
