package waiting

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// The dead are waited for in real time: the lease is short, but long beside the
// few requests that it takes to bury them.
const (
	crashLease = 2 * time.Second
	atOnce     = 8 // crashes, each on a key of its own
)

// BenchmarkCrashOfHolder counts how many leases go by from the last sign of life
// that a holder sent until a process that waits has its key.
func BenchmarkCrashOfHolder(b *testing.B) {
	each(b, crashLease, func(bed *bed) { bed.crashes(crashLease, "leases", bed.holderCrashes) })
}

// BenchmarkCrashOfHead measures what a dead head of a queue costs the next: the time from
// the release of the row until the next has it, against five Poll. The next looks at the row
// every two Poll, and goes past the head when it has seen the row free for three.
func BenchmarkCrashOfHead(b *testing.B) {
	each(b, crashLease, func(bed *bed) {
		bed.crashes(5*bed.process(nil).Config().Poll, "of-five-polls", bed.headCrashes)
	})
}

// crashes reports how long crashes cost on average and at most, in units of a time that is called so.
func (b *bed) crashes(of time.Duration, unit string, crash func(key ordering.Key, phase float64) time.Duration) {
	var took []float64
	for n := 0; b.b.Loop(); n++ {
		for _, d := range b.together(n, crash) {
			took = append(took, float64(d)/float64(of))
		}
	}
	b.b.ReportMetric(mean(took), unit)
	b.b.ReportMetric(slices.Max(took), unit+"-at-most")
}

// together measures several crashes, each at another moment between two
// heartbeats.
func (b *bed) together(n int, crash func(key ordering.Key, phase float64) time.Duration) []time.Duration {
	took := make([]time.Duration, atOnce)
	var group sync.WaitGroup
	for i := range took {
		group.Go(func() {
			took[i] = crash(ordering.Key(fmt.Sprintf("crash:%d.%d", n, i)), (float64(i)+0.5)/atOnce)
		})
	}
	group.Wait()
	if b.b.Failed() {
		b.b.FailNow()
	}
	return took
}

// acquired is a set, nil if it was given up, and when that was.
type acquired struct {
	set *lockset.Set
	at  time.Time
}

// acquire starts an acquisition.
func acquire(ctx context.Context, p *process, key ordering.Key) <-chan acquired {
	done := make(chan acquired, 1)
	go func() {
		set, _ := p.Acquire(ctx, []ordering.Key{key})
		done <- acquired{set, time.Now()}
	}()
	return done
}

// waiter returns a process, and a channel that is closed when it has a place in
// the table's queue, or ends without one.
func (b *bed) waiter() (*process, <-chan struct{}) {
	joined := make(chan struct{})
	var once sync.Once
	return b.process(trace.Join(
		hooks.On(trace.Joined, func(context.Context, trace.Event) { once.Do(func() { close(joined) }) }),
		hooks.On(trace.Acquire, func(context.Context, trace.Event) { once.Do(func() { close(joined) }) }),
	)), joined
}

// holderCrashes returns how long after its last sign of life the key of a dead
// holder is another's.
func (b *bed) holderCrashes(key ordering.Key, phase float64) time.Duration {
	holder := b.process(nil)
	held := <-acquire(b.background(), holder, key)
	heir, joined := b.waiter()
	waiting := acquire(b.b.Context(), heir, key)
	<-joined
	cfg := heir.Config()
	time.Sleep(cfg.Heartbeat + time.Duration(phase*float64(cfg.Heartbeat)))
	holder.cut()
	got := <-waiting
	if !assert.NotNil(b.b, held.set) || !assert.NotNil(b.b, got.set) {
		return 0
	}
	assert.NoError(b.b, got.set.Release(b.b.Context()))
	return got.at.Sub(holder.lastSign())
}

// headCrashes returns how long after its release a row is the next's when the
// first in its queue is dead.
func (b *bed) headCrashes(key ordering.Key, phase float64) time.Duration {
	held := <-acquire(b.background(), b.process(nil), key)
	head, first := b.waiter()
	ctx, forget := context.WithCancel(b.background())
	dead := acquire(ctx, head, key)
	b.b.Cleanup(func() { forget(); <-dead }) // what a dead process still tries ends after a lease
	<-first
	next, second := b.waiter()
	waiting := acquire(b.b.Context(), next, key)
	<-second
	time.Sleep(time.Duration(phase * float64(next.Config().Heartbeat)))
	head.cut()
	freed := time.Now()
	assert.NoError(b.b, held.set.Release(b.b.Context()))
	got := <-waiting
	if assert.NotNil(b.b, got.set) {
		assert.NoError(b.b, got.set.Release(b.b.Context()))
	}
	return got.at.Sub(freed)
}
