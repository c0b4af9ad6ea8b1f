package unitofwork_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Processes that read one record, which nobody writes, and write one each of its own do not refuse
// each other: they commit as often as if each had its own record to read, at two requests a unit.
func TestReadersDoNotRefuseReaders(t *testing.T) {
	processes, lasts := 40, 500*time.Millisecond
	if testing.Short() {
		processes, lasts = 20, lasts/10
	}
	rate := func(t *testing.T, shared func(own string) unitofwork.Record) (commits, requests int) {
		inBed(t, func(t *testing.T, b *bed) {
			clients := make([]*client, processes)
			for i := range clients {
				own := fmt.Sprint("own", i)
				b.put("accounts", account{Customer: own, ID: "a"})
				clients[i] = b.client(own, nil)
			}
			end := time.Now().Add(lasts)
			var mu sync.Mutex
			var done sync.WaitGroup
			for i, c := range clients {
				own := fmt.Sprint("own", i)
				done.Go(func() {
					time.Sleep(time.Duration(i) * rtt / time.Duration(processes))
					n := 0
					for ; time.Now().Before(end); n++ {
						require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, reading(own, shared(own))))
					}
					mu.Lock()
					defer mu.Unlock()
					commits += n
				})
			}
			done.Wait()
			for _, c := range clients {
				for _, n := range c.requests() {
					requests += n
				}
			}
		})
		return commits, requests
	}
	for name, shared := range map[string]func(string) unitofwork.Record{
		"one segment":          func(string) unitofwork.Record { return customers.Ref("1") },
		"two segments":         func(string) unitofwork.Record { return accounts.Ref("1", "a") },
		"a record not there":   func(string) unitofwork.Record { return accounts.Ref("absent", "a") },
		"others of one family": func(own string) unitofwork.Record { return accounts.Ref("1", own) },
		"with a version":       func(string) unitofwork.Record { return counted.Ref("1") },
	} {
		t.Run(name, func(t *testing.T) {
			alone, _ := rate(t, func(own string) unitofwork.Record { return customers.Ref("other" + own) })
			commits, requests := rate(t, shared)
			t.Logf("%d of %d units in %v, %.2f requests each", commits, alone, lasts, float64(requests)/float64(commits))
			require.GreaterOrEqual(t, float64(commits), 0.95*float64(alone))
			require.InDelta(t, 2.0, float64(requests)/float64(commits), 0.01)
		})
	}
}

// Goroutines of one process that read one record, and write one each of their own, are committed
// together: as many as a run without locks may look at the rows of, so that none has to take locks.
func TestReadersOfOneProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const workers, lasts = 40, 500 * time.Millisecond
		var r runs
		c := b.client("c", nil, r.traced)
		end := time.Now().Add(lasts)
		var done sync.WaitGroup
		for i := range workers {
			own := fmt.Sprint("own", i)
			b.put("accounts", account{Customer: own, ID: "a"})
			done.Go(func() {
				for time.Now().Before(end) {
					require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, reading(own, customers.Ref("1"))))
				}
			})
		}
		done.Wait()
		committed := 0
		for text, n := range r.count() {
			require.Equal(t, "free committed", text)
			committed += n
		}
		require.Greater(t, committed, int(lasts/(2*rtt))*workers/3, "two requests each time, and a third of them wait for those")
	})
}

// count counts the runs, by how they ended.
func (r *runs) count() map[string]int {
	all := map[string]int{}
	for _, text := range r.texts() {
		all[text]++
	}
	return all
}

// counted is the table of customers, in which others count.
var counted = unitofwork.Table[customer]{Name: "customers", PartitionKey: "ID", Version: "Version", Guard: customers.Guard}

// reading reads a record, and adds 1 to an account.
func reading(own string, shared unitofwork.Record) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		mine := accounts.Ref(own, "a")
		if err := u.Get(ctx, shared, mine); err != nil {
			return err
		}
		mine.T.Balance++
		return u.Put(mine)
	}
}

// A unit that reads a record leaves nothing at its row, and what it writes has a later token.
func TestAReaderLeavesTheRowAsItIs(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		reader := b.client("reader", nil)
		require.NoError(t, reader.freely(t.Context(), unitofwork.Work{}, reading("1", customers.Ref("9"))))
		require.Len(t, b.db.Items("locks"), 2, "those of the account and its customer")

		ahead := b.client("ahead", nil, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Now = func() time.Time { return time.Now().Add(time.Minute) }
		})
		require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, naming("9", "new")))
		before := b.lockRow(customerKey("9"))
		require.NoError(t, reader.freely(t.Context(), unitofwork.Work{}, reading("1", customers.Ref("9"))))
		require.Equal(t, before, b.lockRow(customerKey("9")))
		require.Greater(t, b.account("1").Fence, fenceOf(before))

		named := unitofwork.Work{Keys: []ordering.Key{customerKey("9")}}
		require.NoError(t, reader.freely(t.Context(), named, reading("1", customers.Ref("9"))))
		after := b.lockRow(customerKey("9"))
		require.Greater(t, fenceOf(after), fenceOf(before), "a key that is named keeps others out")
		require.NotEqual(t, before["recordVersionNumber"], after["recordVersionNumber"])
	})
}

func (b *bed) lockRow(key ordering.Key) map[string]types.AttributeValue {
	for _, item := range b.db.Items("locks") {
		if item["key"].(*types.AttributeValueMemberS).Value == string(key) {
			return item
		}
	}
	return nil
}

func fenceOf(row map[string]types.AttributeValue) (fence int64) {
	_, _ = fmt.Sscan(row["fence"].(*types.AttributeValueMemberN).Value, &fence)
	return fence
}

// naming gives a customer a name.
func naming(id, name string) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		return u.Replace(customers.Of(customer{ID: id, Name: name}))
	}
}

// Somebody writes, or has, what a unit has read: the unit runs again, and reads what is true then.
func TestAWriterOfWhatAReaderHasRead(t *testing.T) {
	under := func(keys ...ordering.Key) unitofwork.Work { return unitofwork.Work{Keys: keys, Lock: true} }
	for name, writes := range map[string]func(context.Context, *client) error{
		"without locks": func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, payIn("2")) },
		"under locks":   func(ctx context.Context, c *client) error { return c.Do(ctx, under(accountKey("2", "a")), payIn("2")) },
		"coarse":        func(ctx context.Context, c *client) error { return c.Do(ctx, under(customerKey("2")), payIn("2")) },
		"coarse, without locks": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey("2")}}, payIn("2"))
		},
		"only has the key": func(ctx context.Context, c *client) error {
			set, err := c.locks.Acquire(ctx, []ordering.Key{accountKey("2", "a")})
			if err == nil {
				err = set.Release(ctx)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				reader, writer := b.client("reader", nil), b.client("writer", nil)
				var seen []int64
				require.NoError(t, reader.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					theirs := accounts.Ref("2", "a")
					if err := reading("1", theirs)(ctx, u); err != nil {
						return err
					}
					if seen = append(seen, theirs.T.Balance); len(seen) > 1 {
						return nil
					}
					return writes(t.Context(), writer)
				}))
				require.Len(t, seen, 2)
				require.Equal(t, b.account("2").Balance, seen[1])
				require.EqualValues(t, 101, b.account("1").Balance)
			})
		})
	}
}

// Units that each read what the others write: whoever is on call may only go while another is. One
// that goes at the same time as another sees that, or the other sees it.
func TestNobodyGoesUnseen(t *testing.T) {
	const doctors = 3
	seeds := uint64(100)
	if testing.Short() {
		seeds = 25
	}
	for name, duty := range map[string]func(i int) *unitofwork.Ref[account]{
		"one family": func(i int) *unitofwork.Ref[account] { return accounts.Ref("0", fmt.Sprint(i)) },
		"several":    func(i int) *unitofwork.Ref[account] { return accounts.Ref(fmt.Sprint("d", i), "a") },
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var clients [doctors]*client
				for i := range clients {
					clients[i] = b.client(fmt.Sprint("c", i), nil)
				}
				var again atomic.Int64
				for seed := range seeds {
					for i := range doctors {
						ref := duty(i)
						ref.T.Balance = 1
						b.put("accounts", ref.T)
					}
					r := rand.New(rand.NewPCG(seed, 1))
					var done sync.WaitGroup
					for i, c := range clients {
						starts, thinks := time.Duration(r.Int64N(int64(3*rtt))), time.Duration(r.Int64N(int64(3*rtt)))
						done.Go(func() {
							time.Sleep(starts)
							again.Add(-1)
							require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
								again.Add(1)
								return leaves(ctx, u, i, thinks, doctors, duty)
							}))
						})
					}
					done.Wait()
					require.NoError(t, clients[0].freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
						onCall, err := whoIsOnCall(ctx, u, doctors, duty)
						require.NotEmpty(t, onCall, "seed %d", seed)
						return err
					}))
				}
				require.Positive(t, again.Load(), "nobody was in the way of anybody")
			})
		})
	}
}

// leaves has a doctor go, if another is on call.
func leaves(ctx context.Context, u *unitofwork.Unit, i int, thinks time.Duration, doctors int, duty func(i int) *unitofwork.Ref[account]) error {
	onCall, err := whoIsOnCall(ctx, u, doctors, duty)
	if err != nil {
		return err
	}
	time.Sleep(thinks)
	if mine := onCall[i]; mine != nil && len(onCall) > 1 {
		mine.T.Balance = 0
		return u.Put(mine)
	}
	return nil
}

func whoIsOnCall(ctx context.Context, u *unitofwork.Unit, doctors int, duty func(i int) *unitofwork.Ref[account]) (map[int]*unitofwork.Ref[account], error) {
	onCall := map[int]*unitofwork.Ref[account]{}
	for i := range doctors { // one by one
		ref := duty(i)
		if err := u.Get(ctx, ref); err != nil {
			return nil, err
		}
		if ref.T.Balance == 1 {
			onCall[i] = ref
		}
	}
	return onCall, nil
}
