package protocol

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// ways are how the runs of an owner's units have ended, and what was sent for them.
type ways struct {
	mu   sync.Mutex
	ends []string
	sent map[string]int
}

func (w *ways) traced(c *lockset.Config) {
	c.Trace = trace.Join(
		hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			way := "locked "
			if e.Optimistic {
				way = "free "
			}
			w.ends = append(w.ends, way+e.Outcome)
		}),
		hooks.On(trace.Request, func(_ context.Context, e trace.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.sent == nil {
				w.sent = map[string]int{}
			}
			w.sent[e.Op]++
		}),
	)
}

// took returns what there was since it was asked last.
func (w *ways) took() (ends []string, sent map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ends, sent = w.ends, maps.Clone(w.sent)
	w.ends, w.sent = nil, nil
	return ends, sent
}

// overtakenOnce checks that a unit's first run came to nothing, and its second did not. That one is
// under locks if the first took long: the engine decides that.
func overtakenOnce(t *testing.T, ends []string, name string) {
	t.Helper()
	require.Len(t, ends, 2, name)
	require.Equal(t, "free fell back", ends[0], name)
	require.Contains(t, []string{"free committed", "locked committed"}, ends[1], name)
}

// count says how many runs ended in this way.
func (w *ways) count(end string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.ends {
		if e == end {
			n++
		}
	}
	return n
}

// isFreeCommit tells a commit without locks from other transactions.
func isFreeCommit(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return false
	}
	first := in.TransactItems[0].Update
	return first != nil && strings.Contains(*first.ConditionExpression, "#queue[0]") &&
		!strings.Contains(*first.UpdateExpression, "#unit") && !strings.Contains(*first.UpdateExpression, "#below")
}

// Nobody is in the way: one request reads, one commits, and no lock is left, nor anything of
// who only reads.
func TestUnitsThatNobodyIsInTheWayOf(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 10 // no answer is so late that it is asked for again
		var w ways
		o := b.owner("o", nil, w.traced)
		read, write := map[string]int{"TransactGetItems": 1}, map[string]int{"TransactWriteItems": 1}
		both := map[string]int{"TransactGetItems": 1, "TransactWriteItems": 1}
		blind := func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(b.counters().Of(counter{ID: "a/1", N: 7}), b.counters().Of(counter{ID: "b", N: 7}))
		}
		look := func(ctx context.Context, u *unitofwork.Unit) error {
			return u.Get(ctx, b.counters().Ref("a/1"), b.counters().Ref("b"))
		}
		for _, c := range []struct {
			name string
			id   string
			fn   func(context.Context, *unitofwork.Unit) error
			sent map[string]int
			end  string
			n    int64
		}{
			{"a look at nothing", "", look, read, "free committed", 0},
			{"reads and writes", "", b.add(1, "a/1", "b"), both, "free committed", 1},
			{"rows are there", "", b.add(1, "a/1", "b"), both, "free committed", 2},
			{"with an ID", "1", b.add(1, "a/1", "b"), both, "free committed", 3},
			{"the same ID", "1", b.add(1, "a/1", "b"), read, "free committed before", 3},
			{"only writes", "", blind, write, "free committed", 7},
			{"only writes, with an ID", "2", blind, write, "free committed", 7},
			{"only reads", "", look, read, "free committed", 7},
			{"nothing at all", "", func(context.Context, *unitofwork.Unit) error { return nil }, nil, "free committed", 7},
		} {
			require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{ID: c.id}, c.fn), c.name)
			ends, sent := w.took()
			require.Equal(t, []string{c.end}, ends, c.name)
			require.Equal(t, c.sent, sent, c.name)
			require.Equal(t, c.n, b.count("a/1"), c.name)
			require.Equal(t, c.n, b.count("b"), c.name)
			if c.n == 0 {
				require.Empty(t, b.items(b.locks), c.name)
			}
			b.allFree()
		}
		locked := b.take(b.owner("next", nil), "a", "b")
		b.free(locked)
	})
}

// Somebody has the key, or one above or below it: the unit takes a place in the queue, and
// is done when its turn has come. Beside it nobody waits.
func TestAUnitBesideHolders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		cases := []struct {
			held, wanted, queue ordering.Key
		}{
			{"c/1", "c/1", "c/1"}, {"c", "c/1", "c"}, {"c/1", "c", "c"}, {"c/1/x", "c/1", "c/1"}, {"c/1", "c/1/x", "c/1"}, {"c", "c", "c"},
			{"c/2", "c/1", ""}, {"c/1/x", "c/1/y", ""},
		}
		if testing.Short() && b.local {
			cases = cases[5:7] // one of each kind
		}
		for i, c := range cases {
			under := func(k ordering.Key) ordering.Key {
				return ordering.Key(strings.Replace(string(k), "c", string(rune('d'+i)), 1))
			}
			var w ways
			o := b.owner("o", nil, w.traced)
			set := b.take(b.owner("holder", nil), under(c.held))
			done := make(chan error, 1)
			go func() { done <- o.units.Do(t.Context(), unitofwork.Work{}, b.add(1, under(c.wanted))) }()
			if c.queue != "" {
				b.eventually("in the queue", func() bool { return len(b.queue(under(c.queue))) == 1 })
				require.Zero(t, b.count(under(c.wanted)))
				b.free(set)
			}
			require.NoError(t, <-done)
			require.EqualValues(t, 1, b.count(under(c.wanted)))
			ends, _ := w.took()
			if c.queue == "" {
				require.Equal(t, []string{"free committed"}, ends)
				b.free(set)
				continue
			}
			last := len(ends) - 1
			require.Equal(t, append(slices.Repeat([]string{"free fell back"}, last), "locked committed"), ends)
			require.GreaterOrEqual(t, last, 1)
			require.LessOrEqual(t, last, 5)
		}
		b.allFree()
	})
}

// Somebody has the rows between two reads of a function: it is not told the second part, and
// is called anew, whatever it makes of that.
func TestAFunctionIsToldOneState(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 10 // reads are for one attempt
		other := b.owner("other", nil)
		move := func(work unitofwork.Work, keys ...ordering.Key) error {
			return other.units.Do(t.Context(), work, b.add(1, keys...))
		}
		for name, overtake := range some(b, map[string]func(one, two, root ordering.Key) error{
			"without locks": func(one, two, _ ordering.Key) error { return move(unitofwork.Work{}, one, two) },
			"under locks": func(one, two, _ ordering.Key) error {
				return move(unitofwork.Work{Lock: true, Keys: []ordering.Key{one, two}}, one, two)
			},
			"from above": func(one, two, root ordering.Key) error {
				return move(unitofwork.Work{Lock: true, Keys: []ordering.Key{root}}, one, two)
			},
			"from above, without locks": func(one, two, root ordering.Key) error {
				return move(unitofwork.Work{Keys: []ordering.Key{root}}, one, two)
			},
			"the first alone":    func(one, _, _ ordering.Key) error { return move(unitofwork.Work{}, one) },
			"locks, and no more": func(one, _, _ ordering.Key) error { b.free(b.take(other, one)); return nil },
		}) {
			for _, found := range []bool{false, true} { // whether there are rows and records before
				root := ordering.Key(strings.NewReplacer(" ", "-", ",", "").Replace(name))
				if found {
					root += "-found"
				}
				one, two := ordering.Join(string(root), "1"), ordering.Join(string(root), "2")
				if found {
					require.NoError(t, move(unitofwork.Work{}, one, two))
				}
				var w ways
				o := b.owner("o", nil, w.traced)
				calls := 0
				require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					first, second := b.counters().Ref(string(one)), b.counters().Ref(string(two))
					if err := u.Get(ctx, first); err != nil {
						return err
					}
					if calls++; calls == 1 {
						require.NoError(t, overtake(one, two, root))
						require.Error(t, u.Get(ctx, second), name)
						return errors.New("of no interest")
					}
					require.NoError(t, u.Get(ctx, second))
					first.T.N += 10
					return u.Put(first)
				}), name)
				require.Equal(t, 2, calls, name)
				ends, _ := w.took()
				overtakenOnce(t, ends, name)
				want := int64(10)
				if found {
					want++
				}
				if name != "locks, and no more" {
					want++
				}
				require.Equal(t, want, b.count(one), name)
			}
		}
		b.allFree()
	})
}
