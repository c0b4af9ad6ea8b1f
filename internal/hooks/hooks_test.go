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
	var unset trace.Trace
	keys, failed := []ordering.Key{"a", "b"}, errors.New("no")
	for name, call := range map[string]func(context.Context){
		"UnitStart": func(ctx context.Context) {
			hooks.Start(ctx, unset.UnitStart, trace.UnitStart{Keys: keys, ID: "id", Optimistic: true})
		},
		"UnitEnd": func(ctx context.Context) {
			hooks.Tell(ctx, unset.UnitEnd, trace.UnitEnd{Unit: "u", Outcome: trace.Committed, Took: time.Second, Err: failed})
		},
		"AcquireStart": func(ctx context.Context) {
			hooks.Start(ctx, unset.AcquireStart, trace.AcquireStart{Unit: "u", Keys: keys})
		},
		"WaitStart": func(ctx context.Context) {
			hooks.Start(ctx, unset.WaitStart, trace.WaitStart{Unit: "u", Key: "a", Held: keys[:1]})
		},
		"RequestStart": func(ctx context.Context) {
			hooks.Start(ctx, unset.RequestStart, trace.RequestStart{Op: "GetItem", N: 1})
		},
		"Renewed": func(ctx context.Context) {
			hooks.Tell(ctx, unset.Renewed, trace.Renewed{Unit: "u", Keys: 2, Confirmed: time.Now(), Err: failed})
		},
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() { call(context.Background()) }), name)
	}
}

type mark struct{}

// The context of what belongs to a hook is that which it returns, or else the one that it was given.
func TestTheContextOfAPair(t *testing.T) {
	within := context.WithValue(t.Context(), mark{}, true)
	for _, c := range []struct {
		hook func(context.Context, int) context.Context
		want context.Context
	}{
		{nil, t.Context()},
		{func(context.Context, int) context.Context { return nil }, t.Context()},
		{func(context.Context, int) context.Context { return within }, within},
	} {
		require.Equal(t, c.want, hooks.Start(t.Context(), c.hook, 1))
	}
	got := 0
	hooks.Tell(t.Context(), func(_ context.Context, n int) { got = n }, 7)
	require.Equal(t, 7, got)
}
