package timeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/timeline"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/record"
	"github.com/holdall/holdall/unitofwork"
)

// Account is a record of the town that tests record.
type Account struct {
	Customer, ID string
	Balance      int64
}

var accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
	Guard: func(a *Account) ordering.Key { return ordering.Join("customer:"+a.Customer, "account:"+a.ID) },
}

// town is a bank in memory and in virtual time, whose processes record.
type town struct {
	t         *testing.T
	db        *memdynamo.DB
	processes []*process
}

// process is one process of a town, with a recording of its own.
type process struct {
	name  string
	line  *faults.Wrapper
	units *unitofwork.Client
	locks *lockset.Client
	tape  *tape
	rec   *record.Recording
}

// tape is where a process records, until it is killed.
type tape struct {
	mu     sync.Mutex
	bytes  bytes.Buffer
	killed bool
}

func (t *tape) Write(lines []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.killed {
		t.bytes.Write(lines)
	}
	return len(lines), nil
}

// once has the first caller make the recordings, and gives each caller readers of its own. With the race
// detector a recording costs a second.
func once(record func(*testing.T) []timeline.Source) func(*testing.T) []timeline.Source {
	var recordings []timeline.Source
	var texts [][]byte
	return func(t *testing.T) (sources []timeline.Source) {
		t.Helper()
		if recordings == nil {
			recordings = record(t)
			for _, s := range recordings {
				text, err := io.ReadAll(s.Reader)
				require.NoError(t, err)
				texts = append(texts, text)
			}
		}
		for i, s := range recordings {
			sources = append(sources, timeline.Source{Name: s.Name, Reader: bytes.NewReader(texts[i])})
		}
		return sources
	}
}

// record runs what happens in a town of so many processes, and returns their recordings.
func recorded(t *testing.T, processes int, lease time.Duration, happens func(*town)) (sources []timeline.Source) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tn := &town{t: t, db: memdynamo.New(memdynamo.Config{})}
		require.NoError(t, lockset.CreateTable(t.Context(), tn.db, lockset.Config{Table: "locks"}))
		require.NoError(t, unitofwork.CreateTable(t.Context(), tn.db, unitofwork.Config{Table: "units"}))
		_, err := tn.db.CreateTable(t.Context(), newtable.Input(accounts.Name, "Customer", "ID"))
		require.NoError(t, err)
		for n := range processes {
			tn.processes = append(tn.processes, tn.process(fmt.Sprintf("web-%d", n+1), lease))
		}
		happens(tn)
		for _, p := range tn.processes {
			require.NoError(t, p.rec.Close())
			sources = append(sources, timeline.Source{Name: p.name + ".jsonl", Reader: &p.tape.bytes})
		}
	})
	return sources
}

func (tn *town) process(name string, lease time.Duration) *process {
	p := &process{name: name, tape: &tape{}}
	p.line = faults.Wrap(tn.db, faults.Config{Who: name, Seed: 7, Latency: 6 * time.Millisecond})
	p.rec = record.New(p.tape)
	var err error
	p.units, err = unitofwork.Open(p.line, unitofwork.Config{
		Locks: lockset.Config{Table: "locks", Lease: lease, Owner: name + " 5b3d6bd8"}, Table: "units", Trace: p.rec.Trace(name),
	})
	require.NoError(tn.t, err)
	p.locks = p.units.Locks()
	return p
}

// kill has a process end at once.
func (p *process) kill() {
	p.tape.mu.Lock()
	p.tape.killed = true
	p.tape.mu.Unlock()
	p.line.Crash()
}

var errFunds = errors.New("not enough money")

// pay moves money between two accounts.
func (p *process) pay(ctx context.Context, work unitofwork.Work, from, to Account, amount int64, think time.Duration) error {
	return p.units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		a, b := accounts.Ref(from.Customer, from.ID), accounts.Ref(to.Customer, to.ID)
		if err := u.Get(ctx, a, b); err != nil {
			return err
		}
		time.Sleep(think)
		if a.T.Balance-amount < -400 {
			return errFunds
		}
		a.T.Customer, a.T.ID, b.T.Customer, b.T.ID = from.Customer, from.ID, to.Customer, to.ID
		a.T.Balance -= amount
		b.T.Balance += amount
		return u.Put(a, b)
	})
}

// close pays interest to all accounts of a customer, under a lock of it as a whole.
func (p *process) interest(ctx context.Context, customer string, accountsOf int, think time.Duration) error {
	work := unitofwork.Work{Keys: []ordering.Key{ordering.Join("customer:" + customer)}, Lock: true, Purpose: "interest"}
	return p.units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		for n := range accountsOf {
			a := accounts.Ref(customer, fmt.Sprint(n))
			if err := u.Get(ctx, a); err != nil {
				return err
			}
			a.T.Customer, a.T.ID = customer, fmt.Sprint(n)
			a.T.Balance++
			if err := u.Put(a); err != nil {
				return err
			}
		}
		time.Sleep(think)
		return nil
	})
}

// busy has tellers of all processes make so many units, most of them with few customers.
func (tn *town) busy(units, tellers, customers int) {
	var wg sync.WaitGroup
	share := units / (len(tn.processes) * tellers)
	for i, p := range tn.processes {
		for j := range tellers {
			draw := rand.New(rand.NewPCG(uint64(i), uint64(j)))
			wg.Go(func() {
				time.Sleep(time.Duration(draw.IntN(200)) * time.Millisecond)
				for n := range share {
					customer := func() Account {
						c := min(draw.IntN(customers), draw.IntN(customers), draw.IntN(customers))
						return Account{Customer: fmt.Sprint(c), ID: fmt.Sprint(draw.IntN(2))}
					}
					from, to := customer(), customer()
					switch kind := draw.IntN(20); {
					case kind == 0:
						_ = p.interest(tn.t.Context(), from.Customer, 2, time.Duration(draw.IntN(80))*time.Millisecond)
					case kind == 1 && from != to:
						work := unitofwork.Work{Lock: true, Keys: []ordering.Key{accounts.Guard(&from), accounts.Guard(&to)}, Wait: lockset.For(200 * time.Millisecond)}
						_ = p.pay(tn.t.Context(), work, from, to, 10, time.Duration(draw.IntN(40))*time.Millisecond)
					case from != to:
						work := unitofwork.Work{ID: fmt.Sprintf("%s-%d-%d", p.name, j, n)}
						_ = p.pay(tn.t.Context(), work, from, to, int64(draw.IntN(100)), time.Duration(draw.IntN(10))*time.Millisecond)
					}
					time.Sleep(time.Duration(draw.IntN(60)) * time.Millisecond)
				}
			})
		}
	}
	wg.Wait()
}
