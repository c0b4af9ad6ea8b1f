package lockset_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// life is how long a short-lived process lives.
const life = lease / 4

// isNote reports whether a call records a silence.
func isNote(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.UpdateItemInput)
	return ok && strings.Contains(aws.ToString(in.UpdateExpression), "SET #silentOf")
}

// asks is how a short-lived process asks for what it wants until its context ends.
type asks func(context.Context, *owner) (*lockset.Set, error)

func waitsFor(keys ...ordering.Key) asks {
	return func(ctx context.Context, o *owner) (*lockset.Set, error) { return o.Acquire(ctx, keys) }
}

// polls asks for a key again and again, and waits for nobody.
func polls(key ordering.Key) asks {
	return func(ctx context.Context, o *owner) (*lockset.Set, error) {
		for {
			set, err := o.TryAcquire(ctx, []ordering.Key{key})
			if err == nil || ctx.Err() != nil {
				return set, err
			}
			time.Sleep(life / 10)
		}
	}
}

// killed asks, and its process dies before it can tell anybody anything.
func killed(ask asks) asks {
	return func(ctx context.Context, o *owner) (*lockset.Set, error) {
		got := make(chan *lockset.Set, 1)
		go func() { // goes on when it is dead, which nobody notices
			if set, err := ask(ctx, o); err == nil {
				got <- set
			}
		}()
		select {
		case set := <-got:
			return set, nil
		case <-ctx.Done():
			o.net.Crash()
			return nil, ctx.Err()
		}
	}
}

// succession has processes ask for keys, one after the other, none of which lives for long. It
// returns which of them had them, from 1, or 0 if none of so many had; after how long; and how
// often a silence was recorded.
func (b *bed) succession(most int, ask asks, change ...func(*lockset.Config)) (nth int, took time.Duration, notes int64) {
	b.t.Helper()
	start := time.Now()
	var noted atomic.Int64
	for n := 1; n <= most; n++ {
		o := b.owner(fmt.Sprint("short-lived ", n), func(c faults.Call) faults.Fault {
			if isNote(c) {
				noted.Add(1)
			}
			return faults.Pass()
		}, change...)
		ctx, cancel := context.WithTimeout(b.t.Context(), life)
		set, err := ask(ctx, o)
		cancel()
		if err == nil {
			took = time.Since(start)
			b.free(set)
			return n, took, noted.Load()
		}
	}
	return 0, time.Since(start), noted.Load()
}

// Processes that live for a quarter of a lease add up what each of them has seen of the dead. Who is
// killed leaves a place in the queue, too.
func TestShortLivedProcessesFindOutTheDead(t *testing.T) {
	for name, c := range map[string]struct {
		dead, left []ordering.Key // held, and waited for, by who dies
		ask        asks
		nth        int // of those that ask
		notes      int64
	}{
		"each waits until its time is over": {[]ordering.Key{"a"}, nil, waitsFor("a"), 5, 12},
		"each is killed while it waits":     {[]ordering.Key{"a"}, nil, killed(waitsFor("a")), 12, 60},
		"each polls":                        {[]ordering.Key{"a"}, nil, polls("a"), 6, 50},
		"a key above":                       {[]ordering.Key{"a"}, nil, waitsFor("a/b"), 5, 12},
		"keys below":                        {[]ordering.Key{"a/b", "a/c"}, nil, waitsFor("a"), 5, 16},
		"all keys of a dead set":            {[]ordering.Key{"a", "b", "c", "d"}, nil, waitsFor("a", "b", "c", "d"), 6, 30},
		"and what comes before them":        {[]ordering.Key{"b", "c"}, nil, waitsFor("a", "b", "c", "d"), 7, 30},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.crashed(c.dead...)
				nth, took, notes := b.succession(40, c.ask, func(c *lockset.Config) { c.Grace = lease / 10 })
				time.Sleep(3 * lease) // the killed end, too
				require.Positive(t, nth)
				require.LessOrEqual(t, nth, c.nth)
				require.Greater(t, took, lease, "of silence that somebody has watched")
				require.LessOrEqual(t, notes, c.notes)
			})
		})
	}
}

// A waiter that dies leaves its place, and those that come after it live shorter than Grace.
func TestShortLivedProcessesFindOutADeadHead(t *testing.T) {
	for name, before := range map[string]bool{"nobody had the row before": false, "somebody had": true} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				key := ordering.Key("a")
				holder, head := b.owner("holder", nil), b.owner("head", nil)
				held := b.take(holder, "a/b")
				if before {
					b.free(held)
					held = b.take(holder, key)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _, _ = head.Acquire(ctx, []ordering.Key{key}) }()
				time.Sleep(lease / 10)
				head.net.Crash()
				cancel()
				b.free(held)
				short := func(ctx context.Context, o *owner) (*lockset.Set, error) {
					ctx, cancel := context.WithTimeout(ctx, lease/10) // Grace is a quarter of it
					defer cancel()
					return o.Acquire(ctx, []ordering.Key{key})
				}
				nth, _, notes := b.succession(10, short)
				time.Sleep(3 * lease)
				require.Positive(t, nth)
				require.LessOrEqual(t, nth, 2)
				require.LessOrEqual(t, notes, int64(10))
			})
		})
	}
}

// However many look at somebody who lives, each for a short time, none counts it as dead, and few
// record anything.
func TestTheLivingAreNotFoundDead(t *testing.T) {
	for name, ask := range map[string]asks{"each waits": waitsFor("a"), "each is killed": killed(waitsFor("a")), "each polls": polls("a")} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("holder", nil), "a")
				nth, _, notes := b.succession(40, ask)
				time.Sleep(3 * lease)
				require.Zero(t, nth)
				require.NoError(t, set.Context().Err())
				most := int64(3)
				if name == "each polls" { // and ten waits of it end in vain
					most = 10
				}
				require.LessOrEqual(t, notes, 40*most)
				b.free(set)
			})
		})
	}
}

// One that waits for long sees the holder renew its lease, and records nothing of it after that.
func TestWhoSeesTheHolderLiveRecordsNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "a")
		var notes atomic.Int64
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if isNote(c) {
				notes.Add(1)
			}
			return faults.Pass()
		})
		_, err := o.Acquire(t.Context(), []ordering.Key{"a"}, func(o *lockset.Options) { o.Wait = lockset.For(10 * lease) })
		require.ErrorIs(t, err, lockset.ErrWaited)
		require.LessOrEqual(t, notes.Load(), int64(2))
		b.free(set)
	})
}

// A record that arrives late counts for nothing once the holder has shown a sign of life, and does
// not take the place of one that counts.
func TestALateRecordOfASilence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		set := b.take(holder, "a")
		late := b.owner("late", func(c faults.Call) faults.Fault {
			if isNote(c) {
				return faults.DeliverLate(lease/2, faults.Reset)
			}
			return faults.Pass()
		})
		ctx, cancel := context.WithTimeout(t.Context(), life)
		defer cancel()
		_, err := late.Acquire(ctx, []ordering.Key{"a"})
		require.Error(t, err)
		late.net.Wait()
		require.Positive(t, late.net.Counts()[faults.DeliveredLate])
		require.NotContains(t, b.row("a"), lockrow.AttrSilentOf)

		holder.net.Crash()
		require.Error(t, func() error { // now it is silent for long, and that is recorded
			_, err := b.owner("o", nil).Acquire(t.Context(), []ordering.Key{"a"}, func(o *lockset.Options) { o.Wait = lockset.For(lease / 2) })
			return err
		}())
		before := b.row("a")
		require.Contains(t, before, lockrow.AttrSilentOf)
		short := b.owner("short", nil)
		_, err = short.Acquire(t.Context(), []ordering.Key{"a"}, func(o *lockset.Options) { o.Wait = lockset.For(lease / 4) })
		require.Error(t, err)
		after := b.row("a")
		require.Equal(t, before[lockrow.AttrSilentOf], after[lockrow.AttrSilentOf])
		require.Greater(t, silentFor(t, after), silentFor(t, before))
		_ = set
	})
}

// One that is late and shorter than what is recorded by then changes nothing: else copies of it could
// keep the dead unknown.
func TestAShorterRecordThatArrivesLate(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		late := b.owner("late", func(c faults.Call) faults.Fault {
			if isNote(c) {
				return faults.DeliverLate(lease/2, faults.Reset)
			}
			return faults.Pass()
		})
		b.refused(late, lease/8+lease/100, "a")
		b.refused(b.owner("o", nil), lease/4, "a")
		before := silentFor(t, b.row("a"))
		late.net.Wait()
		require.Positive(t, late.net.Counts()[faults.DeliveredLate])
		require.Equal(t, before, silentFor(t, b.row("a")))
	})
}

func silentFor(t *testing.T, row map[string]types.AttributeValue) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(row[lockrow.AttrSilentFor].(*types.AttributeValueMemberN).Value + "ms")
	require.NoError(t, err)
	return d
}

// Whoever is told that a key is held learns for how long its holder is known to be silent, also if
// others have watched it.
func TestTheAgeOfAHolderIsAllThatIsKnown(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		first := b.refused(b.owner("first", nil), lease/2, "a")
		second := b.refused(b.owner("second", nil), lease/4, "a")
		require.InDelta(t, lease/2, first.Age, float64(lease/50))
		require.InDelta(t, 3*lease/4, second.Age, float64(lease/50))
	})
}
