package lockset

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// renewals sends what the sets of a client renew at about the same moment in common
// requests. It is safe for concurrent use.
type renewals struct {
	mu   sync.Mutex
	next *renewal // that others may still join; nil if there is none
}

// renewal is one request, sent by the set that asked for it first.
type renewal struct {
	keys       map[ordering.Key]bool
	statements []types.BatchStatementRequest
	waiting    int                // how many sets are interested in the answer
	forget     context.CancelFunc // for when none is any more
	full       chan struct{}      // closed when nobody joins any more
	answered   chan struct{}      // closed when what follows is known
	answers    []types.BatchStatementResponse
	err        error
}

// gatherFor is how long a request waits for others to join it. Those that are due at the
// same moment are there by then.
const gatherFor = 2 * time.Millisecond

// send is how a request with statements is sent.
type send func(context.Context, []types.BatchStatementRequest) ([]types.BatchStatementResponse, error)

// execute renews some keys of a set, and returns what the answer says of each. The error is
// that of the request, or the cause of ctx's end. A request goes on while one of its sets
// waits for its answer.
func (r *renewals) execute(ctx context.Context, keys []ordering.Key, statements []types.BatchStatementRequest, send send) ([]types.BatchStatementResponse, error) {
	shared, from := r.join(keys, statements)
	if from == 0 {
		r.send(ctx, shared, send)
	} else {
		select {
		case <-shared.answered:
		case <-ctx.Done():
			r.leave(shared)
			return nil, context.Cause(ctx)
		}
	}
	if shared.err != nil {
		return nil, shared.err
	}
	return shared.answers[from : from+len(statements)], nil
}

// join puts statements into the next request, if there is room, or begins another. from is
// where they are in it.
func (r *renewals) join(keys []ordering.Key, statements []types.BatchStatementRequest) (shared *renewal, from int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil || !r.next.fits(keys) {
		r.close(r.next)
		r.next = &renewal{keys: map[ordering.Key]bool{}, full: make(chan struct{}), answered: make(chan struct{})}
	}
	shared = r.next
	from = len(shared.statements)
	for _, k := range keys {
		shared.keys[k] = true
	}
	shared.statements = append(shared.statements, statements...)
	shared.waiting++
	if len(shared.statements) == requests.MaxStatements {
		r.close(shared)
	}
	return shared, from
}

// fits reports whether a request has room for more keys. It has each key once: a set that
// does not know yet that it is lost may renew what another of its process has by now.
func (s *renewal) fits(keys []ordering.Key) bool {
	for _, k := range keys {
		if s.keys[k] {
			return false
		}
	}
	return len(s.statements)+len(keys) <= requests.MaxStatements
}

// close lets nobody join a request any more. Callers have the lock.
func (r *renewals) close(shared *renewal) {
	if shared != nil && r.next == shared {
		close(shared.full)
		r.next = nil
	}
}

// send sends a request, for all who join it meanwhile. ctx is that of the set that began it,
// whose end is not the others'.
func (r *renewals) send(ctx context.Context, shared *renewal, send send) {
	defer close(shared.answered)
	shared.err = errDidNotReturn // if a hook panics
	whole, forget := context.WithCancel(context.WithoutCancel(ctx))
	defer forget()
	r.mu.Lock()
	shared.forget = forget
	r.mu.Unlock()
	defer context.AfterFunc(ctx, func() { r.leave(shared) })()
	gathered := time.NewTimer(gatherFor)
	defer gathered.Stop()
	select {
	case <-gathered.C:
	case <-shared.full:
	}
	r.mu.Lock()
	r.close(shared)
	r.mu.Unlock()
	shared.answers, shared.err = send(whole, shared.statements)
}

// leave notes that a set does not wait for the answer any more.
func (r *renewals) leave(shared *renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shared.waiting--; shared.waiting == 0 {
		r.close(shared)
		shared.forget()
	}
}
