package protocol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Sixty fine lockers of ten processes, with -short twenty of five, come and go below one key. Who wants all of it is
// not overtaken for ever, and who waits for nobody is told after a few requests.
func TestACoarseLockAmongManyFineOnes(t *testing.T) {
	eachHeavy(t, func(t *testing.T, b *bed) {
		processes, lockers := shorter(10, 5), shorter(60, 20)
		b.lease = max(b.lease, 20*time.Second) // the machine is busy
		drawn := seed(t)
		var taken atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		b.comeAndGo(ctx, &crowd, processes, lockers, drawn, &taken)
		time.Sleep(time.Second)
		var sent, unanswered, inQueue atomic.Int64
		o := b.owner("coarse", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(hooks.On(trace.Request, func(_ context.Context, r trace.Event) {
				sent.Add(1)
				if r.Answer == "no answer" {
					unanswered.Add(1)
				}
			}), hooks.On(trace.Joined, func(context.Context, trace.Event) { inQueue.CompareAndSwap(-1, taken.Load()) }))
		})
		newcomers, asked := int64(0), int64(0)
		for range shorter(3, 1) {
			sent.Store(0)
			unanswered.Store(0)
			set, err := o.locks.TryAcquire(t.Context(), []ordering.Key{"c"})
			if err == nil {
				b.free(set)
			} else if !errors.As(err, new(*lockset.HeldError)) {
				require.NoError(t, err)
			}
			if unanswered.Load() == 0 { // else it asked again what the busy engine did not answer
				asked = max(asked, sent.Load())
			}

			inQueue.Store(-1)
			set, err = o.locks.Acquire(t.Context(), []ordering.Key{"c"})
			require.NoError(t, err)
			if before := inQueue.Load(); before >= 0 { // else it had it at once
				newcomers = max(newcomers, taken.Load()-before)
			}
			b.free(set)
			time.Sleep(300 * time.Millisecond)
		}
		cancel()
		crowd.Wait()
		t.Logf("at most %d newcomers since it was in the queue, %d requests to be told; %d fine locks in all", newcomers, asked, taken.Load())
		// Those who stood in its queue before it, and those who had theirs before it joined and
		// were not counted yet.
		require.LessOrEqual(t, newcomers, int64(2*lockers))
		require.LessOrEqual(t, asked, int64(6))
		b.allFree()
	})
}

// comeAndGo has fine lockers of so many processes come and go until ctx ends; taken counts.
func (b *bed) comeAndGo(ctx context.Context, crowd *sync.WaitGroup, processes, lockers int, drawn uint64, taken *atomic.Int64) {
	for p := range processes {
		o := b.owner(fmt.Sprint("p", p), nil)
		var own sync.WaitGroup
		for n := range lockers / processes {
			r := rand.New(rand.NewPCG(drawn, uint64(p*lockers+n)))
			own.Go(func() {
				for ctx.Err() == nil {
					set, err := o.locks.Acquire(ctx, []ordering.Key{ordering.Key(fmt.Sprintf("c/%d-%d", p, n))})
					if err != nil {
						if ctx.Err() == nil {
							b.t.Error(err)
						}
						return
					}
					taken.Add(1)
					time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
					if err := set.Release(context.WithoutCancel(ctx)); err != nil {
						b.t.Error(err)
					}
				}
			})
		}
		crowd.Go(func() {
			own.Wait()
			if err := o.locks.Close(context.WithoutCancel(ctx)); err != nil { // some leave their queues in the background
				b.t.Error(err)
			}
		})
	}
}
