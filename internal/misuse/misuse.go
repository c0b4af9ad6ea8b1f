// Package misuse stops a program at a call that no right program makes: with a nil
// function or table, say. The panic names the package, the function and the mistake,
// before anything is done. What may be wrong in data is an error instead, and not this
// package's business.
package misuse

import "reflect"

// Of stops the program: call, a function of a package such as "lockset", was made by
// mistake.
func Of(pkg, call, mistake string) { panic(pkg + ": " + call + ": " + mistake) }

// Nil reports whether an interface holds nothing, or the nil pointer of some type.
func Nil(v any) bool {
	is := reflect.ValueOf(v)
	return !is.IsValid() || is.Kind() == reflect.Pointer && is.IsNil()
}
