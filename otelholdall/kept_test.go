package otelholdall

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdall/holdall/trace"
)

// A process that finishes the units of others for years keeps nothing of them.
func TestNothingIsKeptOfUnitsThatWereFinished(t *testing.T) {
	s, m := &spans{tracer: tracenoop.NewTracerProvider().Tracer("")}, newMetrics(noop.NewMeterProvider().Meter(""))
	hooks := trace.Join(s.hooks(true), m.hooks())
	ctx := context.Background()
	for n := range 1000 {
		unit := fmt.Sprint(n)
		hooks.End(ctx, trace.Event{Kind: trace.Progress, Unit: unit, Phase: "applying", Done: 1, Of: 2})
		if n%2 == 0 {
			hooks.End(ctx, trace.Event{Kind: trace.Recovered, Unit: unit, Outcome: "committed"})
		} else {
			hooks.End(ctx, trace.Event{Kind: trace.Unfinished, Unit: unit, Err: context.Canceled})
		}
	}
	s.phases.Range(func(unit, _ any) bool {
		t.Fatalf("the phase of unit %v is kept", unit)
		return false
	})
	require.Empty(t, m.open)
}
