package protocol

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// A unit that names no keys, and turns out to be larger than a transaction, is committed under
// locks, by a journal, as if it had named them.
func TestALargeUnitThatNamesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 2
		l := b.ledger("l", 14, 12)
		var decisions atomic.Int64
		var w ways
		o := b.owner("o", counting(&decisions), w.traced)
		require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{ID: l.name}, func(ctx context.Context, u *unitofwork.Unit) error {
			if !u.Locked() {
				defer func() {
					_, sent := w.took()
					require.Empty(t, sent, "nothing is read, so nothing is sent")
				}()
			}
			return l.stage(ctx, u)
		}))
		ends, _ := w.took()
		require.Equal(t, []string{"free fell back", "locked committed"}, ends)
		require.EqualValues(t, 1, decisions.Load())
		require.True(t, l.happened())
		b.settled()
		require.NoError(t, b.owner("again", nil).units.Do(t.Context(), unitofwork.Work{ID: l.name}, l.stage))
		require.True(t, l.happened())
		require.EqualValues(t, 1, decisions.Load())
	})
}

// A unit with a journal stands still when it is half applied. Units without locks that want
// its records wait until all of it is there, whether they write or only read.
func TestUnitsBesideAHalfAppliedOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 4 // nobody is to take it over while it stands still
		b.transaction = 6
		l := b.ledger("l", 4, 2)
		var o *owner
		var decided atomic.Bool
		var applied atomic.Int64
		stands := make(chan struct{})
		o = b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && decided.Load() && applied.Add(1) == 3 {
				o.net.Pause() // it, and all that follows
				close(stands)
			}
			if ok && isDecision(in) {
				decided.Store(true)
			}
			return faults.Pass()
		})
		done := make(chan error, 3)
		go func() { done <- o.units.Do(t.Context(), unitofwork.Work{Keys: l.keys}, l.stage) }()
		<-stands
		b.eventually("half applied", func() bool { _, half := l.sight(l.scanned(), l.every(1)); return half })

		var reads, writes ways
		sum := int64(0)
		seen := func(ctx context.Context, u *unitofwork.Unit) error {
			refs := l.refs(l.every(1))
			if err := u.Get(ctx, records(refs)...); err != nil {
				return err
			}
			sum = 0
			for _, r := range refs {
				sum += r.T.N
			}
			return nil
		}
		reader, writer := b.owner("reader", nil, reads.traced), b.owner("writer", nil, writes.traced)
		go func() { done <- reader.units.Do(t.Context(), unitofwork.Work{}, seen) }()
		b.eventually("the reader is in its way", func() bool { return reads.count("free fell back") > 0 })
		go func() {
			done <- writer.units.Do(t.Context(), unitofwork.Work{}, b.add(1, l.keys[0]))
		}()
		b.eventually("the writer, too", func() bool { return writes.count("free fell back") > 0 })
		for _, w := range []*ways{&reads, &writes} { // the rows are marked
			require.Zero(t, w.count("free committed")+w.count("locked committed"))
		}
		o.net.Resume()
		for range 3 {
			require.NoError(t, <-done)
		}
		for _, w := range []*ways{&reads, &writes} {
			require.Equal(t, 1, w.count("free committed")+w.count("locked committed"))
		}
		want := int64(0)
		for i := range l.records {
			want += [...]int64{opening + 7, opening + 7, 0, opening, 7}[i%5]
		}
		require.Contains(t, []int64{want, want + 1}, sum, "of all records, with the writer's or without")
		require.EqualValues(t, opening+7+1, b.count(l.keys[0]))
		b.settled()
	})
}

// A unit may fit into one transaction by itself, and not with the rows of what it has read.
func TestAUnitOfManyRowsThatNamesNothing(t *testing.T) {
	t.Parallel()
	eachHeavy(t, func(t *testing.T, b *bed) {
		var w ways
		o := b.owner("o", nil, w.traced, func(c *lockset.Config) { c.Lease *= 2 })
		l := b.ledger("l", 9, 0) // 45 rows, of 27 keys
		read := func(ctx context.Context, u *unitofwork.Unit) error {
			for i := range l.records {
				if err := u.Get(ctx, l.ref(i)); err != nil {
					return err
				}
			}
			return u.Replace(b.counters().Of(counter{ID: "z"}))
		}
		require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{}, read))
		l = b.ledger("m", 11, 0) // 55 rows: they are not looked at each time
		require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{}, read))
		ends, _ := w.took()
		require.Equal(t, "free committed", ends[0])
		require.Equal(t, "free fell back", ends[1])
		require.Equal(t, "locked committed", ends[len(ends)-1])
		b.settled()
	})
}
