package trace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

type pathKey struct{}

// named notes its name at every call, and those in whose context it is called.
func named(name string, calls *[]string) *Trace {
	note := func(ctx context.Context, what string, e Event) string {
		path, _ := ctx.Value(pathKey{}).(string)
		*calls = append(*calls, name+" "+what+" "+string(e.Kind)+" "+path)
		return path
	}
	return &Trace{
		Start: func(ctx context.Context, e Event) context.Context {
			return context.WithValue(ctx, pathKey{}, note(ctx, "start", e)+name)
		},
		End: func(ctx context.Context, e Event) { note(ctx, "end", e) },
	}
}

// All are called: what has ended in reverse order, in the context that the first have made.
func TestTracesJoined(t *testing.T) {
	var calls []string
	joined := Join(named("a", &calls), nil, named("b", &calls), named("c", &calls))
	ctx := joined.Start(t.Context(), Event{Kind: Wait})
	joined.End(ctx, Event{Kind: Joined})
	joined.End(ctx, Event{Kind: Wait})
	require.Equal(t, []string{
		"a start Wait ", "b start Wait a", "c start Wait ab",
		"a end Joined abc", "b end Joined abc", "c end Joined abc",
		"c end Wait abc", "b end Wait abc", "a end Wait abc",
	}, calls)
}

func TestATraceJoinedWithNone(t *testing.T) {
	var calls []string
	a := named("a", &calls)
	require.Equal(t, &Trace{}, Join())
	require.Equal(t, &Trace{}, Join(nil, nil))
	for _, with := range []*Trace{nil, {}, {Start: func(context.Context, Event) context.Context { return nil }}} {
		for _, joined := range []*Trace{Join(a, with), Join(with, a)} {
			calls = nil
			ctx := joined.Start(t.Context(), Event{Kind: Unit})
			joined.End(ctx, Event{Kind: Unit})
			joined.End(ctx, Event{Kind: Lost})
			require.Len(t, calls, 3)
		}
	}
	require.True(t, Join(&Trace{Capacity: true}, a).Capacity)
	require.True(t, Join(a, &Trace{Capacity: true}).Capacity)
	require.False(t, Join(a, a).Capacity)
}

func TestWhatLasts(t *testing.T) {
	for _, k := range []Kind{Unit, Acquire, Wait, Function, Read, Commit, Request} {
		require.True(t, k.Lasts(), k)
	}
	for _, k := range []Kind{"", StartingOver, Progress, Unfinished, Recovered, Joined, HandedOver, Dropped, Raised, Buried, Cleaned, Renewed, Lost, Released} {
		require.False(t, k.Lasts(), k)
	}
}
