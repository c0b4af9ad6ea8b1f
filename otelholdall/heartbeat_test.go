package otelholdall_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// gauge is what a gauge shows, if it shows anything.
func (b *bed) gauge(name string) (value float64, shown bool) {
	b.t.Helper()
	data, shown := b.collected(name).(metricdata.Gauge[float64])
	if !shown {
		return 0, false
	}
	require.Len(b.t, data.DataPoints, 1, name)
	return data.DataPoints[0].Value, true
}

// The worst of the sets that are held is what is shown, against its own deadline.
func TestHeartbeatsAgainstTheDeadline(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const margin = lease / 10
		shows := func(age, left time.Duration) {
			t.Helper()
			value, shown := b.gauge("holdall.heartbeat.age")
			require.True(t, shown)
			require.InDelta(t, age.Seconds(), value, 1e-9)
			value, shown = b.gauge("holdall.heartbeat.left")
			require.True(t, shown)
			require.InDelta(t, left.Seconds(), value, 1e-9)
		}
		nothing := func() {
			t.Helper()
			value, _ := b.gauge("holdall.heartbeat.age")
			require.Zero(t, value)
			_, shown := b.gauge("holdall.heartbeat.left")
			require.False(t, shown, "no set is held")
		}
		nothing()
		older, err := b.Locks().Acquire(t.Context(), []ordering.Key{"a"})
		require.NoError(t, err)
		time.Sleep(time.Second)
		newer, err := b.Locks().Acquire(t.Context(), []ordering.Key{"b"})
		require.NoError(t, err)
		shows(time.Second+2*rtt, lease-margin-time.Second-2*rtt)
		require.NoError(t, older.Release(t.Context()))
		shows(2*rtt, lease-margin-2*rtt)

		time.Sleep(lease / 2)
		rounds := b.value("holdall.heartbeat.rounds")
		require.Positive(t, rounds)
		age, _ := b.gauge("holdall.heartbeat.age")
		require.Less(t, age, (lease / 3).Seconds(), "a round was confirmed")
		left, _ := b.gauge("holdall.heartbeat.left")
		require.InDelta(t, (lease - margin).Seconds(), age+left, 1e-9, "which moved the deadline")
		b.net.Partition(true)
		time.Sleep(lease / 2)
		age, _ = b.gauge("holdall.heartbeat.age")
		require.Greater(t, age, (lease / 3).Seconds(), "none was")
		b.net.Partition(false)
		time.Sleep(lease / 3)
		age, _ = b.gauge("holdall.heartbeat.age")
		require.Less(t, age, (lease / 3).Seconds())
		failed := b.value("holdall.heartbeat.rounds", attribute.String("error.type", "context.deadlineExceededError"))
		require.Positive(t, failed)
		require.Greater(t, b.value("holdall.heartbeat.rounds"), rounds+failed)

		require.NoError(t, newer.Release(t.Context()))
		nothing()
	})
}

// A set that is neither released nor lost is held until its deadline: its commit is in doubt, and its
// process cannot tell more of it.
func TestASetWhoseCommitIsInDoubt(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		u, err := b.Begin(t.Context(), unitofwork.Work{Keys: []ordering.Key{"account:1"}})
		require.NoError(t, err)
		require.NoError(t, u.Replace(accounts.Of(account{ID: "1"})))
		require.Equal(t, 1.0, b.value("holdall.keys.held"))
		b.net.Crash()
		require.ErrorIs(t, u.Commit(t.Context()), unitofwork.ErrInDoubt)
		time.Sleep(lease)
		b.nothingHeld()
		age, _ := b.gauge("holdall.heartbeat.age")
		require.Zero(t, age)
		require.Equal(t, 1.0, b.value("holdall.hold.duration"))
		require.Equal(t, 1.0, b.value("holdall.unit.duration", attribute.String("holdall.outcome", "in doubt")))
	})
}

// Heartbeats of a set that outlives its caller's span are no part of the caller's trace: that would
// not end. Those of a unit are below the unit.
func TestWhereHeartbeatsAreShown(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		caller := b.under(func(ctx context.Context) {
			_, err := b.Locks().Acquire(ctx, []ordering.Key{"a"})
			require.NoError(t, err)
		})
		time.Sleep(lease / 2)
		b.net.Crash()
		time.Sleep(lease)
		beats := b.all("DynamoDB.BatchExecuteStatement")
		require.NotEmpty(t, beats)
		for _, span := range append(beats, b.one("holdall.lost")) {
			require.False(t, span.Parent.IsValid(), span.Name)
			require.NotEqual(t, caller.TraceID(), span.SpanContext.TraceID(), span.Name)
			require.Len(t, span.Links, 1, span.Name)
			require.Equal(t, caller.SpanID(), span.Links[0].SpanContext.SpanID(), span.Name)
		}
		require.Equal(t, codes.Error, b.one("holdall.lost").Status.Code)
	})
	inBed(t, func(t *testing.T, b *bed) {
		ctx, span := b.tracer.Start(t.Context(), "caller")
		set, err := b.Locks().Acquire(ctx, []ordering.Key{"a"})
		require.NoError(t, err)
		time.Sleep(lease / 2)
		require.NoError(t, set.Release(ctx))
		span.End()
		for _, beat := range b.all("DynamoDB.BatchExecuteStatement") {
			require.Equal(t, span.SpanContext().SpanID(), beat.Parent.SpanID())
		}
		require.NotEmpty(t, b.all("DynamoDB.BatchExecuteStatement"))
	})
	inBed(t, func(t *testing.T, b *bed) { // of a caller in another process, which goes on for all that is known
		far := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: oteltrace.TraceID{1}, SpanID: oteltrace.SpanID{1}, TraceFlags: oteltrace.FlagsSampled, Remote: true})
		set, err := b.Locks().Acquire(oteltrace.ContextWithRemoteSpanContext(t.Context(), far), []ordering.Key{"a"})
		require.NoError(t, err)
		time.Sleep(lease / 2)
		require.NoError(t, set.Release(t.Context()))
		for _, beat := range b.all("DynamoDB.BatchExecuteStatement") {
			require.Equal(t, far.TraceID(), beat.SpanContext.TraceID())
		}
	})
}
