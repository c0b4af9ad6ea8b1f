package memdynamo

import (
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// index is a secondary index: its definition, immutable, and what it has of the items of
// its table, at any time what they are. Its pure part says what that is; the table has
// it follow every write.
type index struct {
	schema
	name       string
	global     bool
	projected  types.ProjectionType
	included   []string // INCLUDE: the attributes beside the keys
	primary    schema   // the table's keys, which every index has
	throughput types.ProvisionedThroughput
	store
}

// entry is what an index has of an item, and where.
type entry struct {
	hash string
	at   spot
	item *item
}

// entry of an item; ok is false if it has not all keys of the index, and so is not there.
func (ix *index) entry(k key, it *item) (e entry, ok bool) {
	hash := it.get(ix.hash.name)
	if hash == nil {
		return entry{}, false
	}
	e.at.of = k
	if ix.rng.name != "" {
		rng := it.get(ix.rng.name)
		if rng == nil {
			return entry{}, false
		}
		e.at.rng = encoded(rng)
	}
	e.hash, e.item = encoded(hash), ix.project(it)
	return e, true
}

// project is the part of an item that the index has.
func (ix *index) project(it *item) *item {
	if ix.projected == types.ProjectionTypeAll {
		return it
	}
	attrs := make([]attr, 0, 4+len(ix.included))
	for _, a := range it.attrs {
		if ix.has(a.name) {
			attrs = append(attrs, a)
		}
	}
	return newItem(attrs)
}

// has reports whether the index has an attribute of its items.
func (ix *index) has(name string) bool {
	return ix.projected == types.ProjectionTypeAll || ix.isKey(name) || ix.primary.isKey(name) || slices.Contains(ix.included, name)
}

// lacks is those of some attributes that the index has not, each once.
func (ix *index) lacks(names []string) []string {
	var missing []string
	for _, name := range names {
		if !ix.has(name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// follow has the index do what a write does to an item; nil is one that is not there.
func (ix *index) follow(k key, old, new *item) {
	was, had := ix.entry(k, old)
	is, has := ix.entry(k, new)
	if had && !(has && was.hash == is.hash && was.at == is.at) {
		ix.set(was.hash, was.at, nil)
	}
	if has {
		ix.set(is.hash, is.at, is.item)
	}
}

// units is what a write of an item costs beside the table: nothing if the index has the
// same of it as before, and two writes if the item moves in the index.
func (ix *index) units(k key, old, new *item) float64 {
	was, had := ix.entry(k, old)
	is, has := ix.entry(k, new)
	switch {
	case !had && !has:
		return 0
	case !has:
		return units(was.item.size, writeUnit)
	case !had:
		return units(is.item.size, writeUnit)
	case was.hash != is.hash || was.at != is.at:
		return units(was.item.size, writeUnit) + units(is.item.size, writeUnit)
	case equal(mapValue(was.item.attrs), mapValue(is.item.attrs)):
		return 0
	}
	return units(max(was.item.size, is.item.size), writeUnit)
}

// checkKeys checks that every index can have an item that is put, or updated. As for a
// table's own keys, the first error is of the item's write, the second of the request.
func (t *table) checkKeys(attrs []attr, update bool) (mismatch, bad error) {
	for _, ix := range t.indexes {
		for i, a := range []keyAttr{ix.hash, ix.rng} {
			v := lookup(attrs, a.name)
			if v == nil {
				continue
			}
			if v.kind() != a.kind {
				mismatch = cmp.Or(mismatch, validation(invalidParameter+"Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s",
					a.name, a.kind, v.kind(), ix.name))
				continue
			}
			limit := []int{maxHashKey, maxRangeKey}[i]
			switch n := len(encoded(v)); {
			case n == 0 && update:
				bad = cmp.Or(bad, validation(notValidKey+"The update expression attempted to update a secondary index key to a value that is not supported. "+
					"The AttributeValue for a key attribute cannot contain an empty %s value.", keyWord(a.kind)))
			case n == 0:
				bad = cmp.Or(bad, validation(notValidKey+"A value specified for a secondary index key is not supported. "+
					"The AttributeValue for a key attribute cannot contain an empty %s value. IndexName: %s, IndexKey: %s", keyWord(a.kind), ix.name, a.name))
			case n > limit:
				bad = cmp.Or(bad, validation(invalidParameter+"Size of the key has exceeded the size limit of %d bytes. IndexName: %s, IndexKey: %s",
					limit, ix.name, a.name))
			}
		}
	}
	return mismatch, bad
}
