package lockset_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// Clauses that only matter when several things go wrong at a time, each shown
// by the least that needs it.

// change updates a row as somebody with the console does. A name that DynamoDB reserves is written #unit.
func (b *bed) change(key ordering.Key, update string, values item) {
	b.t.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: item{"key": s(string(key))},
		UpdateExpression: &update, ExpressionAttributeValues: values,
	}
	if strings.Contains(update, "#unit") {
		in.ExpressionAttributeNames = map[string]string{"#unit": "unit"}
	}
	_, err := b.db.UpdateItem(context.Background(), in)
	require.NoError(b.t, err)
}

// A bury that arrives late must not free the row of whoever came after; nor does it shorten the life of
// a row that is free and carries an intent by then: what is in use keeps the expiry that the intent gave it.
func TestALateBuryFreesNobodyElse(t *testing.T) {
	type given struct{ dead, taken ordering.Key }
	inBeds(t, map[string]given{"the row": {"a", "a"}, "an intent": {"a", "a/x"}}, func(t *testing.T, b *bed, c given) {
		b.crashed(c.dead)
		slow := b.owner("slow", when(isBury, faults.DeliverLate(3*time.Second, faults.Hang)))
		gone := b.ask(b.lasting(lease+lease/10), slow, []ordering.Key{c.dead})
		next := b.take(b.owner("next", nil), c.taken)
		require.Error(t, gone.failed())
		slow.net.Wait()
		require.Equal(t, 1, slow.net.Counts()[faults.DeliveredLate])
		require.True(t, b.expires(c.dead))
		time.Sleep(2 * lease)
		require.NoError(t, next.Context().Err())
		b.free(next)
	})
}

// A row that got a journal between the look and the bury is not buried: its unit may be committed. Nor
// is a witness cleaned that got one meanwhile.
func TestARowThatTurnsPendingIsNotBuried(t *testing.T) {
	type given struct{ dead, wanted ordering.Key }
	inBeds(t, map[string]given{"a key": {"a", "a"}, "a witness": {"c/1", "c"}}, func(t *testing.T, b *bed, c given) {
		b.crashed(c.dead)
		marked := false
		buries := func(call faults.Call) bool {
			in, ok := call.Input.(*dynamodb.TransactWriteItemsInput)
			of := ok && in.TransactItems[0].Update != nil
			return isBury(call) || of && strings.Contains(*in.TransactItems[0].Update.ConditionExpression, ":rvn")
		}
		o := b.owner("o", before(buries, func() {
			b.change(c.dead, "SET pending = :yes", item{":yes": s("units")})
			marked = true
		}))
		b.refused(o, 4*lease, c.wanted)
		require.True(t, marked)
		require.Empty(t, o.buried)
		require.Empty(t, o.cleaned)
		require.Contains(t, b.row(c.dead), "unit")
		require.True(t, c.dead == c.wanted || b.row(c.wanted)["below"] != nil)
	})
}

// As long as a key under a coarse one may be held, the intent stays: steps are
// released in reverse, and one that could not be holds back what covers it.
func TestAReleaseThatStumblesKeepsWhatCoversTheRest(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 120 { // 121 rows: two transactions to release
			keys = append(keys, ordering.Join("c", fmt.Sprintf("k%03d", i)))
		}
		releasing := false
		first := ""
		o := b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if !releasing || !ok {
				return faults.Pass()
			}
			if first == "" {
				first = *in.ClientRequestToken
			}
			if *in.ClientRequestToken == first {
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		})
		set := b.take(o, keys...)
		releasing = true
		require.Error(t, set.Release(t.Context()))
		require.Contains(t, b.row("c"), "below", "c is covered by an intent")
		require.Contains(t, b.row("c/k119"), "unit", "because a key below it is held")
		require.NotContains(t, b.row("c/k005"), "unit", "what does not depend on it was released")

		releasing = false
		require.NoError(t, set.Release(t.Context()))
		b.allFree()
	})
}

// TTL never removes a row in use, and removes those that nobody uses.
func TestWhenRowsExpire(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const day = 24 * time.Hour
		expires := func(key ordering.Key) time.Duration {
			n, ok := b.row(key)["expiresAt"].(*types.AttributeValueMemberN)
			if !ok {
				return 0
			}
			seconds := must(strconv.ParseInt(n.Value, 10, 64))(t)
			return time.Until(time.Unix(seconds, 0)).Round(time.Minute)
		}
		o := b.owner("o", nil)
		set := b.take(o, "a", "c/x")
		require.Equal(t, 21*day, expires("a"), "held: maximum age and retention")
		require.Equal(t, 21*day, expires("c/x"))
		require.Equal(t, 28*day, expires("c"), "an intent: twice the retention")
		b.free(set)
		require.Equal(t, 14*day, expires("a"), "free: retention")
		require.Equal(t, 28*day, expires("c"))

		b.free(b.take(o, "c"))
		require.Equal(t, 14*day, expires("c"))
		set = b.take(o, "c/x")
		require.Equal(t, 28*day, expires("c"))
		b.free(set)

		time.Sleep(30 * day)
		b.db.Expire(time.Now())
		require.Nil(t, b.row("a"))
		later := b.take(o, "a", "c")
		require.Greater(t, later.Token(), set.Token(), "a row that vanished takes no token with it")
	})
}

// A row that a slow clock freed stays until its fence is old by every clock that is wrong by less than
// the retention. So do the rows of earlier keys that are stamped with a token that was raised for a
// later one, also when their holder dies.
func TestARowOutlivesItsFenceByTheRetention(t *testing.T) {
	const (
		day   = 24 * time.Hour
		wrong = 13 * day // of a retention of 14 days
	)
	young := func(c *lockset.Config) { c.MaxAge, c.ChunkSize = time.Hour, 1 }
	inBeds(t, map[string]func(*bed) *lockset.Set{
		"it was freed by a slow clock": func(b *bed) *lockset.Set {
			b.free(b.take(b.ahead("fast", wrong), "a"))
			second := b.take(b.ahead("slow", -wrong), "a")
			b.free(second)
			return second
		},
		"it was stamped anew": func(b *bed) *lockset.Set {
			b.free(b.take(b.owner("fast", nil, wrongBy(wrong), young), "z"))
			dead := b.owner("dead", nil, young)
			set := b.take(dead, "a", "z") // a is taken first, and z raises the token
			dead.net.Crash()
			return set
		},
	}, func(t *testing.T, b *bed, use func(*bed) *lockset.Set) {
		last := use(b)
		for range 3 * 14 {
			time.Sleep(day)
			b.db.Expire(time.Now())
			if b.row("a") == nil {
				next := b.take(b.ahead("another slow one", -wrong), "a")
				require.Greater(t, next.Token(), last.Token())
				return
			}
		}
		t.Fatal("the row never vanished")
	})
}

func TestARowCarriesAtMost64Intents(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var sets []*lockset.Set
		for i := range 64 {
			sets = append(sets, b.take(b.owner(fmt.Sprint("o", i), nil), ordering.Join("c", fmt.Sprint("k", i))))
		}
		late := b.owner("late", nil)
		b.refused(late, lease/2, "c/late")
		b.free(sets[17])
		b.free(b.take(late, "c/late"))
	})
}

// A burned token is of use for as long as the row that has it: a row that was about to expire stays, and
// one that is made where there was none, until nothing can be under way any more.
func TestABurnedTokenOutlivesWhatIsUnderWay(t *testing.T) {
	const retention = 5 * time.Minute
	short := func(c *lockset.Config) { c.MaxAge, c.Retention = time.Minute, retention }
	inBeds(t, map[string]func(*bed){
		"a row": func(b *bed) {
			b.free(b.take(b.owner("before", nil, short), "a"))
			time.Sleep(retention - 30*time.Second)
		},
		"no row": func(*bed) {},
	}, func(t *testing.T, b *bed, use func(*bed)) {
		use(b)
		o := b.owner("o", nth("UpdateItem", 1, faults.DeliverLate(2*time.Minute, faults.Hang)), short)
		_, err := o.Acquire(b.lasting(lease/20), []ordering.Key{"a"})
		require.Error(t, err)
		for range 4 { // the row's time comes, the late request after it
			time.Sleep(31 * time.Second)
			b.db.Expire(time.Now())
			require.NotNil(t, b.row("a"))
		}
		o.net.Wait()
		b.allFree()

		time.Sleep(2 * retention)
		b.db.Expire(time.Now())
		require.Nil(t, b.row("a"), "it does expire")
	})
}

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
	inBeds(t, map[string]func(*bed){
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
			plan := engine(set).Plan()
			require.NoError(b.t, b.frees(p, plan...))
			p.Done(true)
			o.engine().LetExpire(b.t.Context(), plan)
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
	}, func(_ *testing.T, b *bed, use func(*bed)) {
		use(b)
		b.allExpire()
	})
}

// A row in use, or above one, by clocks that are as slow as they may be, outlives its holder by whatever
// others write there: by a burn, by a stamp of its own that a later key forces, by intents.
func TestARowOutlivesItsHolderWhoeverRaisesItsFence(t *testing.T) {
	const (
		retention = 5 * time.Minute
		maxAge    = retention / 2
	)
	slow := func(c *lockset.Config) {
		c.MaxAge, c.Retention = maxAge, retention
		wrongBy(-retention * 9 / 10)(c)
	}
	holds := func(b *bed, key ordering.Key) *lockset.Set { return b.take(b.owner("holder", nil, slow), key) }
	type given struct {
		row ordering.Key
		use func(*bed) *lockset.Set
	}
	inBeds(t, map[string]given{
		"another's burn": {"a", func(b *bed) *lockset.Set {
			set := holds(b, "a")
			_, err := b.owner("burns", nth("UpdateItem", 1, faults.LoseAnswer(faults.Reset)), slow).TryAcquire(b.t.Context(), []ordering.Key{"a"})
			require.ErrorAs(b.t, err, new(*lockset.HeldError))
			require.Greater(b.t, b.fence("a"), set.Token().String())
			return set
		}},
		"its own stamp": {"a", func(b *bed) *lockset.Set {
			b.free(b.take(b.owner("before", nil, slow, wrongBy(-retention*8/10)), "z"))
			set := b.take(b.owner("holder", nil, slow, inChunksOf(1)), "a", "z") // z raises the token, and a is stamped
			require.Equal(b.t, set.Token().String(), b.fence("a"))
			return set
		}},
		"nobody, above": {"c", func(b *bed) *lockset.Set { return holds(b, "c/x") }},
		"more intents, above": {"c", func(b *bed) *lockset.Set {
			set := holds(b, "c/x")
			b.free(b.take(b.owner("other", nil, slow), "c/y"))
			return set
		}},
		"a burn, above": {"c", func(b *bed) *lockset.Set {
			set := holds(b, "c/x")
			o := b.owner("burns", nth("TransactWriteItems", 1, faults.LoseRequest(faults.Hang)), slow)
			_, err := o.Acquire(b.lasting(lease/20), []ordering.Key{"c/y"})
			require.Error(b.t, err)
			return set
		}},
	}, func(t *testing.T, b *bed, c given) {
		set := c.use(b)
		for range int(maxAge/lease) - 1 {
			time.Sleep(lease)
			b.db.Expire(time.Now())
			require.NotNil(t, b.row(c.row))
		}
		require.NoError(t, set.Context().Err())
		b.free(set)
	})
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
			require.NoError(t, b.frees(q, engine(second).Plan()...))
			q.Done(true)
			other.engine().LetExpire(t.Context(), engine(second).Plan())
			b.free(b.take(other, "c/y"))
			b.swept(other, "c")
			time.Sleep(60 * 24 * time.Hour)
			b.db.Expire(time.Now())
			require.Contains(t, b.row("c"), "below")
			require.False(t, b.expires("c"))
		}
		p := b.owner("heir", nil).engine().PreparedOf(t.Context(), dead.Nonce(), dead.Token(), engine(dead).Plan())
		require.NoError(t, b.frees(p, engine(dead).Plan()...))
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
		row("b", item{"pendingBelow": ss("gone x")})
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
	inBeds(t, map[string]func(*bed, *owner){
		"a lock":    func(b *bed, o *owner) { b.free(b.take(o, "c")) },
		"a journal": func(b *bed, o *owner) { b.prepared(o, "c/x") },
	}, func(t *testing.T, b *bed, use func(*bed, *owner)) {
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
}
