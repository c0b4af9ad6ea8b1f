package holdalltest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/misuse"
)

// Fault is what happens to one request of a [Process]. Its text says it in words.
type Fault string

// Faults. All of them happen to programs on AWS.
const (
	// RequestLost: the connection breaks before the request has arrived. The caller cannot tell it
	// from AnswerLost.
	RequestLost Fault = "the request is lost"
	// AnswerLost: the request is carried out, and the connection breaks.
	AnswerLost Fault = "the answer is lost"
	// Late: the connection breaks, and the request is carried out ten seconds later.
	Late Fault = "the request arrives late"
	// Twice: the request is carried out, and once more a second later.
	Twice Fault = "the request arrives twice"
	// Throttled: it is refused for its rate.
	Throttled Fault = "throttled"
	// Conflict: it is refused for a transaction of somebody else's.
	Conflict Fault = "in conflict"
	// ServerError: an internal error of DynamoDB's, before anything was done.
	ServerError Fault = "an internal server error"
	// ServerErrorAfter: the same, after the request was carried out.
	ServerErrorAfter Fault = "an internal server error, though it was carried out"
	// Denied: a permission is missing.
	Denied Fault = "denied"
	// InDoubt: the request is lost, and so is everything else the process sends for two minutes.
	InDoubt Fault = "lost, and cut off after that"
	// InDoubtAfter: the request is carried out, the answer is lost, and so is everything else that
	// the process sends for two minutes.
	InDoubtAfter Fault = "carried out, and cut off after that"
	// Slow: the request takes five seconds. Whoever gives up before that does not hear of it: holdall
	// sends it once more after its AttemptTimeout, and both arrive.
	Slow Fault = "slow"
	// Paused: the process sends nothing for two minutes, heartbeats neither: what happens to one
	// whose host stands still, except that its own clock goes on.
	Paused Fault = "the process is paused"
	// Crash: the process dies, and the request is never carried out.
	Crash Fault = "the process dies"
	// CrashAfter: the process dies, and the request is carried out.
	CrashAfter Fault = "the process dies, and its last request is carried out"
)

// Faults are all of them.
func Faults() []Fault {
	return []Fault{
		RequestLost, AnswerLost, Late, Twice, Throttled, Conflict, ServerError, ServerErrorAfter, Denied,
		InDoubt, InDoubtAfter, Slow, Paused, Crash, CrashAfter,
	}
}

// validate stops a program that asks for a fault that there is not: it would never happen.
func (f Fault) validate(call string) {
	if !slices.Contains(Faults(), f) {
		misuse.Of("holdalltest", call, fmt.Sprintf("there is no Fault %q", string(f)))
	}
}

// cutOff is what happens to a request while its process is cut off.
const cutOff Fault = "cut off"

const (
	refusal = 50 * time.Millisecond // how long a process that is cut off takes to notice
	late    = 10 * time.Second
	slow    = 5 * time.Second
	offline = 2 * time.Minute
)

// happensTo reports whether DynamoDB has such an answer to a request.
func (f Fault) happensTo(r Request) bool {
	if f != Conflict {
		return true
	}
	return !slices.Contains([]string{"GetItem", "Query", "Scan", "BatchGetItem"}, r.Op)
}

// call is what becomes of the one request.
func (f Fault) call() faults.Fault {
	switch f {
	case RequestLost, InDoubt, cutOff:
		return faults.LoseRequest(faults.Reset)
	case AnswerLost, InDoubtAfter:
		return faults.LoseAnswer(faults.Reset)
	case Late:
		return faults.DeliverLate(late, faults.Reset)
	case Twice:
		return faults.Duplicate(time.Second)
	case Slow:
		return faults.Slow(slow)
	case Throttled:
		return faults.Throttle(faults.ThrottledTyped)
	case Conflict:
		return faults.Conflict()
	case ServerError, ServerErrorAfter:
		return faults.ServerError(f == ServerErrorAfter)
	case Denied:
		return faults.Deny()
	case Crash, CrashAfter:
		return faults.CrashHere(f == CrashAfter)
	}
	return faults.Pass()
}
