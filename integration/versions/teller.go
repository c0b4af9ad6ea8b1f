// Package versions lets the present version of the library and an earlier one work on the
// same tables at a time, each in processes of its own, as while a fleet is updated.
//
// This file is built with both: it uses nothing that only one of them has.
package versions

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Tables are where tellers work.
type Tables struct {
	Locks, Units, Accounts string
	Lease                  time.Duration
}

// Account is guarded by the key of the same name.
type Account struct {
	Key     string
	Balance int64
	Done    []string // the IDs of what changed it, in order
}

// Request is what a teller is asked for.
type Request struct {
	N  int    // which its answer has, too
	Do string // "transfer", "hang", "doubt" or "outcome"

	// Of a transfer, of one that goes no further once it is to be committed, and of one of which nothing is heard
	// once it is to be committed.
	ID       string
	From, To string
	Amount   int64
	Keys     []ordering.Key // none, one for each account, or one above
	Done     bool           // in doubt: the commit is carried out all the same

	Of string // whose outcome: an ID, or a Ref
}

// Answer is what has become of a request.
type Answer struct {
	N       int
	Told    string // how the unit has ended, or its outcome
	Ref     string // of a unit in doubt
	Error   string
	IDError bool
}

// Teller carries out requests, several at a time.
type Teller struct {
	db     lockset.DynamoDB
	tables Tables
	watch  *trace.Trace
	units  *unitofwork.Client
	table  unitofwork.Table[Account]

	// Unheard, if set, is told of commits of which nothing is heard.
	Unheard func(*dynamodb.TransactWriteItemsInput)
}

// NewTeller returns a teller whose units watch is told of.
func NewTeller(db lockset.DynamoDB, tables Tables, watch *trace.Trace) (*Teller, error) {
	t := &Teller{db: db, tables: tables, watch: watch}
	t.table = unitofwork.Table[Account]{
		Name: tables.Accounts, PartitionKey: "Key", Guard: func(a *Account) ordering.Key { return ordering.Key(a.Key) },
	}
	var err error
	t.units, err = t.client(db, tables.Lease)
	return t, err
}

func (t *Teller) client(db lockset.DynamoDB, lease time.Duration) (*unitofwork.Client, error) {
	told := endings(func(ctx context.Context, outcome string) {
		if told, ok := ctx.Value(ending{}).(*atomic.Value); ok {
			told.Store(outcome)
		}
	})
	if t.watch != nil {
		told = trace.Join(told, t.watch)
	}
	return unitofwork.Open(db, unitofwork.Config{
		Locks: lockset.Config{Table: t.tables.Locks, Lease: lease, Poll: 50 * time.Millisecond}, Table: t.tables.Units, Trace: told,
	})
}

// ending is what the context of a call has, to be told how its last unit ended.
type ending struct{}

// Serve answers requests, one a line, until there are no more.
func (t *Teller) Serve(ctx context.Context, requests io.Reader, answers io.Writer) error {
	var mu sync.Mutex
	var working sync.WaitGroup
	defer working.Wait()
	out := json.NewEncoder(answers)
	lines := bufio.NewScanner(requests)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		working.Go(func() {
			a := t.Answer(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(a) // if nobody is there to be told, nobody is
		})
	}
	return lines.Err()
}

// Answer carries out a request.
func (t *Teller) Answer(ctx context.Context, r Request) Answer {
	var told atomic.Value
	ctx = context.WithValue(ctx, ending{}, &told)
	a := Answer{N: r.N}
	var err error
	switch r.Do {
	case "transfer":
		err = t.units.Do(ctx, r.work(), t.transfer(r, func() {}))
		a.Told, _ = told.Load().(string)
	case "hang":
		a.Told, err = t.hang(ctx, r)
	case "doubt":
		err = t.doubt(ctx, r)
		a.Told, _ = told.Load().(string)
	case "outcome":
		var outcome unitofwork.Outcome
		outcome, err = t.units.Outcome(ctx, r.Of)
		a.Told = outcome.String()
	default:
		err = fmt.Errorf("nobody knows how to %q", r.Do)
	}
	if err != nil {
		a.Error = err.Error()
		a.IDError = errors.As(err, new(*unitofwork.IDError))
		var doubt *unitofwork.InDoubtError
		if errors.As(err, &doubt) {
			a.Ref = doubt.Ref
		}
	}
	return a
}

func (r Request) work() unitofwork.Work {
	w := unitofwork.Work{Keys: r.Keys, ID: r.ID, Wait: lockset.For(time.Minute)} // for those who died, one after another
	if r.ID != "" {
		w.Payload = []byte(fmt.Sprint(r.Amount))
	}
	return w
}

// transfer moves the amount. It calls staged when it is about to return.
func (t *Teller) transfer(r Request, staged func()) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		from, to := t.table.Ref(r.From), t.table.Ref(r.To)
		if err := u.Get(ctx, from); err != nil {
			return err
		}
		if err := u.Get(ctx, to); err != nil {
			return err
		}
		from.T.Balance -= r.Amount
		to.T.Balance += r.Amount
		for _, account := range []*unitofwork.Ref[Account]{from, to} {
			if r.ID != "" {
				account.T.Done = append(account.T.Done, r.ID)
			}
		}
		if err := u.Put(from, to); err != nil {
			return err
		}
		staged()
		return nil
	}
}

// hang returns once it has the locks of a transfer, which goes no further.
func (t *Teller) hang(ctx context.Context, r Request) (told string, err error) {
	holds, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		failed <- t.units.Do(ctx, r.work(), t.transfer(r, func() {
			close(holds)
			<-ctx.Done()
		}))
	}()
	select {
	case <-holds:
		return "holds", nil
	case err := <-failed:
		return "", err
	}
}

// doubt makes a transfer of whose commit, and of all after it, nothing is heard.
func (t *Teller) doubt(ctx context.Context, r Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var staged, sent atomic.Bool
	units, err := t.client(faults.Wrap(t.db, faults.Config{Who: "doubtful", Script: func(c faults.Call) faults.Fault {
		in, transaction := c.Input.(*dynamodb.TransactWriteItemsInput)
		switch {
		case sent.Load():
			cancel() // it has tried again: that is enough
			return faults.LoseRequest(faults.Reset)
		case !staged.Load() || !transaction || !slices.ContainsFunc(in.TransactItems, stampsCommit):
			return faults.Pass()
		}
		sent.Store(true)
		if t.Unheard != nil {
			t.Unheard(in)
		}
		if r.Done {
			return faults.LoseAnswer(faults.Reset)
		}
		return faults.LoseRequest(faults.Reset)
	}}), 2*time.Second)
	if err != nil {
		return err
	}
	return units.Do(ctx, r.work(), t.transfer(r, func() { staged.Store(true) }))
}

// stampsCommit reports whether an action belongs to a commit, of either version.
func stampsCommit(item types.TransactWriteItem) bool {
	return item.Update != nil && strings.Contains(*item.Update.UpdateExpression, "#committedBy")
}

// Main is a process that serves: the tables as JSON, and the engine's endpoint, are its
// arguments.
func Main(args []string, requests io.Reader, answers io.Writer) error {
	var tables Tables
	if err := json.Unmarshal([]byte(args[0]), &tables); err != nil {
		return err
	}
	t, err := NewTeller(engines.Client(args[1]), tables, nil)
	if err != nil {
		return err
	}
	return t.Serve(context.Background(), requests, answers)
}
