package unitofwork_test

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

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Write skew: two units read both records of a pair, and each writes another one. The pair begins
// with one and one, and a unit takes one only if one is left then: two that do not see each other
// leave nothing.

// pair names two accounts of different families.
func pair(n int) [2]*unitofwork.Ref[account] {
	return [2]*unitofwork.Ref[account]{accounts.Ref(fmt.Sprint("left", n), "a"), accounts.Ref(fmt.Sprint("right", n), "a")}
}

// putPair writes a pair whose lock rows are there, as a commit sees most rows.
func (b *bed) putPair(c *client, n int) {
	b.t.Helper()
	for _, r := range pair(n) {
		r.T.Balance = 1
		b.put("accounts", r.T)
	}
	set, err := c.locks.Acquire(b.t.Context(), keysOfPair(n))
	require.NoError(b.t, err)
	require.NoError(b.t, set.Release(b.t.Context()))
}

func keysOfPair(n int) (keys []ordering.Key) {
	for _, r := range pair(n) {
		keys = append(keys, accountKey(r.T.Customer, r.T.ID))
	}
	return keys
}

// leftOf is what both records of a pair have.
func (b *bed) leftOf(n int) (sum int64) {
	for _, r := range pair(n) {
		sum += b.account(r.T.Customer).Balance
	}
	return sum
}

// takeOne takes one from one record of a pair, if one is left then.
func takeOne(n, from int, apart bool, thinks time.Duration) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		both := pair(n)
		reads := [][]unitofwork.Record{{both[0], both[1]}}
		if apart {
			reads = [][]unitofwork.Record{{both[1-from]}, {both[from]}}
		}
		for _, some := range reads {
			if err := u.Get(ctx, some...); err != nil {
				return err
			}
			time.Sleep(thinks)
		}
		if both[0].T.Balance+both[1].T.Balance < 2 || both[from].T.Balance < 1 {
			return nil
		}
		both[from].T.Balance--
		return u.Put(both[from])
	}
}

// Units of two processes take from pair after pair, without locks and under them, alone and in
// groups, while requests and answers are lost and come late: of each pair one is left.
func TestNoWriteSkewWhateverGoesAstray(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 3
	}
	for n := range seeds {
		seed := uint64(time.Now().UnixNano())
		if n < seeds/2 {
			seed = uint64(n)
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) { b.takeFromPairs(seed) })
		})
	}
}

func (b *bed) takeFromPairs(seed uint64) {
	const pairs = 12
	calm := b.client("calm", nil)
	for n := range pairs {
		b.putPair(calm, n)
	}
	began := time.Now()
	var all sync.WaitGroup
	for p := range 2 {
		c := b.client(fmt.Sprint("c", p), losing(seed+uint64(p)))
		for g := range 4 {
			r := rand.New(rand.NewPCG(seed, uint64(10*p+g)))
			all.Go(func() {
				for n := range pairs {
					together := time.Duration(n) * time.Second
					time.Sleep(together + time.Duration(r.Int64N(int64(3*rtt))) - time.Since(began))
					work := unitofwork.Work{Alone: r.IntN(4) == 0}
					if r.IntN(2) == 0 {
						work.ID = fmt.Sprint(p, g, n)
					}
					switch r.IntN(6) {
					case 0:
						work.Lock, work.Keys = true, keysOfPair(n)
					case 1:
						work.Keys = keysOfPair(n)[:1]
					}
					take := takeOne(n, r.IntN(2), r.IntN(2) == 0, time.Duration(r.Int64N(int64(2*rtt))))
					for told := errors.New("not tried"); told != nil; time.Sleep(rtt) {
						told = c.freely(b.t.Context(), work, take)
					}
				}
			})
		}
	}
	all.Wait()
	time.Sleep(time.Minute) // what is late has arrived
	for n := range pairs {
		require.EqualValues(b.t, 1, b.leftOf(n), "pair %d", n)
	}
}

// A rival takes from the pair before each request of a unit, which is then lost, or its answer, or
// arrives late, or twice, or with which the unit's process dies: one is left.
func TestNoWriteSkewAtAnyRequest(t *testing.T) {
	for way, work := range map[string]unitofwork.Work{
		"without locks": {}, "a key named": {Keys: keysOfPair(0)[:1]}, "under locks": {Lock: true, Keys: keysOfPair(0)},
	} {
		work.ID = "taken"
		for name, fault := range map[string]faults.Fault{
			"nothing": faults.Pass(), "answer lost": faults.LoseAnswer(faults.Reset), "request lost": faults.LoseRequest(faults.Reset),
			"answer never comes": faults.LoseAnswer(faults.Hang), "late": faults.DeliverLate(2*lease, faults.Reset), "twice": faults.Duplicate(2 * lease),
			"dies before": faults.CrashHere(false), "dies after": faults.CrashHere(true),
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				more := true
				for n := int64(1); more && !t.Failed(); n++ {
					inBed(t, func(t *testing.T, b *bed) { more = b.rivalAt(n, work, fault) })
				}
			})
		}
	}
}

// rivalAt reports whether the unit has sent an n-th request.
func (b *bed) rivalAt(n int64, work unitofwork.Work, fault faults.Fault) bool {
	rival := b.client("rival", nil)
	b.putPair(rival, 0)
	var sent atomic.Int64
	told := make(chan error, 1)
	c := b.client("c", func(faults.Call) faults.Fault {
		if sent.Add(1) != n {
			return faults.Pass()
		}
		go func() { told <- rival.freely(b.t.Context(), unitofwork.Work{}, takeOne(0, 1, true, 0)) }()
		time.Sleep(20 * rtt) // it is committed, or waits for the unit's locks
		return fault
	})
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.untilDone(ctx, work)
	}()
	select {
	case <-done:
	case <-c.net.Dead():
		b.client("heir", nil).untilDone(ctx, work)
	}
	if sent.Load() < n {
		return false
	}
	require.NoError(b.t, <-told)
	time.Sleep(3 * lease) // what is late has arrived
	require.EqualValues(b.t, 1, b.leftOf(0), "a rival at request %d", n)
	cancel()
	<-done
	return true
}

// untilDone has a unit take from the first pair, again and again until it has or ctx ends.
func (c *client) untilDone(ctx context.Context, work unitofwork.Work) {
	for c.freely(ctx, work, takeOne(0, 0, true, 0)) != nil && ctx.Err() == nil {
		time.Sleep(rtt)
	}
}
