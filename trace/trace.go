// Package trace has the hooks by which a program watches holdall: for spans, metrics and
// counts of its own. One [Trace] serves units and lock sets; see lockset.Config and
// unitofwork.Config.
//
// The first minute:
//
//	units, err := unitofwork.Open(db, unitofwork.Config{
//		Locks: lockset.Config{Table: "locks"},
//		Trace: &trace.Trace{
//			UnitStart: func(ctx context.Context, s trace.UnitStart) context.Context {
//				return startSpan(ctx, "unit")
//			},
//			UnitEnd: func(ctx context.Context, e trace.UnitEnd) { endSpan(ctx, e.Err) },
//		},
//	})
//
// What takes time has two hooks. The first returns the context in which what belongs to it
// is done: the second is called with that context, and so are the hooks of everything in
// between. A unit has an acquisition, which has waits; then its function, which has reads; then a
// commit; and below each of these its requests.
package trace

import "context"

// Trace is a set of hooks. Any may be nil. Each is called synchronously on the goroutine
// that does the work, so it must be quick, and safe for concurrent use. The first hook of a
// pair returns the context that it was given, or one made of it; nil is taken for the former.
type Trace struct {
	// UnitStart is called when a unit is about to run, without locks or before it asks for
	// them: for every run of Do. UnitEnd is called once for each.
	UnitStart func(context.Context, UnitStart) context.Context
	UnitEnd   func(context.Context, UnitEnd)
	// AcquireStart is called when a lock set is asked for, and AcquireEnd when it is held
	// as a whole, or given up.
	AcquireStart func(context.Context, AcquireStart) context.Context
	AcquireEnd   func(context.Context, AcquireEnd)
	// WaitStart is called when a unit starts to wait for a row, because of a unit of this
	// process or of another; WaitEnd when it asks again, or waits no longer.
	WaitStart func(context.Context, WaitStart) context.Context
	WaitEnd   func(context.Context, WaitEnd)
	// FunctionStart is called when Do is about to call the caller's function, and FunctionEnd
	// when that has returned, or was left by a panic. What the function does with its context
	// belongs to it.
	FunctionStart func(context.Context, FunctionStart) context.Context
	FunctionEnd   func(context.Context, FunctionEnd)
	// ReadStart and ReadEnd are called for Unit.Get and Client.Read.
	ReadStart func(context.Context, ReadStart) context.Context
	ReadEnd   func(context.Context, ReadEnd)
	// CommitStart is called when a unit begins to commit, and CommitEnd when it is known
	// what became of that, or when finding out was given up.
	CommitStart func(context.Context, CommitStart) context.Context
	CommitEnd   func(context.Context, CommitEnd)
	// RequestStart and RequestEnd are called for every sending of a request.
	RequestStart func(context.Context, RequestStart) context.Context
	RequestEnd   func(context.Context, RequestEnd)

	// Capacity asks DynamoDB what each request consumes, for RequestEnd: its answers are longer
	// then, and take more time to read.
	Capacity bool

	// StartingOver is called before another attempt of Do.
	StartingOver func(context.Context, StartingOver)
	// Progress is called as a unit with a journal goes on, from one goroutine or several:
	// within a phase calls may overtake each other, and the highest Done counts. Whoever
	// finishes the unit of a dead owner also reports it.
	Progress func(context.Context, Progress)
	// Unfinished is called when a unit that is committed was not applied to its end, by its own
	// process or by one that finishes it as it is dead, each time:
	// whoever waits for its locks, or Recover, does the rest, unless the error is an
	// *unitofwork.UnappliedError or a *unitofwork.JournalError, which somebody must mend
	// first.
	Unfinished func(context.Context, Unfinished)
	// Recovered is called when this process has found a dead unit aborted, or has done
	// what it had committed; more than once for a unit that several wait for.
	Recovered func(context.Context, Recovered)

	// Joined is called when a unit has got a place in the queue of a row of the table.
	Joined func(context.Context, Joined)
	// HandedOver is called when a unit has taken a row for which it had waited behind
	// another of this process, without a place in the table's queue.
	HandedOver func(context.Context, HandedOver)
	// Dropped is called once for each place that was removed from a row's queue because the
	// row stayed free and no unit before it took the row.
	Dropped func(context.Context, Dropped)
	// Raised is called when a unit's token was too low for a row.
	Raised func(context.Context, Raised)
	// Buried is called when a dead holder's row was freed.
	Buried func(context.Context, Buried)
	// Cleaned is called when a dead unit's intent was removed from a row.
	Cleaned func(context.Context, Cleaned)
	// Renewed is called after every round of a set's heartbeats, also while the set is being
	// taken.
	Renewed func(context.Context, Renewed)
	// Lost is called when a held set was lost.
	Lost func(context.Context, Lost)
	// Released is called when nothing of a set is held any more by its unit.
	Released func(context.Context, Released)
}

// Join returns a Trace that calls the hooks of both, those of a first; the second hook of
// a pair is called in reverse order. Either may be nil.
func Join(a, b *Trace) *Trace {
	switch {
	case a == nil && b == nil:
		return &Trace{}
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &Trace{
		UnitStart:     starts(a.UnitStart, b.UnitStart),
		UnitEnd:       ends(a.UnitEnd, b.UnitEnd),
		AcquireStart:  starts(a.AcquireStart, b.AcquireStart),
		AcquireEnd:    ends(a.AcquireEnd, b.AcquireEnd),
		WaitStart:     starts(a.WaitStart, b.WaitStart),
		WaitEnd:       ends(a.WaitEnd, b.WaitEnd),
		FunctionStart: starts(a.FunctionStart, b.FunctionStart),
		FunctionEnd:   ends(a.FunctionEnd, b.FunctionEnd),
		ReadStart:     starts(a.ReadStart, b.ReadStart),
		ReadEnd:       ends(a.ReadEnd, b.ReadEnd),
		CommitStart:   starts(a.CommitStart, b.CommitStart),
		CommitEnd:     ends(a.CommitEnd, b.CommitEnd),
		RequestStart:  starts(a.RequestStart, b.RequestStart),
		RequestEnd:    ends(a.RequestEnd, b.RequestEnd),
		Capacity:      a.Capacity || b.Capacity,
		StartingOver:  tells(a.StartingOver, b.StartingOver),
		Progress:      tells(a.Progress, b.Progress),
		Unfinished:    tells(a.Unfinished, b.Unfinished),
		Recovered:     tells(a.Recovered, b.Recovered),
		Joined:        tells(a.Joined, b.Joined),
		HandedOver:    tells(a.HandedOver, b.HandedOver),
		Dropped:       tells(a.Dropped, b.Dropped),
		Raised:        tells(a.Raised, b.Raised),
		Buried:        tells(a.Buried, b.Buried),
		Cleaned:       tells(a.Cleaned, b.Cleaned),
		Renewed:       tells(a.Renewed, b.Renewed),
		Lost:          tells(a.Lost, b.Lost),
		Released:      tells(a.Released, b.Released),
	}
}

func starts[I any](a, b func(context.Context, I) context.Context) func(context.Context, I) context.Context {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, info I) context.Context {
		if within := a(ctx, info); within != nil {
			ctx = within
		}
		return b(ctx, info)
	}
}

func ends[I any](a, b func(context.Context, I)) func(context.Context, I) { return tells(b, a) }

func tells[I any](a, b func(context.Context, I)) func(context.Context, I) {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(ctx context.Context, info I) { a(ctx, info); b(ctx, info) }
}
