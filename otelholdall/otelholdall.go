// Package otelholdall shows in OpenTelemetry what holdall does: a span for each unit with its
// acquiring, waiting, reading and committing, and for each request below them, and metrics of what
// is held, waited for and lost. One line switches it on:
//
//	units, err := unitofwork.Open(db, unitofwork.Config{
//		Locks: lockset.Config{Table: "locks"},
//		Trace: otelholdall.Trace(otelholdall.Options{}),
//	})
//
// A unit's span is a child of the span in the context that the caller gave to Do or Begin.
//
// Names and attributes follow the semantic conventions for databases and DynamoDB where they have
// one (db.system.name, db.operation.name, error.type), and begin with "holdall." elsewhere; the
// conventions: https://opentelemetry.io/docs/specs/semconv/db/dynamodb/. They name no record, no
// token, no ID and, unless [Options].Keys asks for it, no key.
package otelholdall

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdall/holdall/trace"
)

// scope names this package to tracers and meters.
const scope = "github.com/holdall/holdall/otelholdall"

// Options change what [Trace] does. The zero value of every field is its default.
type Options struct {
	// TracerProvider makes the spans, and MeterProvider the metrics. Default: the global ones.
	TracerProvider oteltrace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Keys has spans name lock keys, and say what errors say, which name keys and IDs, too; without it
	// they have the types of errors. Keys often contain names of customers or of accounts, so it is off by
	// default. Metrics never name any.
	Keys bool
	// NoRequests leaves out the spans of requests, for those whose DynamoDB client makes its own
	// (otelaws). The metrics of requests stay.
	NoRequests bool
	// NoCapacity does not ask DynamoDB for the capacity that requests consume, which takes some
	// processor time: its metric, and the attribute of spans, stay at zero unless somebody else asks.
	NoCapacity bool
}

// Trace returns hooks for unitofwork.Config.Trace, or for lockset.Config.Trace where there are no
// units. trace.Join combines them with others. Call it once, for all clients of a process: of several,
// only one would show how its heartbeats are. An instrument that cannot be made is reported to
// otel.Handle, and left out.
func Trace(o Options) *trace.Trace {
	tracers, meters := o.TracerProvider, o.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	s := &spans{tracer: tracers.Tracer(scope), keys: o.Keys}
	hooks := trace.Join(s.hooks(!o.NoRequests), newMetrics(meters.Meter(scope)).hooks())
	hooks.Capacity = !o.NoCapacity
	return hooks
}
