package lockset_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// purposed is an option of a set.
func purposed(purpose string) func(*lockset.Options) {
	return func(o *lockset.Options) { o.Purpose = purpose }
}

// view is a row as an inspector has it.
func (b *bed) view(key ordering.Key) inspect.Row {
	b.t.Helper()
	i, _ := b.operator(nil)
	view, err := i.Look(b.t.Context(), key, inspect.LookOptions{})
	require.NoError(b.t, err)
	return view.Row
}

// Who waits for a key is told whose it is and what for, and so is who looks at the table; also
// after the unit, until another has it.
func TestAPurposeIsToldToOthers(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set, err := b.owner("holder", nil).Acquire(t.Context(), []ordering.Key{"a"}, purposed("pay out"))
		require.NoError(t, err)
		require.Equal(t, "pay out", b.view("a").Holder.Purpose)

		var told []trace.Event
		other := b.owner("other", nil, func(c *lockset.Config) {
			c.Trace = hooks.OnStart(trace.Wait, func(ctx context.Context, w trace.Event) context.Context { told = append(told, w); return ctx })
		})
		refused := b.refused(other, 10*rtt, "a")
		require.Equal(t, "pay out", refused.Purpose)
		require.Contains(t, refused.Error(), `of owner "holder" for "pay out": `)
		require.Equal(t, "pay out", told[0].Purpose)

		b.free(set)
		require.Equal(t, "pay out", b.view("a").LastPurpose)
		require.Equal(t, "holder", b.view("a").LastOwner)

		b.take(other, "a")
		require.Empty(t, b.view("a").Holder.Purpose)
		require.NotContains(t, b.refused(b.owner("third", nil), 10*rtt, "a").Error(), ` for "`)
	})
}

func TestAPurposeWithinOneProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		set, err := o.Acquire(t.Context(), []ordering.Key{"a"}, purposed("pay out"))
		require.NoError(t, err)
		require.Equal(t, "pay out", b.refused(o, 10*rtt, "a").Purpose)
		b.free(set)
	})
}

// A place in a queue says whose it is and what for.
func TestThoseWhoWaitSayWhatFor(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.take(b.owner("holder", nil), "a")
		first := b.ask(t.Context(), b.owner("first", nil), []ordering.Key{"a"}, purposed("count"))
		second := b.ask(t.Context(), b.owner("second", nil), []ordering.Key{"a"})
		queue := b.view("a").Queue
		require.Len(t, queue, 2)
		require.Equal(t, []string{"first", "count", "second", ""}, []string{queue[0].Owner, queue[0].Purpose, queue[1].Owner, queue[1].Purpose})
		require.Len(t, queue[0].Unit, 22)
		b.free(holder)
		first.leave()
		second.leave()
		require.Empty(t, b.view("a").Queue)
		b.allFree()
	})
}

// A unit that lets go of what it has, and has a step alone, is for the same.
func TestAPurposeStaysWithACallThatLetsGo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.owner("dead", nil)
		b.take(dead, "b")
		dead.net.Crash()
		var got []string
		waits := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{"a", "b"}, purposed("count"))
		for waits.waits() {
			for _, key := range []ordering.Key{"a", "b"} {
				row := b.row(key)
				if unit, held := row["unit"]; held && lockrow.TextOf(row["ownerName"]) == "o" {
					got = append(got, fmt.Sprint(unit != nil, " ", lockrow.TextOf(row["purpose"])))
				}
			}
			time.Sleep(rtt / 2)
		}
		require.NotEmpty(t, got)
		for _, seen := range got {
			require.Equal(t, "true count", seen)
		}
		waits.leave()
	})
}

// Log lines about the dead say who they were, and what for.
func TestLogLinesNameThePurpose(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.owner("dead", nil)
		_, err := dead.Acquire(t.Context(), []ordering.Key{"a"}, purposed("pay out"))
		require.NoError(t, err)
		late := b.owner("late", nil)
		b.ask(t.Context(), late, []ordering.Key{"a"}, purposed("count"))
		dead.net.Crash()
		late.net.Crash()

		var lines warnings
		heir := b.owner("heir", nil, lines.log)
		b.free(b.take(heir, "a"))
		for _, line := range strings.Split(lines.String(), "\n") {
			switch {
			case strings.Contains(line, "buried"):
				require.Contains(t, line, `owner=dead purpose="pay out"`)
			case strings.Contains(line, "lost its place"):
				require.Contains(t, line, `owner=late purpose=count`)
			}
		}
		require.Contains(t, lines.String(), "buried")
		require.Contains(t, lines.String(), "lost its place")
	})
}

// A row with eight waiting units is one write unit, however long what they say is.
func TestARowWithManyWaitingIsOneWriteUnit(t *testing.T) {
	long := strings.Repeat("x", lockrow.MaxPurpose)
	key := ordering.Key(strings.Repeat("k", 64))
	inBed(t, func(t *testing.T, b *bed) {
		var mu sync.Mutex
		most := map[string]float64{}
		owner := func(name string) *owner {
			return b.owner(name+strings.Repeat("o", 64-len(name)), nil, func(c *lockset.Config) {
				c.Trace = trace.Join(&trace.Trace{Capacity: true}, hooks.On(trace.Request, func(_ context.Context, r trace.Event) {
					mu.Lock()
					defer mu.Unlock()
					most[r.Op] = max(most[r.Op], r.Capacity)
				}))
			})
		}
		first, err := owner("first").Acquire(t.Context(), []ordering.Key{key}, purposed(long))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting := []*patron{b.ask(ctx, owner("holder"), []ordering.Key{key}, purposed(long))}
		for n := range 7 {
			waiting = append(waiting, b.ask(ctx, owner(fmt.Sprint("waits", n)), []ordering.Key{key}, purposed(long)))
		}
		b.free(first) // the next one has it, and one more waits: the row has all that it can have
		holder := waiting[0].got()
		waiting = append(waiting, b.ask(ctx, owner("last"), []ordering.Key{key}, purposed(long)))
		require.Len(t, b.queue(key), 8)
		time.Sleep(lease) // it is renewed
		cancel()
		for _, p := range waiting[1:] {
			require.ErrorIs(t, p.failed(), context.Canceled)
		}
		b.free(holder)
		time.Sleep(lease / 10) // places that were not given up at once
		mu.Lock()
		require.Equal(t, 1.0, most["UpdateItem"])
		require.Equal(t, 1.0, most["BatchExecuteStatement"])
		mu.Unlock()
		b.allFree()
	})
}

func TestAPurposeThatCannotBe(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		for purpose, reason := range map[string]string{
			strings.Repeat("x", 257): "config: Options.Purpose is longer than 256 bytes",
			"\xff":                   "config: Options.Purpose is not UTF-8",
		} {
			_, err := o.Acquire(t.Context(), []ordering.Key{"a"}, purposed(purpose))
			require.EqualError(t, err, reason)
			require.ErrorAs(t, err, new(*locks.ConfigError))
			err = o.With(t.Context(), []ordering.Key{"a"}, func(context.Context, fencing.Token) error { panic("called") }, purposed(purpose))
			require.EqualError(t, err, reason)
			i, _ := b.operator(nil)
			err = i.Free(t.Context(), "a", "unit", inspect.Freeing{Reason: purpose})
			require.EqualError(t, err, strings.ReplaceAll(reason, "Options.Purpose", "Freeing.Reason"))
		}
		require.Empty(t, o.requests())
	})
}

// Why an operator has taken a key is told as the purpose of its holder.
func TestTheReasonOfAnOperator(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set, err := b.owner("holder", nil).Acquire(t.Context(), []ordering.Key{"a"}, purposed("pay out"))
		require.NoError(t, err)
		i, _ := b.operator(func(faults.Call) faults.Fault { return faults.Pass() })
		require.NoError(t, i.Free(t.Context(), "a", set.Nonce(), inspect.Freeing{By: "Ann", Reason: "it hangs"}))
		held := b.view("a").Holder
		require.Equal(t, []string{"Ann", "it hangs"}, []string{held.Owner, held.Purpose})

		set = b.take(b.owner("heir", nil), "a")
		require.NoError(t, i.Free(t.Context(), "a", set.Nonce(), inspect.Freeing{By: "Ann"}))
		require.Empty(t, b.view("a").Holder.Purpose)
	})
}
