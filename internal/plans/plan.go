// Package plans says in which steps keys are taken: in the one order of package ordering.
package plans

import (
	"slices"

	"github.com/holdall/holdall/ordering"
)

// Canonical returns the keys in order, without duplicates and without keys
// that another key of the set covers. It returns an *ordering.KeyError for the first
// invalid one.
func Canonical(keys ...ordering.Key) ([]ordering.Key, error) {
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, ordering.Compare)
	canonical := sorted[:0]
	for _, k := range sorted {
		// Descendants follow their ancestor directly, so looking at the last
		// key kept is enough.
		if n := len(canonical); n > 0 && canonical[n-1].Covers(k) {
			continue
		}
		canonical = append(canonical, k)
	}
	return canonical, nil
}

// Step is the unit of acquiring: taken in one transaction and released in one
// transaction, never in parts.
//
// Invariant: everything a step adds sorts after everything earlier steps hold,
// but for ancestors that an earlier step already covers with its intent.
type Step struct {
	// Key is taken exclusively. It is the witness of the step's intents.
	Key ordering.Key
	// Intents are the ancestors of Key that no earlier step has an intent on,
	// outermost first.
	Intents []ordering.Key
}

// Rows is how many rows of the lock table the step writes.
func (s Step) Rows() int { return 1 + len(s.Intents) }

// Plan is how a set of keys is taken: step by step, released in reverse.
type Plan []Step

// Rows is how many rows of the lock table the plan writes.
func (p Plan) Rows() int {
	rows := 0
	for _, s := range p {
		rows += s.Rows()
	}
	return rows
}

// Keys returns the keys that the plan takes exclusively, in order.
func (p Plan) Keys() []ordering.Key {
	keys := make([]ordering.Key, len(p))
	for i, s := range p {
		keys[i] = s.Key
	}
	return keys
}

// New returns the plan for the canonical form of keys.
// It returns an *ordering.KeyError for an invalid key.
func New(keys ...ordering.Key) (Plan, error) {
	canonical, err := Canonical(keys...)
	if err != nil {
		return nil, err
	}
	plan := make(Plan, len(canonical))
	var previous []ordering.Key // the ancestors of the step before
	for i, k := range canonical {
		ancestors := k.Ancestors()
		// Descendants are contiguous: an ancestor shared with any earlier key
		// is shared with the one before.
		shared := 0
		for shared < min(len(ancestors), len(previous)) && ancestors[shared] == previous[shared] {
			shared++
		}
		plan[i] = Step{Key: k, Intents: slices.Clone(ancestors[shared:])}
		previous = ancestors
	}
	return plan, nil
}

// Covering returns the key among held, which is canonical, that covers k.
func Covering(held []ordering.Key, k ordering.Key) (ordering.Key, bool) {
	i, found := slices.BinarySearchFunc(held, k, ordering.Compare)
	if found {
		return held[i], true
	}
	// What covers k sorts before it, and everything in between is below it;
	// a canonical set holds nothing below its own keys.
	if i > 0 && held[i-1].Covers(k) {
		return held[i-1], true
	}
	return "", false
}

// Cut returns the longest run of the plan's first steps that has at most rows
// rows, and what remains. A first step larger than that comes alone.
func (p Plan) Cut(rows int) (chunk, rest Plan) {
	n, sum := 0, 0
	for n < len(p) && (n == 0 || sum+p[n].Rows() <= rows) {
		sum += p[n].Rows()
		n++
	}
	return p[:n], p[n:]
}
