package protocol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// purse are records that units move counts between. Their sum is always the same.
type purse struct {
	b    *bed
	keys []ordering.Key
}

const eachHas = 100

func (b *bed) purse(keys ...ordering.Key) *purse {
	b.t.Helper()
	require.NoError(b.t, b.owner("founder", nil).units.Do(b.t.Context(), unitofwork.Work{}, b.add(eachHas, keys...)))
	return &purse{b, keys}
}

// move moves n from one record to another, when it has seen them all, in two parts, and that
// the sum is right: then it was told one state.
func (p *purse) move(n int64, from, to int) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		var refs []*unitofwork.Ref[counter]
		for _, k := range p.keys {
			refs = append(refs, p.b.counters().Ref(string(k)))
		}
		if err := getInTwoParts(ctx, u, records(refs)); err != nil {
			return err
		}
		sum := int64(0)
		for _, r := range refs {
			sum += r.T.N
		}
		if sum != eachHas*int64(len(refs)) {
			return fmt.Errorf("the function was told of %d in all", sum)
		}
		refs[from].T.N -= n
		refs[to].T.N += n
		return u.Put(refs[from], refs[to])
	}
}

// workFor is one of the ways to do it: without locks, naming keys or not, or under locks,
// fine or coarse.
func (p *purse) workFor(r *rand.Rand) unitofwork.Work {
	coarse := []ordering.Key{}
	for _, k := range p.keys {
		coarse = append(coarse, k.Root())
	}
	switch r.IntN(8) {
	case 0:
		return unitofwork.Work{Keys: p.keys}
	case 1:
		return unitofwork.Work{Keys: coarse}
	case 2:
		return unitofwork.Work{Keys: p.keys, Lock: true}
	case 3:
		return unitofwork.Work{Keys: coarse, Lock: true}
	default:
		return unitofwork.Work{}
	}
}

// Processes move counts between the same records, in every way at a time: nothing is lost,
// nothing done twice, and no function sees anything between.
func TestUnitsInEveryWayAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 4 // the machine is busy
		const processes, workers = 3, 2
		units := shorter(15, 6)
		drawn := seed(t)
		p := b.purse("x/1", "x/2", "y/1", "z")
		var moved [4]atomic.Int64
		var group errgroup.Group
		var all ways
		for o := range processes {
			name := fmt.Sprint("o", o)
			steady := b.owner(name, nil, all.traced)
			for w := range workers {
				r := rand.New(rand.NewPCG(drawn, uint64(o*workers+w)))
				group.Go(func() error {
					for i := range units {
						n, from := 1+r.Int64N(9), r.IntN(4)
						to := (from + 1 + r.IntN(3)) % 4
						client := steady
						if i%3 > 0 { // one that does not know yet how many there are, and tries without locks
							client = b.owner(name, nil, all.traced)
						}
						if err := client.units.Do(t.Context(), p.workFor(r), p.move(n, from, to)); err != nil {
							return err
						}
						moved[from].Add(-n)
						moved[to].Add(n)
						time.Sleep(time.Duration(r.Int64N(int64(300 * time.Millisecond)))) // else somebody always waits
					}
					return nil
				})
			}
		}
		require.NoError(t, group.Wait())
		for i, k := range p.keys {
			require.Equal(t, eachHas+moved[i].Load(), b.count(k), string(k))
		}
		free, locked := all.count("free committed"), all.count("locked committed")
		require.Equal(t, processes*workers*units, free+locked)
		t.Logf("%d committed without locks, %d under locks", free, locked)
		b.allFree()
	})
}

// Several processes do the same under the same IDs at a time, some without locks, some under
// locks, some by Begin: each is done once, and everybody is told that it is.
func TestIDsInEveryWayAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 4
		const processes = 3
		ids := shorter(8, 4)
		key := func(i int) ordering.Key { return ordering.Key(fmt.Sprintf("i/%d", i)) }
		work := func(i int) unitofwork.Work {
			return unitofwork.Work{ID: fmt.Sprint("id", i), Keys: []ordering.Key{key(i)}, Payload: []byte("one more")}
		}
		begun := func(o *owner, i int) error {
			u, err := o.units.Begin(t.Context(), work(i))
			if err == nil {
				if err = b.add(1, key(i))(u.Context(), u); err == nil {
					err = u.Commit(t.Context())
				}
			}
			if errors.Is(err, unitofwork.ErrAlreadyCommitted) {
				return nil
			}
			return err
		}
		var group errgroup.Group
		for n := range processes {
			o := b.owner(fmt.Sprint("o", n), nil)
			for i := range ids {
				group.Go(func() error {
					locked := work(i)
					locked.Lock = true
					switch (n + i) % 3 {
					case 0:
						return o.units.Do(t.Context(), work(i), b.add(1, key(i)))
					case 1:
						return o.units.Do(t.Context(), locked, b.add(1, key(i)))
					default:
						return begun(o, i)
					}
				})
			}
		}
		require.NoError(t, group.Wait())
		asker := b.owner("asker", nil)
		for i := range ids {
			require.EqualValues(t, 1, b.count(key(i)))
			outcome, err := asker.units.Outcome(t.Context(), work(i).ID)
			require.NoError(t, err)
			require.Equal(t, unitofwork.Committed, outcome)
			for _, lock := range []bool{false, true} {
				other := work(i)
				other.Lock, other.Payload = lock, []byte("two more")
				require.ErrorAs(t, asker.units.Do(t.Context(), other, b.add(2, key(i))), new(*unitofwork.IDError))
			}
		}
		b.allFree()
	})
}
