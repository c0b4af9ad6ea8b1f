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

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/unitofwork"
)

// Units that move between records, add without reading, and only look at some of what they have read, beside
// programs without locks that take their time between reading and writing: nothing is lost, and every
// change is counted.
func TestManyRecordsBesideProgramsWithoutLocks(t *testing.T) {
	for n := range 20 {
		seed := uint64(time.Now().UnixNano())
		if n < 10 {
			seed = uint64(n)
		}
		if testing.Short() && n%7 > 0 {
			continue
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			inTallies(t, func(t *testing.T, b *bed) { manyRecords(t, b, seed) })
		})
	}
}

func manyRecords(t *testing.T, b *bed, seed uint64) {
	ids := []string{"a", "b", "c", "d"}
	for _, id := range ids {
		b.put("tallies", tally{ID: id, N: 100, Version: 1})
	}
	var mu sync.Mutex
	added := int64(0)             // in all
	changes := map[string]int64{} // of each
	note := func(n int64, changed ...string) {
		mu.Lock()
		defer mu.Unlock()
		added += n
		for _, id := range changed {
			changes[id]++
		}
	}
	var all sync.WaitGroup
	for p := range 2 {
		c := b.client(fmt.Sprint("c", p), losing(seed+uint64(p)))
		for g := range 4 {
			r := rand.New(rand.NewPCG(seed, uint64(10*p+g)))
			all.Go(func() {
				for i := range 12 {
					f, n, changed := anyUnit(r, ids)
					work := unitofwork.Work{ID: fmt.Sprint(p, g, i), Alone: r.IntN(3) == 0}
					if r.IntN(3) == 0 {
						work.Lock = true
						for _, id := range ids {
							work.Keys = append(work.Keys, tallyKey(id))
						}
					}
					for told := errors.New("not tried"); told != nil; time.Sleep(50 * time.Millisecond) {
						told = c.freely(t.Context(), work, f)
					}
					note(n, changed...)
				}
			})
		}
	}
	for g := range 2 {
		r := rand.New(rand.NewPCG(seed, uint64(100+g)))
		all.Go(func() {
			for range 40 {
				id := ids[r.IntN(len(ids))]
				write := b.readOld(id, 1)
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
				if write() == nil {
					note(1, id)
				}
			}
		})
	}
	all.Wait()
	time.Sleep(time.Minute) // what is late has arrived
	sum := int64(0)
	for _, id := range ids {
		r, _ := b.tally(id)
		sum += r.N
		require.Equal(t, 1+changes[id], r.Version, "%s: each change was counted", id)
	}
	require.Equal(t, 400+added, sum)
}

// anyUnit is a unit, what it adds in all, and which records it writes.
func anyUnit(r *rand.Rand, ids []string) (f func(context.Context, *unitofwork.Unit) error, adds int64, changed []string) {
	of := r.Perm(len(ids))
	one, other := ids[of[0]], ids[of[1]]
	switch r.IntN(3) {
	case 0: // it reads and writes both, one after the other
		return func(ctx context.Context, u *unitofwork.Unit) error {
			from, to := tallies.Ref(one), tallies.Ref(other)
			if err := u.Get(ctx, from); err != nil {
				return err
			}
			if err := u.Get(ctx, to); err != nil {
				return err
			}
			from.T.N--
			to.T.N++
			return u.Put(from, to)
		}, 0, []string{one, other}
	case 1: // it has read neither
		add := unitofwork.Expression{Update: "ADD N :one", Values: map[string]any{":one": 1}}
		return func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(u.Update(tallies.Ref(one), add), u.Update(tallies.Ref(other), add))
		}, 2, []string{one, other}
	default: // it only looks at one of them
		return func(ctx context.Context, u *unitofwork.Unit) error {
			looked, written := tallies.Ref(one), tallies.Ref(other)
			if err := u.Get(ctx, looked, written); err != nil {
				return err
			}
			written.T.N++
			return u.Put(written)
		}, 1, []string{other}
	}
}

// losing has requests, and answers, lost now and then.
func losing(seed uint64) faults.Script {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 1))
	return func(faults.Call) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch r.IntN(12) {
		case 0:
			return faults.LoseAnswer(faults.Reset)
		case 1:
			return faults.LoseRequest(faults.Reset)
		case 2:
			return faults.DeliverLate(time.Duration(r.IntN(3000))*time.Millisecond, faults.Reset)
		case 3:
			return faults.Duplicate(time.Duration(r.IntN(1000)) * time.Millisecond)
		}
		return faults.Pass()
	}
}
