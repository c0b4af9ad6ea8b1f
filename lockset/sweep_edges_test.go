package lockset_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// A dry run says the same, and writes nothing at all.
func TestADryRunOfASweep(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("c/x", "d")
		b.diesMarked("p")
		before := b.db.Items(table)
		dry := inspect.SweepOptions{DryRun: true}
		j := &judges{}
		o := b.settler("o", j)
		for keys, want := range map[string][]string{
			"c c/x d p": {"c/x: buried, dead", "c: cleaned, dead at c/x", "d: buried, dead", "p: settled, dead"},
			"c":         {"c/x: buried, dead", "c: cleaned, dead at c/x"},
		} {
			var named []ordering.Key
			for k := range strings.SplitSeq(keys, " ") {
				named = append(named, ordering.Key(k))
			}
			lines, _ := b.sweptIn(o, dry, named...)
			require.Equal(t, want, lines)
		}
		ctx, cancel := context.WithTimeout(t.Context(), life)
		defer cancel()
		_, err := inspect.Sweep(ctx, b.owner("short", nil).Client, []ordering.Key{"d"}, dry)
		require.Error(t, err)
		require.Equal(t, before, b.db.Items(table))
		require.Empty(t, j.asked)
		lines, _ := b.sweptIn(b.owner("knows nobody", nil), dry, "p")
		require.Equal(t, []string{"p: kept, dead"}, lines)
	})
}

// What holdall did not write is reported, and what DynamoDB refuses ends the sweep.
func TestASweepThatMayNot(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		b.putItem(map[string]types.AttributeValue{"key": text("damaged"), "unit": text("x")})
		all, err := inspect.Sweep(t.Context(), b.owner("o", nil).Client, []ordering.Key{"damaged"}, inspect.SweepOptions{})
		require.NoError(t, err)
		require.Equal(t, inspect.Kept, all[0].Deed)
		require.ErrorAs(t, all[0].Err, new(*lockrow.RowError))

		denied := b.owner("denied", func(c faults.Call) faults.Fault {
			if isBury(c) {
				return faults.Deny()
			}
			return faults.Pass()
		})
		all, err = inspect.Sweep(t.Context(), denied.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Equal(t, []string{"a: left alone, silent"}, sweptLines(all))

		_, err = inspect.Sweep(t.Context(), denied.Client, []ordering.Key{"a//b"}, inspect.SweepOptions{})
		require.ErrorAs(t, err, new(*ordering.KeyError))
		require.NoError(t, denied.Close(t.Context()))
		_, err = inspect.Sweep(t.Context(), denied.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
		require.ErrorIs(t, err, lockset.ErrClosed)
	})
}

// Units come and go below a key all the time, each with a key of its own. Those that came since the
// sweep began are not waited for: it would never end.
func TestASweepOfABusyRowEnds(t *testing.T) {
	for name, c := range map[string]struct {
		dead []ordering.Key
		told []string
	}{
		"all live":    {nil, []string{"c: left alone, alive"}},
		"one is dead": {[]ordering.Key{"c/dead"}, []string{"c/dead: buried, dead", "c: cleaned, dead at c/dead"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				if c.dead != nil {
					b.crashed(c.dead...)
				}
				stopped := time.Now().Add(10 * lease)
				over := make(chan struct{})
				go func() {
					defer close(over)
					busy := b.owner("busy", nil)
					last := b.take(busy, "c/0")
					for n := 1; time.Now().Before(stopped); n++ {
						time.Sleep(lease / 20)
						next := b.take(busy, ordering.Key(fmt.Sprint("c/", n)))
						b.free(last)
						last = next
					}
					b.free(last)
				}()
				time.Sleep(life)
				lines, took := b.sweptIn(b.owner("o", nil), inspect.SweepOptions{}, "c")
				require.Less(t, took, lease+lease/2)
				require.Equal(t, c.told, lines)
				<-over
			})
		})
	}
}

// Close ends a sweep that is under way.
func TestCloseEndsASweep(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a")
		o := b.owner("o", nil)
		ended := make(chan error, 1)
		go func() {
			_, err := inspect.Sweep(t.Context(), o.Client, []ordering.Key{"a"}, inspect.SweepOptions{})
			ended <- err
		}()
		time.Sleep(life)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, o.Close(ctx), context.Canceled)
		require.ErrorIs(t, <-ended, lockset.ErrClosed)
		require.Contains(t, b.row("a"), lockrow.AttrSilentOf)
	})
}

// The living write nothing for it, and a row is read few times.
func TestWhatASweepCosts(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("dead")
		living := b.take(b.owner("living", nil), "living")
		o := b.owner("o", nil)
		known := [][2]int{}
		_, err := inspect.Sweep(t.Context(), o.Client, []ordering.Key{"dead", "living", "free"}, inspect.SweepOptions{Progress: func(k, of int) { known = append(known, [2]int{k, of}) }})
		require.NoError(t, err)
		sent := o.requests()
		require.Equal(t, 4, sent["TransactGetItems"], "at first, after half a lease, at its end, and when it was freed")
		require.Equal(t, 2, sent["UpdateItem"], "one to say that it is silent, one to free it")
		require.Equal(t, [2]int{0, 3}, known[0])
		require.Equal(t, [2]int{3, 3}, known[len(known)-1])
		b.free(living)
	})
}

// A sweep that has watched a holder goes on with the head of the queue if somebody else frees the row.
func TestASweepGoesOnWhenAnotherHasFreedTheRow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		b.take(holder, "a")
		b.diesWaiting("one", "a")
		holder.net.Crash()
		time.AfterFunc(lease/4, func() {
			i, _ := b.operator(nil)
			require.NoError(t, i.Free(t.Context(), "a", b.unitAt("a"), inspect.Freeing{Now: true}))
		})
		lines, _ := b.sweptIn(b.owner("o", nil), inspect.SweepOptions{}, "a")
		require.Equal(t, []string{"a: dropped, dead"}, lines)
		require.Empty(t, b.queue("a"))
		b.allFree()
	})
}

// lateAnswers has answers that show several rows come late, once a lease is over.
type lateAnswers struct {
	lockset.DynamoDB
	from time.Time
	late int
}

func (l *lateAnswers) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	out, err := l.DynamoDB.TransactGetItems(ctx, in, o...)
	if len(in.TransactItems) > 1 && time.Now().After(l.from) {
		l.late++
		time.Sleep(6 * rtt)
	}
	return out, err
}

// An answer that shows a holder as it was, when another sweep of the process has buried it already,
// is no sign of life.
func TestASweepThatHearsLateOfWhatAnotherHasFreed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		b.take(holder, "c/1")
		holder.net.Crash()
		db := &lateAnswers{DynamoDB: b.db, from: time.Now().Add(lease)}
		c, err := lockset.New(db, lockset.Config{Table: table, Lease: lease})
		require.NoError(t, err)
		var both sync.WaitGroup
		for n, key := range []ordering.Key{"c", "c/1"} {
			both.Go(func() {
				time.Sleep(time.Duration(n) * 2 * rtt) // its last look is answered after the other's was carried out
				_, err := inspect.Sweep(t.Context(), c, []ordering.Key{key}, inspect.SweepOptions{})
				require.NoError(t, err)
			})
		}
		both.Wait()
		require.Positive(t, db.late)
		b.allFree()
	})
}
