package waiting

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A service takes orders for articles: each takes three of them out of the stock.
const (
	servers        = 3
	serverClients  = 10
	articles       = 1000
	ordered        = 3
	callEvery      = 5 * time.Millisecond // at each process, where calls do not wait for answers
	serviceLease   = 5 * time.Second
	beforeTheCrash = 2 * time.Second
)

// BenchmarkServiceCrash has a service of three processes take orders, and kills one process. It
// reports what the other two do from the crash until a lease later, and in the worst tenth of that
// time, against what they did before. Each process has ten clients that wait for each answer, so
// that in the end all wait for the dead; or calls come whether others were answered or not.
func BenchmarkServiceCrash(b *testing.B) {
	for _, c := range []struct {
		name       string
		lock, open bool
	}{{"without locks", false, false}, {"locks first", true, false}, {"locks first, calls come anyway", true, true}} {
		b.Run(c.name, func(b *testing.B) {
			each(b, serviceLease, func(bed *bed) {
				var whole, worst []float64
				for n := 0; bed.b.Loop(); n++ {
					before, after := bed.crashOfAServer(strconv.Itoa(n), c.lock, c.open)
					whole = append(whole, mean(after)/before)
					worst = append(worst, slices.Min(after)/before)
				}
				bed.b.ReportMetric(median(whole), "after/before")
				bed.b.ReportMetric(median(worst), "worst/before")
			})
		})
	}
}

// crashOfAServer returns how many orders the servers that live take in a tenth of a lease: before
// the crash of another, and in each tenth of the lease after it.
func (b *bed) crashOfAServer(name string, lock, open bool) (before float64, after []float64) {
	stock := b.stock(name)
	var taken atomic.Int64 // by those that live
	ctx, stop := context.WithCancel(b.b.Context())
	var group sync.WaitGroup
	var dead *process
	for s := range servers {
		p := b.process(nil)
		units, err := unitofwork.New(p.Client, unitofwork.Config{})
		require.NoError(b.b, err)
		lives := s > 0
		if !lives {
			dead = p
		}
		call := func(random *rand.Rand) {
			work, fn := stock.order(random, lock)
			err := units.Do(ctx, work, fn)
			switch {
			case lives && err == nil:
				taken.Add(1)
			case lives && ctx.Err() == nil:
				b.b.Error(err)
				stop()
			}
		}
		if open {
			group.Go(func() {
				for n := uint64(0); requests.Sleep(ctx, callEvery) == nil; n++ {
					group.Go(func() { call(rand.New(rand.NewPCG(uint64(s), n))) })
				}
			})
			continue
		}
		for c := range serverClients {
			random := rand.New(rand.NewPCG(uint64(s), uint64(c)))
			group.Go(func() {
				for ctx.Err() == nil {
					call(random)
				}
			})
		}
	}
	count := func(d time.Duration) float64 {
		from := taken.Load()
		time.Sleep(d)
		return float64(taken.Load() - from)
	}
	const tenth = serviceLease / 10
	count(beforeTheCrash / 2) // what is built once
	before = count(beforeTheCrash) / float64(beforeTheCrash/tenth)
	dead.cut()
	for range 10 {
		after = append(after, count(tenth))
	}
	stop()
	group.Wait()
	return before, after
}

// stock is what a service sells, and the orders that it has taken.
type stock struct {
	name     string
	articles *unitofwork.Table[article]
	orders   *unitofwork.Table[order]
}

type article struct {
	ID   string
	Left int
}

type order struct {
	ID       string
	Articles []string
}

func (b *bed) stock(name string) *stock {
	b.b.Helper()
	s := &stock{
		articles: &unitofwork.Table[article]{Name: b.table + "-articles-" + name, PartitionKey: "ID", Guard: func(a *article) ordering.Key { return ordering.Join(a.ID) }},
		orders:   &unitofwork.Table[order]{Name: b.table + "-orders-" + name, PartitionKey: "ID", Guard: func(o *order) ordering.Key { return ordering.Join(o.ID) }},
		name:     name,
	}
	for _, table := range []string{s.articles.Name, s.orders.Name} {
		b.createTable(table)
	}
	return s
}

// order is a unit that takes an order.
func (s *stock) order(random *rand.Rand, lock bool) (unitofwork.Work, func(context.Context, *unitofwork.Unit) error) {
	o := s.orders.Of(order{ID: s.name + "-order:" + strconv.FormatUint(random.Uint64(), 36)})
	records := make([]unitofwork.Record, 0, ordered)
	var of []*unitofwork.Ref[article]
	work := unitofwork.Work{Lock: lock}
	for _, n := range random.Perm(articles)[:ordered] {
		id := s.name + "-article:" + strconv.Itoa(n)
		ref := s.articles.Ref(id)
		of, records = append(of, ref), append(records, ref)
		o.T.Articles = append(o.T.Articles, id)
		work.Keys = append(work.Keys, ordering.Join(id))
	}
	work.Keys = append(work.Keys, ordering.Join(o.T.ID))
	return work, func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, records...); err != nil {
			return err
		}
		for _, ref := range of {
			ref.T.Left--
		}
		if err := u.Put(records...); err != nil {
			return err
		}
		return u.Insert(o)
	}
}
