package otlp_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/holdall/holdall/integration/overhead"
	"github.com/holdall/holdall/otelholdall"
)

// BenchmarkOverheadOfHooks compares units that are watched to units that are not, by processor time.
//
//	make bench BENCH=OverheadOfHooks BENCH_TIME=600x
func BenchmarkOverheadOfHooks(b *testing.B) {
	metrics := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
	for _, c := range []struct {
		name    string
		options otelholdall.Options
	}{
		{"metrics", otelholdall.Options{MeterProvider: metrics, TracerProvider: noop.NewTracerProvider(), NoRequests: true}},
		{"metrics, and spans of which one in a thousand is kept", otelholdall.Options{MeterProvider: metrics, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.TraceIDRatioBased(0.001)))}},
		{"metrics, and all spans", otelholdall.Options{MeterProvider: metrics, TracerProvider: sdktrace.NewTracerProvider()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			db := overhead.Client()
			hooked, err := overhead.Transfer(db, otelholdall.Trace(c.options))
			require.NoError(b, err)
			unit, err := overhead.Transfer(db, nil)
			require.NoError(b, err)
			hand, err := overhead.ByHand(b.Context(), db)
			require.NoError(b, err)
			b.ResetTimer()
			share, err := overhead.Costs(b.Context(), b.N, hooked, unit, hand)
			require.NoError(b, err)
			share.Report(b)
		})
	}
}
