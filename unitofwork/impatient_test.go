package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// impatience is processes of two goroutines each whose units want one account again and again.
type impatience struct {
	processes int
	deadline  time.Duration // at most, and uniform; 0 if they wait as long as it takes
	lock      bool          // Work.Lock
	seed      uint64
}

// in returns how many units were committed in a round, and the latest return after a deadline.
func (i impatience) in(b *bed) (committed int, late time.Duration) {
	b.t.Helper()
	takes, round := 10*time.Millisecond, 4*time.Second
	if testing.Short() {
		round = time.Second
	}
	work := unitofwork.Work{}
	if i.lock {
		work = unitofwork.Work{Lock: true, Keys: []ordering.Key{accountKey("1", "a")}}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	all := 0
	began := time.Now()
	for p := range i.processes {
		c := b.client(fmt.Sprint("process", p), nil)
		for g := range 2 {
			random := rand.New(rand.NewPCG(i.seed, uint64(2*p+g)))
			group.Go(func() {
				for time.Since(began) < round {
					ctx, cancel := context.WithCancel(b.t.Context())
					end := began.Add(time.Hour)
					if i.deadline > 0 {
						end = time.Now().Add(time.Duration(random.Int64N(int64(i.deadline))))
						ctx, cancel = context.WithDeadline(ctx, end)
					}
					err := c.Client.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
						a := accounts.Ref("1", "a")
						if err := u.Get(ctx, a); err != nil {
							return err
						}
						time.Sleep(takes)
						a.T.Balance++
						return u.Put(a)
					})
					cancel()
					mu.Lock()
					late = max(late, time.Since(end))
					if err == nil {
						if all++; time.Since(began) < round {
							committed++
						}
					}
					mu.Unlock()
					if err != nil && !errors.As(err, new(*lockset.HeldError)) && !errors.Is(err, context.DeadlineExceeded) {
						b.t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	time.Sleep(lease) // places that were not given up at once
	b.t.Logf("%+v: %d committed, at most %v late", i, committed, late)
	require.Equal(b.t, int64(100+all), b.balances()[0])
	return committed, late
}

// However little time the callers of a hot account have, as many units are committed as if they had
// all the time in the world, or nearly.
func TestImpatientUnitsAreCommittedAsOftenAsPatientOnes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, lock := range []bool{true, false} {
		for _, processes := range []int{3, 10, 14, 20} {
			if testing.Short() && processes != 20 {
				continue
			}
			var patient int
			inBed(t, func(t *testing.T, b *bed) { patient, _ = impatience{processes: processes, lock: lock}.in(b) })
			for _, deadline := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, time.Second} {
				if testing.Short() && deadline > 100*time.Millisecond {
					continue
				}
				t.Run(fmt.Sprintf("lock %t, %d processes, %v", lock, processes, deadline), func(t *testing.T) {
					rounds, least, all := uint64(6), 0.8, 0 // one has a tenth more or less than another
					if testing.Short() {                    // a queue that collapses leaves a tenth
						rounds, least = 1, 0.5
					}
					for n := range rounds {
						inBed(t, func(t *testing.T, b *bed) {
							committed, late := impatience{processes, deadline, lock, seed + n}.in(b)
							all += committed
							require.LessOrEqual(t, late, 100*time.Millisecond)
						})
					}
					require.GreaterOrEqual(t, float64(all)/float64(rounds), least*float64(patient), "of %d", patient)
				})
			}
		}
	}
}
