package lockset_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Joining a queue through a network that loses, delays and repeats.

// joins gives one fault to the first request that joins a queue.
func joins(f faults.Fault) faults.Script { return writes("list_append", f) }

// writes gives one fault to the first UpdateItem that says so. Units of one owner
// may ask at a time.
func writes(text string, f faults.Fault) faults.Script {
	var met atomic.Bool
	return func(c faults.Call) faults.Fault {
		in, ok := c.Input.(*dynamodb.UpdateItemInput)
		if !ok || !strings.Contains(*in.UpdateExpression, text) || met.Swap(true) {
			return faults.Pass()
		}
		return f
	}
}

// blocked are rows that a unit may have to wait for.
var blocked = map[string]struct{ held, wanted, row ordering.Key }{
	"a key":             {"a", "a", "a"},
	"an ancestor":       {"c", "c/1", "c"},
	"a key above a key": {"c/1", "c", "c"},
}

// Whatever becomes of the request to join, the unit has one place, is served in
// its turn, and leaves nothing.
func TestAUnitHasOnePlaceWhateverBecomesOfItsJoining(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"the answer is lost":       faults.LoseAnswer(faults.Reset),
		"the answer never comes":   faults.LoseAnswer(faults.Hang),
		"the request is lost":      faults.LoseRequest(faults.Reset),
		"it is delivered late":     faults.DeliverLate(lease/2, faults.Reset),
		"it is delivered twice":    faults.Duplicate(lease / 2),
		"the server says it fails": faults.ServerError(true),
	} {
		for where, c := range blocked {
			t.Run(name+", "+where, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holder := b.take(b.owner("holder", nil), c.held)
					o := b.owner("o", joins(fault))
					patron := b.ask(t.Context(), o, []ordering.Key{c.wanted})
					time.Sleep(lease / 5) // longer than an attempt may take
					require.Len(t, b.queue(c.row), 1)
					behind := b.ask(t.Context(), b.owner("behind", nil), []ordering.Key{c.wanted})
					o.net.Wait()
					require.Equal(t, 1, o.net.Counts()[fault.Kind])
					require.Len(t, b.queue(c.row), 2)
					b.free(holder)
					freed := time.Now()
					patron.leave()
					require.Less(t, patron.at.Sub(freed), soon)
					behind.leave()
					require.Less(t, behind.at.Sub(freed), 2*soon)
					require.Empty(t, b.queue(c.row))
					b.allFree()
				})
			})
		}
	}
}

// A request to join that arrives when its unit has given up finds its token
// burned: there are no ghosts in a queue.
func TestAJoiningThatArrivesAfterItsUnitGaveUp(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"late":          faults.DeliverLate(lease/2, faults.Reset),
		"late, unheard": faults.DeliverLate(lease/2, faults.Hang),
		"again":         faults.Duplicate(lease / 2),
	} {
		for where, c := range blocked {
			t.Run(name+", "+where, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holder := b.take(b.owner("holder", nil), c.held)
					o := b.owner("o", joins(fault))
					ctx, cancel := context.WithTimeout(t.Context(), lease/20)
					defer cancel()
					gone := b.ask(ctx, o, []ordering.Key{c.wanted})
					require.ErrorAs(t, gone.failed(), new(*lockset.HeldError))
					require.Empty(t, b.queue(c.row), "it left")
					o.net.Wait()
					require.Greater(t, time.Since(gone.at), lease/4)
					require.Equal(t, 1, o.net.Counts()[fault.Kind])
					require.Empty(t, b.queue(c.row), "a ghost")
					b.free(holder)
					b.allFree()
				})
			})
		}
	}
}

// A place that a unit does not know it has is given up like any other.
func TestAPlaceUnheardOfIsGivenUp(t *testing.T) {
	for where, c := range blocked {
		t.Run(where, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), c.held)
				o := b.owner("o", joins(faults.LoseAnswer(faults.Hang)))
				ctx, cancel := context.WithTimeout(t.Context(), lease/20)
				defer cancel()
				gone := b.ask(ctx, o, []ordering.Key{c.wanted})
				require.Len(t, b.queue(c.row), 1)
				require.Error(t, gone.failed())
				require.Empty(t, b.queue(c.row), "a ghost")
				b.free(holder)
				b.allFree()
			})
		})
	}
}

// A request to join that arrives when its unit has what it waited for, or had it,
// is too late.
func TestAJoiningThatArrivesAfterItsUnitWasServed(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"late":  faults.DeliverLate(lease/2, faults.Reset),
		"again": faults.Duplicate(lease / 2),
	} {
		for where, c := range blocked {
			for when, hold := range map[string]time.Duration{"and holds": lease, "and is gone": 0} {
				t.Run(name+", "+where+", "+when, func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						holder := b.take(b.owner("holder", nil), c.held)
						o := b.owner("o", joins(fault))
						patron := b.ask(t.Context(), o, []ordering.Key{c.wanted})
						b.free(holder)
						set := patron.got()
						go func() {
							time.Sleep(hold)
							_ = set.Release(context.Background())
						}()
						o.net.Wait()
						time.Sleep(lease)
						require.Equal(t, 1, o.net.Counts()[fault.Kind])
						require.Empty(t, b.queue(c.row), "a ghost")
						b.allFree()
					})
				})
			}
		}
	}
}

// A request to leave whose answer is lost has left; one that is lost is sent
// again.
func TestAPlaceIsGivenUpThroughAPoorNetwork(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"the answer is lost":  faults.LoseAnswer(faults.Reset),
		"the request is lost": faults.LoseRequest(faults.Reset),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "a")
				before := b.ask(t.Context(), b.owner("before", nil), []ordering.Key{"a"})
				o := b.owner("o", writes("REMOVE #queue[1]", fault))
				ctx, cancel := context.WithCancel(t.Context())
				gone := b.ask(ctx, o, []ordering.Key{"a"})
				after := b.ask(t.Context(), b.owner("after", nil), []ordering.Key{"a"})
				places := b.queue("a")
				require.Len(t, places, 3)
				cancel()
				require.ErrorIs(t, gone.failed(), context.Canceled)
				require.Equal(t, 1, o.net.Counts()[fault.Kind])
				require.Equal(t, []string{places[0], places[2]}, b.queue("a"))
				b.free(holder)
				before.leave()
				after.leave()
				b.allFree()
			})
		})
	}
}

// A unit has one place in all: who finds another row of its step in the way
// leaves the queue of the first, and is back in it when that one blocks again.
func TestAUnitThatIsBlockedElsewhereLeavesItsPlace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		above, below := b.take(b.owner("above", nil), "c/0"), b.take(b.owner("below", nil), "c/1")
		coarse := b.ask(t.Context(), b.owner("coarse", nil), []ordering.Key{"c"})
		fine := b.ask(t.Context(), b.owner("fine", nil), []ordering.Key{"c/1"})
		require.Len(t, b.queue("c"), 2)
		require.Empty(t, b.queue("c/1"))
		b.free(above)
		time.Sleep(soon)
		require.Len(t, b.queue("c"), 2, "the coarse one waits for the other fine one")
		b.free(below)
		coarse.got()
		third := b.ask(t.Context(), b.owner("third", nil), []ordering.Key{"c/1"})
		coarse.leave()
		fine.got()
		time.Sleep(slowest)
		require.Empty(t, b.queue("c"))
		require.Len(t, b.queue("c/1"), 1, "the ancestor is not in its way any more")
		fine.leave()
		third.leave()
		b.allFree()
	})
}

// A fence beyond a unit's token refuses its joining as it would refuse its taking
// the row: it joins with a higher one, and need not be told first.
func TestAUnitBehindAnothersClockJoinsWithAHigherToken(t *testing.T) {
	for name, keys := range map[string][]ordering.Key{"for its first key": {"a"}, "for another": {"0", "a"}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.ahead("ahead", time.Hour), "a")
				o := b.owner("o", nil)
				patron := b.ask(t.Context(), o, keys)
				time.Sleep(2 * rtt)
				require.Len(t, b.queue("a"), 1)
				require.Equal(t, 1+len(keys)+1, o.requests()["UpdateItem"], "one for each key, one to join, and one to say when the holder was alive")
				b.free(holder)
				set := patron.got()
				require.Greater(t, set.Token(), holder.Token())
				b.free(set)
				b.allFree()
			})
		})
	}
}

// Somebody else's burned token between two looks refuses a joining: it is looked
// again, and joined.
func TestAJoiningThatIsRefusedIsTriedAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		passer := b.owner("passer", nil)
		var passed atomic.Bool
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(*in.UpdateExpression, "list_append") && !passed.Swap(true) {
				b.tried(passer, "a")
			}
			return faults.Pass()
		})
		patron := b.ask(t.Context(), o, []ordering.Key{"a"})
		time.Sleep(8 * rtt)
		require.True(t, passed.Load())
		require.Len(t, b.queue("a"), 1)
		b.free(holder)
		patron.leave()
		b.allFree()
	})
}

// A row that is deleted between the look and the joining is not made anew by it:
// it would be no row that anybody understands.
func TestAJoiningMakesNoRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		var deleted atomic.Bool
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(*in.UpdateExpression, "list_append") && !deleted.Swap(true) {
				b.delete("a")
			}
			return faults.Pass()
		})
		b.ask(t.Context(), o, []ordering.Key{"a"}).leave()
		require.True(t, deleted.Load())
		require.ErrorIs(t, holder.Release(t.Context()), lockset.ErrLost)
		b.allFree()
	})
}

// Two who leave a queue at the same time leave it both, though each moves the
// other's place.
func TestPlacesGivenUpAtTheSameTime(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		var patrons []*patron
		var cancels []context.CancelFunc
		for _, name := range []string{"first", "second", "third", "last"} {
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(cancel)
			patrons, cancels = append(patrons, b.ask(ctx, b.owner(name, nil), []ordering.Key{"a"})), append(cancels, cancel)
		}
		places := b.queue("a")
		for _, cancel := range cancels[:3] {
			cancel()
			time.Sleep(rtt / 5)
		}
		for _, gone := range patrons[:3] {
			require.ErrorIs(t, gone.failed(), context.Canceled)
		}
		require.Equal(t, places[3:], b.queue("a"))
		b.free(holder)
		patrons[3].leave()
		b.allFree()
	})
}

// Whoever was the head when it looked, and is not when it asks for the row, does
// not get it: a place counts when the row is taken.
func TestAPlaceCountsWhenTheRowIsTaken(t *testing.T) {
	for name, key := range waysToTake {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var moved atomic.Bool
				taking := func(c faults.Call) bool { // a row in whose queue it is
					switch in := c.Input.(type) {
					case *dynamodb.UpdateItemInput:
						return strings.Contains(*in.UpdateExpression, "#acquiredAt") && strings.Contains(*in.UpdateExpression, "#queue[0]")
					case *dynamodb.TransactWriteItemsInput:
						return strings.Contains(*in.TransactItems[0].Update.UpdateExpression, "#queue[0]")
					}
					return false
				}
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if taking(c) && !moved.Swap(true) { // it has lost its place, and joined again
						b.requeue("c", append([]string{"another"}, b.places("c")...))
					}
					return faults.Pass()
				})
				holder := b.take(b.owner("holder", nil), "c")
				waits := b.ask(t.Context(), o, []ordering.Key{key})
				b.free(holder)
				freed := time.Now()
				waits.leave()
				require.True(t, moved.Load())
				require.GreaterOrEqual(t, waits.at.Sub(freed), untaken, "it was the other's turn")
				b.allFree()
			})
		})
	}
}

// A late copy of a try takes the row just before its unit, that was refused, joins
// the queue: nobody lines up for what it has, and leaves a ghost there.
func TestNobodyJoinsTheQueueOfARowItHas(t *testing.T) {
	for name, c := range map[string]struct {
		op  string
		key ordering.Key
	}{"exclusively": {"UpdateItem", "c"}, "with an intent": {"TransactWriteItems", "c/1"}} {
		for how, fault := range map[string]faults.Fault{
			"late": faults.DeliverLate(lease/100, faults.Reset), "again": faults.Duplicate(lease / 100),
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holder := b.take(b.owner("holder", nil), "c")
					var joins atomic.Bool
					o := b.owner("o", func(call faults.Call) faults.Fault {
						in, ok := call.Input.(*dynamodb.UpdateItemInput)
						switch {
						case ok && strings.Contains(*in.UpdateExpression, "list_append"):
							if !joins.Swap(true) {
								b.free(holder)
								time.Sleep(lease / 50) // the first try arrives
							}
						case call.Op == c.op && call.N == 1:
							return fault
						}
						return faults.Pass()
					})
					patron := b.ask(t.Context(), o, []ordering.Key{c.key})
					set := patron.got()
					require.True(t, joins.Load())
					require.Equal(t, 1, o.net.Counts()[fault.Kind])
					require.Empty(t, b.queue("c"))
					b.free(set)
					b.allFree()
				})
			})
		}
	}
}

// requeue writes the queue of a row.
func (b *bed) requeue(key ordering.Key, units []string) {
	b.t.Helper()
	list := &types.AttributeValueMemberL{}
	for _, u := range units {
		list.Value = append(list.Value, &types.AttributeValueMemberS{Value: u})
	}
	_, err := b.db.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 aws.String(table),
		Key:                       map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: string(key)}},
		UpdateExpression:          aws.String("SET queue = :queue"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":queue": list},
	})
	require.NoError(b.t, err)
}

// A joining that is still under way may land after the last look at the row, and before
// its token is burned, whether a burn shows the row or not.
func TestAJoiningThatLandsBeforeItsBurn(t *testing.T) {
	for _, first := range []faults.Fault{faults.Pass(), faults.LoseRequest(faults.Reset)} { // its token has to be burned, and is refused
		for ms := range 20 {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "a")
				ctx, cancel := context.WithCancel(t.Context())
				joining := joins(faults.DeliverLate(time.Duration(ms)*time.Millisecond, faults.Hang))
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.N == 1 {
						return first
					}
					f := joining(c)
					if f.Kind == faults.DeliveredLate {
						time.AfterFunc(time.Millisecond, cancel)
					}
					return f
				}, func(c *lockset.Config) {
					c.Now = func() time.Time { return time.Now().Add(-time.Hour) }
				})
				_, err := o.Acquire(ctx, []ordering.Key{"a"})
				require.ErrorAs(t, err, new(*lockset.HeldError))
				o.net.Wait()
				require.Equal(t, 1, o.net.Counts()[faults.DeliveredLate])
				require.Empty(t, b.queue("a"), "it arrived after %d ms", ms)
				b.free(holder)
				b.allFree()
			})
		}
	}
}

// A join that is refused because others have had the row since shows that it is free: the
// unit takes it with a higher token, and does not look again before.
func TestARefusedJoinThatShowsAFreeRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		next := b.ahead("next", time.Second)
		joined := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(*in.UpdateExpression, "list_append") {
				if joined++; joined == 1 {
					b.free(holder)
					b.free(b.take(next, "a"))
				}
			}
			return faults.Pass()
		})
		b.free(b.take(o, "a"))
		require.Equal(t, 1, joined)
		require.Zero(t, o.sent["GetItem"], "%v", o.sent)
		b.allFree()
	})
}
