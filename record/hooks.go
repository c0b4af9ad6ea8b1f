package record

import (
	"context"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// recorder records for one process.
type recorder struct {
	*Recording
	process *process
}

// spanOf is the key under which a context has the span that is open in it.
type spanOf struct{ r *Recording }

// begin records the first event of a pair, and returns the context of what follows.
func (r recorder) begin(ctx context.Context, name string, e Event) context.Context {
	e.Span = r.spans.Add(1)
	e.In, _ = ctx.Value(spanOf{r.Recording}).(uint64)
	r.write(name, e)
	return context.WithValue(ctx, spanOf{r.Recording}, e.Span)
}

// end records the second event of a pair.
func (r recorder) end(ctx context.Context, name string, e Event) {
	e.Span, _ = ctx.Value(spanOf{r.Recording}).(uint64)
	r.write(name, e)
}

// tell records an event of its own.
func (r recorder) tell(ctx context.Context, name string, e Event) {
	e.In, _ = ctx.Value(spanOf{r.Recording}).(uint64)
	r.write(name, e)
}

func (r recorder) write(name string, e Event) {
	if !r.process.gone.Load() {
		e.At, e.Process, e.Name = time.Now(), r.process.name, name
		r.note(e)
	}
}

func (r *Recording) note(e Event) { r.add(lineOf(&e)) }

// hooks has every hook but RequestStart.
func (r recorder) hooks() *trace.Trace { return trace.Join(r.pairs(), r.others()) }

func (r recorder) pairs() *trace.Trace {
	return &trace.Trace{
		UnitStart: func(ctx context.Context, i trace.UnitStart) context.Context {
			return r.begin(ctx, "UnitStart", Event{Keys: texts(i.Keys), ID: i.ID, Optimistic: i.Optimistic})
		},
		UnitEnd: func(ctx context.Context, i trace.UnitEnd) {
			r.end(ctx, "UnitEnd", Event{
				Unit: i.Unit, ID: i.ID, Outcome: string(i.Outcome), Optimistic: i.Optimistic, Leader: i.Leader, Key: string(i.Key),
				Rows: i.Rows, Writes: i.Writes, Took: i.Took, Err: text(i.Err),
			})
		},
		AcquireStart: func(ctx context.Context, i trace.AcquireStart) context.Context {
			return r.begin(ctx, "AcquireStart", Event{Unit: i.Unit, Keys: texts(i.Keys)})
		},
		AcquireEnd: func(ctx context.Context, i trace.AcquireEnd) {
			r.end(ctx, "AcquireEnd", Event{
				Unit: i.Unit, Token: token(i.Token), Count: i.Keys, Rows: i.Rows, Took: i.Took, Waited: i.Waited,
				Confirmed: plain(i.Confirmed), Deadline: plain(i.Deadline), Err: text(i.Err),
			})
		},
		WaitStart: func(ctx context.Context, i trace.WaitStart) context.Context {
			return r.begin(ctx, "WaitStart", Event{
				Unit: i.Unit, Key: string(i.Key), Holder: i.Holder, Owner: i.Owner, Purpose: i.Purpose, Queue: i.Queue, Held: texts(i.Held),
			})
		},
		WaitEnd: func(ctx context.Context, i trace.WaitEnd) {
			r.end(ctx, "WaitEnd", Event{Unit: i.Unit, Key: string(i.Key), Took: i.Took, Err: text(i.Err)})
		},
		FunctionStart: func(ctx context.Context, i trace.FunctionStart) context.Context {
			return r.begin(ctx, "FunctionStart", Event{Unit: i.Unit})
		},
		FunctionEnd: func(ctx context.Context, i trace.FunctionEnd) {
			r.end(ctx, "FunctionEnd", Event{Unit: i.Unit, Took: i.Took, Err: text(i.Err)})
		},
		ReadStart: func(ctx context.Context, i trace.ReadStart) context.Context {
			return r.begin(ctx, "ReadStart", Event{Unit: i.Unit, Records: i.Records})
		},
		ReadEnd: func(ctx context.Context, i trace.ReadEnd) {
			r.end(ctx, "ReadEnd", Event{Unit: i.Unit, Records: i.Records, Took: i.Took, Err: text(i.Err)})
		},
		CommitStart: func(ctx context.Context, i trace.CommitStart) context.Context {
			return r.begin(ctx, "CommitStart", Event{Unit: i.Unit, Rows: i.Rows, Writes: i.Writes})
		},
		CommitEnd: func(ctx context.Context, i trace.CommitEnd) {
			r.end(ctx, "CommitEnd", Event{Unit: i.Unit, Took: i.Took, Err: text(i.Err)})
		},
	}
}

func (r recorder) others() *trace.Trace {
	return &trace.Trace{
		RequestEnd: func(ctx context.Context, i trace.RequestEnd) {
			r.tell(ctx, "RequestEnd", Event{Op: i.Op, N: i.N, Took: i.Took, Err: text(i.Err), Kind: i.Kind, Capacity: i.Capacity})
		},
		StartingOver: func(ctx context.Context, i trace.StartingOver) {
			r.tell(ctx, "StartingOver", Event{Attempt: i.Attempt, Err: text(i.Err)})
		},
		Progress: func(ctx context.Context, i trace.Progress) {
			r.tell(ctx, "Progress", Event{Unit: i.Unit, Phase: string(i.Phase), Done: i.Done, Of: i.Of})
		},
		Unfinished: func(ctx context.Context, i trace.Unfinished) {
			r.tell(ctx, "Unfinished", Event{Unit: i.Unit, Err: text(i.Err)})
		},
		Recovered: func(ctx context.Context, i trace.Recovered) {
			r.tell(ctx, "Recovered", Event{Unit: i.Unit, Committed: i.Committed})
		},
		Joined: func(ctx context.Context, i trace.Joined) {
			r.tell(ctx, "Joined", Event{Unit: i.Unit, Key: string(i.Key), Place: i.Place})
		},
		HandedOver: func(ctx context.Context, i trace.HandedOver) {
			r.tell(ctx, "HandedOver", Event{Key: string(i.Key), From: i.From, To: i.To})
		},
		Dropped: func(ctx context.Context, i trace.Dropped) {
			r.tell(ctx, "Dropped", Event{Key: string(i.Key), Unit: i.Unit})
		},
		Raised: func(ctx context.Context, i trace.Raised) {
			r.tell(ctx, "Raised", Event{Unit: i.Unit, Token: token(i.Token)})
		},
		Buried: func(ctx context.Context, i trace.Buried) {
			r.tell(ctx, "Buried", Event{Key: string(i.Key), Unit: i.Unit})
		},
		Cleaned: func(ctx context.Context, i trace.Cleaned) {
			r.tell(ctx, "Cleaned", Event{Key: string(i.Key), Unit: i.Unit})
		},
		Renewed: func(ctx context.Context, i trace.Renewed) {
			r.tell(ctx, "Renewed", Event{
				Unit: i.Unit, Count: i.Keys, Failed: i.Failed, Confirmed: plain(i.Confirmed), Deadline: plain(i.Deadline), Err: text(i.Err),
			})
		},
		Lost:     func(ctx context.Context, i trace.Lost) { r.tell(ctx, "Lost", Event{Unit: i.Unit, Err: text(i.Err)}) },
		Released: func(ctx context.Context, i trace.Released) { r.tell(ctx, "Released", Event{Unit: i.Unit}) },
	}
}

func texts(keys []ordering.Key) []string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = string(key)
	}
	return all
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func token(t fencing.Token) string {
	if !t.Valid() {
		return ""
	}
	return t.String()
}

// plain is a time as a reader will see it.
func plain(t time.Time) time.Time { return t.Round(0) }
