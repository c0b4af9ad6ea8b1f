package writeback

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// spelling is under which names an item has the attributes that a type has under others:
// a struct's field finds one that differs in case alone, and the keys of a map[int]T may have
// zeros in front. It has an entry only where the two differ, so it is nearly always empty.
type spelling map[string]string

// of returns the name that an item has for one of the type's.
func (s spelling) of(name string) string {
	if as, other := s[name]; other {
		return as
	}
	return name
}

// spelled finds the spelling of an item's names, and those that stand beside the one that is
// used: an exact name is used if it is there, else the first in order.
func spelled(item Item, meant func(string) (string, bool)) (s spelling, beside []string) {
	var others []string
	for name := range item {
		if as, is := meant(name); is && as != name {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		as, _ := meant(name)
		_, exact := item[as]
		if _, another := s[as]; exact || another {
			beside = append(beside, name)
			continue
		}
		if s == nil {
			s = spelling{}
		}
		s[as] = name
	}
	return s, beside
}

// meaning returns which name of a struct's fields, or of a map's keys, an item's name means.
// It returns nil for a type whose names mean themselves.
func (d dialect) meaning(t reflect.Type) func(string) (string, bool) {
	switch {
	case t.Kind() == reflect.Struct:
		return d.structureOf(t).meaning
	case t.Kind() == reflect.Map && (t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).NumMethod() > 0):
		return keyMeaning(t.Key())
	}
	return nil
}

// meaning returns the name of the field that the SDK reads an attribute into.
func (s structure) meaning(name string) (string, bool) {
	if _, exact := s.byName[name]; exact {
		return name, true
	}
	i := slices.IndexFunc(s.fields, func(f field) bool { return strings.EqualFold(f.name, name) })
	if i < 0 {
		return "", false
	}
	return s.fields[i].name, true
}

// fieldsOf takes the names of items for those of a struct.
func fieldsOf(items ...Item) (s structure) {
	s.byName = map[string]field{}
	for _, item := range items {
		for name := range item {
			s.byName[name] = field{name: name}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		s.fields = append(s.fields, s.byName[name])
	}
	return s
}

// keyMeaning returns the text of the key that a map has an attribute under: the SDK decodes names into
// keys of this type, and encodes these.
func keyMeaning(t reflect.Type) func(string) (string, bool) {
	return func(name string) (string, bool) {
		key, there := keyNamed(t, name)
		if !there {
			return "", false
		}
		return nameOfKey(key)
	}
}

// within returns the type of an attribute, or of an element, of a type; nil of none.
func (d dialect) within(t reflect.Type, name string) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.structureOf(t).byName[name].typ
	case reflect.Map, reflect.Slice, reflect.Array:
		return t.Elem()
	}
	return t // what an interface has within is read into interfaces
}

// base returns the type that pointers point to.
func base(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// exact returns a value in which every struct finds its attributes under their exact names, and no
// others that the SDK would take for them. A value that is so already is returned as it is.
func (d dialect) exact(t reflect.Type, value types.AttributeValue) types.AttributeValue {
	if t = base(t); t.Kind() == reflect.Interface || isTime(t) || d.decodesItself(t) {
		return value
	}
	switch v := value.(type) {
	case *types.AttributeValueMemberM:
		if t.Kind() == reflect.Struct || t.Kind() == reflect.Map {
			return d.exactMap(t, v)
		}
	case *types.AttributeValueMemberL:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			break
		}
		var elements []types.AttributeValue
		for i, e := range v.Value {
			if now := d.exact(t.Elem(), e); now != e {
				if elements == nil {
					elements = slices.Clone(v.Value)
				}
				elements[i] = now
			}
		}
		if elements != nil {
			return &types.AttributeValueMemberL{Value: elements}
		}
	}
	return value
}

func (d dialect) exactMap(t reflect.Type, m *types.AttributeValueMemberM) types.AttributeValue {
	item, copied := m.Value, false
	own := func() {
		if !copied {
			item, copied = maps.Clone(item), true
		}
	}
	if meaning := d.meaning(t); meaning != nil {
		names, beside := spelled(item, meaning)
		for _, name := range beside {
			own()
			delete(item, name)
		}
		for name, as := range names {
			own()
			item[name] = item[as]
			delete(item, as)
		}
	}
	for name, value := range item {
		of := d.within(t, name)
		if of == nil {
			continue // no field of the struct
		}
		if now := d.exact(of, value); now != value {
			own()
			item[name] = now
		}
	}
	if !copied {
		return m
	}
	return &types.AttributeValueMemberM{Value: item}
}

// revealed returns an error if an attribute is gone, and another one would be read in its place. To remove that one as
// well could destroy what another program has there.
func (d dialect) revealed(t reflect.Type, raw, merged types.AttributeValue, path string) *FieldError {
	before, wasMap := raw.(*types.AttributeValueMemberM)
	after, isMap := merged.(*types.AttributeValueMemberM)
	if t = base(t); !wasMap || !isMap || d.isCustom(t) || t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return nil
	}
	meaning := d.meaning(t)
	if meaning == nil {
		meaning = func(name string) (string, bool) { return name, true }
	}
	names, _ := spelled(before.Value, meaning)
	for _, name := range slices.Sorted(maps.Keys(after.Value)) { // the same one every time
		as, is := meaning(name)
		read := names.of(as)
		was, there := before.Value[read]
		if !is || !there {
			continue
		}
		at := "[" + as + "]"
		if t.Kind() == reflect.Struct {
			at = d.structureOf(t).byName[as].goName
		}
		at = joined(path, at)
		now, still := after.Value[read]
		if !still {
			return &FieldError{at, fmt.Errorf("it is removed, and the record has the attribute %q, which would be read in place of %q: "+
				"remove both by Unit.Update, or rename one", name, read)}
		}
		if found := d.revealed(d.within(t, as), was, now, at); found != nil {
			return found
		}
	}
	return nil
}
