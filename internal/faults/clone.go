package faults

import "reflect"

// clone copies an input struct all the way down: what is delivered late must be
// what the caller passed then, whatever it does with its maps now. And the SDK
// writes into the struct it is given.
func clone[T any](in *T) *T {
	if in == nil {
		return nil
	}
	return deep(reflect.ValueOf(in)).Interface().(*T)
}

func deep(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if v.IsNil() {
			return v
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(deep(v.Elem()))
		return p
	case reflect.Interface:
		return deep(v.Elem())
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		for i := range v.NumField() {
			if f := c.Field(i); f.CanSet() { // unexported fields are empty markers
				f.Set(deep(v.Field(i)))
			}
		}
		return c
	case reflect.Slice:
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(deep(v.Index(i)))
		}
		return c
	case reflect.Map:
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(it.Key(), deep(it.Value()))
		}
		return c
	default:
		return v
	}
}
