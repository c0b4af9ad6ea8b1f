package hooks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Hooks that nobody has set cost no memory, also where what they would be told has slices.
func TestUnsetHooksAllocateNothing(t *testing.T) {
	unset, failed := &trace.Trace{}, errors.New("no")
	keys := []ordering.Key{"a", "b"}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		ctx := hooks.Start(t.Context(), unset, trace.Event{Kind: trace.Wait, Unit: "u", Key: "a", Held: keys[:1]})
		hooks.Tell(ctx, unset, trace.Event{Kind: trace.Renewed, Unit: "u", Count: 2, Confirmed: time.Now(), Err: failed})
	}))
}

type mark struct{}

// The context of what begins is that which the hook returns, or else the one that it was given.
func TestTheContextOfWhatBegins(t *testing.T) {
	within := context.WithValue(t.Context(), mark{}, true)
	for _, c := range []struct {
		start func(context.Context, trace.Event) context.Context
		want  context.Context
	}{
		{nil, t.Context()},
		{func(context.Context, trace.Event) context.Context { return nil }, t.Context()},
		{func(context.Context, trace.Event) context.Context { return within }, within},
	} {
		require.Equal(t, c.want, hooks.Start(t.Context(), &trace.Trace{Start: c.start}, trace.Event{}))
	}
}

// Who hears of one kind hears of no other.
func TestOneKindAlone(t *testing.T) {
	heard := ""
	both := trace.Join(
		hooks.OnStart(trace.Wait, func(ctx context.Context, e trace.Event) context.Context {
			heard += "start " + e.Unit + " "
			return context.WithValue(ctx, mark{}, true)
		}),
		hooks.On(trace.Lost, func(_ context.Context, e trace.Event) { heard += "lost " + e.Unit + " " }),
	)
	require.Equal(t, true, hooks.Start(t.Context(), both, trace.Event{Kind: trace.Wait, Unit: "a"}).Value(mark{}))
	require.Nil(t, hooks.Start(t.Context(), both, trace.Event{Kind: trace.Unit, Unit: "b"}).Value(mark{}))
	hooks.Tell(t.Context(), both, trace.Event{Kind: trace.Wait, Unit: "c"})
	hooks.Tell(t.Context(), both, trace.Event{Kind: trace.Lost, Unit: "d"})
	require.Equal(t, "start a lost d ", heard)
}
