package lockset_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// What is told, and when, of a set or a unit that comes to an end.

// A place that could not be given up is told of, once.
func TestAPlaceThatCouldNotBeGivenUpIsToldOf(t *testing.T) {
	for name, denies := range map[string]struct {
		reads bool // so that the wait ends by it
		told  bool
		wait  time.Duration // instead of an end of the context
	}{"the leaving": {false, true, 0}, "the leaving, after a record wait": {false, true, lease / 10}, "all, so the cause says it": {true, false, 0}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "a")
				var over atomic.Bool
				o := b.owner("o", func(c faults.Call) faults.Fault {
					in, ok := c.Input.(*dynamodb.UpdateItemInput)
					if over.Load() && (denies.reads || ok && strings.HasSuffix(*in.UpdateExpression, "REMOVE #queue[0]")) {
						return faults.Deny()
					}
					return faults.Pass()
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := b.ask(ctx, o, []ordering.Key{"a"}, func(o *lockset.Options) {
					if denies.wait > 0 {
						o.Wait = lockset.For(denies.wait)
					}
				})
				require.Len(t, b.queue("a"), 1)
				over.Store(true)
				if !denies.reads && denies.wait == 0 {
					cancel()
				}
				err := p.failed()
				require.ErrorAs(t, err, new(*lockset.TableError))
				require.Equal(t, !denies.reads, errors.As(err, new(*lockset.HeldError)))
				if denies.told {
					require.ErrorContains(t, err, `leave the queue of key "a"`)
				} else {
					require.NotContains(t, err.Error(), "leave the queue")
				}
				require.Len(t, b.queue("a"), 1, "nor is it")
				b.free(holder)
			})
		})
	}
}

// A row that holdall did not write is left as it is by who gives up, at once, whichever
// of our attributes it has.
func TestGivingUpEndsAtOnceAtAForeignRow(t *testing.T) {
	for name, foreign := range map[string]item{
		"an RVN alone":       {"key": s("a"), "recordVersionNumber": s("theirs"), "fence": n(oldFence)},
		"a unit alone":       {"key": s("a"), "unit": s("theirs"), "fence": n(oldFence)},
		"neither":            {"key": s("a"), "fence": n(oldFence)},
		"a pending, no list": {"key": s("a"), "pending": n(oldFence), "fence": n(oldFence)},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.putItem(foreign)
				ctx, cancel := context.WithTimeout(t.Context(), lease/2)
				defer cancel()
				o := b.owner("o", func(faults.Call) faults.Fault {
					if ctx.Err() == nil {
						return faults.LoseRequest(faults.Hang)
					}
					return faults.Pass()
				})
				asked := time.Now()
				_, err := o.Acquire(ctx, []ordering.Key{"a"})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Less(t, time.Since(asked), lease/2+4*rtt)
				require.False(t, errors.As(err, new(*lockset.TableError)), "the row is not written: %v", err)
				require.Equal(t, foreign, b.row("a"))
			})
		})
	}
}

// Nor does a unit that was refused by such a row burn the token of a sending that had no answer there.
func TestNothingIsBurnedOnAForeignRow(t *testing.T) {
	for name, foreign := range map[string]item{
		"a holder without an owner":   {"key": s("a"), "unit": s("theirs"), "recordVersionNumber": s("theirs"), "fence": n(oldFence)},
		"free, with another's intent": {"key": s("a"), "isReleased": s("1"), "below": n(1), "fence": n(oldFence)},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.putItem(foreign)
				o := b.owner("o", nth("UpdateItem", 1, faults.LoseRequest(faults.Reset)))
				_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
				require.ErrorAs(t, err, new(*lockrow.RowError))
				require.Equal(t, foreign, b.row("a"))
			})
		})
	}
}

// The first burn fits the row as it was seen last, so it is the only one.
func TestABurnBeginsWithTheRowAsItWasSeenLast(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesMarked("a")
		burns := 0
		first := nth("UpdateItem", 1, faults.LoseRequest(faults.Reset)) // so its token has to be burned
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.HasPrefix(*in.UpdateExpression, "SET #fence = :token") {
				burns++
			}
			return first(c)
		})
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorIs(t, err, lockset.ErrWaited)
		require.Equal(t, 1, burns)
	})
}

// A set that is lost does not end: it is lost. Its loss is traced, once, and a release
// is no loss.
func TestALostSetDoesNotEnd(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		lost := map[string]error{}
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Lost, func(_ context.Context, l trace.Event) {
				require.NotContains(t, lost, l.Unit)
				lost[l.Unit] = l.Err
			}))
		})
		b.free(b.take(o, "b"))
		time.Sleep(2 * lease)
		synctest.Wait()
		require.Empty(t, lost)

		set := b.take(o, "a")
		thief := b.seize("a", b.owner("thief", nil))
		time.Sleep(lease/3 + 4*rtt)
		synctest.Wait()
		require.Len(t, lost, 1)
		require.ErrorIs(t, lost[set.Nonce()], lockset.ErrLost)
		ending, err := set.End(t.Context())
		require.Nil(t, ending)
		var loss *heartbeat.LostError
		require.ErrorAs(t, err, &loss)
		require.Equal(t, ordering.Key("a"), loss.Key)
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost, "it has no Ending that must be resolved")
		b.free(thief)
	})
}

// An intent of the set was deleted by hand, so nothing that releases all of it can
// win: it is released without the intent, and looked at again. The context of who
// resolves may end meanwhile: then there is no telling.
func TestResolvingASetWithoutItsIntent(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		fate  lockrow.Fate
	}{"to its end": {lease, lockrow.FateNever}, "its context ends in the pause": {4*rtt + rtt/2, lockrow.FateHeld}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", nil)
				ending, err := b.take(o, "c/1").End(t.Context())
				require.NoError(t, err)
				b.delete("c")
				o.requests()
				ctx, cancel := context.WithTimeout(t.Context(), c.limit)
				defer cancel()
				began := time.Now()
				fate, err := ending.Resolve(ctx)
				require.Equal(t, c.fate, fate)
				if fate == lockrow.FateHeld {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Equal(t, c.limit, time.Since(began))
					require.Equal(t, map[string]int{"TransactWriteItems": 2, "TransactGetItems": 1, "UpdateItem": 1}, o.requests(), "nothing in the pause")
				} else {
					require.NoError(t, err)
				}
				b.allFree()
			})
		})
	}
}

// A set that was committed, though nobody heard of it, is told as released.
func TestResolvingASetThatWasCommitted(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		released := 0
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { released++ }))
		})
		ending, err := b.take(o, "a", "b").End(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.transact(ending.Actions()...))
		fate, err := ending.Resolve(t.Context())
		require.NoError(t, err)
		require.Equal(t, lockrow.FateCommitted, fate)
		require.Equal(t, 1, released)
		b.allFree()
	})
}

// Who cannot read the rows of a set cannot tell its fate, and frees none of them alone.
func TestResolvingASetThatCannotBeRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" {
				return faults.Deny()
			}
			return faults.Pass()
		})
		ending, err := b.take(o, "a", "b").End(t.Context())
		require.NoError(t, err)
		b.free(b.seize("a", b.owner("thief", nil)))
		fate, err := ending.Resolve(t.Context())
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Equal(t, lockrow.FateUnknown, fate)
		require.Contains(t, b.row("b"), "unit")
	})
}

// A key that was taken and could not be freed is told of; one that was lost meanwhile is
// nobody's business.
func TestWhatIsLeftOfAUnitThatGaveUp(t *testing.T) {
	for name, c := range map[string]struct {
		denied bool
		told   bool
	}{"it may not be freed": {true, true}, "it is free": {false, false}, "it is another's": {false, false}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "b")
				o := b.owner("o", func(call faults.Call) faults.Fault {
					in, ok := call.Input.(*dynamodb.UpdateItemInput)
					if ok && c.denied && valueOf(in.Key["key"]) == "a" && *in.ConditionExpression == "#unit = :unit" {
						return faults.Deny()
					}
					return faults.Pass()
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := b.ask(ctx, o, []ordering.Key{"a", "b"})
				time.Sleep(4 * rtt)
				require.Contains(t, b.row("a"), "unit")
				if name == "it is another's" {
					b.seize("a", b.owner("thief", nil))
				}
				cancel()
				err := p.failed()
				require.ErrorAs(t, err, new(*lockset.HeldError))
				require.NotErrorIs(t, err, lockset.ErrLost)
				require.Equal(t, c.told, errors.As(err, new(*lockset.TableError)))
				if c.told {
					require.ErrorContains(t, err, `release 1 keys from "a"`)
				}
				b.free(holder)
			})
		})
	}
}

// Who gives up after more than a lease looks whether anything is left of it, and
// releases nothing if that is not so.
func TestGivingUpAfterALongWaitLeavesTheRestAlone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a", "b")
		o := b.owner("o", nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := b.ask(ctx, o, []ordering.Key{"a", "b", "c"})
		time.Sleep(2 * lease)
		o.requests()
		cancel()
		require.ErrorAs(t, p.failed(), new(*lockset.HeldError))
		sent := o.requests()
		delete(sent, "GetItem") // that was cut short
		require.Equal(t, map[string]int{"UpdateItem": 2, "TransactGetItems": 1}, sent, "to burn and leave the queue, to note the silence of b, which was seen but once; to look")
		b.free(holder)
	})
}

// Two whose waits end at about the same time have both left when they say so, though
// one has moved the other's place.
func TestTwoWhoLeaveAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		end := time.Now().Add(lease / 10)
		var both []*patron
		for _, name := range []string{"one", "two"} {
			both = append(both, b.ask(t.Context(), b.owner(name, nil), []ordering.Key{"a"}, wait(time.Until(end))))
			end = end.Add(time.Millisecond)
		}
		places := b.queue("a")
		require.Len(t, places, 2)
		for _, p := range both {
			require.ErrorIs(t, p.failed(), lockset.ErrWaited)
		}
		require.Empty(t, b.queue("a"))
		require.LessOrEqual(t, time.Since(end), 5*rtt)
		b.free(holder)
	})
}

// A unit that stands in line behind one of its process, and loses what it has
// meanwhile, has lost: that is not to be taken for a key that is held.
func TestAUnitThatLosesAKeyInALine(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil, func(c *lockset.Config) { c.ChunkSize = 1 })
		first := b.take(o, "b")
		p := b.ask(t.Context(), o, []ordering.Key{"a", "b"})
		require.Contains(t, b.row("a"), "unit")
		thief := b.seize("a", b.owner("thief", nil))
		err := p.failed()
		var lost *heartbeat.LostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, ordering.Key("a"), lost.Key)
		require.False(t, errors.As(err, new(*lockset.HeldError)), "%v", err)
		b.free(first)
		b.free(thief)
		b.allFree()
	})
}

// One that may not leave a queue does not line up within its process, either: it ends.
func TestAHeadThatMayNotLeaveTheQueue(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var denied atomic.Bool
		o := b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			if ok && *in.UpdateExpression == "REMOVE #queue[0]" && !denied.Swap(true) {
				return faults.Deny()
			}
			return faults.Pass()
		}, betweenSteps)
		w := b.ask(t.Context(), o, []ordering.Key{"c/1", "c/2"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := b.ask(ctx, b.owner("r", nil), []ordering.Key{"c"})
		v := b.ask(t.Context(), o, []ordering.Key{"c/2"})
		set := w.got()
		cancel()
		require.Error(t, r.failed())
		time.Sleep(soon + poll) // it is the second in the queue
		require.True(t, denied.Load())
		require.False(t, v.waits())
		require.ErrorAs(t, v.failed(), new(*lockset.TableError))
		b.free(set)
		b.allFree()
	})
}

// How an acquisition ended is traced, once: with the error that its caller got, or with
// what it took.
func TestTheEndOfAnAcquisitionIsTraced(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		gaveUp := map[string]error{}
		var acquired []trace.Event
		o := b.owner("o", nil, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Acquire, func(_ context.Context, e trace.Event) {
				if e.Err != nil {
					gaveUp[e.Unit] = e.Err
				} else {
					acquired = append(acquired, e)
				}
			}))
		})
		began := time.Now()
		set := b.take(o, "a", "c/1")
		require.Empty(t, gaveUp)
		require.Equal(t, []trace.Event{{Kind: trace.Acquire, Unit: set.Nonce(), Token: set.Token(), Count: 2, Rows: 3, Took: rtt,
			Confirmed: began, Deadline: set.Deadline()}}, acquired)
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.Error(t, err)
		require.Len(t, gaveUp, 1)
		require.NotContains(t, gaveUp, set.Nonce())
		for _, told := range gaveUp {
			require.Equal(t, err, told)
		}
		require.Len(t, acquired, 1)
		b.free(set)
	})
}

// A copy of a refused attempt lands while its unit is cut off. Others bury the
// row that they want, and no other. When the unit gives up, what is left of it
// is released.
func TestGivingUpReleasesWhatACopyTookAndOthersBuriedInPart(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder, next := b.owner("holder", nil), b.owner("next", nil)
		first := b.take(holder, "a")
		var o *owner
		o = b.owner("o", nth("TransactWriteItems", 1, faults.Duplicate(time.Second)), func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.OnStart(trace.Wait, func(ctx context.Context, _ trace.Event) context.Context { o.net.Partition(true); return ctx })) // before it has a place in the queue
		})
		time.AfterFunc(50*time.Millisecond, func() { b.free(first) })
		time.AfterFunc(2*time.Second, func() {
			set, err := next.Acquire(context.Background(), []ordering.Key{"a"})
			require.NoError(t, err)
			require.NoError(t, set.Release(context.Background()))
			o.net.Partition(false)
		})
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b", "c/d"})
		require.Error(t, err)
		require.NoError(t, o.Close(t.Context())) // it cleans up in the background
		require.Equal(t, []ordering.Key{"a"}, next.buried)
		b.allFree()
	})
}
