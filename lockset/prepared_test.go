package lockset_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Sets that wait for a journal: what their mark keeps others from, and how they
// are freed, all at once or step by step.

// unitTable has the journals of sets that wait for one.
const unitTable = "units"

// prepared is a set that waits for its journal. Its heartbeats end with the test.
func (b *bed) prepared(o *owner, keys ...ordering.Key) (*lockset.Set, *locks.Prepared) {
	b.t.Helper()
	set := must(o.Acquire(b.t.Context(), keys))(b.t)
	b.t.Cleanup(func() { _, _ = engine(set).End(ended()) })
	p := must(engine(set).Prepare(b.t.Context(), unitTable, func(int) {}))(b.t)
	return set, p
}

// diesMarked has a fresh owner mark keys and die.
func (b *bed) diesMarked(keys ...ordering.Key) *lockset.Set {
	dead := b.owner("dead", nil)
	set, _ := b.prepared(dead, keys...)
	dead.net.Crash()
	return set
}

// steps are those of a set of these keys.
func (b *bed) steps(keys ...ordering.Key) plans.Plan {
	b.t.Helper()
	plan := must(plans.New(keys...))(b.t)
	return plan
}

// frees carries out the writes that free steps, in reverse order, and returns what
// DynamoDB says.
func (b *bed) frees(p *locks.Prepared, steps ...plans.Step) error {
	b.t.Helper()
	for i := len(steps) - 1; i >= 0; i-- {
		if err := b.transact(p.Free(steps[i])...); err != nil {
			return err
		}
	}
	return nil
}

func (b *bed) transact(items ...types.TransactWriteItem) error {
	_, err := b.db.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: items})
	return err
}

func (b *bed) isMarked(key ordering.Key) bool {
	return lockrow.TextOf(b.row(key)["pending"]) == unitTable
}

// freedByTheirUnit asserts that keys are free, unmarked, and have their unit's mark of a
// commit.
func (b *bed) freedByTheirUnit(unit string, keys ...ordering.Key) {
	b.t.Helper()
	for _, k := range keys {
		r := b.row(k)
		require.Equal(b.t, s("1"), r["isReleased"], "%v", k)
		require.NotContains(b.t, r, "unit", "%v", k)
		require.NotContains(b.t, r, "pending", "%v", k)
		require.Contains(b.t, r, "expiresAt", "%v", k)
		require.Equal(b.t, s(unit), r["committedBy"], "%v", k)
	}
}

func TestAMarkedSetIsRenewedAndDoesNotExpire(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set := b.take(o, "a", "c/x", "c/y", "d")
		entries := b.row("c")["below"]
		require.Contains(t, b.row("a"), "expiresAt")
		steps := make(chan int, 4)
		p := must(engine(set).Prepare(t.Context(), unitTable, func(n int) { steps <- n }))(t)
		require.Equal(t, 4, <-steps, "one transaction")
		for _, k := range set.Keys() {
			require.True(t, b.isMarked(k), "%v", k)
			require.NotContains(t, b.row(k), "expiresAt", "%v: others would see it free", k)
		}
		require.NotContains(t, b.row("c"), "pending", "an intent lives by its witness")
		require.Equal(t, entries, b.row("c")["below"])
		time.Sleep(5 * lease)
		require.NoError(t, context.Cause(set.Context()))
		b.refused(b.owner("other", nil), 5*lease, "c/y")
		require.NoError(t, context.Cause(set.Context()))

		unit := set.Nonce()
		require.NoError(t, b.frees(p, engine(set).Plan()...))
		p.Done(true)
		b.freedByTheirUnit(unit, "a", "c/x", "c/y", "d")
		b.allFree()
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrReleased)
	})
}

// A set of more rows than a transaction has is prepared in several, of whole steps. Eight of them at a
// time: the SDK's HTTP client keeps ten connections to a host.
func TestALargeSetIsMarkedStepByStep(t *testing.T) {
	type given struct {
		keys         []ordering.Key
		transactions int
		took         time.Duration
	}
	inBeds(t, map[string]given{
		"two rows each":       {pairs(120), 3, rtt},
		"of ten, two go late": {singles(1000), 10, 2 * rtt},
	}, func(t *testing.T, b *bed, c given) {
		o := b.owner("o", nil)
		set := b.take(o, c.keys...)
		o.requests()
		var prepared atomic.Int64
		began := time.Now()
		p := must(engine(set).Prepare(t.Context(), unitTable, func(n int) { prepared.Add(int64(n)) }))(t)
		require.Equal(t, c.took, time.Since(began))
		require.EqualValues(t, len(c.keys), prepared.Load())
		require.Equal(t, c.transactions, o.requests()["TransactWriteItems"])
		for _, row := range b.db.Items(table) {
			require.True(t, row["below"] != nil || lockrow.TextOf(row["pending"]) == unitTable, "%v", row)
		}
		require.NoError(t, p.Release(t.Context()))
		b.allFree()
	})
}

// What is not the unit's any more cannot wait for its journal. The rows of one
// transaction are prepared together or not at all.
func TestASetThatLostARowIsNotMarked(t *testing.T) {
	type given struct {
		lose func(*bed)
		key  ordering.Key
	}
	inBeds(t, map[string]given{
		"another has a key":          {func(b *bed) { b.seize("a", b.owner("thief", nil)) }, "a"},
		"a key's row is gone":        {func(b *bed) { b.delete("a") }, "a"},
		"an intent is gone":          {func(b *bed) { b.change("c", "REMOVE below", nil) }, "c"},
		"an ancestor's row is gone":  {func(b *bed) { b.delete("c") }, "c"},
		"another has it, and intent": {func(b *bed) { b.seize("c/y", b.owner("thief", nil)) }, "c/y"},
	}, func(t *testing.T, b *bed, c given) {
		set := b.take(b.owner("o", nil), "a", "c/x", "c/y")
		c.lose(b)
		_, err := engine(set).Prepare(t.Context(), unitTable, func(int) { t.Error("it was prepared") })
		requireLost(t, err, c.key)
		require.ErrorIs(t, err, lockset.ErrLost)
		for _, k := range set.Keys() {
			require.False(t, b.isMarked(k), "%v", k)
		}
		_ = set.Release(t.Context()) // which tells of the loss again
		for _, k := range set.Keys() {
			if k != c.key {
				require.NotContains(t, b.row(k), "unit", "%v", k)
			}
		}
	})
}

// A set that was released is not marked, and ends no second time: a commit would have no lock to check.
func TestASetThatWasReleasedIsNotMarked(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a", "c/x")
		b.free(set)
		_, marked := engine(set).Prepare(t.Context(), unitTable, func(int) {})
		_, ended := engine(set).End(t.Context())
		for _, err := range []error{marked, ended} {
			require.ErrorIs(t, err, heartbeat.ErrReleased)
			require.ErrorIs(t, err, lockset.ErrLost)
		}
		b.free(set) // and it stays as it was
		b.allFree()
	})
}

// A set that was prepared only in part is released as any: nothing prepared stays behind.
func TestTheReleaseOfAMarkedSetRemovesTheMark(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := singles(101)
		marks := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && isMark(in) {
				if marks++; marks == 2 {
					b.delete(ordering.Key(lockrow.TextOf(in.TransactItems[0].Update.Key["key"])))
					time.Sleep(10 * rtt) // the other transaction has landed
				}
			}
			return faults.Pass()
		})
		set := b.take(o, keys...)
		_, err := engine(set).Prepare(t.Context(), unitTable, func(int) {})
		require.ErrorIs(t, err, lockset.ErrLost)
		require.True(t, slices.ContainsFunc(keys, b.isMarked), "the test is about a set prepared in part")
		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost, "a row was deleted")
		b.allFree()
		require.False(t, slices.ContainsFunc(keys, b.isMarked))
	})
}

// isMark tells the transaction that marks.
func isMark(in *dynamodb.TransactWriteItemsInput) bool {
	u := in.TransactItems[0].Update
	return u != nil && strings.HasPrefix(aws.ToString(u.UpdateExpression), "SET #pending")
}

// A unit that is aborted frees what it prepared, whatever has become of it.
func TestAPendingReleaseFreesWhatIsLeft(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set, p := b.prepared(b.owner("o", nil), "a", "c/x", "c/y", "d")
		b.seize("d", b.owner("thief", nil))
		require.NoError(t, p.Release(t.Context()), "what was not ours any more is no matter")
		for _, k := range []ordering.Key{"a", "c/x", "c/y"} {
			require.NotContains(t, b.row(k), "unit")
			require.NotContains(t, b.row(k), "pending")
			require.NotContains(t, b.row(k), "committedBy", "nothing was committed")
		}
		require.NotContains(t, b.row("c"), "below")
		require.Contains(t, b.row("d"), "unit", "the thief's")
		require.NoError(t, set.Release(t.Context()), "nothing is left")
	})
}

func TestStepsAreFreedBySomebodyElse(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.diesMarked("a", "c/x", "c/y")
		var denied atomic.Bool
		heir := b.owner("heir", when(func(c faults.Call) bool { return c.Op == "TransactGetItems" && denied.Load() }, faults.Deny()))
		p := heir.engine().PreparedOf(t.Context(), set.Nonce(), set.Token(), engine(set).Plan())
		for _, step := range engine(set).Plan() {
			require.Equal(t, locks.Held, must(p.Hold(t.Context(), step))(t))
		}
		require.NoError(t, b.frees(p, engine(set).Plan()...))
		b.freedByTheirUnit(set.Nonce(), "a", "c/x", "c/y")
		b.allFree()
		require.Equal(t, locks.Freed, must(p.Hold(t.Context(), engine(set).Plan()[0]))(t))
		denied.Store(true)
		_, err := p.Hold(t.Context(), engine(set).Plan()[0])
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Error(t, b.frees(p, engine(set).Plan()[0]), "it was done")
		p.Done(true)
	})
}

// A step that is written under and not freed yet is the unit's, and waits for its
// journal: anything else was freed, or is another's.
func TestTheGuardOfAStep(t *testing.T) {
	type given struct {
		change func(*bed, *locks.Prepared)
		holds  bool
	}
	inBeds(t, map[string]given{
		"as it was prepared": {func(*bed, *locks.Prepared) {}, true},
		"freed": {func(b *bed, p *locks.Prepared) {
			require.NoError(b.t, b.frees(p, b.steps("a")...))
		}, false},
		"freed and taken by another": {func(b *bed, p *locks.Prepared) {
			require.NoError(b.t, b.frees(p, b.steps("a")...))
			b.take(b.owner("next", nil), "a")
		}, false},
		"freed, taken and prepared by another": {func(b *bed, p *locks.Prepared) {
			require.NoError(b.t, b.frees(p, b.steps("a")...))
			b.prepared(b.owner("next", nil), "a")
		}, false},
		"not prepared": {func(b *bed, _ *locks.Prepared) { b.change("a", "REMOVE pending", nil) }, false},
		"gone":         {func(b *bed, _ *locks.Prepared) { b.delete("a") }, false},
	}, func(t *testing.T, b *bed, c given) {
		_, p := b.prepared(b.owner("o", nil), "a", "z")
		c.change(b, p)
		err := b.transact(p.CheckHeld(b.steps("a")[0]))
		if c.holds {
			require.NoError(t, err)
			return
		}
		require.ErrorAs(t, err, new(*types.TransactionCanceledException))
	})
}

// Who frees a step lets go of it first: the set is not lost by what it gave away,
// and what it has not given away is kept.
func TestWhatIsLetGoIsNoLossOfTheSet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set, p := b.prepared(b.owner("o", nil), "a", "b", "c")
		last := engine(set).Plan()[2]
		p.LetGo([]ordering.Key{"c"})
		require.NoError(t, b.frees(p, last))
		b.take(b.owner("next", nil), "c")
		time.Sleep(3 * lease)
		require.NoError(t, context.Cause(set.Context()))
		b.refused(b.owner("other", nil), 2*lease, "a")
		require.NoError(t, context.Cause(set.Context()))
		require.NoError(t, b.frees(p, engine(set).Plan()[:2]...))
		p.Done(true)
		b.freedByTheirUnit(set.Nonce(), "a", "b")
	})
}

// A token is burned on a row that waits for a journal as on any other; but the row
// must not expire before its fate is known.
func TestATokenBurnedOnAMarkedRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.diesMarked("a")
		before := b.row("a")
		o := b.owner("o", nth("UpdateItem", 1, faults.DeliverLate(3*lease, faults.Hang)))
		ctx := b.lasting(lease / 20)
		_, err := o.Acquire(ctx, []ordering.Key{"a"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		after := b.row("a")
		require.Greater(t, b.fence("a"), before["fence"].(*types.AttributeValueMemberN).Value)
		require.NotContains(t, after, "expiresAt")
		delete(before, "fence")
		delete(after, "fence")
		require.Equal(t, before, after, "nothing else is changed")

		p := o.engine().PreparedOf(t.Context(), set.Nonce(), set.Token(), engine(set).Plan())
		require.NoError(t, p.Release(t.Context()))
		time.Sleep(4 * lease)
		o.net.Wait()
		b.allFree() // what was under way has arrived, and was refused
	})
}

// What a journal freed stays for the retention, by whichever clock: the row says to those
// who finish the unit that the step is done.
func TestWhatAJournalFreedOutlivesTheRetention(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const retention = 5 * time.Minute
		slow := b.owner("slow", nil, func(c *lockset.Config) {
			c.MaxAge, c.Retention = time.Minute, retention
			c.Now = func() time.Time { return time.Now().Add(-retention * 9 / 10) }
		})
		set, p := b.prepared(slow, "a", "b/x")
		require.NoError(t, b.frees(p, engine(set).Plan()...))
		p.Done(true)
		for range 5 {
			time.Sleep(retention/5 - time.Second)
			b.db.Expire(time.Now())
			b.freedByTheirUnit(set.Nonce(), "a", "b/x")
		}
		time.Sleep(retention)
		b.db.Expire(time.Now())
		require.Nil(t, b.row("a"), "it does expire")
	})
}
