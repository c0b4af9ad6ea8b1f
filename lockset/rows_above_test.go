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
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// expires reports whether TTL will delete a row that nobody uses any more.
func (b *bed) expires(key ordering.Key) bool {
	_, is := b.row(key)["expiresAt"].(*types.AttributeValueMemberN)
	return is
}

// allExpire asserts that TTL deletes every row in the end.
func (b *bed) allExpire() {
	b.t.Helper()
	for _, row := range b.db.Items(table) {
		require.IsType(b.t, &types.AttributeValueMemberN{}, row["expiresAt"], "%v", row)
	}
	time.Sleep(29 * 24 * time.Hour)
	b.db.Expire(time.Now())
	require.Empty(b.t, b.db.Items(table))
}

// A row above keys goes when it has been out of use for twice the retention, however its last
// intent went.
func TestRowsAboveExpire(t *testing.T) {
	for name, use := range map[string]func(*bed){
		"many locks": func(b *bed) {
			o := b.owner("o", nil)
			for n := range shorter(1000, 150) {
				b.free(b.take(o, ordering.Join(fmt.Sprint("order:", n), "line:1")))
			}
		},
		"below each other's": func(b *bed) {
			one, two := b.take(b.owner("one", nil), "c/x"), b.take(b.owner("two", nil), "c/y/z")
			b.free(one)
			b.free(two)
		},
		"a dead unit's, swept": func(b *bed) {
			b.crashed("c/x")
			b.swept(b.owner("o", nil), "c", "c/x")
		},
		"a dead unit's, that nobody looks for": func(b *bed) { b.crashed("c/x") },
		"a journal's": func(b *bed) {
			o := b.owner("o", nil)
			set, p := b.prepared(o, "c/x", "c/y", "d/e/f")
			plan := set.Plan()
			require.NoError(b.t, b.frees(p, plan...))
			p.Done(true)
			o.LetExpire(b.t.Context(), plan)
		},
		"a dead journal's, swept": func(b *bed) {
			b.diesMarked("c/x")
			b.swept(b.settler("o", &judges{}), "c", "c/x")
		},
		"taken by an operator": func(b *bed) {
			set := b.take(b.owner("o", nil), "c/x")
			i, _ := b.operator(nil)
			require.NoError(b.t, i.Free(b.t.Context(), "c/x", set.Nonce(), inspect.Freeing{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(_ *testing.T, b *bed) {
				use(b)
				b.allExpire()
			})
		})
	}
}

// Whoever writes a row above keys, by clocks that are as slow as they may be, leaves it there for
// as long as any unit may have a key below.
func TestARowAboveOutlivesItsIntents(t *testing.T) {
	const (
		retention = 5 * time.Minute
		maxAge    = retention / 2
	)
	slow := func(c *lockset.Config) {
		c.MaxAge, c.Retention = maxAge, retention
		c.Now = func() time.Time { return time.Now().Add(-retention * 9 / 10) }
	}
	for name, meanwhile := range map[string]func(*bed){
		"nobody":       func(*bed) {},
		"more intents": func(b *bed) { b.free(b.take(b.owner("other", nil, slow), "c/y")) },
		"a burn": func(b *bed) {
			o := b.owner("burns", nth("TransactWriteItems", 1, faults.LoseRequest(faults.Hang)), slow)
			ctx, cancel := context.WithTimeout(b.t.Context(), lease/20)
			defer cancel()
			_, err := o.Acquire(ctx, []ordering.Key{"c/y"})
			require.Error(b.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil, slow), "c/x")
				meanwhile(b)
				for range int(maxAge/lease) - 1 {
					time.Sleep(lease)
					b.db.Expire(time.Now())
					require.NotNil(t, b.row("c"))
				}
				require.NoError(t, set.Context().Err())
				b.free(set)
			})
		})
	}
}

// The intent of a unit with a journal may stay for any time: as long as it does, the row does not
// expire, whoever uses it.
func TestARowAboveAJournalDoesNotExpire(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.diesMarked("c/x")
		require.False(t, b.expires("c"))
		for range 3 {
			other := b.owner("other", nil)
			second, q := b.prepared(other, "c/z")
			require.NoError(t, b.frees(q, second.Plan()...))
			q.Done(true)
			other.LetExpire(t.Context(), second.Plan())
			b.free(b.take(other, "c/y"))
			b.swept(other, "c")
			time.Sleep(60 * 24 * time.Hour)
			b.db.Expire(time.Now())
			require.Contains(t, b.row("c"), "below")
			require.False(t, b.expires("c"))
		}
		p := b.owner("heir", nil).PreparedOf(t.Context(), dead.Nonce(), dead.Token(), dead.Plan())
		require.NoError(t, b.frees(p, dead.Plan()...))
		require.False(t, b.expires("c"))
		b.free(b.take(b.owner("next", nil), "c/y"))
		require.True(t, b.expires("c"), "the next unit below sees to it, if nobody else does")
		b.allExpire()
	})
}

// Rows that an earlier version left without an expiry get one from a sweep, those that nobody uses.
func TestASweepGivesRowsAnExpiry(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		row := func(key string, more item) {
			all := item{"key": s(key), "isReleased": s("1"), "fence": n(oldFence)}
			for name, v := range more {
				all[name] = v
			}
			b.putItem(all)
		}
		row("a", nil)
		row("b", item{"pendingBelow": &types.AttributeValueMemberSS{Value: []string{"gone x"}}})
		row("c", nil)
		held := b.take(b.owner("holder", nil), "c/x")
		b.change("c", "REMOVE expiresAt", nil)
		keys := []ordering.Key{"a", "absent", "b", "c"}

		_, _ = b.sweptIn(b.owner("dry", nil), inspect.SweepOptions{DryRun: true}, keys...)
		require.False(t, b.expires("a"), "a dry run writes nothing")
		lines := b.swept(b.owner("o", nil), keys...)
		require.Equal(t, []string{"a: left alone, nobody", "absent: left alone, nobody", "b: left alone, nobody", "c: left alone, alive"}, lines)
		require.True(t, b.expires("a"))
		require.True(t, b.expires("b"))
		require.NotContains(t, b.row("b"), "pendingBelow")
		require.False(t, b.expires("c"), "an earlier version may have a journal below")
		require.Nil(t, b.row("absent"))
		b.free(held)
		b.swept(b.owner("o", nil), keys...)
		b.allExpire()
	})
}

// A row that a unit has used since the sweep looked keeps the expiry that this unit gave it.
func TestASweepIsTooLateForAnExpiry(t *testing.T) {
	for name, use := range map[string]func(*bed, *owner){
		"a lock":    func(b *bed, o *owner) { b.free(b.take(o, "c")) },
		"a journal": func(b *bed, o *owner) { b.prepared(o, "c/x") },
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.putItem(item{"key": s("c"), "isReleased": s("1"), "fence": n(oldFence)})
				var now types.AttributeValue
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.Op == "UpdateItem" {
						use(b, b.ahead("meanwhile", time.Hour))
						now = b.row("c")["expiresAt"]
					}
					return faults.Pass()
				})
				b.swept(o, "c")
				require.Equal(t, now, b.row("c")["expiresAt"])
			})
		})
	}
}
