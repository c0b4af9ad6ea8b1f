package lockset_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// The write by which a unit goes past others is refused if the row is not as it was when the unit
// found that it may.

// goesPast calls change when the first write arrives by which the second in a queue goes past the head.
func goesPast(change func()) (faults.Script, *atomic.Bool) {
	changed := &atomic.Bool{}
	return func(c faults.Call) faults.Fault {
		update := ""
		switch in := c.Input.(type) {
		case *dynamodb.UpdateItemInput:
			update = *in.UpdateExpression
		case *dynamodb.TransactWriteItemsInput:
			if of := in.TransactItems[0].Update; of != nil {
				update = *of.UpdateExpression
			}
		}
		if strings.Contains(update, "#queue[1], #queue[0]") && !changed.Swap(true) {
			change()
		}
		return faults.Pass()
	}, changed
}

func TestAUnitThatGoesPastOthersFindsTheRowAsItWasSeen(t *testing.T) {
	for name, key := range waysToTake {
		for what, change := range map[string]func(*bed){
			"another has had it": func(b *bed) {
				b.change("c", "SET turnAt = :now", map[string]types.AttributeValue{":now": n(time.Now().UnixNano())})
			},
			"another has it from below": func(b *bed) {
				b.change("c", "ADD below :entry", map[string]types.AttributeValue{":entry": ss("another 2")})
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					holder := b.take(b.owner("holder", nil), "c")
					dead := b.diesWaiting("dead", "c")
					script, changed := goesPast(func() { change(b) })
					o := b.ask(t.Context(), b.owner("o", script), []ordering.Key{key})
					b.free(holder)
					b.within(grace, changed)
					time.Sleep(2 * rtt)
					require.True(t, o.waits())
					require.Equal(t, dead, b.queue("c")[0])
					o.leave()
					b.allFree()
				})
			})
		}
	}
}

// The place of a unit that goes past others may have moved since it was seen: the unit removes its own
// place and those before it, and none behind it.
func TestAUnitThatGoesPastOthersKeepsThoseBehindIt(t *testing.T) {
	for name, key := range waysToTake {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "c")
				b.diesWaiting("dead", "c")
				script, moved := goesPast(func() { b.requeue("c", b.places("c")[1:]) })
				o := b.ask(t.Context(), b.owner("o", script), []ordering.Key{key})
				next := b.diesWaiting("next", "c")
				b.free(holder)
				set := o.got()
				require.True(t, moved.Load())
				require.Equal(t, []string{next}, b.queue("c"))
				b.free(set)
			})
		})
	}
}

// Callers that join a queue and die do not make the row look as if it had just become free.
func TestAJoinBehindOthersLeavesSinceWhenTheRowIsFree(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		b.diesWaiting("first", "a")
		b.free(holder)
		since := b.row("a")["turnAt"]
		require.NotNil(t, since)
		b.diesWaiting("second", "a")
		require.Equal(t, since, b.row("a")["turnAt"])
	})
}

// Nor does a sweep remove the queue of a row that another has taken since the look.
func TestASweepKeepsTheQueueOfARowThatIsHeldByNow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		b.diesWaiting("dead", "a")
		b.diesWaiting("dead, too", "a")
		b.free(holder)
		taken := false
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && *in.UpdateExpression == "REMOVE #queue" && !taken {
				taken = true
				row := b.row("a") // another goes past the dead, and a third joins
				delete(row, "isReleased")
				row["unit"] = s("another")
				b.putItem(row)
				b.requeue("a", []string{"third"})
			}
			return faults.Pass()
		})
		ctx, cancel := context.WithTimeout(t.Context(), lease+lease/2)
		defer cancel()
		_, _ = inspect.Sweep(ctx, o.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
		require.True(t, taken)
		require.Equal(t, []string{"third"}, b.queue("a"))
	})
}
