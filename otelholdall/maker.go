package otelholdall

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
)

// buckets of durations, in seconds: from a request's time to several leases.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60}

// maker makes the instruments that the list has.
type maker struct{ metric.Meter }

func (m maker) duration(of instruments.Metric) histogram {
	h, err := m.Float64Histogram(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description), metric.WithExplicitBucketBoundaries(buckets...))
	return histogram{made(h, err)}
}

func (m maker) now(of instruments.Metric) metric.Int64UpDownCounter {
	c, err := m.Int64UpDownCounter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
	made(c, err).Add(context.Background(), 0)
	return c
}

// count: a counter that is there before there is anything to count shows zero, and the first that
// is counted as a rise.
func (m maker) count(of instruments.Metric) counter {
	c, err := m.Int64Counter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
	made(c, err).Add(context.Background(), 0)
	return counter{c}
}

func (m maker) amount(of instruments.Metric) metric.Float64Counter {
	c, err := m.Float64Counter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
	return made(c, err)
}

// observed are those that show what is held when metrics are collected.
func (m maker) observed(read func(context.Context) current) {
	sum := func(of instruments.Metric) metric.Int64ObservableUpDownCounter {
		c, err := m.Int64ObservableUpDownCounter(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
		return made(c, err)
	}
	gauge := func(of instruments.Metric) metric.Float64ObservableGauge {
		g, err := m.Float64ObservableGauge(of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
		return made(g, err)
	}
	sets, keys := sum(instruments.SetsHeld), sum(instruments.KeysHeld)
	age, left := gauge(instruments.HeartbeatAge), gauge(instruments.HeartbeatLeft)
	_, err := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		now := read(ctx)
		o.ObserveInt64(sets, int64(now.sets))
		o.ObserveInt64(keys, int64(now.keys))
		o.ObserveFloat64(age, now.age.Seconds())
		if now.sets > 0 {
			o.ObserveFloat64(left, now.left.Seconds())
		}
		return nil
	}, sets, keys, age, left)
	made(left, err)
}

// made reports an instrument that could not be made; the meter returns one that does nothing.
func made[I any](instrument I, err error) I {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}
