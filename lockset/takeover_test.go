package lockset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// crashed has a fresh owner take keys and die.
func (b *bed) crashed(keys ...ordering.Key) (*owner, *lockset.Set) {
	dead := b.owner("dead", nil)
	set := b.take(dead, keys...)
	dead.net.Crash()
	return dead, set
}

func TestTakeoverComesAFullLeaseAfterTheFirstSightAndAfterTheHolderKnows(t *testing.T) {
	for name, c := range map[string]struct{ held, wanted ordering.Key }{
		"the same key":           {"c/a", "c/a"},
		"coarse over fine":       {"c/a", "c"},
		"coarse over much finer": {"c/a/x", "c"},
		"fine under coarse":      {"c", "c/a"},
		"one segment":            {"c", "c"},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				_, dead := b.crashed(c.held)
				o := b.owner("o", nil)
				start := time.Now()
				set := b.take(o, c.wanted)
				waited := time.Since(start)
				require.GreaterOrEqual(t, waited, lease)
				require.Less(t, waited, lease+lease/20)
				require.Equal(t, []ordering.Key{c.held}, o.buried)
				require.Greater(t, set.Token(), dead.Token())

				require.ErrorIs(t, context.Cause(dead.Context()), lockset.ErrLost)
				b.free(set)
				b.allFreeOnceAskedFor("c", "c/a")
			})
		})
	}
}

// The holder is told before anybody else can have the key, to the nanosecond of
// this clock.
func TestTheHolderIsToldBeforeTheTakeover(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		set := b.take(holder, "a", "b/1")
		tells := make(chan time.Time, 1)
		context.AfterFunc(set.Context(), func() { tells <- time.Now() })
		o := b.owner("o", nil)
		taken := make(chan time.Time)
		go func() {
			other, err := o.Acquire(t.Context(), []ordering.Key{"b"})
			require.NoError(t, err)
			taken <- time.Now()
			require.NoError(t, other.Release(t.Context()))
		}()
		time.Sleep(3 * lease)
		require.NoError(t, set.Context().Err(), "the living are not taken over")
		holder.net.Partition(true)
		told, at := <-tells, <-taken
		require.GreaterOrEqual(t, at.Sub(told), lease/10, "at least the margin lies between")
		var lost *heartbeat.LostError
		require.ErrorAs(t, context.Cause(set.Context()), &lost)

		// Back on the net, it stays lost, and harms nobody.
		holder.net.Partition(false)
		time.Sleep(2 * lease)
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		b.free(b.take(o, "a"))
		b.allFreeOnceAskedFor("b")
	})
}

func TestALaterWaiterInheritsWhatItsProcessSaw(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		o := b.owner("o", nil)
		b.refused(o, lease*9/10, "a")
		start := time.Now()
		b.free(b.take(o, "a"))
		require.Less(t, time.Since(start), lease/5)
	})
}

func TestAPausedHolderIsLostAndKnowsWhenItWakes(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		set := b.take(holder, "a")
		holder.net.Pause()
		o := b.owner("o", nil)
		other := b.take(o, "a")
		holder.net.Resume()
		time.Sleep(lease)
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
		require.NoError(t, other.Context().Err(), "its held requests changed nothing")
		b.free(other)
		b.allFree()
	})
}

// The dead owner's other entries on the same ancestor, and those of the living,
// are told apart.
func TestCoarseWaiterCleansTheDeadAndWaitsForTheLiving(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/a", "c/b", "c/d/e")
		living := b.owner("living", nil)
		set := b.take(living, "c/z")
		o := b.owner("o", nil)
		held := b.refused(o, 3*lease, "c")
		require.Equal(t, "living", held.Owner)
		require.Equal(t, ordering.Key("c/z"), held.Key)
		b.free(set)
		coarse := b.take(o, "c")
		b.free(coarse)
		require.Equal(t, []ordering.Key{"c"}, o.cleaned)
		require.Equal(t, []ordering.Key{"c/a"}, o.buried, "the witness of the dead unit's intent on c")
		// c/b and c/d/e were never in the way of c: their rows are buried by
		// whoever wants them, and their intents cleaned.
		b.allFreeOnceAskedFor("c/b", "c/d")
	})
}

// Who releases in the ordinary way between a waiter's two reads is not told as
// dead.
func TestAnOrdinaryReleaseIsNotACleaning(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		fine := b.take(b.owner("fine", nil), "c/a")
		released := false
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" && !released { // it has seen the intent, and looks at the witness
				released = true
				b.free(fine)
			}
			return faults.Pass()
		})
		b.free(b.take(o, "c"))
		require.True(t, released)
		require.Empty(t, o.cleaned)
		require.Empty(t, o.buried)
	})
}

// An entry whose witness's row belongs to another by now is stale, but never on
// the word of a plain read: DynamoDB may show one row of a transaction before
// another.
func TestAHalfVisibleAcquisitionIsNotCleaned(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		// The intent on c is visible, the key c/a is not yet, for a while.
		holder := b.owner("holder", nth("TransactWriteItems", 1, faults.Window(lease/2, 1)))
		set := b.take(holder, "c/a")
		o := b.owner("o", nil)
		b.refused(o, lease, "c")
		require.Empty(t, o.cleaned)
		require.NoError(t, set.Context().Err())
		b.free(set)
		b.free(b.take(o, "c"))
		b.allFree()
	})
}

// A unit whose intent was found stale takes its key just before it is cleaned.
func TestAnIntentWhoseKeyIsTakenMeanwhileIsNotCleaned(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		late := b.take(b.owner("late", nil), "c/a")
		intent, key := b.row("c"), b.row("c/a")
		b.free(late)
		b.putItem(intent)
		cleans := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "TransactWriteItems" {
				if cleans++; cleans == 1 {
					b.putItem(key)
				}
			}
			return faults.Pass()
		})
		b.refused(o, lease/2, "c")
		require.Equal(t, 1, cleans)
		require.Empty(t, o.cleaned)
	})
}

func TestAHalfVisibleReleaseDoesNotLetTwoIn(t *testing.T) {
	for row := range 2 {
		inBed(t, func(t *testing.T, b *bed) {
			holder := b.owner("holder", nth("TransactWriteItems", 2, faults.Window(lease/4, row)))
			set := b.take(holder, "c/a")
			b.free(set)
			o := b.owner("o", nil)
			coarse := b.take(o, "c")
			require.Greater(t, coarse.Token(), set.Token())
			b.free(coarse)
			b.free(b.take(o, "c/a"))
			b.allFree()
		})
	}
}

func TestMaximumAgeEndsASet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil, func(c *lockset.Config) { c.MaxAge = 5 * lease })
		set := b.take(o, "a")
		start := time.Now()
		<-set.Context().Done()
		require.InDelta(t, 5*lease, time.Since(start), float64(rtt))
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrLost)
	})
}

func TestReleaseIsIdempotentAndTellsOfALoss(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o, thief := b.owner("o", nil), b.owner("thief", nil)
		set := b.take(o, "a", "b/1", "b/2")
		b.free(set)
		b.free(set)
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrReleased)

		set = b.take(o, "a", "b/1", "b/2")
		seized := b.seize("b/1", thief)
		err := set.Release(t.Context())
		var lost *heartbeat.LostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, ordering.Key("b/1"), lost.Key)
		require.NoError(t, seized.Context().Err())
		b.free(b.take(o, "a", "b/2")) // all else was released
		b.free(seized)
		b.allFree()
		require.NoError(t, set.Release(t.Context()))
	})
}

func TestAReleaseUnderAContextThatHasEnded(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a", "b/1")
		require.NoError(t, set.Release(set.Context()), "which ends with the heartbeats")
		b.allFree()
		ctx, cancel := context.WithCancel(t.Context())
		set, err := o.Acquire(ctx, []ordering.Key{"a", "b/1"})
		require.NoError(t, err)
		cancel()
		require.NoError(t, set.Release(ctx))
		b.allFree()
	})
}

func TestAReleaseGoesOnWhenItsContextEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, pairs(120)...) // three transactions to release
		ctx, cancel := context.WithTimeout(t.Context(), rtt+rtt/2)
		defer cancel()
		require.NoError(t, set.Release(ctx))
		b.allFree()
	})
}

func TestForeignRowsAreLeftAlone(t *testing.T) {
	for name, row := range map[string]map[string]string{
		"held":     {"ownerName": "java", "leaseDuration": "1000", "recordVersionNumber": "x"},
		"released": {"ownerName": "java", "leaseDuration": "1000", "recordVersionNumber": "x", "isReleased": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.put("a", row)
				before := b.row("a")
				o := b.owner("o", nil)
				for _, keys := range [][]ordering.Key{{"a"}, {"a/b"}, {"0", "a"}} {
					_, err := o.Acquire(t.Context(), keys)
					var rowErr *lockrow.RowError
					require.ErrorAs(t, err, &rowErr)
					require.Equal(t, table, rowErr.Table)
					require.Equal(t, ordering.Key("a"), rowErr.Key)
				}
				require.Equal(t, before, b.row("a"))
				b.free(b.take(o, "0"))
			})
		})
	}
}

// Nor by who had no answer, and burns its token unread.
func TestGivingUpLeavesForeignRowsAlone(t *testing.T) {
	for name, f := range map[string]faults.Fault{"the answer is lost": faults.LoseAnswer(faults.Hang), "the request is lost": faults.LoseRequest(faults.Hang)} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.putItem(item{"key": s("a"), "holder": s("somebody"), "fence": n(oldFence)})
				was := b.row("a")
				for _, keys := range [][]ordering.Key{{"a"}, {"a", "b"}} {
					ctx, cancel := context.WithTimeout(t.Context(), lease/2)
					o := b.owner("o", func(faults.Call) faults.Fault {
						if ctx.Err() == nil {
							return f
						}
						return faults.Pass()
					})
					_, err := o.Acquire(ctx, keys)
					cancel()
					require.Error(t, err)
					require.Equal(t, was, b.row("a"))
				}
			})
		})
	}
}
