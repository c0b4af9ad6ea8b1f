package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
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
		c, r := b.traced("c", nil)
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

		ahead := b.client("ahead", nil, clockOff(time.Minute))
		require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, naming("9", "new")))
		before := b.row(customerKey("9"))
		require.NoError(t, reader.freely(t.Context(), unitofwork.Work{}, reading("1", customers.Ref("9"))))
		require.Equal(t, before, b.row(customerKey("9")))
		require.Greater(t, b.account("1").Fence, fenceOf(before))

		named := unitofwork.Work{Keys: []ordering.Key{customerKey("9")}}
		require.NoError(t, reader.freely(t.Context(), named, reading("1", customers.Ref("9"))))
		after := b.row(customerKey("9"))
		require.Greater(t, fenceOf(after), fenceOf(before), "a key that is named keeps others out")
		require.NotEqual(t, before["recordVersionNumber"], after["recordVersionNumber"])
	})
}

func fenceOf(row map[string]types.AttributeValue) (fence int64) {
	_, _ = fmt.Sscan(row["fence"].(*types.AttributeValueMemberN).Value, &fence)
	return fence
}

// naming gives a customer a name.
func naming(id, name string) func(context.Context, *unitofwork.Unit) error {
	return replaces(customers.Of(customer{ID: id, Name: name}))
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
		runInBed(t, name, func(t *testing.T, b *bed) {
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
	}
}

// Write skew: two units read both records of a pair, and each writes another one. The pair begins
// with one and one, and a unit takes one only if one is left then: two that do not see each other
// leave nothing.

// pair names two accounts of different families.
func pair(n int) [2]*unitofwork.Ref[account] {
	return [2]*unitofwork.Ref[account]{accounts.Ref(fmt.Sprint("left", n), "a"), accounts.Ref(fmt.Sprint("right", n), "a")}
}

// putPair writes a pair whose lock rows are there, as a commit sees most rows.
func (b *bed) putPair(c *client, n int) {
	b.t.Helper()
	for _, r := range pair(n) {
		r.T.Balance = 1
		b.put("accounts", r.T)
	}
	c.passes(b.t, keysOfPair(n)...)
}

func keysOfPair(n int) (keys []ordering.Key) {
	for _, r := range pair(n) {
		keys = append(keys, accountKey(r.T.Customer, r.T.ID))
	}
	return keys
}

// leftOf is what both records of a pair have.
func (b *bed) leftOf(n int) (sum int64) {
	for _, r := range pair(n) {
		sum += b.account(r.T.Customer).Balance
	}
	return sum
}

// takeOne takes one from one record of a pair, if one is left then.
func takeOne(n, from int, apart bool, thinks time.Duration) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		both := pair(n)
		reads := [][]unitofwork.Record{{both[0], both[1]}}
		if apart {
			reads = [][]unitofwork.Record{{both[1-from]}, {both[from]}}
		}
		for _, some := range reads {
			if err := u.Get(ctx, some...); err != nil {
				return err
			}
			time.Sleep(thinks)
		}
		if both[0].T.Balance+both[1].T.Balance < 2 || both[from].T.Balance < 1 {
			return nil
		}
		both[from].T.Balance--
		return u.Put(both[from])
	}
}

// Units of two processes take from pair after pair, without locks and under them, alone and in
// groups, while requests and answers are lost and come late: of each pair one is left.
func TestNoWriteSkewWhateverGoesAstray(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 3
	}
	for n := range seeds {
		seed := uint64(time.Now().UnixNano())
		if n < seeds/2 {
			seed = uint64(n)
		}
		runInBed(t, fmt.Sprintf("seed %d", seed), func(t *testing.T, b *bed) { b.takeFromPairs(seed) })
	}
}

func (b *bed) takeFromPairs(seed uint64) {
	const pairs = 12
	calm := b.client("calm", nil)
	for n := range pairs {
		b.putPair(calm, n)
	}
	began := time.Now()
	var all sync.WaitGroup
	for p := range 2 {
		c := b.client(fmt.Sprint("c", p), losing(seed+uint64(p)))
		for g := range 4 {
			r := rand.New(rand.NewPCG(seed, uint64(10*p+g)))
			all.Go(func() {
				for n := range pairs {
					together := time.Duration(n) * time.Second
					time.Sleep(together + time.Duration(r.Int64N(int64(3*rtt))) - time.Since(began))
					work := unitofwork.Work{Alone: r.IntN(4) == 0}
					if r.IntN(2) == 0 {
						work.ID = fmt.Sprint(p, g, n)
					}
					switch r.IntN(6) {
					case 0:
						work.Lock, work.Keys = true, keysOfPair(n)
					case 1:
						work.Keys = keysOfPair(n)[:1]
					}
					take := takeOne(n, r.IntN(2), r.IntN(2) == 0, time.Duration(r.Int64N(int64(2*rtt))))
					for told := errors.New("not tried"); told != nil; time.Sleep(rtt) {
						told = c.freely(b.t.Context(), work, take)
					}
				}
			})
		}
	}
	all.Wait()
	time.Sleep(time.Minute) // what is late has arrived
	for n := range pairs {
		require.EqualValues(b.t, 1, b.leftOf(n), "pair %d", n)
	}
}

// A rival takes from the pair before each request of a unit, which is then lost, or its answer, or
// arrives late, or twice, or with which the unit's process dies: one is left.
func TestNoWriteSkewAtAnyRequest(t *testing.T) {
	for way, work := range map[string]unitofwork.Work{
		"without locks": {}, "a key named": {Keys: keysOfPair(0)[:1]}, "under locks": {Lock: true, Keys: keysOfPair(0)},
	} {
		work.ID = "taken"
		for name, fault := range map[string]faults.Fault{
			"nothing": faults.Pass(), "answer lost": faults.LoseAnswer(faults.Reset), "request lost": faults.LoseRequest(faults.Reset),
			"answer never comes": faults.LoseAnswer(faults.Hang), "late": faults.DeliverLate(2*lease, faults.Reset), "twice": faults.Duplicate(2 * lease),
			"dies before": faults.CrashHere(false), "dies after": faults.CrashHere(true),
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				more := true
				for n := int64(1); more && !t.Failed(); n++ {
					inBed(t, func(t *testing.T, b *bed) { more = b.rivalAt(n, work, fault) })
				}
			})
		}
	}
}

// rivalAt reports whether the unit has sent an n-th request.
func (b *bed) rivalAt(n int64, work unitofwork.Work, fault faults.Fault) bool {
	rival := b.client("rival", nil)
	b.putPair(rival, 0)
	var sent atomic.Int64
	told := make(chan error, 1)
	c := b.client("c", func(faults.Call) faults.Fault {
		if sent.Add(1) != n {
			return faults.Pass()
		}
		go func() { told <- rival.freely(b.t.Context(), unitofwork.Work{}, takeOne(0, 1, true, 0)) }()
		time.Sleep(20 * rtt) // it is committed, or waits for the unit's locks
		return fault
	})
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.untilDone(ctx, work)
	}()
	select {
	case <-done:
	case <-c.net.Dead():
		died := time.Now()
		b.client("heir", nil).untilDone(ctx, work)
		if !work.Lock {
			require.Less(b.t, time.Since(died), 100*time.Millisecond, "nobody waits for what it has left")
		}
	}
	if sent.Load() < n {
		return false
	}
	require.NoError(b.t, <-told)
	time.Sleep(3 * lease) // what is late has arrived
	require.EqualValues(b.t, 1, b.leftOf(0), "a rival at request %d", n)
	cancel()
	<-done
	return true
}

// untilDone has a unit take from the first pair, again and again until it has or ctx ends.
func (c *client) untilDone(ctx context.Context, work unitofwork.Work) {
	for c.freely(ctx, work, takeOne(0, 0, true, 0)) != nil && ctx.Err() == nil {
		time.Sleep(rtt)
	}
}

// Units that move between records, add without reading, and only look at some of what they have read, beside
// programs without locks that take their time between reading and writing: nothing is lost, and every
// change is counted.
func TestManyRecordsBesideProgramsWithoutLocks(t *testing.T) {
	for n := range 20 {
		seed := uint64(time.Now().UnixNano())
		if n < 10 {
			seed = uint64(n)
		}
		if testing.Short() && n%7 > 0 {
			continue
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			inTallies(t, func(t *testing.T, b *bed) { manyRecords(t, b, seed) })
		})
	}
}

func manyRecords(t *testing.T, b *bed, seed uint64) {
	ids := []string{"a", "b", "c", "d"}
	for _, id := range ids {
		b.put("tallies", tally{ID: id, N: 100, Version: 1})
	}
	var mu sync.Mutex
	added := int64(0)             // in all
	changes := map[string]int64{} // of each
	note := func(n int64, changed ...string) {
		mu.Lock()
		defer mu.Unlock()
		added += n
		for _, id := range changed {
			changes[id]++
		}
	}
	var all sync.WaitGroup
	for p := range 2 {
		c := b.client(fmt.Sprint("c", p), losing(seed+uint64(p)))
		for g := range 4 {
			r := rand.New(rand.NewPCG(seed, uint64(10*p+g)))
			all.Go(func() {
				for i := range 12 {
					f, n, changed := anyUnit(r, ids)
					work := unitofwork.Work{ID: fmt.Sprint(p, g, i), Alone: r.IntN(3) == 0}
					if r.IntN(3) == 0 {
						work.Lock = true
						for _, id := range ids {
							work.Keys = append(work.Keys, tallyKey(id))
						}
					}
					for told := errors.New("not tried"); told != nil; time.Sleep(50 * time.Millisecond) {
						told = c.freely(t.Context(), work, f)
					}
					note(n, changed...)
				}
			})
		}
	}
	for g := range 2 {
		r := rand.New(rand.NewPCG(seed, uint64(100+g)))
		all.Go(func() {
			for range 40 {
				id := ids[r.IntN(len(ids))]
				write := b.readOld(id, 1)
				time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
				if write() == nil {
					note(1, id)
				}
			}
		})
	}
	all.Wait()
	time.Sleep(time.Minute) // what is late has arrived
	sum := int64(0)
	for _, id := range ids {
		r, _ := b.tally(id)
		sum += r.N
		require.Equal(t, 1+changes[id], r.Version, "%s: each change was counted", id)
	}
	require.Equal(t, 400+added, sum)
}

// anyUnit is a unit, what it adds in all, and which records it writes.
func anyUnit(r *rand.Rand, ids []string) (f func(context.Context, *unitofwork.Unit) error, adds int64, changed []string) {
	of := r.Perm(len(ids))
	one, other := ids[of[0]], ids[of[1]]
	switch r.IntN(3) {
	case 0: // it reads and writes both, one after the other
		return func(ctx context.Context, u *unitofwork.Unit) error {
			from, to := tallies.Ref(one), tallies.Ref(other)
			if err := u.Get(ctx, from); err != nil {
				return err
			}
			if err := u.Get(ctx, to); err != nil {
				return err
			}
			from.T.N--
			to.T.N++
			return u.Put(from, to)
		}, 0, []string{one, other}
	case 1: // it has read neither
		add := unitofwork.Expression{Update: "ADD N :one", Values: map[string]any{":one": 1}}
		return func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(u.Update(tallies.Ref(one), add), u.Update(tallies.Ref(other), add))
		}, 2, []string{one, other}
	default: // it only looks at one of them
		return func(ctx context.Context, u *unitofwork.Unit) error {
			looked, written := tallies.Ref(one), tallies.Ref(other)
			if err := u.Get(ctx, looked, written); err != nil {
				return err
			}
			written.T.N++
			return u.Put(written)
		}, 1, []string{other}
	}
}

// losing has requests, and answers, lost now and then.
func losing(seed uint64) faults.Script {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 1))
	return func(faults.Call) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch r.IntN(12) {
		case 0:
			return faults.LoseAnswer(faults.Reset)
		case 1:
			return faults.LoseRequest(faults.Reset)
		case 2:
			return faults.DeliverLate(time.Duration(r.IntN(3000))*time.Millisecond, faults.Reset)
		case 3:
			return faults.Duplicate(time.Duration(r.IntN(1000)) * time.Millisecond)
		}
		return faults.Pass()
	}
}
