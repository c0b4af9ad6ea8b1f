package protocol

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A large unit is applied slowly, in many transactions. Who scans the tables sees half
// of it; who reads without locks sees none of it or all, in one request or in several, by
// Read, or in a unit, whatever keys it names.
func TestAReaderNeverSeesHalf(t *testing.T) {
	eachHeavy(t, func(t *testing.T, b *bed) {
		b.lease *= 2
		b.transaction = 6
		families := shorter(12, 4)
		l := b.ledger("l", families, shorter(8, 3))
		o := b.owner("o", slowToApply(200*time.Millisecond))
		var over atomic.Bool
		var working sync.WaitGroup
		working.Go(func() {
			defer over.Store(true)
			require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: l.keys}, l.stage))
		})
		var torn atomic.Int64
		working.Go(func() {
			for !over.Load() {
				if _, half := l.sight(l.scanned(), l.every(1)); half {
					torn.Add(1)
				}
				time.Sleep(breath())
			}
		})
		seen := make(map[string]*glimpses)
		for way, by := range readings {
			for records, which := range map[string][]int{
				"all records": l.every(1), "every fourth": l.every(4), "those of depots": l.every(1)[3*families:],
			} {
				g := &glimpses{}
				seen[records+" by "+way] = g
				read := by(b.owner("reader of "+records+" by "+way, nil), l.roots(which))
				working.Go(func() { g.look(t, l, read, which, &over) })
			}
		}
		working.Wait()
		for who, g := range seen {
			t.Logf("%s: %d times nothing of it, %d times all", who, g.nothing, g.all)
			require.NotZero(t, g.all, who)
		}
		require.NotZero(t, torn.Load(), "the tables had half of it")
		b.settled()
	})
}

// breath is how long who looks again and again leaves the engine to others. The unit is
// applied for seconds.
func breath() time.Duration { return shorter(0, 100*time.Millisecond) }

// slowToApply: whatever is written after a decision takes its time.
func slowToApply(d time.Duration) faults.Script {
	var decided atomic.Bool
	return func(c faults.Call) faults.Fault {
		if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok {
			if decided.Load() {
				time.Sleep(d)
			}
			decided.CompareAndSwap(false, isDecision(in))
		}
		return faults.Pass()
	}
}

// reading reads records as of one moment.
type reading func(context.Context, ...unitofwork.Record) error

// readings are the ways to read without being told of locks: these keys are above all that
// is read.
var readings = map[string]func(o *owner, above []ordering.Key) reading{
	"Read": func(o *owner, _ []ordering.Key) reading { return o.units.Read },
	"Do":   func(o *owner, _ []ordering.Key) reading { return o.reads(unitofwork.Work{}) },
	"Do, naming keys above": func(o *owner, above []ordering.Key) reading {
		return o.reads(unitofwork.Work{Keys: above})
	},
}

// reads reads in units that do nothing else, in two parts.
func (o *owner) reads(work unitofwork.Work) reading {
	return func(ctx context.Context, records ...unitofwork.Record) error {
		return o.units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
			return getInTwoParts(ctx, u, records)
		})
	}
}

func getInTwoParts(ctx context.Context, u *unitofwork.Unit, records []unitofwork.Record) error {
	half := len(records) / 2
	if err := u.Get(ctx, records[:half]...); err != nil {
		return err
	}
	return u.Get(ctx, records[half:]...)
}

// roots are the first segments of the guards of some records.
func (l *ledger) roots(which []int) (roots []ordering.Key) {
	for _, i := range which {
		roots = append(roots, ordering.Key(l.records[i].T.ID).Root())
	}
	return roots
}

// glimpses are how often a reader saw nothing of a unit, and all of it.
type glimpses struct{ nothing, all int }

// look reads some records, again and again until the unit is over, and once
// more then.
func (g *glimpses) look(t *testing.T, l *ledger, read reading, which []int, over *atomic.Bool) {
	for last := false; !last; {
		last = over.Load()
		refs := l.refs(which)
		require.NoError(t, read(t.Context(), records(refs)...))
		found := map[string]int64{}
		for _, r := range refs {
			if r.Found {
				found[r.T.ID+"/"+r.T.Part] = r.T.N
			}
		}
		all, half := l.sight(found, which)
		require.False(t, half, "some of %d records are as before, and others are not", len(refs))
		if all {
			g.all++
			continue
		}
		require.Zero(t, g.all, "it had been there")
		g.nothing++
		time.Sleep(breath())
	}
}
