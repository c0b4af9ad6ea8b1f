package timeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/timeline"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/unitofwork"
)

// crash is a town of which a process is killed while it holds keys that others wait for, and another
// is cut off until it has lost its own.
var crash = once(func(t *testing.T) []timeline.Source {
	return recorded(t, 4, 2*time.Second, func(tn *town) {
		var wg sync.WaitGroup
		ctx := tn.t.Context()
		hold := func(p *process, after, long time.Duration, purpose string, keys ...ordering.Key) {
			wg.Go(func() {
				time.Sleep(after)
				_ = p.units.Do(ctx, unitofwork.Work{Keys: keys, Lock: true, Purpose: purpose}, func(ctx context.Context, u *unitofwork.Unit) error {
					select {
					case <-time.After(long):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
			})
		}
		hold(tn.processes[0], 0, 5*time.Second, "payout", "customer:1", "customer:2/account:0")
		hold(tn.processes[1], 300*time.Millisecond, 400*time.Millisecond, "statement", "customer:1/account:1")
		hold(tn.processes[2], 500*time.Millisecond, 300*time.Millisecond, "", "customer:2/account:0", "customer:3")
		hold(tn.processes[2], 900*time.Millisecond, 200*time.Millisecond, "", "customer:1")
		hold(tn.processes[3], 100*time.Millisecond, 6*time.Second, "report", "customer:4")
		hold(tn.processes[1], 2500*time.Millisecond, 300*time.Millisecond, "", "customer:4")
		wg.Go(func() {
			time.Sleep(time.Second)
			tn.processes[0].kill()
		})
		wg.Go(func() {
			time.Sleep(2 * time.Second)
			tn.processes[3].line.Partition(true)
			time.Sleep(4 * time.Second)
			tn.processes[3].line.Partition(false)
		})
		wg.Go(func() { tn.busy(40, 2, 8) })
		wg.Wait()
	})
})

// queue is a town in which many wait for one key, in each process and in the table.
var queue = once(func(t *testing.T) []timeline.Source {
	return recorded(t, 3, 5*time.Second, func(tn *town) {
		var wg sync.WaitGroup
		for i := range 24 {
			p := tn.processes[i%3]
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 15 * time.Millisecond)
				if i == 20 {
					ctx, cancel := context.WithTimeout(tn.t.Context(), 300*time.Millisecond)
					defer cancel()
					_ = p.locks.With(ctx, []ordering.Key{"stock:17"}, func(context.Context, fencing.Token) error { return nil })
					return
				}
				keys := []ordering.Key{"stock:17"}
				if i%4 == 0 {
					keys = append(keys, ordering.Key(fmt.Sprintf("order:%d", i)))
				}
				require.NoError(t, p.locks.With(tn.t.Context(), keys, func(context.Context, fencing.Token) error {
					time.Sleep(time.Duration(30+i*5) * time.Millisecond)
					return nil
				}))
			})
		}
		wg.Wait()
	})
})

// multiplied repeats recordings, each time with other units and, for the most part, other keys.
func multiplied(t testing.TB, times int, sources []timeline.Source) (all []timeline.Source) {
	t.Helper()
	for _, s := range sources {
		var events []record.Event
		for e, err := range record.Read(s.Reader) {
			require.NoError(t, err)
			events = append(events, e)
		}
		var spans uint64
		long := 3 * time.Second
		for _, e := range events {
			spans = max(spans, e.Span)
		}
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		for n := range times {
			named := func(nonce *string) {
				if *nonce != "" {
					*nonce = fmt.Sprintf("%s%06d", (*nonce)[:16], n)
				}
			}
			keyed := func(key *ordering.Key) {
				if len(*key) > 10 && n%3 > 0 {
					*key = (*key)[:9] + ordering.Key(fmt.Sprint(n%50)) + (*key)[9:]
				}
			}
			for _, e := range events {
				if e.Name == "Started" && n > 0 {
					continue
				}
				e.At = e.At.Add(time.Duration(n) * long)
				for _, span := range []*uint64{&e.Span, &e.In} {
					if *span != 0 {
						*span += uint64(n) * spans
					}
				}
				for _, nonce := range []*string{&e.Unit, &e.Holder, &e.Leader} {
					named(nonce)
				}
				if e.ID != "" {
					e.ID = fmt.Sprintf("%s-%d", e.ID, n)
				}
				keyed(&e.Key)
				e.Keys, e.Held = slices.Clone(e.Keys), slices.Clone(e.Held)
				for i := range e.Keys {
					keyed(&e.Keys[i])
				}
				for i := range e.Held {
					keyed(&e.Held[i])
				}
				require.NoError(t, encoder.Encode(e))
			}
		}
		all = append(all, timeline.Source{Name: s.Name, Reader: &out})
	}
	return all
}
