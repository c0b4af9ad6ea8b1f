// Package faults wraps a DynamoDB and misbehaves: answers and requests are
// lost, delivered late or twice, throttled, refused because of conflicts or for
// want of a permission, and transactions show one of their rows before another.
// Engines that run on one machine do none of this; the service and the network
// between do all of it.
//
// Each owner in a test has a [Wrapper] of its own, and all of them share one
// engine and one [Windows], because a half-visible transaction is a property of
// the tables and not of who looks.
//
// What happens to a call is decided by a [Script]: a function of the call. A
// script that draws does so by [Call.Rand], which depends on the seed, on who
// calls, about which row, and on how many such calls they made before. One seed
// therefore replays exactly, whatever order the callers arrive in.
//
// Nothing here holds a lock across a sleep or a call, and every goroutine ends
// by itself, so it all runs under testing/synctest.
package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/lockset"
)

// ErrCrashed is what every call of a crashed owner returns.
var ErrCrashed = errors.New("this process has crashed")

// Config says how a Wrapper misbehaves. The zero value passes everything on.
type Config struct {
	// Who names the owner; draws depend on it.
	Who string
	// Seed of latencies and of request tokens.
	Seed uint64
	// Latency bounds how long a request and how long an answer travels. Each
	// draw is to the nanosecond, so under virtual time hardly two things happen
	// at the same instant and a seed replays. Default 0: no time at all.
	Latency time.Duration
	// AtOnce says that the engine answers without any time passing, as memdynamo
	// does unless it is told otherwise: a caller need not look at its context
	// meanwhile, and a request needs no goroutine while its caller waits. A
	// simulation is several times faster for it.
	AtOnce bool
	// Windows is shared by all owners of the same tables. Without it, no
	// Window can be opened.
	Windows *Windows
	// Script decides what happens to a call. Without one, nothing does.
	Script Script
}

// Wrapper is one owner's way to the engine. It has the methods of
// lockset.DynamoDB, those further ones of *dynamodb.Client that reads and
// housekeeping use if the engine has them, and passes on without faults
// whatever else the engine's interface offers.
type Wrapper struct {
	lockset.DynamoDB

	cfg     Config
	windows *Windows
	dead    chan struct{} // closed by Crash

	mu     sync.Mutex // guards what follows; never held across a call
	calls  map[callerOp]uint64
	turns  map[callerRow]int
	counts map[Kind]int
	cut    bool
	gate   chan struct{} // not nil while paused; closed by Resume
	died   bool
	flying int       // requests under way
	landed sync.Cond // flying is 0
}

type callerOp struct{ who, op string }

type callerRow struct {
	callerOp
	first string
}

// Wrap returns a Wrapper of the engine. A negative Latency panics.
func Wrap(engine lockset.DynamoDB, cfg Config) *Wrapper {
	if cfg.Latency < 0 {
		panic("faults: a negative Latency")
	}
	if cfg.Script == nil {
		cfg.Script = func(Call) Fault { return Pass() }
	}
	w := &Wrapper{
		DynamoDB: engine,
		cfg:      cfg,
		windows:  cfg.Windows,
		dead:     make(chan struct{}),
		calls:    map[callerOp]uint64{},
		turns:    map[callerRow]int{},
		counts:   map[Kind]int{},
	}
	if w.windows == nil {
		w.windows = NewWindows(nil)
	}
	w.landed.L = &w.mu
	return w
}

// Partition cuts the owner off, or joins it again: while cut, requests are not
// executed and answers under way are lost. Its calls hang until their contexts
// end.
func (w *Wrapper) Partition(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// Pause holds the owner's requests before they are sent, as a stopped process
// would, until Resume or Crash. A call whose context ends meanwhile returns;
// its request is sent all the same once the owner resumes.
func (w *Wrapper) Pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate == nil {
		w.gate = make(chan struct{})
	}
}

// Resume sends what Pause held.
func (w *Wrapper) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate != nil {
		close(w.gate)
		w.gate = nil
	}
}

// Crash ends the owner: calls under way and all later ones return ErrCrashed.
// Requests already sent are executed; those held by Pause never are.
func (w *Wrapper) Crash() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.died {
		w.died = true
		close(w.dead)
	}
}

// Dead is closed when the owner has crashed.
func (w *Wrapper) Dead() <-chan struct{} { return w.dead }

// Wait returns when nothing of this owner's is under way any more: no late and
// no second delivery. A paused owner must be resumed or crash first.
func (w *Wrapper) Wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flying > 0 {
		w.landed.Wait()
	}
}

// fly runs a request's way.
func (w *Wrapper) fly(travel func()) {
	w.takeOff()
	go func() {
		defer w.land()
		travel()
	}()
}

// takeOff and land count requests under way. No WaitGroup: calls may begin
// while Wait waits.
func (w *Wrapper) takeOff() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flying++
}

func (w *Wrapper) land() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flying--; w.flying == 0 {
		w.landed.Broadcast()
	}
}

// Counts tells how often each kind of thing has happened so far.
func (w *Wrapper) Counts() map[Kind]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}

func (w *Wrapper) count(k Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[k]++
}

type labelKey struct{}

// As returns a context whose calls are counted and drawn for under a label of
// their own. An owner that runs several units at once needs it: which of two
// goroutines calls first is nobody's to say, and the draws must not depend on
// it. Contexts derived from it, detached ones too, keep the label.
func As(ctx context.Context, label string) context.Context {
	return context.WithValue(ctx, labelKey{}, label)
}

// begin names and numbers a call, or says that the owner is dead.
func (w *Wrapper) begin(ctx context.Context, op string, in any) (Call, error) {
	who := w.cfg.Who
	if label, ok := ctx.Value(labelKey{}).(string); ok {
		who += "/" + label
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.died {
		w.counts[CrashedCall]++
		return Call{}, ErrCrashed
	}
	by := callerOp{who, op}
	about := callerRow{by, w.first(in)}
	w.calls[by]++
	w.turns[about]++
	return Call{
		Op: op, N: int(w.calls[by]), Who: who, Input: in, Actions: actions(in),
		first: about.first, turn: w.turns[about],
	}, nil
}

// first names the row that a call is about, the first of several; for a batch,
// its first statement. Calls without a row are all about nothing.
func (w *Wrapper) first(in any) string {
	if batch, ok := in.(*dynamodb.BatchExecuteStatementInput); ok && len(batch.Statements) > 0 {
		text := aws.ToString(batch.Statements[0].Statement)
		for _, p := range batch.Statements[0].Parameters {
			if s, ok := p.(*types.AttributeValueMemberS); ok {
				text += "\x00" + s.Value
			}
		}
		return text
	}
	if all := parts(in); len(all) > 0 && all[0].action != opPut {
		return w.windows.row(all[0].table, all[0].item)
	}
	return ""
}

// decide asks the script and refuses what makes no sense for the call.
func (w *Wrapper) decide(c Call) (Fault, error) {
	f := w.cfg.Script(c)
	if f.Kind == "" {
		f.Kind = Passed
	}
	if err := f.validFor(c); err != nil {
		return f, fmt.Errorf("faults: call %d of %s by %q: %w", c.N, c.Op, c.Who, err)
	}
	w.count(f.Kind)
	return f, nil
}

func (w *Wrapper) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *Wrapper) paused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gate != nil
}

// pass waits until the owner is not paused; false: it crashed first.
func (w *Wrapper) pass() bool {
	for {
		w.mu.Lock()
		gate := w.gate
		w.mu.Unlock()
		if gate == nil {
			return true
		}
		select {
		case <-gate:
		case <-w.dead:
			return false
		}
	}
}
