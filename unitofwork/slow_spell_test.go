package unitofwork_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

var spells = flag.Uint64("spells", 2, "how many seeds of each service that meets a slow spell")

// spell is a service whose requests to DynamoDB are slow for a while. Each of its calls is a
// process of its own, that is killed when its time is over.
type spell struct {
	every  time.Duration // from one call to the next
	life   time.Duration // of a call
	lease  time.Duration
	slow   time.Duration // how long the spell lasts
	within time.Duration // how long it goes on afterwards
}

// served returns the share of calls that were served, of those from 30 s after the spell on.
func (s spell) served(t *testing.T, seed uint64) (share float64) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 34))
		zero, began := time.Date(2033, 3, 3, 3, 3, 3, 3, time.UTC), time.Now()
		var latency atomic.Int64
		latency.Store(int64(rtt))
		b := &bed{t: t, db: memdynamo.New(memdynamo.Config{
			Latency: func() time.Duration { return time.Duration(latency.Load()) },
			Date:    func() time.Time { return zero.Add(time.Since(began)) },
		})}
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks"}))
		b.createTable("accounts", "Customer", "ID")
		b.put("accounts", account{Customer: "1", ID: "a"})

		begins, ends := 5*time.Second, 5*time.Second+s.slow
		time.AfterFunc(begins, func() { latency.Store(int64(500 * time.Millisecond)) })
		time.AfterFunc(ends, func() { latency.Store(int64(rtt)) })
		var counted, served atomic.Int64
		var calls sync.WaitGroup
		for n := 0; time.Since(began) < ends+30*time.Second+s.within; n++ {
			time.Sleep(time.Duration(float64(s.every) * (0.5 + r.Float64())))
			wrong := time.Duration(r.Int64N(int64(48*time.Hour))) - 24*time.Hour
			counts := time.Since(began) >= ends+30*time.Second
			calls.Go(func() {
				ok := s.call(t, b, fmt.Sprintf("%d.%d", seed, n), wrong)
				if counts {
					counted.Add(1)
				}
				if counts && ok {
					served.Add(1)
				}
			})
		}
		calls.Wait()
		share = float64(served.Load()) / float64(counted.Load())
	})
	return share
}

// call is one call. It reports whether it was served in its life.
func (s spell) call(t *testing.T, b *bed, name string, wrong time.Duration) bool {
	net := faults.Wrap(b.db, faults.Config{Who: name})
	units, err := unitofwork.Open(net, unitofwork.Config{Locks: lockset.Config{
		Table: "locks", Owner: name, Lease: s.lease, Rand: faults.Nonces(name), Now: func() time.Time { return time.Now().Add(wrong) },
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	killed := time.AfterFunc(s.life, func() { net.Crash(); cancel() })
	err = units.Do(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
		a := accounts.Ref("1", "a")
		if err := u.Get(ctx, a); err != nil {
			return err
		}
		a.T.Balance++
		return u.Put(a)
	})
	return killed.Stop() && err == nil
}

// A service recovers from a spell of slow requests, although its callers are killed while they
// wait and while they hold: nothing is configured, and no key is named.
func TestAServiceRecoversFromASlowSpell(t *testing.T) {
	for name, s := range map[string]spell{
		"ten calls a second":         {100 * time.Millisecond, 3 * time.Second, 20 * time.Second, 10 * time.Second, 9 * time.Minute},
		"two calls a second":         {500 * time.Millisecond, 3 * time.Second, 20 * time.Second, 10 * time.Second, 9 * time.Minute},
		"a life of 10 s":             {100 * time.Millisecond, 10 * time.Second, 20 * time.Second, 30 * time.Second, 9 * time.Minute},
		"a lease of 5 s, 15 s lives": {100 * time.Millisecond, 15 * time.Second, 5 * time.Second, 30 * time.Second, 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeds, good := *spells, uint64(0)
			if testing.Short() {
				seeds, s.within = 1, 20*time.Second
			}
			for seed := range seeds {
				share := s.served(t, seed)
				t.Logf("seed %d: %.3f", seed, share)
				require.GreaterOrEqual(t, share, 0.85, "seed %d", seed)
				if share >= 0.95 {
					good++
				}
			}
			require.GreaterOrEqual(t, good, seeds*18/20, "of %d seeds", seeds)
		})
	}
}
