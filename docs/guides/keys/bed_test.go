package keys

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

const (
	seed     = 1
	oneWay   = 5 * time.Millisecond // at most: a request takes 5 ms on average
	underWay = 2 * time.Millisecond // for which a transaction is in the way of others on its rows
	clients  = 2                    // of each process
)

// town is some processes, each with clients that do one unit after another, for a while.
type town struct {
	t      *testing.T
	db     *memdynamo.DB
	units  []*unitofwork.Client
	record *unitofwork.Table[record]
	length time.Duration
}

type record struct {
	ID    string
	Count int
}

// inTown runs a test in virtual time, with tables on the embedded engine. guard names the key of
// each record.
func inTown(t *testing.T, processes int, length time.Duration, guard func(id string) ordering.Key, test func(*town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &town{t: t, db: memdynamo.New(memdynamo.Config{}), length: length}
		w.record = &unitofwork.Table[record]{Name: "records", PartitionKey: "ID", Guard: func(r *record) ordering.Key { return guard(r.ID) }}
		require.NoError(t, lockset.CreateTable(t.Context(), w.db, lockset.Config{Table: "locks"}))
		_, err := w.db.CreateTable(t.Context(), newtable.Input("records", "ID"))
		require.NoError(t, err)
		windows := faults.NewWindows(map[string][]string{"locks": {"key"}, "records": {"ID"}})
		for p := range processes {
			w.open(fmt.Sprint("process ", p), windows)
		}
		test(w)
	})
}

// open starts a process, whose requests take time, and whose transactions keep their rows to
// themselves for a while, as DynamoDB's do.
func (w *town) open(name string, windows *faults.Windows) {
	w.t.Helper()
	net := faults.Wrap(w.db, faults.Config{
		Who: name, Seed: seed, Latency: oneWay, AtOnce: true, Windows: windows,
		Script: func(c faults.Call) faults.Fault {
			if c.Op == "TransactWriteItems" {
				return faults.Window(underWay)
			}
			return faults.Pass()
		},
	})
	locks := lockset.Config{Table: "locks", Owner: name, Rand: faults.Nonces(name)}
	units, err := unitofwork.Open(net, unitofwork.Config{Locks: locks})
	require.NoError(w.t, err)
	w.units = append(w.units, units)
}

// unit is what a client does, again and again, with draws of its own.
type unit func(random *rand.Rand) (unitofwork.Work, task)

// task is a unit's function.
type task = func(context.Context, *unitofwork.Unit) error

// work has clients of all processes do units, of one kind or of several that the clients of each
// process share out, and returns how many of each kind were done a second.
func (w *town) work(kinds ...unit) []float64 {
	w.t.Helper()
	var mu sync.Mutex
	rates := make([]float64, len(kinds))
	var group sync.WaitGroup
	begin := time.Now()
	for p, units := range w.units {
		for c := range clients {
			random := rand.New(rand.NewPCG(seed, uint64(p*clients+c)))
			kind := c % len(kinds)
			group.Go(func() {
				time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
				for time.Since(begin) < w.length {
					work, do := kinds[kind](random)
					if err := units.Do(w.t.Context(), work, do); err != nil {
						w.t.Error(err)
						return
					}
					mu.Lock()
					if time.Since(begin) < w.length {
						rates[kind] += 1 / w.length.Seconds()
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	return rates
}

// change reads records and writes them, under their own keys, or with locks first.
func (w *town) change(lock bool, ids ...string) (unitofwork.Work, task) {
	work := unitofwork.Work{Lock: lock}
	for _, id := range ids {
		if lock {
			work.Keys = append(work.Keys, w.record.Guard(&record{ID: id}))
		}
	}
	return work, func(ctx context.Context, u *unitofwork.Unit) error {
		refs := make([]*unitofwork.Ref[record], len(ids))
		all := make([]unitofwork.Record, len(ids))
		for i, id := range ids {
			refs[i] = w.record.Ref(id)
			all[i] = refs[i]
		}
		if err := u.Get(ctx, all...); err != nil {
			return err
		}
		for _, r := range refs {
			r.T.Count++
		}
		return u.Put(all...)
	}
}
