package lockset_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

func singles(n int) []ordering.Key {
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = ordering.Key(fmt.Sprintf("k%04d", i))
	}
	return keys
}

func pairs(n int) []ordering.Key {
	keys := make([]ordering.Key, n)
	for i := range keys {
		keys[i] = ordering.Join(fmt.Sprintf("k%04d", i), "x")
	}
	return keys
}

// What an uncontended set costs, in requests.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		name                    string
		keys                    []ordering.Key
		acquire, round, release int
	}{
		{"one row", singles(1), 1, 1, 1},
		{"24 rows", singles(24), 1, 1, 1},
		{"100 keys", singles(100), 5, 4, 1},
		{"100 keys under own parents", pairs(100), 9, 4, 2},
		{"1,000 keys", singles(1000), 42, 40, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				o := b.owner("o", nil)
				start := time.Now()
				set := b.take(o, c.keys...)
				require.Equal(t, time.Duration(c.acquire)*rtt, time.Since(start), "one round trip after the other")
				acquired := o.requests()
				require.Equal(t, c.acquire, acquired["TransactWriteItems"]+acquired["UpdateItem"])
				if c.acquire == 1 && len(c.keys) == 1 {
					require.Equal(t, 1, acquired["UpdateItem"], "a single row takes no transaction")
				}
				time.Sleep(lease/3 + rtt) // at least a round, at most one
				require.Equal(t, map[string]int{"BatchExecuteStatement": c.round}, o.requests())
				b.free(set)
				released := o.requests()
				require.Equal(t, c.release, released["TransactWriteItems"]+released["UpdateItem"])
				b.allFree()
			})
		})
	}
}

func TestCoarseAndFineExcludeEachOther(t *testing.T) {
	for _, c := range []struct {
		first, second ordering.Key
		together      bool
	}{
		{"c", "c", false},
		{"c", "c/a", false},
		{"c/a", "c", false},
		{"c", "c/a/x", false},
		{"c/a/x", "c", false},
		{"c/a", "c/a/x", false},
		{"c/a/x", "c/a", false},
		{"c/a/x", "c/a/x", false},
		{"c/a", "c/b", true},
		{"c/a/x", "c/a/y", true},
		{"c/a/x", "c/b", true},
		{"c", "cc", true},
		{"c/a", "c2/a", true},
	} {
		t.Run(fmt.Sprintf("%s then %s", c.first, c.second), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				one, two := b.owner("one", nil), b.owner("two", nil)
				first := b.take(one, c.first)
				if c.together {
					second := b.take(two, c.second)
					b.free(second)
				} else {
					held := b.refused(two, 3*lease, c.second)
					require.Equal(t, "one", held.Owner)
					require.Equal(t, first.Nonce(), held.Unit)
				}
				require.NoError(t, first.Context().Err(), "nobody took it from the living")
				b.free(first)
				second := b.take(two, c.second)
				require.Greater(t, second.Token(), first.Token())
				b.free(second)
				b.allFree()
			})
		})
	}
}

func TestABlockedSetSecuresWhatComesBeforeAndWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		one, two, three := b.owner("one", nil), b.owner("two", nil), b.owner("three", nil)
		first := b.take(one, "m")
		done := make(chan *lockset.Set)
		go func() {
			set, err := two.Acquire(t.Context(), []ordering.Key{"a", "b/x", "m", "z"})
			require.NoError(t, err)
			done <- set
		}()
		time.Sleep(5 * lease)
		synctest.Wait()
		// What comes before is held, and kept alive; what comes after is free.
		b.refused(three, lease/10, "a")
		b.refused(three, lease/10, "b")
		b.free(b.take(three, "z"))
		sent := two.requests()
		require.LessOrEqual(t, sent["TransactWriteItems"]+sent["UpdateItem"], 4+3,
			"once it has its place in the queue, a blocked unit only reads, but for what it notes before the first sign of life: %v", sent)
		b.free(first)
		second := <-done
		require.Greater(t, second.Token(), first.Token())
		require.NoError(t, second.Context().Err())
		b.free(second)
		b.allFree()
	})
}

func TestCrossingOrdersDoNotDeadlock(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		done := make(chan error, 2)
		for i, keys := range [][]ordering.Key{{"a", "b/1"}, {"b/1", "a"}} {
			o := b.owner(fmt.Sprint(i), nil)
			go func() {
				for range 20 {
					set, err := o.Acquire(t.Context(), keys)
					if err == nil {
						time.Sleep(time.Millisecond)
						err = set.Release(t.Context())
					}
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		b.allFree()
	})
}

// A later step that forces a higher token has the earlier ones stamped with it:
// whoever conflicts with any key of the set is ordered after it.
func TestARaisedTokenIsStampedOnAllRows(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ahead := b.owner("ahead", nil, func(c *lockset.Config) {
			c.Now = func() time.Time { return time.Now().Add(time.Hour) }
		})
		high := b.take(ahead, "z/9")
		b.free(high)

		o := b.owner("o", nil, func(c *lockset.Config) { c.ChunkSize = 3 })
		set := b.take(o, "a", "b/1", "b/2", "c/d/e", "z/9")
		require.Greater(t, set.Token(), high.Token())
		for _, key := range []ordering.Key{"a", "b", "b/1", "b/2", "c", "c/d", "c/d/e", "z", "z/9"} {
			require.Equal(t, set.Token().String(), b.fence(key), "fence of %q", key)
		}
		require.Equal(t, 1, o.raised)
		b.free(set)
	})
}

func TestARestampThatFindsARowLostFails(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ahead := b.owner("ahead", nil, func(c *lockset.Config) {
			c.Now = func() time.Time { return time.Now().Add(time.Hour) }
		})
		b.free(b.take(ahead, "z"))
		thief := b.owner("thief", nil)
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "UpdateItem" && c.N == 3 { // a; z refused; z; then the stamp on a
				b.seize("a", thief)
			}
			return faults.Pass()
		}, func(c *lockset.Config) { c.ChunkSize = 1 })
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "z"})
		require.ErrorIs(t, err, lockset.ErrLost)
		time.Sleep(time.Second)
		b.free(b.take(thief, "z"))
	})
}

// A row that is none by then is named, and not told as somebody else's.
func TestARestampThatFindsNoLockRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.free(b.take(b.ahead("ahead", time.Hour), "z"))
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "UpdateItem" && c.N == 3 { // a; z refused; z; then the stamp on a
				b.putItem(item{"key": &types.AttributeValueMemberS{Value: "a"}, "colour": &types.AttributeValueMemberS{Value: "red"}})
			}
			return faults.Pass()
		}, func(c *lockset.Config) { c.ChunkSize = 1 })
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "z"})
		var foreign *lockrow.RowError
		require.ErrorAs(t, err, &foreign)
		require.Equal(t, ordering.Key("a"), foreign.Key)
	})
}

func TestTokensRiseAlongEveryConflictWhateverTheClocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var owners []*owner
		for i := range 4 {
			skew := time.Duration(i-2) * 17 * time.Minute
			owners = append(owners, b.owner(fmt.Sprint("o", i), nil, func(c *lockset.Config) {
				c.Now = func() time.Time { return time.Now().Add(skew) }
			}))
		}
		last := fencing.Token(0)
		for i := range 40 {
			key := []ordering.Key{"c", "c/a", "c", "c/b/x"}[i%4]
			set := b.take(owners[(i*7+i/4)%4], key)
			if i%4 != 3 { // c/b/x does not conflict with c/a
				require.Greater(t, set.Token(), last)
				last = set.Token()
			}
			b.free(set)
		}
	})
}

func TestBadInputIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		var keyErr *ordering.KeyError
		_, err := o.Acquire(t.Context(), nil)
		require.ErrorAs(t, err, &keyErr)
		_, err = o.Acquire(t.Context(), []ordering.Key{"fine", "a//b"})
		require.ErrorAs(t, err, &keyErr)
		require.Equal(t, ordering.Key("a//b"), keyErr.Key)
		require.Empty(t, o.requests(), "nothing is sent for what cannot be")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = o.Acquire(ctx, []ordering.Key{"a"})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, o.requests())

		lost := b.owner("lost", nil, func(c *lockset.Config) { c.Table = "nowhere" })
		for _, keys := range [][]ordering.Key{{"a"}, {"a", "b"}} {
			_, err = lost.Acquire(t.Context(), keys)
			var tableErr *lockset.TableError
			require.ErrorAs(t, err, &tableErr)
			require.Equal(t, []string{"nowhere"}, tableErr.Tables)
			require.ErrorContains(t, err, `table "nowhere"`)
			require.ErrorContains(t, err, "does not exist")
		}
		other := b.owner("other", nil, func(c *lockset.Config) { c.HashKey = "id" })
		for _, keys := range [][]ordering.Key{{"a"}, {"a", "b"}} {
			_, err = other.Acquire(t.Context(), keys)
			var tableErr *lockset.TableError
			require.ErrorAs(t, err, &tableErr, "%v", err)
			require.Equal(t, []string{table}, tableErr.Tables)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for field, c := range map[string]lockset.Config{
		"Table":     {},
		"HashKey":   {Table: "t", HashKey: "unit"},
		"Lease":     {Table: "t", Lease: time.Millisecond},
		"Heartbeat": {Table: "t", Heartbeat: -1},
		"MaxAge":    {Table: "t", MaxAge: 30 * 24 * time.Hour},
		"ChunkSize": {Table: "t", ChunkSize: 100},
	} {
		_, err := lockset.New(struct{ lockset.DynamoDB }{}, c)
		var configErr *locks.ConfigError
		require.ErrorAs(t, err, &configErr, field)
		require.Equal(t, field, configErr.Field)
	}
	for name, c := range map[string]lockset.Config{
		"sets of one lease":          {Table: "t", MaxAge: 20 * time.Second},
		"chunks of one row":          {Table: "t", ChunkSize: 1},
		"the largest chunks":         {Table: "t", ChunkSize: locks.MaxChunkSize},
		"the shortest lease":         {Table: "t", Lease: locks.MinLease},
		"rows that stay for longest": {Table: "t", Retention: locks.MaxRetention},
	} {
		_, err := lockset.New(struct{ lockset.DynamoDB }{}, c)
		require.NoError(t, err, name)
	}
	_, err := lockset.New(nil, lockset.Config{Table: "t"})
	require.Error(t, err)
	client, err := lockset.New(struct{ lockset.DynamoDB }{}, lockset.Config{Table: "t"})
	require.NoError(t, err)
	require.Equal(t, 20*time.Second, client.Config().Lease)
	require.NotEmpty(t, client.Config().Owner)
}
