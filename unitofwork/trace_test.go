package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

type spanKey struct{}

// span is what a tracer would make of what lasts.
type span struct {
	name   string
	parent *span
	ended  int
	events []string
	begins trace.Event
	ends   trace.Event
}

func (s *span) path() string {
	if s == nil {
		return ""
	}
	return s.parent.path() + "/" + s.name
}

// tracer makes spans. It is safe for concurrent use.
type tracer struct {
	mu    sync.Mutex
	spans []*span
	stray []string // what belongs to no span
}

func (r *tracer) trace() *trace.Trace {
	return &trace.Trace{
		Capacity: true,
		Start: func(ctx context.Context, e trace.Event) context.Context {
			r.mu.Lock()
			defer r.mu.Unlock()
			s := &span{name: string(e.Kind), begins: e}
			s.parent, _ = ctx.Value(spanKey{}).(*span)
			r.spans = append(r.spans, s)
			return context.WithValue(ctx, spanKey{}, s)
		},
		End: func(ctx context.Context, e trace.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			switch within, _ := ctx.Value(spanKey{}).(*span); {
			case within == nil:
				r.stray = append(r.stray, string(e.Kind))
			case e.Kind.Lasts() && within.name == string(e.Kind):
				within.ended++
				within.ends = e
			default:
				within.events = append(within.events, string(e.Kind))
			}
		},
	}
}

// paths are the spans with those that they are in, each once.
func (r *tracer) paths(t *testing.T) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.stray)
	var all []string
	for _, s := range r.spans {
		require.Equal(t, 1, s.ended, "%s ends once", s.path())
		for e := range slices.Values(s.events) {
			require.False(t, trace.Kind(e).Lasts(), "%s ends in %s", e, s.path())
		}
		all = append(all, s.path())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *tracer) find(t *testing.T, path string) *span {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.path() == path {
			return s
		}
	}
	require.Fail(t, "no "+path)
	return nil
}

func (r *tracer) traces(l *lockset.Config, u *unitofwork.Config) { l.Trace, u.Trace = r.trace(), nil }

// What belongs to a unit happens in its context, from its start to its end.
func TestASmallUnitIsTraced(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		r := &tracer{}
		c := b.client("c", nil, r.traces)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p"}, transfer(30)))
		require.Equal(t, []string{
			"/Unit", "/Unit/Acquire", "/Unit/Acquire/Request", "/Unit/Commit", "/Unit/Commit/Request",
			"/Unit/Function", "/Unit/Function/Read", "/Unit/Function/Read/Request", "/Unit/Request",
		}, r.paths(t), "the request of the unit itself looks up its ID")
		end := r.find(t, "/Unit").ends
		acquired := r.find(t, "/Unit/Acquire").ends
		require.Equal(t, trace.Event{Kind: trace.Unit, Unit: acquired.Unit, ID: "p", Outcome: hooks.Committed, Rows: 4, Writes: 2, Took: end.Took}, end)
		require.Positive(t, end.Took)
		require.Equal(t, trace.Event{Kind: trace.Commit, Unit: end.Unit, Rows: 4, Writes: 2}, r.find(t, "/Unit/Commit").begins)
		require.Equal(t, trace.Event{Kind: trace.Read, Unit: end.Unit, Records: 2}, r.find(t, "/Unit/Function/Read").begins)
		called := r.find(t, "/Unit/Function")
		require.Equal(t, trace.Event{Kind: trace.Function, Unit: end.Unit}, called.begins)
		require.Equal(t, trace.Event{Kind: trace.Function, Unit: end.Unit, Took: r.find(t, "/Unit/Function/Read").ends.Took}, called.ends)
		sent := r.find(t, "/Unit/Commit/Request").ends
		require.Equal(t, "TransactWriteItems", sent.Op)
		require.Equal(t, "done", sent.Answer)
		require.Positive(t, sent.Capacity)
	})
}

// Whoever waits is seen to, with what it holds meanwhile.
func TestAWaitIsTraced(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.client("holder", nil).begins(t, unitofwork.Work{Keys: transferKeys[:1]})
		r := &tracer{}
		c := b.client("c", nil, r.traces, func(l *lockset.Config, _ *unitofwork.Config) { l.ChunkSize = 2 })
		time.AfterFunc(lease, func() { _ = holder.Rollback(context.Background()) })
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(30)))
		paths := r.paths(t)
		require.Contains(t, paths, "/Unit/Acquire/Wait/Request")
		wait := r.find(t, "/Unit/Acquire/Wait")
		begins, ends := wait.begins, wait.ends
		require.Equal(t, transferKeys[0], begins.Key)
		require.Equal(t, holder.Nonce(), begins.Holder)
		require.Equal(t, "holder", begins.Owner)
		require.Equal(t, transferKeys[1:], begins.Held)
		require.Contains(t, wait.events, "Joined")
		require.NoError(t, ends.Err)
		require.GreaterOrEqual(t, ends.Took, lease/2)
	})
}

// Every attempt that begins ends, in whatever way.
func TestTheEndsOfUnitsAreTraced(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		script faults.Script
		work   unitofwork.Work
		fn     func(context.Context, *unitofwork.Unit) error
		want   []string
	}{
		"committed before":      {nil, unitofwork.Work{Keys: transferKeys, ID: "before"}, transfer(1), []string{hooks.CommittedBefore}},
		"its function fails":    {nil, unitofwork.Work{Keys: transferKeys}, func(context.Context, *unitofwork.Unit) error { return failed }, []string{hooks.NotCommitted}},
		"somebody has its keys": {nil, unitofwork.Work{Keys: []ordering.Key{"held"}, Wait: lockset.For(0)}, transfer(1), []string{hooks.NotCommitted}},
		"in doubt":              {cutAfterCommit(false), unitofwork.Work{Keys: transferKeys}, transfer(1), []string{hooks.InDoubt}},
		"a large unit": {nil, unitofwork.Work{Keys: keysOfFew()}, func(ctx context.Context, u *unitofwork.Unit) error {
			_, stage, _ := fewAccounts()
			return stage(ctx, u)
		}, []string{hooks.Committed}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "before"}, transfer(1)))
			holder := b.client("holder", nil).begins(t, unitofwork.Work{Keys: []ordering.Key{"held"}})
			defer func() { require.NoError(t, holder.Rollback(t.Context())) }()
			r := &tracer{}
			_ = b.client("c", c.script, inSmallTransactions, r.traces).Do(t.Context(), c.work, c.fn)
			r.paths(t)
			var ends []string
			for _, s := range r.spans {
				if s.name == "Unit" {
					ends = append(ends, s.ends.Outcome)
				}
			}
			require.Equal(t, c.want, ends)
		})
	}
}

// A read without locks has its requests.
func TestAReadWithoutLocksIsTraced(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		r := &tracer{}
		c := b.client("c", nil, r.traces)
		require.NoError(t, c.Read(t.Context(), accounts.Ref("1", "a")))
		require.Equal(t, []string{"/Read", "/Read/Request"}, r.paths(t))
	})
}

// One Trace serves both, set where it is wanted.
func TestWhoseTrace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		count := func(n *int) *trace.Trace {
			return trace.Join(
				hooks.On(trace.Unit, func(context.Context, trace.Event) { *n += 100 }),
				hooks.On(trace.Acquire, func(context.Context, trace.Event) { *n++ }),
			)
		}
		for name, c := range map[string]struct{ units, locks bool }{"units": {true, false}, "locks": {false, true}} {
			n := 0
			cfg := unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}
			if c.units {
				cfg.Trace = count(&n)
			}
			if c.locks {
				cfg.Locks.Trace = count(&n)
			}
			client, err := unitofwork.Open(b.db, cfg)
			require.NoError(t, err)
			require.NoError(t, client.Do(t.Context(), unitofwork.Work{Lock: true, Keys: transferKeys}, transfer(1)))
			require.Equal(t, 101, n, fmt.Sprint(name))
		}
	})
}
