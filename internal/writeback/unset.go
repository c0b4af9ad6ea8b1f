package writeback

import (
	"fmt"
	"reflect"
)

// cannotSet reports whether the SDK panics when it decodes into an embedded field. Reflection sets
// nothing that is reached by an unexported name, except the exported fields of a struct.
func cannotSet(sf reflect.StructField, flattened bool) bool {
	switch t := sf.Type; {
	case sf.IsExported():
		return false
	case t.Kind() == reflect.Struct:
		return !flattened && (isTime(t) || reflect.PointerTo(t).NumMethod() > 0)
	case t.Kind() == reflect.Interface, t.Kind() == reflect.Func, t.Kind() == reflect.Chan: // nil can be stored and read
		return false
	}
	return true
}

// cannotSet returns the first field of a type that the SDK cannot set.
func (d dialect) cannotSet(t reflect.Type, path string, seen map[reflect.Type]bool) *FieldError {
	if t = base(t); seen[t] || isTime(t) || d.decodesItself(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		return d.cannotSet(t.Elem(), path+"[]", seen)
	case reflect.Struct:
		for _, f := range d.structureOf(t).fields {
			if f.unset != nil {
				return &FieldError{joined(path, f.unset.Name), fmt.Errorf("attributevalue cannot decode into an embedded %v, because its type is unexported; %s",
					f.unset.Type, howToSet(f.unset.Type))}
			}
			if found := d.cannotSet(f.typ, joined(path, f.goName), seen); found != nil {
				return found
			}
		}
	}
	return nil
}

func howToSet(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		return `embed the struct itself, export its type, or tag it "-" if it is not to be stored`
	}
	return `give the field a name, export its type, or tag it "-" if it is not to be stored`
}
