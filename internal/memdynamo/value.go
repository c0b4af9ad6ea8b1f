package memdynamo

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// kind is an attribute value's type.
type kind uint8

const (
	kindS kind = iota
	kindN
	kindB
	kindSS
	kindNS
	kindBS
	kindL
	kindM
	kindBOOL
	kindNULL
)

var kindNames = [...]string{"S", "N", "B", "SS", "NS", "BS", "L", "M", "BOOL", "NULL"}

func (k kind) String() string { return kindNames[k] }

// long is the name that messages about ADD and DELETE use.
func (k kind) long() string {
	return [...]string{"STRING", "NUMBER", "BINARY", "STRING_SET", "NUMBER_SET", "BINARY_SET",
		"LIST", "MAP", "BOOLEAN", "NULL"}[k]
}

// scalar reports whether values of the type may be keys and have an order.
func (k kind) scalar() bool { return k <= kindB }

// value is an attribute value as the engine keeps it: immutable, so items,
// versions of an item and requests share values freely. Strings and binaries
// are Go strings; sets are sorted, so equal sets are equal slices.
type value interface {
	kind() kind
	size() int // what it weighs in an item
}

type (
	strValue  string
	binValue  string
	boolValue bool
	nullValue struct{}
	strSet    []string
	binSet    []string
	numSet    []decimal
	listValue []value
	mapValue  []attr // sorted by name, as an item's attributes are
)

// attr is a named value of an item or of a map.
type attr struct {
	name  string
	value value
}

func (strValue) kind() kind  { return kindS }
func (decimal) kind() kind   { return kindN }
func (binValue) kind() kind  { return kindB }
func (strSet) kind() kind    { return kindSS }
func (numSet) kind() kind    { return kindNS }
func (binSet) kind() kind    { return kindBS }
func (listValue) kind() kind { return kindL }
func (mapValue) kind() kind  { return kindM }
func (boolValue) kind() kind { return kindBOOL }
func (nullValue) kind() kind { return kindNULL }

func (v strValue) size() int { return len(v) }
func (v binValue) size() int { return len(v) }
func (boolValue) size() int  { return 1 }
func (nullValue) size() int  { return 1 }
func (v strSet) size() int   { return sumLen(v) }
func (v binSet) size() int   { return sumLen(v) }

func (v numSet) size() int {
	n := 0
	for _, d := range v {
		n += d.size()
	}
	return n
}

// size of a list or map: 3 bytes, and one more for every element.
func (v listValue) size() int {
	n := 3 + len(v)
	for _, e := range v {
		n += e.size()
	}
	return n
}

func (v mapValue) size() int { return 3 + len(v) + attrsSize(v) }

func sumLen[T string | []byte](v []T) int {
	n := 0
	for _, s := range v {
		n += len(s)
	}
	return n
}

func attrsSize(v []attr) int {
	n := 0
	for i := range v {
		n += len(v[i].name) + v[i].value.size()
	}
	return n
}

// find is the place of a name among sorted attributes, or where it belongs.
func find(attrs []attr, name string) (int, bool) {
	return slices.BinarySearchFunc(attrs, name, func(a attr, name string) int { return strings.Compare(a.name, name) })
}

// lookup is an attribute's value, or nil.
func lookup(attrs []attr, name string) value {
	if i, ok := find(attrs, name); ok {
		return attrs[i].value
	}
	return nil
}

func sortAttrs(attrs []attr) {
	slices.SortFunc(attrs, func(a, b attr) int { return strings.Compare(a.name, b.name) })
}

// item is a stored item: immutable, replaced as a whole by every write.
type item struct {
	attrs []attr // sorted by name
	size  int
}

func newItem(attrs []attr) *item { return &item{attrs: attrs, size: attrsSize(attrs)} }

// get is nil on an absent item as on an absent attribute.
func (it *item) get(name string) value {
	if it == nil {
		return nil
	}
	return lookup(it.attrs, name)
}

func (it *item) bytes() int {
	if it == nil {
		return 0
	}
	return it.size
}

// equal is DynamoDB's equality: same type, same value, numbers numerically,
// sets whatever their order.
func equal(a, b value) bool {
	if a == nil || b == nil || a.kind() != b.kind() {
		return false
	}
	switch a := a.(type) {
	case strSet:
		return slices.Equal(a, b.(strSet))
	case binSet:
		return slices.Equal(a, b.(binSet))
	case numSet:
		return slices.Equal(a, b.(numSet))
	case listValue:
		return slices.EqualFunc(a, b.(listValue), equal)
	case mapValue:
		return slices.EqualFunc(a, b.(mapValue), func(x, y attr) bool {
			return x.name == y.name && equal(x.value, y.value)
		})
	default:
		return a == b // the comparable ones: S, N, B, BOOL, NULL
	}
}

// order compares two values of one scalar type; ok is false for any others.
func order(a, b value) (c int, ok bool) {
	switch a := a.(type) {
	case strValue:
		if b, ok := b.(strValue); ok {
			return cmp.Compare(a, b), true
		}
	case binValue:
		if b, ok := b.(binValue); ok {
			return cmp.Compare(a, b), true
		}
	case decimal:
		if b, ok := b.(decimal); ok {
			return a.cmp(b), true
		}
	}
	return 0, false
}

// member reports whether a set or a list has an element, or a string or
// binary has a part.
func member(in, v value) bool {
	switch in := in.(type) {
	case strValue:
		part, ok := v.(strValue)
		return ok && strings.Contains(string(in), string(part))
	case binValue:
		part, ok := v.(binValue)
		return ok && strings.Contains(string(in), string(part))
	case strSet:
		s, ok := v.(strValue)
		return ok && sortedHas(in, string(s), cmp.Compare[string])
	case binSet:
		s, ok := v.(binValue)
		return ok && sortedHas(in, string(s), cmp.Compare[string])
	case numSet:
		n, ok := v.(decimal)
		return ok && sortedHas(in, n, decimal.cmp)
	case listValue:
		return slices.ContainsFunc(in, func(e value) bool { return equal(e, v) })
	}
	return false
}

func sortedHas[E any](in []E, e E, cmp func(E, E) int) bool {
	_, ok := slices.BinarySearchFunc(in, e, cmp)
	return ok
}

// combine is the set arithmetic of ADD and, with less, of DELETE: nil for an empty result. Two that are not
// sets of one type are an error.
func combine(a, b value, less bool) (value, error) {
	switch a := a.(type) {
	case strSet:
		return combineSets(a, b, less, cmp.Compare[string])
	case binSet:
		return combineSets(a, b, less, cmp.Compare[string])
	case numSet:
		return combineSets(a, b, less, decimal.cmp)
	}
	return nil, errOperand
}

func combineSets[S interface {
	~[]E
	value
}, E any](a S, other value, less bool, cmp func(E, E) int) (value, error) {
	b, ok := other.(S)
	if !ok {
		return nil, errOperand
	}
	if less {
		left := slices.DeleteFunc(slices.Clone(a), func(e E) bool { return sortedHas(b, e, cmp) })
		if len(left) == 0 {
			return nil, nil
		}
		return left, nil
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, cmp)
	return slices.CompactFunc(all, func(x, y E) bool { return cmp(x, y) == 0 }), nil
}

// prefixed is begins_with.
func prefixed(v, prefix value) bool {
	switch v := v.(type) {
	case strValue:
		p, ok := prefix.(strValue)
		return ok && strings.HasPrefix(string(v), string(p))
	case binValue:
		p, ok := prefix.(binValue)
		return ok && bytes.HasPrefix([]byte(v), []byte(p))
	}
	return false
}

// length is size(): UTF-16 code units of a string, as DynamoDB's own local
// edition counts, bytes of a binary, elements of the rest.
func length(v value) (n int, ok bool) {
	switch v := v.(type) {
	case strValue:
		for _, r := range v {
			n++
			if r > 0xFFFF {
				n++
			}
		}
		return n, true
	case nil, decimal, boolValue, nullValue:
		return 0, false
	}
	return reflect.ValueOf(v).Len(), true
}
