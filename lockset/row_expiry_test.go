package lockset_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A burned token is of use for as long as the row that has it: a row that was
// about to expire stays.
func TestABurnedTokenOutlivesWhatIsUnderWay(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const retention = 5 * time.Minute
		short := func(c *lockset.Config) { c.MaxAge, c.Retention = time.Minute, retention }
		b.free(b.take(b.owner("before", nil, short), "a"))
		time.Sleep(retention - 30*time.Second)

		o := b.owner("o", nth("UpdateItem", 1, faults.DeliverLate(2*time.Minute, faults.Hang)), short)
		ctx, cancel := context.WithTimeout(t.Context(), lease/20)
		defer cancel()
		_, err := o.Acquire(ctx, []ordering.Key{"a"})
		require.Error(t, err)
		for range 4 { // the row's time comes, the late request after it
			time.Sleep(31 * time.Second)
			b.db.Expire(time.Now())
		}
		o.net.Wait()
		b.allFree()

		time.Sleep(2 * retention)
		b.db.Expire(time.Now())
		require.Nil(t, b.row("a"), "it does expire")
	})
}

// A token that is burned where there was no row makes one, which goes when nothing can
// be under way any more.
func TestABurnOfAnAbsentRowExpires(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const retention = 5 * time.Minute
		o := b.owner("o", nth("UpdateItem", 1, faults.DeliverLate(retention/2, faults.Hang)), func(c *lockset.Config) {
			c.MaxAge, c.Retention = time.Minute, retention
		})
		ctx, cancel := context.WithTimeout(t.Context(), lease/20)
		defer cancel()
		_, err := o.Acquire(ctx, []ordering.Key{"a"})
		require.Error(t, err)
		require.NotNil(t, b.row("a"))
		o.net.Wait()
		b.db.Expire(time.Now())
		require.NotNil(t, b.row("a"))
		b.allFree()
		time.Sleep(retention)
		b.db.Expire(time.Now())
		require.Nil(t, b.row("a"), "nobody needs it for ever")
	})
}

// A token that was raised for a later key is stamped on the earlier ones: their
// rows outlive it as well, also when their holder dies.
func TestARestampedRowOutlivesItsFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const day = 24 * time.Hour
		off := func(d time.Duration) func(*lockset.Config) {
			return func(c *lockset.Config) {
				c.Now = func() time.Time { return time.Now().Add(d) }
				c.MaxAge, c.ChunkSize = time.Hour, 1
			}
		}
		b.free(b.take(b.owner("fast", nil, off(13*day)), "z"))
		dead := b.owner("dead", nil, off(0))
		first := b.take(dead, "a", "z") // a is taken first, and z raises the token
		dead.net.Crash()
		for range 3 * 14 {
			time.Sleep(day)
			b.db.Expire(time.Now())
			if b.row("a") == nil {
				second := b.take(b.owner("slow", nil, off(-13*day)), "a")
				require.Greater(t, second.Token(), first.Token())
				return
			}
		}
		t.Fatal("the row never vanished")
	})
}

// Who raises the fence of a row that is held, by a burn or because its own token has
// risen, does not shorten the row's life below that of its holder: by clocks that are as
// slow as they may be it would be deleted under it.
func TestARowOutlivesItsHolderWhoeverRaisesItsFence(t *testing.T) {
	const (
		retention = 5 * time.Minute
		maxAge    = retention / 2
	)
	for name, raise := range map[string]func(*bed, func(*lockset.Config)) *lockset.Set{
		"another's burn": func(b *bed, slow func(*lockset.Config)) *lockset.Set {
			set := b.take(b.owner("holder", nil, slow), "a")
			_, err := b.owner("burns", nth("UpdateItem", 1, faults.LoseAnswer(faults.Reset)), slow).TryAcquire(b.t.Context(), []ordering.Key{"a"})
			require.ErrorAs(b.t, err, new(*lockset.HeldError))
			require.Greater(b.t, b.fence("a"), set.Token().String())
			return set
		},
		"its own stamp": func(b *bed, slow func(*lockset.Config)) *lockset.Set {
			b.free(b.take(b.owner("before", nil, slow, func(c *lockset.Config) {
				c.Now = func() time.Time { return time.Now().Add(-retention * 8 / 10) }
			}), "z"))
			set := b.take(b.owner("holder", nil, slow, func(c *lockset.Config) { c.ChunkSize = 1 }), "a", "z") // z raises the token, and a is stamped
			require.Equal(b.t, set.Token().String(), b.fence("a"))
			return set
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := raise(b, func(c *lockset.Config) {
					c.MaxAge, c.Retention = maxAge, retention
					c.Now = func() time.Time { return time.Now().Add(-retention * 9 / 10) }
				})
				for range int(maxAge/lease) - 1 {
					time.Sleep(lease)
					b.db.Expire(time.Now())
					require.NotNil(t, b.row("a"))
				}
				require.NoError(t, set.Context().Err())
				b.free(set)
			})
		})
	}
}
