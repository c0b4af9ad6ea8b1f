package lockset_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Many sets of one key cost about as many renewals as one set of many keys.
func TestSetsOfAProcessRenewTogether(t *testing.T) {
	const sets, leases = 200, 5
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		for n := range sets {
			b.take(o, ordering.Key(fmt.Sprint("k", n)))
			time.Sleep(lease / 100) // whenever they come
		}
		o.requests()
		time.Sleep(leases * lease)
		shared := o.requests()["BatchExecuteStatement"]
		t.Logf("%d renewals in %d leases", shared, leases)
		require.LessOrEqual(t, shared, 3*leases*12, "for 8 that would be full")
	})
}

// What one of them has lost is lost for its set alone.
func TestALossAmongSetsThatRenewTogether(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, thief := b.owner("o", nil), b.owner("thief", nil)
		sets := make([]*lockset.Set, 5)
		for n := range sets {
			sets[n] = b.take(o, ordering.Key(fmt.Sprint("k", n)))
		}
		stolen := b.seize("k0", thief)
		o.requests()
		time.Sleep(lease/3 + 2*rtt)
		require.Equal(t, 1, o.requests()["BatchExecuteStatement"])
		require.ErrorAs(t, context.Cause(sets[0].Context()), new(*heartbeat.LostError))
		b.free(stolen)
		time.Sleep(3 * lease)
		for _, set := range sets[1:] {
			require.NoError(t, set.Context().Err())
			b.free(set)
		}
		b.allFree()
	})
}

// A request without an answer is lost for all of its sets, and they ask again in time, each
// when it likes.
func TestSetsThatRenewTogetherAskAgain(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"no answer":          faults.LoseAnswer(faults.Hang),
		"not received":       faults.LoseRequest(faults.Reset),
		"refused as a whole": faults.Throttle(faults.Provisioned),
		"one is refused":     faults.DenyStatements(1),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var failed atomic.Bool
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.Op == "BatchExecuteStatement" && !failed.Swap(true) {
						return fault
					}
					return faults.Pass()
				})
				var sets []*lockset.Set
				for n := range 5 {
					sets = append(sets, b.take(o, ordering.Key(fmt.Sprint("k", n))))
				}
				time.Sleep(4 * lease)
				require.True(t, failed.Load())
				for _, set := range sets {
					require.NoError(t, set.Context().Err())
					b.free(set)
				}
			})
		})
	}
}

// Every round is told, with how long the set still has: first confirmed, then not.
func TestRoundsAreTold(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		rounds, told := make(chan trace.Event, 100), make(chan time.Time, 100)
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Renewed, func(_ context.Context, r trace.Event) { rounds <- r; told <- time.Now() }))
		})
		left := lease - o.Config().Margin
		set := b.take(o, "a", "b")
		time.Sleep(3*lease - lease/5) // no round is under way
		require.GreaterOrEqual(t, len(rounds), 7)
		var last trace.Event
		for range len(rounds) {
			last = <-rounds
			require.WithinRange(t, last.Confirmed, (<-told).Add(-2*rtt), time.Now())
			require.Equal(t, trace.Event{Kind: trace.Renewed, Unit: set.Nonce(), Count: 2, Confirmed: last.Confirmed, Deadline: last.Confirmed.Add(left)}, last)
		}
		require.Equal(t, set.Deadline(), last.Deadline)

		o.net.Partition(true)
		<-set.Context().Done()
		require.Equal(t, last.Deadline, time.Now())
		require.NotEmpty(t, rounds)
		for range len(rounds) {
			r := <-rounds
			require.Error(t, r.Err)
			require.Equal(t, trace.Event{Kind: trace.Renewed, Unit: set.Nonce(), Count: 2, Failed: 2, Err: r.Err, Confirmed: last.Confirmed, Deadline: last.Deadline}, r)
		}
		o.net.Partition(false)
		_ = set.Release(t.Context())
	})
}
