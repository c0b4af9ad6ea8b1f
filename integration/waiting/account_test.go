package waiting

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// account is what everybody wants.
type account struct {
	ID      string
	Balance int
}

const (
	clients = 64
	round   = time.Second
	writes  = 100 // that depend on each other, in a round
)

// BenchmarkOneAccount has 64 clients, of one process or of eight, add to one account for a
// second. committed is how many units that is for each write that the same engine does in that
// time when each waits for the one before; longest is the longest that one took against the mean.
func BenchmarkOneAccount(b *testing.B) {
	for _, processes := range []int{1, 8} {
		b.Run(fmt.Sprint(processes, "processes"), func(b *testing.B) {
			each(b, 0, func(bed *bed) { bed.oneAccount(processes) })
		})
	}
}

func (b *bed) oneAccount(processes int) {
	name := b.table + "-accounts"
	b.createTable(name)
	accounts := &unitofwork.Table[account]{Name: name, PartitionKey: "ID", Guard: func(a *account) ordering.Key { return ordering.Key(a.ID) }}
	var all []*process
	var units []*unitofwork.Client
	for range processes {
		p := b.process(nil)
		u, err := unitofwork.New(p.Client, unitofwork.Config{})
		require.NoError(b.b, err)
		all, units = append(all, p), append(units, u)
	}
	add := func(u *unitofwork.Client) error {
		return u.Do(b.b.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			ref := accounts.Ref("hot")
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			ref.T.Balance++
			return u.Put(ref)
		})
	}
	var committed, longest []float64
	sum := 0
	for b.b.Loop() {
		write := b.dependentWrites(name)
		took, spent := b.forARound(units, add)
		sum += len(took)
		committed = append(committed, float64(len(took))/(spent.Seconds()/write.Seconds()))
		longest = append(longest, float64(slices.Max(took))/mean(took))
	}
	b.b.ReportMetric(median(committed), "committed")
	b.b.ReportMetric(median(longest), "longest")
	reportRequests(b.b, counts(all...), float64(sum))
	var balance int
	require.NoError(b.b, units[0].Do(b.b.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
		ref := accounts.Ref("hot")
		err := u.Get(ctx, ref)
		balance = ref.T.Balance
		return err
	}))
	require.Equal(b.b, sum, balance, "every unit was done once")
}

// dependentWrites is how long a write takes, each of which waits for the one before.
func (b *bed) dependentWrites(table string) time.Duration {
	began := time.Now()
	for range writes {
		_, err := b.db.TransactWriteItems(b.b.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{
			TableName: &table, Item: map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "yardstick"}},
		}}}})
		require.NoError(b.b, err)
	}
	return time.Since(began) / writes
}

// forARound has the clients of all processes work for a round. It returns how long each unit
// took, and all of them.
func (b *bed) forARound(units []*unitofwork.Client, unit func(*unitofwork.Client) error) (took []time.Duration, spent time.Duration) {
	var mu sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for n := range clients {
		group.Go(func() {
			for time.Since(began) < round {
				start := time.Now()
				if err := unit(units[n%len(units)]); err != nil {
					b.b.Error(err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return took, time.Since(began)
}
