package lockset_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Each fault, on each kind of acquiring write: the set is held in the end, as
// one, and released without a trace.
func TestFaultsWhileAcquiring(t *testing.T) {
	for name, f := range map[string]faults.Fault{
		"answer lost, reset":      faults.LoseAnswer(faults.Reset),
		"answer lost, hanging":    faults.LoseAnswer(faults.Hang),
		"answer broken":           faults.LoseAnswer(faults.Broken),
		"request lost":            faults.LoseRequest(faults.Reset),
		"delivered late":          faults.DeliverLate(2*time.Second, faults.Hang),
		"delivered late, reset":   faults.DeliverLate(500*time.Millisecond, faults.Reset),
		"duplicated":              faults.Duplicate(time.Second),
		"throttled":               faults.Throttle(faults.ThrottledGeneric),
		"throttled by throughput": faults.Throttle(faults.Provisioned),
		"conflict":                faults.Conflict(),
		"server error":            faults.ServerError(false),
		"server error, executed":  faults.ServerError(true),
	} {
		for kind, keys := range map[string][]ordering.Key{"single": {"a"}, "chunk": {"a", "b/1", "b/2"}} {
			t.Run(name+" "+kind, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					op := map[string]string{"single": "UpdateItem", "chunk": "TransactWriteItems"}[kind]
					o := b.owner("o", nth(op, 1, f))
					set := b.take(o, keys...)
					time.Sleep(2 * lease)
					require.NoError(t, set.Context().Err())
					b.free(set)
					o.net.Wait()
					b.allFree()
				})
			})
		}
	}
}

// What landed unheard counts from its first sending: the lease of the row began
// then, not when we learned of it.
func TestALandedAttemptCountsFromItsFirstSending(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nth("UpdateItem", 1, faults.LoseAnswer(faults.Hang)))
		start := time.Now()
		set := b.take(o, "a")
		require.Greater(t, time.Since(start), lease/10)
		require.Equal(t, start.Add(lease-lease/10), set.Deadline())
		b.free(set)
	})
}

// Giving up with an attempt under way: it is burned before anything is
// released, so the late packet finds a fence that refuses it. No ghost locks.
func TestNoGhostLocks(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*bed) // what the table has seen
		keys   []ordering.Key
	}{
		"an absent row":       {func(*bed) {}, []ordering.Key{"m"}},
		"a free row":          {func(b *bed) { b.free(b.take(b.owner("w", nil), "m")) }, []ordering.Key{"m"}},
		"a chunk of absent":   {func(*bed) {}, []ordering.Key{"m/1", "m/2", "n"}},
		"a chunk of free":     {func(b *bed) { b.free(b.take(b.owner("w", nil), "m/1", "m/2", "n")) }, []ordering.Key{"m/1", "m/2", "n"}},
		"behind a secured":    {func(*bed) {}, append(singles(24), "m/1", "m/2")},
		"on a row held since": {func(b *bed) { b.take(b.owner("w", nil), "n") }, []ordering.Key{"m", "n"}},
	} {
		for _, late := range []time.Duration{2 * time.Second, lease, 3 * lease} {
			t.Run(fmt.Sprintf("%s, %v late", name, late), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					c.before(b)
					// Everything that acquires is late once it comes to the
					// second half of the keys, until the caller loses patience.
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					o := b.owner("o", func(call faults.Call) faults.Fault {
						acquires := call.Op == "TransactWriteItems" || call.Op == "UpdateItem"
						if acquires && ctx.Err() == nil && !(call.N == 1 && len(c.keys) > 20) {
							return faults.DeliverLate(late, faults.Hang)
						}
						return faults.Pass()
					})
					set, err := o.Acquire(ctx, c.keys)
					require.Error(t, err)
					require.Nil(t, set)
					o.net.Wait() // the late packets have all arrived
					other := b.owner("other", nil)
					for _, key := range []ordering.Key{"m", "m/1", "m/2", "k0000", "k0023"} {
						start := time.Now()
						b.free(b.take(other, key))
						require.Less(t, time.Since(start), lease/10, "%q is free", key)
					}
					require.Empty(t, other.buried)
				})
			})
		}
	}
}

// An attempt that landed unheard, met while giving up, is released.
func TestGivingUpReleasesWhatLandedUnheard(t *testing.T) {
	for kind, keys := range map[string][]ordering.Key{"single": {"a"}, "chunk": {"a", "b/1"}} {
		t.Run(kind, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				ctx, cancel := context.WithTimeout(t.Context(), lease/20)
				defer cancel()
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if ctx.Err() == nil {
						return faults.LoseAnswer(faults.Hang)
					}
					return faults.Pass()
				})
				_, err := o.Acquire(ctx, keys)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				b.allFree()
			})
		})
	}
}

func TestGivingUpEndsByItself(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", func(faults.Call) faults.Fault { return faults.LoseRequest(faults.Hang) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := o.Acquire(ctx, []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "in the background")
		require.LessOrEqual(t, time.Since(start), time.Second+lease/10)
		require.NoError(t, o.Close(context.Background()))
		require.GreaterOrEqual(t, time.Since(start), time.Second+lease, "Close waits for the cleanup")
		require.LessOrEqual(t, time.Since(start), time.Second+lease+lease/10)
	})
}

// Without an answer for a whole lease there is no point in going on, even if
// the caller would.
func TestAcquireGivesUpOnASilentDynamoDB(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", func(faults.Call) faults.Fault { return faults.LoseRequest(faults.Reset) })
		_, err := o.Acquire(t.Context(), []ordering.Key{"a"})
		var silent *lockset.NoAnswerError
		require.ErrorAs(t, err, &silent)
	})
}

func TestFaultsInHeartbeats(t *testing.T) {
	for name, f := range map[string]faults.Fault{
		"answer lost":        faults.LoseAnswer(faults.Hang),
		"answer broken":      faults.LoseAnswer(faults.Broken),
		"request lost":       faults.LoseRequest(faults.Reset),
		"late":               faults.DeliverLate(lease, faults.Hang),
		"duplicated":         faults.Duplicate(lease / 2),
		"throttled":          faults.Throttle(faults.RequestLimit),
		"a statement's rate": faults.Throttle(faults.InReasons, 1),
		"conflict on one":    faults.Conflict(0),
		"server error":       faults.ServerError(true),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.Op == "BatchExecuteStatement" && c.N%2 == 1 {
						return f
					}
					return faults.Pass()
				})
				set := b.take(o, "a", "b/1")
				waiter := b.owner("waiter", nil)
				b.refused(waiter, 4*lease, "b")
				require.NoError(t, set.Context().Err())
				b.free(set)
				o.net.Wait()
				b.allFree()
			})
		})
	}
}

func TestFaultsInBuryAndClean(t *testing.T) {
	for name, f := range map[string]faults.Fault{
		"answer lost":  faults.LoseAnswer(faults.Reset),
		"request lost": faults.LoseRequest(faults.Hang),
		"late":         faults.DeliverLate(3*time.Second, faults.Reset),
		"conflict":     faults.Conflict(),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.crashed("c/a")
				seen := map[string]bool{}
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.Op == "UpdateItem" && c.N == 1 || c.Op == "TransactWriteItems" && !seen[c.Op] && c.Actions == 2 {
						seen[c.Op] = true
						return f
					}
					return faults.Pass()
				})
				coarse := b.take(o, "c")
				o.net.Wait()
				require.NoError(t, coarse.Context().Err())
				b.free(coarse)
				b.free(b.take(o, "c/a"))
				b.allFree()
			})
		})
	}
}

func TestFaultsInRelease(t *testing.T) {
	for name, f := range map[string]faults.Fault{
		"answer lost":  faults.LoseAnswer(faults.Hang),
		"request lost": faults.LoseRequest(faults.Reset),
		"late":         faults.DeliverLate(2*time.Second, faults.Hang),
		"duplicated":   faults.Duplicate(time.Second),
		"conflict":     faults.Conflict(0),
	} {
		for kind, keys := range map[string][]ordering.Key{"single": {"a"}, "chunk": {"a", "b/1"}} {
			t.Run(name+" "+kind, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					n, op := 2, "UpdateItem"
					if kind == "chunk" {
						op = "TransactWriteItems"
					} else if f.Kind == faults.Conflicted {
						f.At = nil
					}
					o := b.owner("o", nth(op, n, f))
					set := b.take(o, keys...)
					b.free(set)
					next := b.owner("next", nil)
					again := b.take(next, keys...)
					o.net.Wait()
					time.Sleep(lease)
					require.NoError(t, again.Context().Err(), "a late release frees nobody else's lock")
					b.free(again)
					b.allFree()
				})
			})
		}
	}
}

// put writes a row of strings as another program would.
func (b *bed) put(key ordering.Key, attributes map[string]string) {
	b.t.Helper()
	item := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: string(key)}}
	for name, v := range attributes {
		item[name] = &types.AttributeValueMemberS{Value: v}
	}
	b.putItem(item)
}
