package holdalltest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/wire"
	"github.com/holdall/holdall/lockset"
)

// ErrCrashed is what every request of a process returns that has died. The program itself goes on:
// whatever it does then, a real one would not have done.
var ErrCrashed = faults.ErrCrashed

// Process is one process of the program under test: its own way to the tables, on which faults
// happen to it alone. It has the methods of *dynamodb.Client that holdall uses, so it is what
// unitofwork.Open and lockset.New take; [Process.Client] is for all others. What it asks of tables as a
// whole, such as CreateTable and DescribeTable, meets no faults and is not among its Requests, not even
// when it has died. It is safe for concurrent use.
type Process struct {
	items
	tables

	net *faults.Wrapper

	mu      sync.Mutex // guards what follows; never held across a request
	sent    []Request
	next    []planned
	offline time.Time // until when all that it sends is lost
	share   float64   // of requests to which one of some happens
	some    []Fault
	draw    *rand.Rand
	beside  func(Request) // is called before each request; may be nil
}

// items are the methods on which faults happen.
type items interface {
	lockset.DynamoDB
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
}

// tables are the methods on which no faults happen.
type tables interface {
	lockset.Tables
	DeleteTable(context.Context, *dynamodb.DeleteTableInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error)
	ListTables(context.Context, *dynamodb.ListTablesInput, ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// Request is one that a process has sent.
type Request struct {
	N      int      // from 1
	Op     string   // such as "TransactWriteItems"
	Writes []string // the tables to which it writes, each once
}

// planned is a fault to come.
type planned struct {
	to    func(Request) bool
	fault Fault
}

// Process returns a new one. name is for the messages of a failed test.
func (db *DB) Process(name string) *Process {
	p := &Process{tables: db.engine}
	p.net = faults.Wrap(db.engine, faults.Config{Who: name, Script: p.decide})
	p.items = p.net
	return p
}

// Crash has the process die: requests under way and all later ones return [ErrCrashed]. What was sent
// is carried out, and what a pause held is not. holdall takes ErrCrashed for no answer and asks again for
// a while: a call that is to return at once has a context that ends with [Process.Dead].
func (p *Process) Crash() { p.net.Crash() }

// Dead is closed when the process has died, by Crash or by a fault.
func (p *Process) Dead() <-chan struct{} { return p.net.Dead() }

// Pause holds what the process sends, until Resume. A request whose context ends meanwhile is sent all the
// same then.
func (p *Process) Pause() { p.net.Pause() }

// Resume ends a Pause.
func (p *Process) Resume() { p.net.Resume() }

// Partition cuts the process off from the tables, or has it reach them again. Meanwhile requests are not
// carried out, answers are lost, and calls return when their contexts end.
func (p *Process) Partition(cut bool) { p.net.Partition(cut) }

// Client returns the SDK's client on this process's way to the tables.
func (p *Process) Client() *dynamodb.Client { return clientOf(p) }

// Next has a fault happen to the next request of which to is true, once. With several that fit,
// the one that was asked for first happens. Until it has, to is called once for each request, by one
// goroutine at a time, and may count. [Process.Planned] tells whether it has happened.
func (p *Process) Next(to func(Request) bool, f Fault) {
	if to == nil {
		misuse.Of("holdalltest", "Process.Next", "nil function")
	}
	f.validate("Process.Next")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = append(p.next, planned{to, f})
}

// Planned are the faults asked for by Next that have not happened yet. A test in which one must happen
// looks for it here in the end: no request may have been the one that it means.
func (p *Process) Planned() (faults []Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, planned := range p.next {
		faults = append(faults, planned.fault)
	}
	return faults
}

// Some has one of these faults happen to a share of all requests, from 0 to 1, as drawn by the seed.
func (p *Process) Some(share float64, seed uint64, faults ...Fault) {
	const call = "Process.Some"
	if !(share >= 0 && share <= 1) { // nor is it NaN
		misuse.Of("holdalltest", call, fmt.Sprintf("share is %v: it must be from 0 to 1", share))
	}
	if share > 0 && len(faults) == 0 {
		misuse.Of("holdalltest", call, "no fault is named")
	}
	for _, f := range faults {
		f.validate(call)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.share, p.some, p.draw = share, faults, rand.New(rand.NewPCG(seed, 0))
}

// Handler serves the tables as [DB.Handler] does, with what happens to this process. A request or
// an answer that is lost ends the connection.
func (p *Process) Handler() http.Handler { return wire.Handler(p) }

// Op means every request of an operation, such as "TransactGetItems". It must be one on which faults
// happen: what is asked of tables as a whole has none.
func Op(name string) func(Request) bool {
	if _, is := reflect.TypeFor[items]().MethodByName(name); !is {
		misuse.Of("holdalltest", "Op", fmt.Sprintf("%q is no operation on which faults happen", name))
	}
	return func(r Request) bool { return r.Op == name }
}

// Writes means every request that writes to a table: of a table of records, the commit of a unit.
func Writes(table string) func(Request) bool {
	return func(r Request) bool { return slices.Contains(r.Writes, table) }
}

// Requests returns what the process has sent so far.
func (p *Process) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// decide is called once for every request.
func (p *Process) decide(c faults.Call) faults.Fault {
	r, f := p.plan(Request{Op: c.Op, Writes: written(c.Input)})
	if p.beside != nil {
		p.beside(r)
	}
	if f == cutOff { // which takes time, or who tries again at once would do so for ever in virtual time
		time.Sleep(refusal)
	}
	if f == paused {
		p.Pause()
		time.AfterFunc(offline, p.Resume)
	}
	return calls[f]
}

// plan numbers a request, and says what happens to it.
func (p *Process) plan(r Request) (Request, Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.N = len(p.sent) + 1
	p.sent = append(p.sent, r)
	if time.Now().Before(p.offline) {
		return r, cutOff
	}
	first := -1
	for i, planned := range p.next {
		if planned.to(r) && first < 0 { // all are asked: a function may count
			first = i
		}
	}
	if first >= 0 {
		f := p.next[first].fault
		p.next = slices.Delete(p.next, first, first+1)
		if f == inDoubt || f == inDoubtAfter {
			p.offline = time.Now().Add(offline)
		}
		return r, f
	}
	if len(p.some) > 0 && p.draw.Float64() < p.share {
		if f := p.some[p.draw.IntN(len(p.some))]; f.happensTo(r) {
			return r, f
		}
	}
	return r, ""
}

// written are the tables to which a request writes.
func written(in any) (names []string) {
	if batch, ok := in.(*dynamodb.BatchWriteItemInput); ok {
		return slices.Sorted(maps.Keys(batch.RequestItems))
	}
	for _, p := range faults.Permissions(in) {
		switch p.Action {
		case "PutItem", "UpdateItem", "DeleteItem":
			if !slices.Contains(names, p.Table) {
				names = append(names, p.Table)
			}
		}
	}
	return names
}
