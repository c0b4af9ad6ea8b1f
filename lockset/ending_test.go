package lockset_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// A set that is on its way out, when the transaction that was to free it was refused
// or had no answer.

// Resolved, a set has been released, also if it was committed and nobody heard of it: nobody waits for
// it, nor does its release.
func TestAResolvedSetIsReleased(t *testing.T) {
	type given struct {
		before func(*bed, *locks.Ending)
		fate   lockrow.Fate
	}
	inBeds(t, map[string]given{
		"all of it is the set's":        {func(*bed, *locks.Ending) {}, lockrow.FateNever},
		"it was given back and retaken": {func(_ *bed, e *locks.Ending) { e.Return(); e.Retake() }, lockrow.FateNever},
		"one key is another's": {func(b *bed, _ *locks.Ending) { b.free(b.seize("a", b.owner("thief", nil))) },
			lockrow.FateNever},
		"its rows are gone": {func(b *bed, _ *locks.Ending) { b.delete("a"); b.delete("b") }, lockrow.FateUnknown},
		"it was committed": {func(b *bed, e *locks.Ending) { require.NoError(b.t, b.transact(e.Actions()...)) },
			lockrow.FateCommitted},
	}, func(t *testing.T, b *bed, c given) {
		released := 0
		o := b.owner("o", nil, counting(trace.Released, &released))
		set := b.take(o, "a", "b")
		ending := must(engine(set).End(t.Context()))(t)
		c.before(b, ending)
		require.Equal(t, c.fate, must(ending.Resolve(t.Context()))(t), "what was lost is the fate's to say")
		require.Equal(t, 1, released)
		began := time.Now()
		require.NoError(t, set.Release(t.Context()))
		require.Zero(t, time.Since(began), "there is nothing left to release")
		b.free(b.take(o, "a", "b"))
		b.allFree()
	})
}

// What could not be freed is not told as released, and the error says why.
func TestAResolvedSetThatIsNotFree(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		released := 0
		var resolving atomic.Bool
		o := b.owner("o", when(func(c faults.Call) bool { // it is released alone, when the first has refused
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			return ok && resolving.Load() && lockrow.TextOf(in.Key["key"]) == "b"
		}, faults.Deny()), counting(trace.Released, &released))
		ending := must(engine(b.take(o, "a", "b")).End(t.Context()))(t)
		b.free(b.seize("a", b.owner("thief", nil)))
		resolving.Store(true)
		fate, err := ending.Resolve(t.Context())
		require.Equal(t, lockrow.FateNever, fate, "a commit frees all or none")
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Zero(t, released)
		require.Contains(t, b.row("b"), "unit")
	})
}

// What became of a transaction whose rows are too large to be read at once.

var four = []ordering.Key{"a", "b", "c", "d"}

// committedBySomebodyElse has a row say what the last of others left there.
func (b *bed) committedBySomebodyElse(key ordering.Key) {
	b.t.Helper()
	b.change(key, "SET committedBy = :other, fence = :fence", item{
		":other": s("another"), ":fence": &types.AttributeValueMemberN{Value: "990000000000000"},
	})
}

// Any of the rows may be the only one that still tells of a commit, in whichever half it is read; and
// none of them may tell any more.
func TestTheOneRowThatTells(t *testing.T) {
	for _, teller := range append(four, "none") {
		inBedsOf(t, []int{1, 2, 3}, func(t *testing.T, b *bed, most int) {
			ending := must(engine(b.take(b.owner("o", atMost(most)), four...)).End(t.Context()))(t)
			require.NoError(t, b.transact(ending.Actions()...))
			for _, k := range four {
				if k != teller {
					b.committedBySomebodyElse(k)
				}
			}
			fate := lockrow.FateCommitted
			if teller == "none" {
				fate = lockrow.FateUnknown
			}
			require.Equal(t, fate, must(ending.Resolve(t.Context()))(t))
		})
	}
}

func TestAHalfThatCannotBeRead(t *testing.T) {
	inBedsOf(t, four, func(t *testing.T, b *bed, unread ordering.Key) {
		halves := atMost(1)
		set := b.take(b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactGetItemsInput)
			if ok && len(in.TransactItems) == 1 && lockrow.TextOf(in.TransactItems[0].Get.Key["key"]) == string(unread) {
				return faults.Deny()
			}
			return halves(c)
		}), four...)
		ending := must(engine(set).End(t.Context()))(t)
		require.NoError(t, b.transact(ending.Actions()...))
		for _, k := range four {
			b.committedBySomebodyElse(k)
		}
		fate, err := ending.Resolve(t.Context())
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Equal(t, lockrow.FateUnknown, fate)
	})
}

// Which key refused a commit is told by the reasons of its own rows, and the first of
// them is named.
func TestWhichKeyRefused(t *testing.T) {
	const condition, conflict, none = "ConditionalCheckFailed", "TransactionConflict", "None"
	type given struct {
		codes []string
		key   ordering.Key
	}
	inBeds(t, map[string]given{
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
	}, func(t *testing.T, b *bed, c given) {
		ending := must(engine(b.take(b.owner("o", nil), four...)).End(t.Context()))(t)
		var reasons []types.CancellationReason
		for _, code := range c.codes {
			reasons = append(reasons, types.CancellationReason{Code: &code})
		}
		err := ending.Refused(reasons)
		if c.key == "" {
			require.NoError(t, err)
		} else {
			requireLost(t, err, c.key)
			require.ErrorIs(t, err, lockset.ErrLost)
		}
		_, err = ending.Resolve(t.Context())
		require.NoError(t, err)
	})
}

// In whose hands a key is: the same as long as nobody else has had it.
func TestTheHandOfARow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		look := func() (marked bool, hand string) {
			t.Helper()
			marked, hand, err := o.engine().RowHand("a", b.row("a"))
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
		p := must(engine(set).Prepare(t.Context(), unitTable, func(int) {}))(t)
		marked, hand := look()
		require.True(t, marked)
		require.Equal(t, "held", seen[hand], "a mark changes no hands")
		require.NoError(t, p.Release(t.Context()))
		is("released", false)
		set = b.take(o, "a")
		is("held again", false)
		b.free(set)
		is("released again", false)

		b.putItem(item{"key": s("a"), "colour": s("red")})
		_, _, err := o.engine().RowHand("a", b.row("a"))
		require.Equal(t, ordering.Key("a"), as[*lockrow.RowError](t, err).Key)
	})
}

// A marked set that is done with, or released, is quiet before anybody is told: no
// renewal is under way any more, and none follows.
func TestAMarkedSetIsQuietBeforeItIsReleased(t *testing.T) {
	type given struct {
		end  func(*bed, *locks.Prepared)
		told int
	}
	inBeds(t, map[string]given{
		"all of it was freed": {func(b *bed, p *locks.Prepared) {
			require.NoError(b.t, b.frees(p, b.steps("a", "b")...))
			p.Done(true)
		}, 1},
		"the rest is left to others": {func(_ *bed, p *locks.Prepared) { p.Done(false) }, 0},
		"it is released":             {func(b *bed, p *locks.Prepared) { require.NoError(b.t, p.Release(b.t.Context())) }, 1},
	}, func(t *testing.T, b *bed, c given) {
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
		}, hearing(trace.Released, func(trace.Event) {
			told++
			require.False(t, renewing.Load(), "it is told as released while it is renewed")
		}))
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
}

// What of a marked set cannot be freed is not told as released, and is left.
func TestAMarkedSetThatCannotBeReleased(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		told := 0
		var denied atomic.Bool
		frees := of("UpdateItem", "TransactWriteItems")
		o := b.owner("o", when(func(c faults.Call) bool { return denied.Load() && frees(c) }, faults.Deny()),
			counting(trace.Released, &told))
		set, p := b.prepared(o, "a", "b")
		denied.Store(true)
		require.ErrorAs(t, p.Release(t.Context()), new(*lockset.TableError))
		require.Zero(t, told)
		require.True(t, b.isMarked("a") && b.isMarked("b"))

		denied.Store(false)
		require.NoError(t, set.Release(t.Context()), "what is left is the set's to release")
		require.Equal(t, 1, told)
		b.allFree()
	})
}

// A set that is on its way out is ended once. Who tries again is told, at once.

// atOnce asserts that a call takes no time, whatever its context allows.
func atOnce(t *testing.T, name string, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	start := time.Now()
	err := call(ctx)
	require.Zero(t, time.Since(start), "%s: %v", name, err)
	return err
}

// refusesAll asserts that nothing else ends the set.
func refusesAll(t *testing.T, set *lockset.Set, says string) {
	t.Helper()
	for name, call := range map[string]func(context.Context) error{
		"End": func(ctx context.Context) error { _, err := engine(set).End(ctx); return err },
		"Pend": func(ctx context.Context) error {
			_, err := engine(set).Prepare(ctx, unitTable, func(int) {})
			return err
		},
		"Release": set.Release,
		"Release, late": func(ctx context.Context) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return set.Release(ended)
		},
	} {
		err := atOnce(t, name, call)
		require.ErrorIs(t, err, locks.ErrUnresolved, name)
		require.ErrorContains(t, err, says, name)
		require.NotErrorIs(t, err, lockset.ErrLost, name)
	}
}

func TestASetIsEndedOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a", "b/c")
		ending := must(engine(set).End(t.Context()))(t)
		refusesAll(t, set, "Ending must be resolved first, by Committed, Resolve or Return")

		require.NoError(t, b.transact(ending.Actions()...))
		ending.Committed()
		require.NoError(t, atOnce(t, "Release", set.Release), "nothing is left to release")
		err := atOnce(t, "End", func(ctx context.Context) error { _, err := engine(set).End(ctx); return err })
		require.ErrorIs(t, err, lockset.ErrLost)
		require.ErrorIs(t, err, heartbeat.ErrReleased)
		for name, call := range map[string]func(){
			"Committed": ending.Committed,
			"Resolve":   func() { _, _ = ending.Resolve(t.Context()) },
			"Return":    ending.Return,
		} {
			require.PanicsWithValue(t, "lockset: Ending."+name+": Committed was called before; "+
				"exactly one of Committed, Resolve and Return must be, once", call)
		}
		require.PanicsWithValue(t, "lockset: Ending.Retake: nothing was given back by Return", ending.Retake)
		b.allFree()
	})
}

func TestASetIsEndedOnceByAResolve(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		ending := must(engine(set).End(t.Context()))(t)
		var both sync.WaitGroup
		both.Go(func() { assert.Equal(t, lockrow.FateNever, must(ending.Resolve(t.Context()))(t)) })
		both.Go(func() {
			time.Sleep(rtt / 2)
			assert.NoError(t, set.Release(t.Context())) // waits for it: there is an end to that
		})
		time.Sleep(rtt / 2)
		require.Panics(t, func() { _, _ = ending.Resolve(t.Context()) })
		both.Wait()
		b.allFree()
	})
}

func TestASetThatWasGivenBackIsEndedOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		ending := must(engine(set).End(t.Context()))(t)
		ending.Return()
		require.Panics(t, ending.Committed)
		p := must(engine(set).Prepare(t.Context(), unitTable, func(int) {}))(t)
		require.PanicsWithValue(t, "lockset: Ending.Retake: the set was prepared since", ending.Retake)
		refusesAll(t, set, "Prepared must be ended first, by Done or Release")
		require.NoError(t, p.Release(t.Context()))
		for name, call := range map[string]func(){
			"Done":    func() { p.Done(true) },
			"Release": func() { _ = p.Release(t.Context()) },
		} {
			require.PanicsWithValue(t, "lockset: Prepared."+name+": Release was called before; exactly one of Done and Release must be, once", call)
		}
		require.NoError(t, atOnce(t, "Release", set.Release))
		b.allFree()
	})
}

func TestWhoWaitsForAReleaseUnderWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a")
		o.net.Partition(true)
		var release sync.WaitGroup
		release.Go(func() { assert.Error(t, set.Release(t.Context())) })
		time.Sleep(rtt)
		start := time.Now()
		ctx := b.lasting(lease / 5)
		late := set.Release(ctx)
		_, end := engine(set).End(ctx)
		_, mark := engine(set).Prepare(ctx, unitTable, func(int) {})
		for _, err := range []error{late, end, mark} {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, lease/5+lease/10, time.Since(start))
		release.Wait()
		o.net.Partition(false)
		b.free(set)
		b.allFree()
	})
}

func TestWhoWaitsForAMarkUnderWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a")
		var ends sync.WaitGroup
		ends.Go(func() {
			time.Sleep(rtt / 2)
			_, err := engine(set).End(t.Context())
			assert.ErrorIs(t, err, locks.ErrUnresolved)
		})
		p := must(engine(set).Prepare(t.Context(), unitTable, func(int) {}))(t)
		ends.Wait()
		require.NoError(t, p.Release(t.Context()))
		b.allFree()
	})
}

// What a lost key left above it could not be taken away: the release is not
// done, says so, and the next one does it.
func TestAReleaseThatLeavesAnIntentIsNotDone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var silent atomic.Bool
		released := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			tx, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && silent.Load() && len(tx.TransactItems) == 2 { // all but the key that was lost
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		}, counting(trace.Released, &released))
		set := b.take(o, "a", "c/x")
		thief := b.owner("thief", nil)
		other := b.seize("c/x", thief)

		silent.Store(true)
		ctx := b.lasting(3 * lease)
		err := set.Release(ctx)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.Zero(t, released, "an intent is left")

		silent.Store(false)
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		require.Equal(t, 1, released)
		b.free(other)
		b.allFree()
	})
}
