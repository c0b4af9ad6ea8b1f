package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

var errChangedItsMind = errors.New("the function changed its mind")

// inside is what a unit of work does: it reads some records, takes its time, and stages
// changes that follow from what it read. Under locks it tells others of that, too.
func (p *process) inside(ctx context.Context, u *unitofwork.Unit, j *job, r *rand.Rand, mayPanic bool) error {
	w := p.h.w
	t := w.history.try(j, u.Nonce())
	defer func() { t.done = time.Now() }()
	refs := w.recordsUnder(draw(w.plan.Seed, "records", cmp.Or(j.id, j.name)), j.keys) // the same in every run, and under one ID
	read := p.readInParts
	if u.Locked() {
		read = p.readAtOnce
	}
	if err := read(ctx, u, t, refs, r); err != nil {
		return err
	}
	defer w.history.doubt(t.belief)
	for i, ref := range refs {
		c, err := stageOne(u, ref, t, r, i == 0 && w.happens(r, badCheck, 0.03))
		if err != nil {
			return err
		}
		t.changes = append(t.changes, c)
	}
	if err := w.overwriteOne(u, t, r); err != nil {
		return err
	}
	switch {
	case w.happens(r, fnFails, 0.05):
		return errChangedItsMind
	case mayPanic && w.happens(r, fnPanics, 0.02):
		panic(errPanicked)
	}
	t.keys = u.Keys()
	return u.Replace(logged(t.keys[0]).Ref(t.marker))
}

// readAtOnce reads records under locks, and takes its time while it holds them.
func (p *process) readAtOnce(ctx context.Context, u *unitofwork.Unit, t *try, refs []*unitofwork.Ref[record], r *rand.Rand) (err error) {
	w := p.h.w
	deadline := func() time.Time { at, _ := u.Deadline(); return at }
	if t.job.shares { // it has no token of its own
		t.token, deadline = w.history.tokenOf(t.unit), nil
	} else if t.token, err = u.Token(); err != nil {
		return err
	}
	t.belief = w.history.believe(u.Context(), t.job, t.unit, u.Keys(), t.token, deadline)
	defer func() {
		if err != nil {
			w.history.doubt(t.belief)
		}
	}()
	if err := u.Get(ctx, refsAsRecords(refs)...); err != nil {
		return err
	}
	t.found(w, refs)
	t.safe = u.Context().Err() == nil
	w.story.tell(p.name, "%s has read %s", t.marker, t.reads)
	if err := p.takeTime(ctx, r); err != nil {
		return err
	}
	if !t.job.shares {
		p.deliver(u.Context(), r, t.marker, t.token, u.Keys())
	}
	return nil
}

// readInParts reads records without locks, some of them later, and notes what it was told:
// whatever becomes of the unit, it is of one moment.
func (p *process) readInParts(ctx context.Context, u *unitofwork.Unit, t *try, refs []*unitofwork.Ref[record], r *rand.Rand) error {
	w := p.h.w
	t.free = true
	seen := &reading{who: t.marker, begin: time.Now(), by: t}
	for rest := refs; len(rest) > 0; {
		part := rest[:1+r.IntN(len(rest))]
		rest = rest[len(part):]
		if err := u.Get(ctx, refsAsRecords(part)...); err != nil {
			return err
		}
		t.found(w, part)
		seen.end, seen.found = time.Now(), slices.Clone(t.reads)
		if len(rest) == 0 {
			w.history.shownTo(seen)
		}
		w.story.tell(p.name, "%s has read %s without locks", t.marker, t.reads)
		if r.IntN(3) > 0 {
			continue
		}
		if err := p.takeTime(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// found notes what a unit has read.
func (t *try) found(w *world, refs []*unitofwork.Ref[record]) {
	t.turn = w.history.nextTurn()
	for _, ref := range refs {
		t.reads = append(t.reads, state{ref.T, ref.Found})
	}
}

// logged is the log, as guarded by a key: which one does not matter, for nobody
// else writes the item.
func logged(guard ordering.Key) *unitofwork.Table[struct{ ID string }] {
	return &unitofwork.Table[struct{ ID string }]{
		Name: logTable, PartitionKey: "ID", Guard: func(*struct{ ID string }) ordering.Key { return guard },
	}
}

// takeTime sleeps as long as the work takes. Most callers stop when their locks
// are lost; some go on, and are not to do any harm.
func (p *process) takeTime(ctx context.Context, r *rand.Rand) error {
	for d := range p.think(r) {
		goesOn := r.IntN(2) == 0
		select {
		case <-time.After(d):
		case <-ctx.Done():
			if !goesOn || p.dead() {
				return context.Cause(ctx)
			}
			time.Sleep(min(d, p.h.w.plan.Lease) / 4)
		}
	}
	return nil
}

// change is what a unit does to a record that it has read.
type change int

const (
	putNew    change = iota // write it whole
	addOne                  // have DynamoDB add to it
	remove                  // delete it
	leaveAsIs               // only check that it is as it was read
	justRead                // stage nothing
	overwrite               // write it without having read it
	refuse                  // check what cannot be: the unit must not commit
)

// stageOne draws and stages a change.
func stageOne(u *unitofwork.Unit, ref *unitofwork.Ref[record], t *try, r *rand.Rand, toRefuse bool) (change, error) {
	n := r.IntN(20)
	switch {
	case toRefuse:
		return refuse, u.Check(ref, unitofwork.Expression{
			Condition: "#n = :n", Names: map[string]string{"#n": "N"}, Values: map[string]any{":n": -1},
		})
	case n < 5 && ref.Found:
		return addOne, u.Update(ref, unitofwork.Expression{
			Update: "SET #n = #n + :one, #last = :me", Names: map[string]string{"#n": "N", "#last": "Last"},
			Values: map[string]any{":one": 1, ":me": t.marker},
		})
	case n == 5 && ref.Found:
		return remove, u.Delete(ref)
	case n < 9 && ref.Found:
		return leaveAsIs, u.Check(ref, unitofwork.Expression{
			Condition: "#n = :n AND #last = :last", Names: map[string]string{"#n": "N", "#last": "Last"},
			Values: map[string]any{":n": ref.T.N, ":last": ref.T.Last},
		})
	case n < 9:
		return leaveAsIs, u.Check(ref, unitofwork.Expression{Condition: "attribute_not_exists(ID)"})
	case n < 13:
		return justRead, nil
	}
	ref.T.N++
	ref.T.Last = t.marker
	return putNew, u.Put(ref)
}

// overwriteOne stages a record, now and then, that the unit has not read.
func (w *world) overwriteOne(u *unitofwork.Unit, t *try, r *rand.Rand) error {
	if r.IntN(3) > 0 {
		return nil
	}
	ref := w.recordsUnder(r, t.job.keys)[0]
	if slices.ContainsFunc(t.reads, func(s state) bool { return s.ID == ref.T.ID }) {
		return nil
	}
	t.reads, t.changes = append(t.reads, state{record: record{ID: ref.T.ID}}), append(t.changes, overwrite)
	ref.T.N, ref.T.Last = 1, t.marker
	return u.Replace(ref)
}

// recordsUnder draws records that held keys guard.
func (w *world) recordsUnder(r *rand.Rand, held []ordering.Key) []*unitofwork.Ref[record] {
	named := map[ordering.Key]bool{}
	var refs []*unitofwork.Ref[record]
	for range 1 + r.IntN(6) {
		k := held[r.IntN(len(held))]
		if deeper := w.plan.Depth - 1 - strings.Count(string(k), "/"); deeper > 0 {
			k = below(r, k, r.IntN(deeper+1), w.plan.Fan)
		}
		if !named[k] {
			named[k] = true
			refs = append(refs, records(tableOf(k)).Ref(string(k)))
		}
	}
	return refs
}

func refsAsRecords(refs []*unitofwork.Ref[record]) []unitofwork.Record {
	all := make([]unitofwork.Record, len(refs))
	for i, ref := range refs {
		all[i] = ref
	}
	return all
}

// state is a record as it was found, or not.
type state struct {
	record
	found bool
}

func (s state) String() string {
	if !s.found {
		return s.ID + ": absent"
	}
	return fmt.Sprintf("%s: %d by %s", s.ID, s.N, s.Last)
}

// writes reports whether a change leaves another record.
func (c change) writes() bool { return c != leaveAsIs && c != justRead && c != refuse }

// after returns what a change makes of a record.
func (c change) after(s state, marker string) state {
	switch c {
	case putNew, addOne:
		return state{record{s.ID, s.N + 1, marker}, true}
	case remove:
		return state{record{ID: s.ID}, false}
	case overwrite:
		return state{record{s.ID, 1, marker}, true}
	default:
		return s
	}
}

// couldBeTold says how the lock row of a unit in doubt tells what became of it,
// or will; "" if it does not name the unit any more.
func (t *try) couldBeTold(w *world) string {
	if t.belief == nil {
		return ""
	}
	item := lookUp(w.db, string(t.belief.keys[0]))
	r := asLockRow(item)
	switch {
	case text(item["committedBy"]) == t.unit:
		return "its row has its mark"
	case r.unit == t.unit:
		return "its row is still its own"
	case r.fence == int64(t.token):
		return "nobody has had its row since"
	}
	return ""
}
