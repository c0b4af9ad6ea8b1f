package lockset_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// The details of a wait: when it ends, whom it names, what it leaves to others.

// raises returns how often units of an owner have raised their tokens.
func (o *owner) raises() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.raised
}

// list is a queue with these units in it.
func list(units ...string) *types.AttributeValueMemberL {
	l := &types.AttributeValueMemberL{}
	for _, u := range units {
		l.Value = append(l.Value, s(u))
	}
	return l
}

// Who is next at one row of its step and waits for another's turn at a later one gives
// the first up before those behind it count it as dead.
func TestAHeadThatWaitsForAnothersTurnLeavesInTime(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "c/1"))
		holder := b.take(b.owner("holder", nil), "c")
		var byBehind, byO []string
		o := b.ask(t.Context(), b.owner("o", nil, droppedBy(&byO)), []ordering.Key{"c/1"})
		behind := b.ask(t.Context(), b.owner("behind", nil, droppedBy(&byBehind)), []ordering.Key{"c/2"})
		b.change("c/1", "SET queue = :queue", map[string]types.AttributeValue{":queue": list("next-at-c/1")})
		require.Len(t, b.queue("c"), 2)
		b.free(holder)
		freed := time.Now()
		behind.leave()
		require.GreaterOrEqual(t, behind.at.Sub(freed), untaken/2)
		require.Less(t, behind.at.Sub(freed), untaken/2+slowest+8*rtt)
		require.Empty(t, byBehind, "it left by itself")
		o.leave()
		require.Less(t, o.at.Sub(freed), 2*grace)
		require.Equal(t, []string{"next-at-c/1"}, byO)
		b.allFree()
	})
}

// However long a unit would wait, it has the key soon after that is free.
func TestALongRecordWaitIsNoPause(t *testing.T) {
	for name, option := range map[string]func(*lockset.Options){"limited": wait(4 * lease), "as long as its context": func(*lockset.Options) {}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				holder := b.take(b.owner("holder", nil), "a")
				p := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{"a"}, option)
				time.Sleep(50 * time.Millisecond)
				b.free(holder)
				freed := time.Now()
				p.leave()
				require.Less(t, p.at.Sub(freed), 200*time.Millisecond)
			})
		})
	}
}

// Whoever waits in vain is told of another unit: never of itself, never of nobody.
func TestARefusalAfterAWaitNamesAnother(t *testing.T) {
	const beside = 64 // as many intents as a row has at most
	for name, c := range map[string]struct {
		wanted ordering.Key
		below  int
		first  bool // a coarse waiter is before it
		blind  bool // it cannot look at the witnesses
	}{
		"an intent, second in the queue":           {"c/x", 1, true, false},
		"an intent, the head":                      {"c/x", beside, false, false},
		"an intent, the head, blind":               {"c/x", beside, false, true},
		"a key, the head":                          {"c", 2, false, false},
		"a key, the head, blind":                   {"c", 2, false, true},
		"a key, second in the queue":               {"c", 2, true, false},
		"a key, second in the queue, blind":        {"c", 2, true, true},
		"an intent, second in a full queue, blind": {"c/x", beside, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.below("c", c.below)
				others := map[string]bool{}
				for _, text := range b.row("c")["below"].(*types.AttributeValueMemberSS).Value {
					unit, _, _ := strings.Cut(text, " ")
					others[unit] = true
				}
				if c.first {
					next := b.diesWaiting("next", "c")
					if c.wanted != "c" {
						others = map[string]bool{next: true} // the intents go together with its own
					}
				}
				place := len(b.queue("c"))
				o := b.owner("o", func(call faults.Call) faults.Fault {
					if c.blind && call.Op == "TransactGetItems" {
						return faults.LoseRequest(faults.Reset)
					}
					return faults.Pass()
				})
				p := b.ask(t.Context(), o, []ordering.Key{c.wanted}, wait(lease/2))
				require.Len(t, b.queue("c"), place+1)
				var held *lockset.HeldError
				require.ErrorAs(t, p.failed(), &held)
				require.Contains(t, others, held.Unit)
				require.Equal(t, place, held.Queue, "but for itself")
				require.Equal(t, place, len(b.queue("c")))
			})
		})
	}
}

// A dead unit with a journal is settled, and another that is dead is not taken for it,
// though both are in the way of one transaction.
func TestADeadUnitWithAJournalNextToADeadOneWithout(t *testing.T) {
	for _, c := range []struct{ marked, plain ordering.Key }{{"a", "b"}, {"b", "a"}} {
		inBed(t, func(t *testing.T, b *bed) {
			marked := b.diesMarked(c.marked)
			b.crashed(c.plain)
			j := &judges{}
			o := b.settler("o", j)
			asked := time.Now()
			b.free(b.take(o, "a", "b"))
			require.Less(t, time.Since(asked), lease+lease/10)
			require.Equal(t, map[string]bool{marked.Nonce(): true}, j.units)
			require.Contains(t, o.buried, c.plain)
			b.allFree()
		})
	}
}

// A witness that got a journal between the look and the clean keeps its intent.
func TestAWitnessThatTurnsPendingIsNotCleaned(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/1")
		marked := false
		o := b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && in.TransactItems[0].Update != nil && strings.Contains(*in.TransactItems[0].Update.ConditionExpression, ":rvn") {
				b.change("c/1", "SET pending = :yes", map[string]types.AttributeValue{":yes": s("units")})
				marked = true
			}
			return faults.Pass()
		})
		b.refused(o, 3*lease, "c")
		require.True(t, marked)
		require.Empty(t, o.buried)
		require.Empty(t, o.cleaned)
		require.Contains(t, b.row("c"), "below")
		require.Contains(t, b.row("c/1"), "unit")
	})
}

// A row whose fence is just the token of who waits for it: it joins at once, with a
// higher one.
func TestARowWithTheVeryToken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "b")
		var mu sync.Mutex
		joins, same := 0, false
		o := b.owner("o", func(c faults.Call) faults.Fault {
			mu.Lock()
			defer mu.Unlock()
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			switch {
			case !ok || valueOf(in.Key["key"]) != "b":
			case strings.Contains(*in.UpdateExpression, "list_append"):
				joins++
			case !same:
				same = true
				b.change("b", "SET fence = :token", map[string]types.AttributeValue{":token": b.row("a")["fence"]})
			}
			return faults.Pass()
		}, func(c *lockset.Config) { c.ChunkSize = 1 })
		p := b.ask(t.Context(), o, []ordering.Key{"a", "b"})
		time.Sleep(4 * rtt)
		mu.Lock()
		require.True(t, same)
		require.Equal(t, 1, joins)
		mu.Unlock()
		require.Len(t, b.queue("b"), 1)
		b.free(holder)
		p.leave()
		b.allFree()
	})
}

// A unit that has stood in line while others of its process, and one of another, have
// had its key knows all their tokens: its first try is its last.
func TestAUnitWhoseFirstKeyHasBeenAround(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		first := b.take(o, "a")
		second := b.ask(t.Context(), o, []ordering.Key{"a"})
		third := b.ask(t.Context(), o, []ordering.Key{"a", "b"})
		elsewhere := b.ask(t.Context(), b.owner("elsewhere", nil), []ordering.Key{"a"})
		b.free(first)
		elsewhere.leave()
		second.got()
		o.requests()
		before := o.raises()
		second.leave()
		set := third.got()
		require.Greater(t, set.Token(), second.set.Token())
		require.Equal(t, map[string]int{"UpdateItem": 1, "TransactWriteItems": 1}, o.requests(), "to release, to take")
		require.Equal(t, before, o.raises())
		third.leave()
		b.allFree()
	})
}

// A look ahead comes when the holder has been silent for half a lease, and then once a
// lease; it asks for no more at a time than is good for the rest of the process.
func TestLooksAheadAreSeldom(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesMarked("a") // and nobody decides
		keys := append(pairs(1000), "a")
		var mu sync.Mutex
		var at []time.Time
		now, atOnce := 0, 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" {
				mu.Lock()
				defer mu.Unlock()
				if len(at) == 0 || time.Since(at[len(at)-1]) > 100*rtt {
					at = append(at, time.Now())
				}
				now++
				atOnce = max(atOnce, now)
			}
			return faults.Pass()
		}, func(c *lockset.Config) {
			c.Trace = trace.Join(c.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
				if i.Op == "TransactGetItems" {
					mu.Lock()
					defer mu.Unlock()
					now--
				}
			}))
		})
		ctx, cancel := context.WithTimeout(t.Context(), 4*lease)
		defer cancel()
		asked := time.Now()
		_, err := o.Acquire(ctx, keys)
		require.Error(t, err)
		mu.Lock()
		defer mu.Unlock()
		for i, want := range []time.Duration{lease / 2, 3 * lease / 2, 5 * lease / 2, 7 * lease / 2} {
			require.WithinRange(t, at[i], asked.Add(want), asked.Add(want+time.Duration(i+1)*slowest))
		}
		require.Equal(t, 8, atOnce)
	})
}

// Witnesses that several rows name are looked at once: the heir waits for a
// lease and a half, not for two.
func TestALookAheadAtSharedWitnesses(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a", "c/1/x", "c/1/y", "c/2/x")
		o := b.owner("o", nil)
		asked := time.Now()
		b.free(b.take(o, "a", "c/1", "c/2/x"))
		require.Less(t, time.Since(asked), lease+lease/2+lease/4)
	})
}

// A unit whose token was overtaken too often queues; as the head it proposes another as
// often as it takes, and waits for nobody.
func TestAHeadWhoseTokenIsOvertakenAgainAndAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.owner("before", nil), "a"))
		var mu sync.Mutex
		tries := 0
		o := b.owner("o", func(c faults.Call) faults.Fault {
			mu.Lock()
			defer mu.Unlock()
			in, ok := c.Input.(*dynamodb.UpdateItemInput)
			if ok && strings.Contains(*in.UpdateExpression, "#acquiredAt") {
				if tries++; tries < 8 { // the very token is enough
					b.change("a", "SET fence = :token", map[string]types.AttributeValue{":token": in.ExpressionAttributeValues[":token"]})
				}
			}
			return faults.Pass()
		})
		p := b.ask(t.Context(), o, []ordering.Key{"a"})
		p.leave()
		require.Less(t, p.at.Sub(p.asked), soon+20*rtt)
		require.Equal(t, 8, tries)
		b.allFree()
	})
}
