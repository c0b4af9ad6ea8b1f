package memdynamo

import (
	"cmp"
	"slices"
	"strings"
)

// store is items by hash key and, within it, in order: those of a table, or those of
// an index. Its zero value cannot be written to: see newStore.
type store struct {
	parts map[string]*partition
	// order is the partitions' keys, sorted, as far as sorted says so; keys of
	// partitions that are gone stay until the next sorting.
	order  []string
	sorted bool
	count  int
	bytes  int
}

func newStore() store { return store{parts: map[string]*partition{}, sorted: true} }

// partition is the items of one hash key, sorted; without a range key a table has one
// there, its range key "".
type partition struct{ rows []row }

type row struct {
	spot
	item *item
}

// spot is where in its partition an item is: at its encoded range key and, in an index,
// where several items may have one, by their primary keys among those.
type spot struct {
	rng string
	of  key
}

// key is an encoded primary key: strings sort as DynamoDB sorts the values.
type key struct{ hash, rng string }

func (s spot) compare(o spot) int {
	return cmp.Or(strings.Compare(s.rng, o.rng), strings.Compare(s.of.hash, o.of.hash), strings.Compare(s.of.rng, o.of.rng))
}

func (p *partition) find(at spot) (int, bool) {
	if p == nil {
		return 0, false
	}
	return slices.BinarySearchFunc(p.rows, at, func(r row, s spot) int { return r.compare(s) })
}

// after is the place of the first row behind a spot.
func (p *partition) after(at spot) int {
	i, ok := p.find(at)
	if ok {
		i++
	}
	return i
}

func (s *store) get(hash string, at spot) *item {
	p := s.parts[hash]
	if i, ok := p.find(at); ok {
		return p.rows[i].item
	}
	return nil
}

// set stores an item, or, if it is nil, deletes what is there.
func (s *store) set(hash string, at spot, it *item) {
	p := s.parts[hash]
	i, ok := p.find(at)
	switch {
	case it == nil && !ok:
	case it == nil:
		s.count--
		s.bytes -= p.rows[i].item.size
		p.rows = slices.Delete(p.rows, i, i+1)
		if len(p.rows) == 0 {
			delete(s.parts, hash)
			s.sorted = false
		}
	case ok:
		s.bytes += it.size - p.rows[i].item.size
		p.rows[i].item = it
	default:
		if p == nil {
			p = new(partition)
			s.parts[hash] = p
			s.order = append(s.order, hash)
			s.sorted = false
			if len(s.order) > 2*len(s.parts)+64 {
				s.partitions() // or keys that come and go would pile up
			}
		}
		s.count++
		s.bytes += it.size
		p.rows = slices.Insert(p.rows, i, row{at, it})
	}
}

// partitions is the keys of all partitions, sorted.
func (s *store) partitions() []string {
	if !s.sorted {
		slices.Sort(s.order)
		s.order = slices.Compact(s.order)
		s.order = slices.DeleteFunc(s.order, func(k string) bool { return s.parts[k] == nil })
		s.sorted = true
	}
	return s.order
}
