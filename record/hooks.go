package record

import (
	"context"
	"time"

	"github.com/holdall/holdall/trace"
)

// recorder records for one process.
type recorder struct {
	*Recording
	process *process
}

// spanOf is the key under which a context has the span that is open in it.
type spanOf struct{ r *Recording }

func (r recorder) start(ctx context.Context, e trace.Event) context.Context {
	if e.Kind == trace.Request { // its end says how long it took
		return ctx
	}
	line := Event{Name: string(e.Kind) + "Start", Span: r.spans.Add(1), Event: e}
	line.In, _ = ctx.Value(spanOf{r.Recording}).(uint64)
	r.write(line)
	return context.WithValue(ctx, spanOf{r.Recording}, line.Span)
}

func (r recorder) end(ctx context.Context, e trace.Event) {
	span, _ := ctx.Value(spanOf{r.Recording}).(uint64)
	line := Event{Name: string(e.Kind), Event: e}
	if e.Kind.Lasts() {
		line.Name += "End"
	}
	if e.Kind.Lasts() && e.Kind != trace.Request {
		line.Span = span
	} else {
		line.In = span
	}
	r.write(line)
}

func (r recorder) write(e Event) {
	if r.process.gone.Load() {
		return
	}
	e.At, e.Process = time.Now(), r.process.name
	if e.Event.Err != nil {
		e.Err = e.Event.Err.Error()
	}
	r.note(e)
}

func (r *Recording) note(e Event) { r.add(lineOf(&e)) }
