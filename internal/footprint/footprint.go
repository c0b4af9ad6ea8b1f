// Package footprint is what a run without locks relies on: the lock rows that it has
// seen, as it has seen them first, and the keys under which it only writes. It sends
// nothing: it says which rows are to be looked at, what they must show, and what a
// commit needs of them.
package footprint

import (
	"maps"
	"slices"

	"github.com/holdall/holdall/internal/lockrow"
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
	keys, _ := ordering.Canonical(all...) // they are valid, or the error is the caller's to find
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

func coveringStrictly[V any](keys map[ordering.Key]V, guard ordering.Key) (ordering.Key, bool) {
	for _, above := range guard.Ancestors() {
		if _, ok := keys[above]; ok {
			return above, true
		}
	}
	return "", false
}
