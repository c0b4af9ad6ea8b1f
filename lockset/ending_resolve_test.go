package lockset_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// What became of a transaction whose rows are too large to be read at once.

var four = []ordering.Key{"a", "b", "c", "d"}

// committedBySomebodyElse has a row say what the last of others left there.
func (b *bed) committedBySomebodyElse(key ordering.Key) {
	b.t.Helper()
	b.change(key, "SET committedBy = :other, fence = :fence", map[string]types.AttributeValue{
		":other": &types.AttributeValueMemberS{Value: "another"}, ":fence": &types.AttributeValueMemberN{Value: "990000000000000"},
	})
}

// Any of the rows may be the only one that still tells, in whichever half it is read.
func TestTheOneRowThatTells(t *testing.T) {
	for name, c := range map[string]struct {
		ended  func(*bed, *lockset.Ending)
		tells  bool
		others bool
		fate   lockrow.Fate
	}{
		"of a commit":          {func(b *bed, e *lockset.Ending) { require.NoError(b.t, b.transact(e.Actions()...)) }, true, true, lockrow.FateCommitted},
		"of none, and no more": {func(b *bed, e *lockset.Ending) { require.NoError(b.t, b.transact(e.Actions()...)) }, false, true, lockrow.FateUnknown},
	} {
		for _, teller := range four {
			for _, most := range []int{1, 2, 3} {
				t.Run(fmt.Sprint(name, " ", teller, " ", most), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						set := b.take(b.owner("o", atMost(most)), four...)
						ending, err := set.End(t.Context())
						require.NoError(t, err)
						c.ended(b, ending)
						for _, k := range four {
							if k != teller || !c.tells {
								b.committedBySomebodyElse(k)
							}
						}
						fate, err := ending.Resolve(t.Context())
						require.NoError(t, err)
						require.Equal(t, c.fate, fate)
					})
				})
			}
		}
	}
}

// A half that cannot be read says nothing, whatever the other does.
func TestAHalfThatCannotBeRead(t *testing.T) {
	for _, unread := range four {
		t.Run(string(unread), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("o", func(c faults.Call) faults.Fault {
					in, ok := c.Input.(*dynamodb.TransactGetItemsInput)
					switch {
					case ok && len(in.TransactItems) == 1 && valueOf(in.TransactItems[0].Get.Key["key"]) == string(unread):
						return faults.Deny()
					case c.Op != "BatchExecuteStatement" && c.Actions > 1:
						return faults.RefuseAsTooLarge()
					}
					return faults.Pass()
				}), four...)
				ending, err := set.End(t.Context())
				require.NoError(t, err)
				require.NoError(t, b.transact(ending.Actions()...))
				for _, k := range four {
					b.committedBySomebodyElse(k)
				}
				fate, err := ending.Resolve(t.Context())
				require.ErrorAs(t, err, new(*lockset.TableError))
				require.Equal(t, lockrow.FateUnknown, fate)
			})
		})
	}
}

// Which key refused a commit is told by the reasons of its own rows, and the first of
// them is named.
func TestWhichKeyRefused(t *testing.T) {
	const condition, conflict, none = "ConditionalCheckFailed", "TransactionConflict", "None"
	for name, c := range map[string]struct {
		codes []string
		key   ordering.Key
	}{
		"no reasons":              {nil, ""},
		"nobody's":                {[]string{none, none, none, none, none}, ""},
		"busy ones":               {[]string{conflict, conflict, none, none, none}, ""},
		"a write's":               {[]string{none, none, none, none, condition}, ""},
		"the first":               {[]string{condition, none, none, none, none}, "a"},
		"the last":                {[]string{none, none, none, condition, none}, "d"},
		"the first of two":        {[]string{none, condition, none, condition, condition}, "b"},
		"beside a busy one":       {[]string{conflict, none, condition, none, none}, "c"},
		"fewer than rows":         {[]string{none, condition}, "b"},
		"fewer, and nobody's":     {[]string{none}, ""},
		"a write's, beside a row": {[]string{none, none, none, condition, condition}, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				ending, err := b.take(b.owner("o", nil), four...).End(t.Context())
				require.NoError(t, err)
				var reasons []types.CancellationReason
				for _, code := range c.codes {
					reasons = append(reasons, types.CancellationReason{Code: &code})
				}
				err = ending.Refused(reasons)
				if c.key == "" {
					require.NoError(t, err)
				} else {
					var lost *heartbeat.LostError
					require.ErrorAs(t, err, &lost)
					require.Equal(t, c.key, lost.Key)
					require.ErrorIs(t, err, lockset.ErrLost)
				}
				_, err = ending.Resolve(t.Context())
				require.NoError(t, err)
			})
		})
	}
}

// In whose hands a key is: the same as long as nobody else has had it.
func TestTheHandOfARow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		look := func() (marked bool, hand string) {
			t.Helper()
			marked, hand, err := o.RowHand("a", b.row("a"))
			require.NoError(t, err)
			return marked, hand
		}
		seen := map[string]string{}
		is := func(what string, marks bool) {
			t.Helper()
			marked, hand := look()
			require.Equal(t, marks, marked, what)
			require.NotContains(t, seen, hand, "%s is not %s", what, seen[hand])
			seen[hand] = what
			time.Sleep(2 * lease) // and renewed meanwhile
			_, later := look()
			require.Equal(t, hand, later, what)
		}
		is("never held", false)
		set := b.take(o, "a")
		is("held", false)
		p, err := set.Prepare(t.Context(), unitTable, func(int) {})
		require.NoError(t, err)
		marked, hand := look()
		require.True(t, marked)
		require.Equal(t, "held", seen[hand], "a mark changes no hands")
		require.NoError(t, p.Release(t.Context()))
		is("released", false)
		set = b.take(o, "a")
		is("held again", false)
		b.free(set)
		is("released again", false)

		b.putItem(item{"key": &types.AttributeValueMemberS{Value: "a"}, "colour": &types.AttributeValueMemberS{Value: "red"}})
		_, _, err = o.RowHand("a", b.row("a"))
		var foreign *lockrow.RowError
		require.ErrorAs(t, err, &foreign)
		require.Equal(t, ordering.Key("a"), foreign.Key)
	})
}

// A marked set that is done with, or released, is quiet before anybody is told: no
// renewal is under way any more, and none follows.
func TestAMarkedSetIsQuietBeforeItIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*bed, *lockset.Prepared)
		told int
	}{
		"all of it was freed": {func(b *bed, p *lockset.Prepared) {
			require.NoError(b.t, b.frees(p, b.steps("a", "b")...))
			p.Done(true)
		}, 1},
		"the rest is left to others": {func(_ *bed, p *lockset.Prepared) { p.Done(false) }, 0},
		"it is released":             {func(b *bed, p *lockset.Prepared) { require.NoError(b.t, p.Release(b.t.Context())) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var renewing atomic.Bool
				var renewals atomic.Int32
				told := 0
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.Op == "BatchExecuteStatement" {
						renewals.Add(1)
						renewing.Store(true)
						time.Sleep(lease / 20)
						renewing.Store(false)
					}
					return faults.Pass()
				}, func(c *lockset.Config) {
					c.Trace = trace.Join(c.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) {
						told++
						require.False(t, renewing.Load(), "it is told as released while it is renewed")
					}))
				})
				set, p := b.prepared(o, "a", "b")
				for !renewing.Load() {
					time.Sleep(time.Millisecond)
				}
				c.end(b, p)
				require.False(t, renewing.Load())
				require.Equal(t, c.told, told)
				before := renewals.Load()
				time.Sleep(2 * lease)
				require.Equal(t, before, renewals.Load())
				require.NoError(t, atOnce(t, "Release", set.Release), "nothing is the set's to release")
			})
		})
	}
}

// What of a marked set cannot be freed is not told as released, and is left.
func TestAMarkedSetThatCannotBeReleased(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		told := 0
		var denied atomic.Bool
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if denied.Load() && (c.Op == "UpdateItem" || c.Op == "TransactWriteItems") {
				return faults.Deny()
			}
			return faults.Pass()
		}, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { told++ }))
		})
		set, p := b.prepared(o, "a", "b")
		denied.Store(true)
		require.ErrorAs(t, p.Release(t.Context()), new(*lockset.TableError))
		require.Zero(t, told)
		require.True(t, b.isMarked("a"))
		require.True(t, b.isMarked("b"))

		denied.Store(false)
		require.NoError(t, set.Release(t.Context()), "what is left is the set's to release")
		require.Equal(t, 1, told)
		b.allFree()
	})
}
