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

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Sixty fine lockers of ten processes come and go below one key. Who wants all of it is
// not overtaken for ever, and who waits for nobody is told after a few requests.
func TestACoarseLockAmongManyFineOnes(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		const processes, lockers, most = 10, 60, 64
		b.lease = max(b.lease, 20*time.Second) // the machine is busy
		drawn := seed(t)
		var taken atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var crowd sync.WaitGroup
		for p := range processes {
			o := b.owner(fmt.Sprint("p", p), nil)
			for n := range lockers / processes {
				r := rand.New(rand.NewPCG(drawn, uint64(p*lockers+n)))
				crowd.Go(func() {
					for ctx.Err() == nil {
						set, err := o.locks.Acquire(ctx, []ordering.Key{ordering.Key(fmt.Sprintf("c/%d-%d", p, n))})
						if err != nil {
							if ctx.Err() == nil {
								t.Error(err)
							}
							return
						}
						taken.Add(1)
						time.Sleep(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
						if err := set.Release(context.WithoutCancel(ctx)); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		time.Sleep(time.Second)
		var sent, unanswered atomic.Int64
		o := b.owner("coarse", nil, func(c *lockset.Config) {
			c.Trace = &trace.Trace{RequestEnd: func(_ context.Context, r trace.RequestEnd) {
				sent.Add(1)
				if r.Kind == "no answer" {
					unanswered.Add(1)
				}
			}}
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

			before := taken.Load()
			set, err = o.locks.Acquire(t.Context(), []ordering.Key{"c"})
			require.NoError(t, err)
			newcomers = max(newcomers, taken.Load()-before)
			b.free(set)
			time.Sleep(300 * time.Millisecond)
		}
		cancel()
		crowd.Wait()
		t.Logf("at most %d newcomers, %d requests to be told; %d fine locks in all", newcomers, asked, taken.Load())
		require.LessOrEqual(t, newcomers, int64(most))
		require.LessOrEqual(t, asked, int64(6))
		b.allFree()
	})
}
