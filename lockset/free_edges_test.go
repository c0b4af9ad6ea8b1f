package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// A unit that lets go of its key itself, between the operator's look and the write, was not robbed: Free says so.
func TestFreeNowSaysThatItTookWhatWasGivenBack(t *testing.T) {
	for _, now := range []bool{false, true} {
		t.Run(fmt.Sprint("now ", now), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), "a")
				once := false
				i, _ := b.operator(func(c faults.Call) faults.Fault {
					_, up := c.Input.(*dynamodb.UpdateItemInput)
					_, tx := c.Input.(*dynamodb.TransactWriteItemsInput)
					if (up || tx) && !once {
						once = true
						require.NoError(t, set.Release(context.Background()))
					}
					return faults.Pass()
				})
				err := i.Free(t.Context(), "a", set.Nonce(), inspect.Freeing{Now: now})
				require.True(t, once)
				require.ErrorAs(t, err, new(*inspect.FreeError))
			})
		})
	}
}

// What has happened to the rows between the operator's look and the write refuses the write: the unit is
// prepared by now, or a later token has been there.
func TestFreeFindsTheRowsAsTheyWereSeen(t *testing.T) {
	const token = 4e15 // of the year 2096
	for name, c := range map[string]struct {
		row      ordering.Key
		change   string
		to       types.AttributeValue
		now      bool
		prepared bool
	}{
		"prepared":        {"c/1", "SET pending = :to", s("units"), false, true},
		"prepared, now":   {"c/1", "SET pending = :to", s("units"), true, true},
		"its fence":       {"c/1", "SET fence = :to", n(token), false, false},
		"the fence above": {"c", "SET fence = :to", n(token), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), "c/1")
				changed := false
				i, _ := b.operator(func(call faults.Call) faults.Fault {
					if (call.Op == "UpdateItem" || call.Op == "TransactWriteItems") && !changed {
						changed = true
						b.change(c.row, c.change, map[string]types.AttributeValue{":to": c.to})
					}
					return faults.Pass()
				})
				err := i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{Now: c.now})
				require.True(t, changed)
				if c.prepared {
					require.ErrorAs(t, err, new(*inspect.FreeError))
					require.Equal(t, set.Nonce(), b.unitAt("c/1"))
					return
				}
				require.NoError(t, err)
				require.Greater(t, fenceOf(t, b.row(c.row)), int64(token))
			})
		})
	}
}

// The operator's request is carried out, and nobody hears of it; then others have the key, and
// another operator takes it from one of them. The row tells nothing of the first operator any more:
// that nothing was changed would be untrue.
func TestFreeDoesNotSayWhatItCannotKnow(t *testing.T) {
	for name, now := range map[string]bool{"the key is free": true, "an operator's holder has it": false} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), "a")
				other, err := inspect.New(b.owner("another", nil).net, lockset.Config{Table: table, Lease: lease})
				require.NoError(t, err)
				n := 0
				i, _ := b.operator(func(c faults.Call) faults.Fault {
					if c.Op != "UpdateItem" {
						return faults.Pass()
					}
					if n++; n == 1 {
						return faults.LoseAnswer(faults.Reset)
					}
					next := b.take(b.owner("next", nil), "a")
					require.NoError(t, other.Free(t.Context(), "a", next.Nonce(), inspect.Freeing{Now: now}))
					return faults.Pass()
				})
				err = i.Free(t.Context(), "a", set.Nonce(), inspect.Freeing{Now: true})
				require.Equal(t, 2, n)
				require.NotErrorAs(t, err, new(*inspect.FreeError))
				require.ErrorAs(t, err, new(*lockset.NoAnswerError))
			})
		})
	}
}

// Nor does it while a copy of its request may still arrive.
func TestFreeDoesNotSayThatACopyWillNotArrive(t *testing.T) {
	for name, passes := range map[string]bool{"the row above is full": false, "it changes all the time": true} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), "c/1")
				others := &types.AttributeValueMemberSS{} // leave no room on the row above for a while
				for n := range 80 {
					others.Value = append(others.Value, fmt.Sprintf("%022d %d", n, n))
				}
				n := 0
				i, net := b.operator(func(c faults.Call) faults.Fault {
					if c.Op == "TransactGetItems" && n > 1 && passes {
						b.change("c", "DELETE below :others", map[string]types.AttributeValue{":others": others})
					}
					if !isFree(c) {
						return faults.Pass()
					}
					if n++; n == 1 {
						return faults.DeliverLate(lease, faults.Reset)
					}
					b.change("c", "ADD below :others", map[string]types.AttributeValue{":others": others})
					return faults.Pass()
				})
				err := i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{})
				require.Equal(t, set.Nonce(), b.unitAt("c/1"))
				b.change("c", "DELETE below :others", map[string]types.AttributeValue{":others": others})
				net.Wait()
				require.NotEqual(t, set.Nonce(), b.unitAt("c/1"))
				require.NotErrorAs(t, err, new(*inspect.FreeError))
			})
		})
	}
}

// The row above has as many intents as fit.
func TestFreeBelowAFullRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("holder", nil)
		var sets []*lockset.Set
		for n := range 64 {
			sets = append(sets, b.take(o, ordering.Key(fmt.Sprintf("c/%02d", n))))
		}
		i, _ := b.operator(nil)
		start := time.Now()
		err := i.Free(t.Context(), "c/05", sets[5].Nonce(), inspect.Freeing{})
		t.Log(time.Since(start), err)
		require.NoError(t, err)
	})
}

// Each key that is taken from the dead leaves one intent more on the row above, until somebody cleans
// it. Free says which row has no room, and a sweep makes some.
func TestFreeOfManyKeysBelowAFullRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.owner("dead", nil)
		var sets []*lockset.Set
		for n := range 64 {
			sets = append(sets, b.take(dead, ordering.Key(fmt.Sprintf("c/%02d", n))))
		}
		dead.net.Crash()
		i, _ := b.operator(nil)
		var refused *inspect.FreeError
		taken := 0
		for n, set := range sets {
			err := i.Free(t.Context(), set.Keys()[0], set.Nonce(), inspect.Freeing{})
			if errors.As(err, &refused) {
				require.Equal(t, set.Keys()[0], ordering.Key(fmt.Sprintf("c/%02d", n)))
				break
			}
			require.NoError(t, err)
			taken++
		}
		require.Equal(t, 16, taken)
		require.Equal(t, `the row of "c" above it has 80 intents, and no room for another: sweep it`, refused.Reason)
		_, err := inspect.Sweep(t.Context(), b.owner("o", nil).Client, []ordering.Key{"c"}, inspect.SweepOptions{})
		require.NoError(t, err)
		b.allFree()
	})
}

// An operator whose clock reads a year that leaves no tokens must not write one: nobody could ever have the key again.
func TestFreeByAClockThatLeavesNoTokens(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "c/1")
		o := b.owner("operator", nil)
		cfg := o.Config()
		cfg.Now = func() time.Time { return time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) }
		i, err := inspect.New(o.net, cfg)
		require.NoError(t, err)
		err = i.Free(t.Context(), "c/1", set.Nonce(), inspect.Freeing{})
		require.ErrorAs(t, err, new(*locks.ConfigError))
		require.Equal(t, set.Nonce(), b.unitAt("c/1"))
		b.free(set)
		b.free(b.take(b.owner("heir", nil), "c/1"))
	})
}

// anyKeys are of three levels, so that some of them conflict.
var anyKeys = []ordering.Key{"a", "c", "c/1", "c/2", "c/1/x", "c/1/y", "c/2/x", "d/1"}

func someOf(r *rand.Rand, n int) (keys []ordering.Key) {
	for _, j := range r.Perm(len(anyKeys))[:n] {
		keys = append(keys, anyKeys[j])
	}
	return keys
}

// heirs is what others had, and whether the unit knew by then.
type heirs struct {
	b     *bed
	knows func() bool
	early chan ordering.Key
	done  chan struct{}
}

// wants has a process get keys, once, whenever it can.
func (h *heirs) wants(name string, keys []ordering.Key, held []ordering.Key, delay time.Duration, polls bool) {
	o := h.b.owner(name, nil)
	go func() {
		defer func() { h.done <- struct{}{} }()
		time.Sleep(delay)
		for {
			ask := func() (*lockset.Set, error) { return o.Acquire(h.b.t.Context(), keys) }
			if polls {
				ask = func() (*lockset.Set, error) { return o.TryAcquire(h.b.t.Context(), keys) }
			}
			set, err := ask()
			if err != nil {
				time.Sleep(lease / 20)
				continue
			}
			for _, k := range keys {
				if !h.knows() && slices.ContainsFunc(held, func(had ordering.Key) bool { return k.Covers(had) || had.Covers(k) }) {
					h.early <- k
				}
			}
			_ = set.Release(context.Background())
			return
		}
	}()
}

// Whatever is held, freed and wanted, and whatever becomes of the holder's renewals: nobody has
// what conflicts with one of its keys before it knows.
func TestTheUnitKnowsFirst(t *testing.T) {
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 7))
		inBed(t, func(t *testing.T, b *bed) {
			anyLease := func() time.Duration { return []time.Duration{lease, lease / 2, 3 * lease}[r.IntN(3)] }
			fault := []faults.Fault{faults.Pass(), faults.LoseRequest(faults.Hang), faults.LoseAnswer(faults.Reset)}[r.IntN(3)]
			cutAt := time.Now().Add(time.Duration(r.Int64N(int64(2 * lease))))
			holder := b.owner("holder", func(c faults.Call) faults.Fault {
				if c.Op == "BatchExecuteStatement" && time.Now().After(cutAt) {
					return fault
				}
				return faults.Pass()
			}, func(c *lockset.Config) { c.Lease = anyLease() })
			set := b.take(holder, someOf(r, 1+r.IntN(4))...)
			held := set.Keys()
			time.Sleep(time.Duration(r.Int64N(int64(2 * lease))))
			h := &heirs{b: b, knows: func() bool { return set.Context().Err() != nil }, early: make(chan ordering.Key, 64), done: make(chan struct{}, 8)}
			n := 1 + r.IntN(3)
			for i := range n {
				h.wants(fmt.Sprint("heir ", i), someOf(r, 1+r.IntN(2)), held, time.Duration(r.Int64N(int64(2*lease))), r.IntN(4) == 0)
			}
			for i := range 1 + r.IntN(3) {
				time.Sleep(time.Duration(r.Int64N(int64(lease))))
				doubled := r.IntN(3) == 0
				o := b.owner(fmt.Sprint("operator ", i), func(c faults.Call) faults.Fault {
					if isFree(c) && doubled {
						return faults.Duplicate(lease / 2)
					}
					return faults.Pass()
				})
				inspector, err := inspect.New(o.net, lockset.Config{Table: table, Owner: "operator", Lease: anyLease(), Rand: o.Config().Rand})
				require.NoError(t, err)
				_ = inspector.Free(t.Context(), held[r.IntN(len(held))], set.Nonce(), inspect.Freeing{}) // it may be gone
			}
			for range n {
				<-h.done
			}
			require.Empty(t, h.early, "seed %d: the unit held %v and did not know", seed, held)
			_ = set.Release(context.Background())
			time.Sleep(10 * lease) // copies end
		})
	}
}

// A unit that did not hear that it had its keys, and lost the first of them to an operator, releases
// the others when it gives up.
func TestAnOperatorTakesAPartOfWhatIsUnheard(t *testing.T) {
	for _, now := range []bool{false, true} {
		t.Run(fmt.Sprint("now: ", now), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				began := time.Now()
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.Op == "TransactWriteItems" && time.Since(began) < lease/4 {
						return faults.LoseAnswer(faults.Reset)
					}
					return faults.Pass()
				})
				time.AfterFunc(lease/8, func() {
					i, _ := b.operator(nil)
					require.NoError(t, i.Free(t.Context(), "a", b.unitAt("a"), inspect.Freeing{Now: now}))
				})
				ctx, cancel := context.WithTimeout(t.Context(), lease/4)
				defer cancel()
				_, err := o.Acquire(ctx, []ordering.Key{"a", "b"})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotContains(t, b.row("b"), "unit")
			})
		})
	}
}
