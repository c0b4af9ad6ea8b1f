package waiting

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

const (
	crowd20      = 20 // processes, of two goroutines each
	impatientFor = 200 * time.Millisecond
	heldFor      = 10 * time.Millisecond
	patientRound = 4 * time.Second
	tooLate      = 100 * time.Millisecond
)

// BenchmarkImpatient has 20 processes of two goroutines want one key, which each holds for 10 ms,
// for four seconds: at first they wait as long as it takes, then for 200 ms at most. impatient is
// how often they have it then, of how often they had it before; late is the latest return after a
// deadline, in milliseconds.
func BenchmarkImpatient(b *testing.B) {
	each(b, 0, func(bed *bed) {
		var ratio, late []float64
		for range max(bed.b.N, 1) {
			patient, _ := bed.wanted(0)
			impatient, latest := bed.wanted(impatientFor)
			ratio = append(ratio, float64(impatient)/float64(patient))
			late = append(late, float64(latest)/float64(time.Millisecond))
			bed.b.Logf("had it %d times, and %d times with deadlines; at most %v late", patient, impatient, latest)
		}
		bed.b.ReportMetric(median(ratio), "impatient")
		bed.b.ReportMetric(median(late), "late-ms")
	})
}

// wanted returns how often the crowd has the key in a round, each with so long to wait, or as long
// as it takes, and the latest return after a deadline.
func (b *bed) wanted(wait time.Duration) (had int, latest time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	calls, lates := 0, 0
	key := ordering.Key("hot:" + wait.String())
	began := time.Now()
	for n := range crowd20 {
		p := b.process(nil)
		for g := range 2 {
			random := rand.New(rand.NewPCG(uint64(n), uint64(g)))
			group.Go(func() {
				for time.Since(began) < patientRound {
					ctx, cancel := context.WithCancel(b.background())
					end := began.Add(time.Hour)
					if wait > 0 {
						end = time.Now().Add(time.Duration(random.Int64N(int64(wait))))
						ctx, cancel = context.WithDeadline(ctx, end)
					}
					set, err := p.Acquire(ctx, []ordering.Key{key})
					cancel()
					mu.Lock()
					calls++
					if latest = max(latest, time.Since(end)); time.Since(end) > tooLate {
						lates++
					}
					if err == nil && time.Since(began) < patientRound {
						had++
					}
					mu.Unlock()
					if err == nil {
						time.Sleep(heldFor)
						err = set.Release(b.background())
					}
					if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*lockset.HeldError)) {
						b.b.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
	b.b.Logf("%d calls, %d of them more than %v late; had it %d times", calls, lates, tooLate, had)
	return had, latest
}
