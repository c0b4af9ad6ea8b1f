package writeback

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
)

// field is a field of a struct that the SDK stores as an attribute.
type field struct {
	name          string // of the attribute
	goName        string
	tagged        bool // the name is from a tag
	behindPointer bool // it is a field of an embedded pointer
	index         []int
	typ           reflect.Type
	unset         *reflect.StructField // the embedded field on its path that reflection cannot set, because its type is unexported
}

// structure is how the SDK stores a struct type.
type structure struct {
	fields    []field
	byName    map[string]field
	ambiguous []field // with one name, so that the SDK stores none of them
}

var timeType = reflect.TypeFor[time.Time]()

func isTime(t reflect.Type) bool { return t.Kind() == reflect.Struct && t.ConvertibleTo(timeType) }

// structure lists a struct's fields by the rules of attributevalue, which are those of
// encoding/json: embedded structs are flattened, and of fields with one name the shallowest
// counts, or the only tagged one of these. The SDK does not export its own list.
func (d dialect) structure(t reflect.Type) structure {
	var all []field
	type embedded struct {
		field
		twice bool // at one depth: its fields are ambiguous
	}
	visited := map[reflect.Type]bool{}
	for level := []embedded{{field: field{typ: t}}}; len(level) > 0; {
		var next []embedded
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for sf := range e.typ.Fields() {
				name, ignored := d.tagOf(sf)
				if ignored || !sf.IsExported() && !sf.Anonymous {
					continue
				}
				f := field{cmp.Or(name, sf.Name), sf.Name, name != "", e.behindPointer, slices.Concat(e.index, sf.Index), sf.Type, e.unset}
				base, flattened := d.flattened(sf)
				if f.unset == nil && cannotSet(sf, flattened) {
					f.unset = &sf
				}
				if !flattened {
					if all = append(all, f); e.twice {
						all = append(all, f)
					}
					continue
				}
				f.typ, f.behindPointer = base, f.behindPointer || sf.Type.Kind() == reflect.Pointer
				if again := slices.IndexFunc(next, func(n embedded) bool { return n.typ == base }); again >= 0 {
					next[again].twice = true
				} else {
					next = append(next, embedded{field: f})
				}
			}
		}
		level = next
	}
	return resolve(all)
}

// flattened returns the struct whose fields are stored in place of an embedded one.
func (d dialect) flattened(sf reflect.StructField) (base reflect.Type, flattened bool) {
	if base = sf.Type; base.Name() == "" && base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	name, ignored := d.tagOf(sf)
	return base, sf.Anonymous && !ignored && name == "" && base.Kind() == reflect.Struct
}

// resolve keeps one field of each name.
func resolve(all []field) (s structure) {
	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	for _, same := range byName {
		depth := len(slices.MinFunc(same, func(a, b field) int { return cmp.Compare(len(a.index), len(b.index)) }).index)
		same = slices.DeleteFunc(same, func(f field) bool { return len(f.index) > depth })
		if tagged := slices.DeleteFunc(slices.Clone(same), func(f field) bool { return !f.tagged }); len(tagged) > 0 {
			same = tagged
		}
		switch {
		case len(same) == 1:
			s.fields = append(s.fields, same[0])
		case len(s.ambiguous) == 0 || same[0].name < s.ambiguous[0].name: // the same one every time
			s.ambiguous = same
		}
	}
	slices.SortFunc(s.fields, func(a, b field) int { return slices.Compare(a.index, b.index) })
	s.byName = map[string]field{}
	for _, f := range s.fields {
		s.byName[f.name] = f
	}
	return s
}

// tagOf returns the name that its tags give a field, and whether they exclude it.
func (d dialect) tagOf(sf reflect.StructField) (name string, ignored bool) {
	for _, key := range []string{defaultTagKey, d.tagKey} { // the second prevails
		if text := sf.Tag.Get(key); text != "" {
			name, _, _ = strings.Cut(text, ",")
			ignored = name == "-"
		}
	}
	if ignored {
		return "", true
	}
	return name, false
}
