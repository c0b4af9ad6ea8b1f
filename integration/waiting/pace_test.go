package waiting

import (
	"context"
	"maps"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

const (
	pairsPerRound = 256
	goroutines    = 64
	unitsEach     = 8 // per round
)

// BenchmarkOneProcess has 64 goroutines of one process do empty units on one
// key: it is handed from one to the next without a request in between. pace is
// what is left of the engine's own speed.
func BenchmarkOneProcess(b *testing.B) {
	b.Run("locks", func(b *testing.B) {
		each(b, 0, func(bed *bed) {
			p := bed.process(nil)
			bed.pace(p, func(ctx context.Context, key ordering.Key) error {
				set, err := p.Acquire(ctx, []ordering.Key{key})
				if err != nil {
					return err
				}
				return set.Release(ctx)
			})
		})
	})
	b.Run("units", func(b *testing.B) {
		each(b, 0, func(bed *bed) {
			p := bed.process(nil)
			units, err := unitofwork.New(p.Client, unitofwork.Config{})
			require.NoError(b, err)
			nothing := func(context.Context, *unitofwork.Unit) error { return nil }
			bed.pace(p, func(ctx context.Context, key ordering.Key) error {
				return units.Do(ctx, unitofwork.Work{Lock: true, Keys: []ordering.Key{key}}, nothing)
			})
		})
	})
}

// heap is what the process has in memory beside the locks, as any process that does
// some work has. Without it the collector runs every 50 units or so, and shrinks the
// stacks of all who wait each time.
const heap = 64 << 20

// pace measures units of a process against the requests of one of them.
func (b *bed) pace(p *process, unit func(context.Context, ordering.Key) error) {
	ballast := make([]byte, heap)
	defer runtime.KeepAlive(ballast)
	yardstick := b.yardstick(p, func() error { return unit(b.b.Context(), "yardstick") })
	contended := func() time.Duration {
		began := time.Now()
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() {
				for range unitsEach {
					if err := unit(b.b.Context(), "hot"); err != nil {
						b.b.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		return time.Since(began)
	}
	yardstick.replay(b, pairsPerRound/4) // what is built once is not to be measured
	counts(p)
	var pace, speed []float64
	for b.b.Loop() {
		asked, worked := yardstick.replay(b, pairsPerRound), contended()
		speed = append(speed, goroutines*unitsEach/worked.Seconds())
		pace = append(pace, speed[len(speed)-1]/(pairsPerRound/asked.Seconds()))
	}
	units := float64(len(pace) * goroutines * unitsEach)
	b.b.ReportMetric(median(pace), "pace")
	b.b.ReportMetric(median(speed), "units/s")
	reportRequests(b.b, counts(p), units)
}

// yardstick is what one uncontended unit sends, to be sent without the library.
type yardstick struct {
	inputs []any
	token  fencing.Token
}

func (b *bed) yardstick(p *process, unit func() error) *yardstick {
	b.b.Helper()
	y := &yardstick{}
	p.onAct = func(in any) { y.inputs = append(y.inputs, in) }
	require.NoError(b.b, unit())
	p.onAct = nil
	require.Len(b.b, y.inputs, 2, "one request to lock, one to release")
	y.token = (*locks.Client)(p.Client).Clock().Next()
	return y
}

// replay sends the requests of so many units, each when the one before is
// answered, with new tokens.
func (y *yardstick) replay(b *bed, pairs int) time.Duration {
	ctx, began := b.b.Context(), time.Now()
	for range pairs {
		y.token++
		for _, in := range y.inputs {
			var err error
			switch in := in.(type) {
			case *dynamodb.UpdateItemInput:
				again := *in
				again.ExpressionAttributeValues = y.restamped(in.ExpressionAttributeValues)
				_, err = b.db.UpdateItem(ctx, &again)
			case *dynamodb.TransactWriteItemsInput:
				again := *in
				again.ClientRequestToken = nil // the SDK, or the engine, makes one
				_, err = b.db.TransactWriteItems(ctx, &again)
			}
			require.NoError(b.b, err)
		}
	}
	return time.Since(began)
}

func (y *yardstick) restamped(vs map[string]types.AttributeValue) map[string]types.AttributeValue {
	if vs[":token"] == nil {
		return vs
	}
	vs = maps.Clone(vs)
	vs[":token"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(y.token), 10)}
	return vs
}
