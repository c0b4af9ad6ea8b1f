package trace

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type pathKey struct{}

// named has every hook: each notes its caller's name, and those in whose context it is.
func named(name string, calls *[]string) *Trace {
	t := &Trace{}
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		hook, field := v.Type().Field(i), v.Field(i)
		if field.Kind() != reflect.Func { // Capacity
			continue
		}
		field.Set(reflect.MakeFunc(field.Type(), func(args []reflect.Value) []reflect.Value {
			ctx := args[0].Interface().(context.Context)
			path, _ := ctx.Value(pathKey{}).(string)
			*calls = append(*calls, name+" "+hook.Name+" "+path)
			if field.Type().NumOut() == 0 {
				return nil
			}
			return []reflect.Value{reflect.ValueOf(context.WithValue(ctx, pathKey{}, path+name))}
		}))
	}
	return t
}

// Both are called, a pair's second hooks in reverse order, in the context that the first
// have made.
func TestTwoTracesJoined(t *testing.T) {
	var calls []string
	joined := reflect.ValueOf(Join(named("a", &calls), named("b", &calls))).Elem()
	for i := range joined.NumField() {
		hook, field := joined.Type().Field(i), joined.Field(i)
		if field.Kind() != reflect.Func { // Capacity
			continue
		}
		require.False(t, field.IsNil(), hook.Name)
		calls = nil
		info := reflect.Zero(field.Type().In(1))
		out := field.Call([]reflect.Value{reflect.ValueOf(t.Context()), info})
		switch {
		case strings.HasSuffix(hook.Name, "Start"):
			require.Equal(t, []string{"a " + hook.Name + " ", "b " + hook.Name + " a"}, calls)
			calls = nil
			end := joined.FieldByName(strings.TrimSuffix(hook.Name, "Start") + "End")
			end.Call([]reflect.Value{out[0], reflect.Zero(end.Type().In(1))})
			require.Len(t, calls, 2)
			require.True(t, strings.HasPrefix(calls[0], "b ") && strings.HasSuffix(calls[0], " ab"), calls[0])
			require.True(t, strings.HasPrefix(calls[1], "a ") && strings.HasSuffix(calls[1], " ab"), calls[1])
		case !strings.HasSuffix(hook.Name, "End"):
			require.Equal(t, []string{"a " + hook.Name + " ", "b " + hook.Name + " "}, calls)
		}
	}
}

func TestATraceJoinedWithNone(t *testing.T) {
	var calls []string
	a := named("a", &calls)
	require.Same(t, a, Join(a, nil))
	require.Same(t, a, Join(nil, a))
	require.NotNil(t, Join(nil, nil))
	require.True(t, Join(&Trace{Capacity: true}, a).Capacity)
	require.True(t, Join(a, &Trace{Capacity: true}).Capacity)
	require.False(t, Join(a, a).Capacity)
	half := Join(a, &Trace{})
	half.Lost(t.Context(), Lost{})
	half.UnitEnd(half.UnitStart(t.Context(), UnitStart{}), UnitEnd{})
	half = Join(&Trace{}, a)
	half.Lost(t.Context(), Lost{})
	half.UnitEnd(half.UnitStart(t.Context(), UnitStart{}), UnitEnd{})
	require.Len(t, calls, 6)
}
