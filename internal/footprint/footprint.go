// Package footprint is what a run without locks relies on: the lock rows that it has
// seen, as it has seen them first, and the keys under which it only writes. It sends
// nothing: it says which rows are to be looked at, what they must show, and what a
// commit needs of them.
package footprint

import (
	"maps"
	"slices"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// Footprint grows as its run reads and writes. Its zero value is that of a run which has
// done neither. It is not safe for concurrent use.
//
// Invariant: every row shows at every later glance, and at the commit, what it showed at
// the first, or the run is void. So what was read under its keys is one state, that of
// the last glance.
type Footprint struct {
	keys  map[ordering.Key]lockrow.Row // looked at; none covers another
	above map[ordering.Key]lockrow.Row // the rows above keys, none of them a key
	blind map[ordering.Key]bool        // guards of writes that no key covers

	needs []lockrow.Need // nil if they are to be worked out
}

// Covering returns the key looked at that covers a guard.
func (f *Footprint) Covering(guard ordering.Key) (ordering.Key, bool) {
	return covering(f.keys, guard)
}

func covering[V any](keys map[ordering.Key]V, guard ordering.Key) (ordering.Key, bool) {
	if _, ok := keys[guard]; ok {
		return guard, true
	}
	for _, above := range guard.Ancestors() {
		if _, ok := keys[above]; ok {
			return above, true
		}
	}
	return "", false
}

// Write notes that something is written under a guard, which is a valid key.
func (f *Footprint) Write(guard ordering.Key) {
	if _, covered := f.Covering(guard); covered {
		return
	}
	if f.blind == nil {
		f.blind = map[ordering.Key]bool{}
	}
	f.blind[guard] = true
	f.needs = nil
}

// Keys are those that a run under locks would take, in order, with others.
func (f *Footprint) Keys(others ...ordering.Key) []ordering.Key {
	all := slices.Concat(slices.Collect(maps.Keys(f.keys)), slices.Collect(maps.Keys(f.blind)), others)
	keys, _ := plans.Canonical(all...) // they are valid, or the error is the caller's to find
	return keys
}

// Needs is what a commit needs, row by row, in order.
//
// A key under which the run only writes does not stand for what it covers: it was never
// looked at, so only the finer row says that what was read there is still true. They are not to
// be changed.
func (f *Footprint) Needs() []lockrow.Need {
	if f.needs != nil {
		return f.needs
	}
	rows := map[ordering.Key]lockrow.Need{}
	for key, seen := range f.keys {
		rows[key] = lockrow.Need{Key: key, Mode: lockrow.Exclusive, Same: lockrow.Fence, Seen: seen}
	}
	for key, seen := range f.above {
		rows[key] = lockrow.Need{Key: key, Mode: lockrow.Intent, Same: lockrow.RVN, Seen: seen}
	}
	for key := range f.blind {
		if _, covered := f.Covering(key); covered {
			continue
		}
		if _, covered := coveringStrictly(f.blind, key); covered {
			continue
		}
		need := rows[key] // as a row above, if it is one
		need.Key, need.Mode = key, lockrow.Exclusive
		rows[key] = need
		for _, above := range key.Ancestors() {
			if _, there := rows[above]; !there {
				rows[above] = lockrow.Need{Key: above, Mode: lockrow.Intent}
			}
		}
	}
	needs := make([]lockrow.Need, 0, len(rows)) // no iterator: this is done for every unit, and one takes ten allocations
	for _, need := range rows {
		needs = append(needs, need)
	}
	slices.SortFunc(needs, func(a, b lockrow.Need) int { return ordering.Compare(a.Key, b.Key) })
	f.needs = needs
	return needs
}

// Commit returns what a commit needs that writes under these guards, which are valid keys. It
// only checks the row of a key that covers none of them: nothing is written under that key.
func (f *Footprint) Commit(written []ordering.Key) []lockrow.Need {
	needs := slices.Clone(f.Needs())
	for i, need := range needs {
		needs[i].Checked = !slices.ContainsFunc(written, need.Key.Covers)
	}
	return needs
}

func coveringStrictly[V any](keys map[ordering.Key]V, guard ordering.Key) (ordering.Key, bool) {
	for _, above := range guard.Ancestors() {
		if _, ok := keys[above]; ok {
			return above, true
		}
	}
	return "", false
}

// Glance is a look at lock rows together with records, as of one moment, or as of several
// with all the rows in each. It is not safe for concurrent use.
type Glance struct {
	f     *Footprint
	fresh []ordering.Key                // keys that nothing looked at covers, none of which covers another
	seen  map[ordering.Key]lockrow.Row  // of fresh keys and of rows above them that are new
	needs map[ordering.Key]lockrow.Need // what each row is to show
	rows  []ordering.Key
}

// Glance is what is to be looked at together with records that have these guards, valid keys.
func (f *Footprint) Glance(guards []ordering.Key) *Glance {
	g := &Glance{f: f, seen: map[ordering.Key]lockrow.Row{}, needs: map[ordering.Key]lockrow.Need{}}
	for _, guard := range guards {
		if _, covered := f.Covering(guard); !covered {
			g.fresh = append(g.fresh, guard)
		}
	}
	g.fresh, _ = plans.Canonical(g.fresh...)
	for key, seen := range f.keys {
		g.needs[key] = lockrow.Need{Key: key, Mode: lockrow.Exclusive, Same: lockrow.Fence, Seen: seen}
	}
	for key, seen := range f.above {
		g.needs[key] = lockrow.Need{Key: key, Mode: lockrow.Intent, Same: lockrow.RVN, Seen: seen}
	}
	for _, key := range g.fresh {
		need := g.needs[key] // as a row above, if it was one
		need.Key, need.Mode = key, lockrow.Exclusive
		g.needs[key] = need
		for _, above := range key.Ancestors() {
			if _, there := g.needs[above]; !there {
				g.needs[above] = lockrow.Need{Key: above, Mode: lockrow.Intent}
			}
		}
	}
	g.rows = make([]ordering.Key, 0, len(g.needs))
	for key := range g.needs {
		g.rows = append(g.rows, key)
	}
	slices.SortFunc(g.rows, ordering.Compare)
	return g
}

// Rows are the rows to be looked at, in order.
func (g *Glance) Rows() []ordering.Key { return g.rows }

// New is what is needed of the rows that are looked at for the first time as what they are:
// of fresh keys, and of the rows above them.
func (g *Glance) New() []lockrow.Need {
	var all []lockrow.Need
	for _, key := range g.rows {
		if g.isNew(key) {
			all = append(all, g.needs[key])
		}
	}
	return all
}

// Fresh are the keys that this glance would add, in order.
func (g *Glance) Fresh() []ordering.Key { return g.fresh }

// Saw takes the rows as one moment has shown them, in the order of Rows. ok says that all
// is as it was seen first, and what is new is open; else key is the first row that is not
// so, and changed whether it is one that was seen before.
func (g *Glance) Saw(rows []lockrow.Row) (key ordering.Key, changed, ok bool) {
	for i, key := range g.rows {
		need, r := g.needs[key], rows[i]
		if !need.Unchanged(r) {
			return key, true, false
		}
		if _, again := g.seen[key]; again {
			continue
		}
		if g.isNew(key) {
			if !need.Open(r) {
				return key, false, false
			}
			g.seen[key] = r
		}
	}
	for key, r := range g.seen { // the next moment is to show the same
		need := g.needs[key]
		need.Seen, need.Same = r, lockrow.RVN
		if need.Mode == lockrow.Exclusive {
			need.Same = lockrow.Fence
		}
		g.needs[key] = need
	}
	return "", false, true
}

func (g *Glance) isNew(key ordering.Key) bool {
	return g.needs[key].Same == lockrow.Nothing || slices.Contains(g.fresh, key)
}

// Covers reports whether a key that was looked at covers a guard.
func (g *Glance) Covers(guard ordering.Key) bool {
	if _, covered := g.f.Covering(guard); covered {
		return true
	}
	_, covered := plans.Covering(g.fresh, guard)
	return covered
}

// Keep adds to the footprint the fresh keys that cover one of these guards, those of the
// records that were read; a key that guarded nothing is forgotten.
//
// A key stands for those below it that were looked at before: this glance has shown them
// once more, unchanged, together with it.
func (g *Glance) Keep(guards []ordering.Key) {
	f := g.f
	f.needs = nil
	if f.keys == nil {
		f.keys, f.above = map[ordering.Key]lockrow.Row{}, map[ordering.Key]lockrow.Row{}
	}
	for _, key := range g.fresh {
		if !slices.ContainsFunc(guards, key.Covers) {
			continue
		}
		maps.DeleteFunc(f.keys, func(below ordering.Key, _ lockrow.Row) bool { return key.Covers(below) })
		f.keys[key] = g.seen[key]
		for _, above := range key.Ancestors() {
			if _, there := f.above[above]; !there {
				f.above[above] = g.seen[above]
			}
		}
	}
	if len(f.above) == 0 {
		return
	}
	needed := map[ordering.Key]bool{}
	for key := range f.keys {
		for _, above := range key.Ancestors() {
			needed[above] = true
		}
	}
	maps.DeleteFunc(f.above, func(key ordering.Key, _ lockrow.Row) bool { return !needed[key] })
}
