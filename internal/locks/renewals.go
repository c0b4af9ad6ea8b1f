package locks

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// renewals sends what the sets of a client renew at about the same moment in common
// requests. It is safe for concurrent use.
type renewals struct {
	send   func(ctx context.Context, timeouts int, statements []types.BatchStatementRequest) (answers []types.BatchStatementResponse, timedOut bool, err error)
	gather time.Duration // how long a request waits for others to join it

	mu    sync.Mutex
	parts []*part // that are gathered
	// timeouts counts the requests in a row that were not answered in time. Those sent at
	// the same moment count as one.
	timeouts int
}

// part is what one set asks for at once, at most as much as a request holds.
type part struct {
	ctx        context.Context // of the set, for what is traced
	unit       string
	keys       []ordering.Key
	statements []types.BatchStatementRequest

	gone     bool // the set does not wait for the answer any more
	sent     *renewal
	answered chan struct{} // closed when what follows is known
	answers  []types.BatchStatementResponse
	err      error
}

// renewal is one request.
type renewal struct {
	parts   []*part
	waiting int                // how many sets wait for the answer
	after   int                // timeouts before it was sent
	forget  context.CancelFunc // for when none does any more
}

// gatherFor is how long renewals are gathered at most. Those that are due at the same moment
// are there by then.
const gatherFor = 2 * time.Millisecond

func newRenewals(caller *requests.Caller) renewals {
	return renewals{send: caller.ExecuteOnce, gather: min(gatherFor, caller.Attempt/10)}
}

// execute renews some keys of a set, and returns what the answer says of each. The error is
// that of the request, or the cause of ctx's end. A request goes on while one of its sets
// waits for its answer.
func (r *renewals) execute(ctx context.Context, unit string, keys []ordering.Key, statements []types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	p := &part{ctx: ctx, unit: unit, keys: keys, statements: statements, answered: make(chan struct{})}
	r.mu.Lock()
	if len(r.parts) == 0 {
		time.AfterFunc(r.gather, r.sendAll)
	}
	r.parts = append(r.parts, p)
	r.mu.Unlock()
	select {
	case <-p.answered:
		return p.answers, p.err
	case <-ctx.Done():
	}
	select { // both may have come
	case <-p.answered:
		return p.answers, p.err
	default:
		r.leave(p)
		return nil, context.Cause(ctx)
	}
}

// sendAll sends what was gathered.
func (r *renewals) sendAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := slices.DeleteFunc(r.parts, func(p *part) bool { return p.gone })
	r.parts = nil
	for _, some := range pack(parts) {
		// Its end is not the others'.
		ctx, forget := context.WithCancel(context.WithoutCancel(some[0].ctx))
		sent := &renewal{parts: some, waiting: len(some), after: r.timeouts, forget: forget}
		for _, p := range some {
			p.sent = sent
		}
		go r.sendOne(ctx, sent)
	}
}

// pack puts parts into requests, the same ones in whatever order they came. A request has each key
// once: a set that does not know yet that it is lost may renew what another of its process
// has by now.
func pack(parts []*part) (whole [][]*part) {
	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(ordering.Compare(a.keys[0], b.keys[0]), cmp.Compare(a.unit, b.unit))
	})
	size, there := requests.MaxStatements, map[ordering.Key]bool{}
	for _, p := range parts {
		again := slices.ContainsFunc(p.keys, func(k ordering.Key) bool { return there[k] })
		if again || size+len(p.keys) > requests.MaxStatements {
			whole = append(whole, nil)
			size = 0
			clear(there)
		}
		size += len(p.keys)
		for _, k := range p.keys {
			there[k] = true
		}
		whole[len(whole)-1] = append(whole[len(whole)-1], p)
	}
	return whole
}

// sendOne sends a request, and tells its sets what the answer says of their keys.
func (r *renewals) sendOne(ctx context.Context, sent *renewal) {
	defer sent.forget()
	var statements []types.BatchStatementRequest
	for _, p := range sent.parts {
		statements = append(statements, p.statements...)
	}
	answers, timedOut, err := r.send(ctx, sent.after, statements)
	r.answered(sent, timedOut, err)
	for _, p := range sent.parts {
		if p.err = err; err == nil {
			p.answers, answers = answers[:len(p.statements)], answers[len(p.statements):]
		}
		close(p.answered)
	}
}

// answered notes whether a request was answered in time.
func (r *renewals) answered(sent *renewal, timedOut bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case timedOut:
		r.timeouts = max(r.timeouts, sent.after+1)
	case err == nil:
		r.timeouts = 0
	}
}

// leave notes that a set does not wait for an answer any more.
func (r *renewals) leave(p *part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.gone = true
	if p.sent == nil {
		return
	}
	if p.sent.waiting--; p.sent.waiting == 0 {
		p.sent.forget()
	}
}
