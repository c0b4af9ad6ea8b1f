package holdalltest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/misuse"
)

// Fault is what happens to one request of a [Process]. All of them happen to programs on AWS:
//
//   - "request-lost": the connection breaks before the request has arrived. The caller cannot tell it
//     from "answer-lost": the request is carried out, and the connection breaks.
//   - "late": the connection breaks, and the request is carried out ten seconds later.
//   - "twice": the request is carried out, and once more a second later.
//   - "throttled": it is refused for its rate.
//   - "conflict": it is refused for a transaction of somebody else's.
//   - "server-error": an internal error of DynamoDB's, before anything was done; "server-error-after":
//     the same, after the request was carried out.
//   - "denied": a permission is missing.
//   - "in-doubt": the request is lost, and so is everything else the process sends for two minutes;
//     "in-doubt-after": the same, but the request is carried out, and its answer is lost.
//   - "slow": the request takes five seconds. Whoever gives up before that does not hear of it: holdall
//     sends it once more after its AttemptTimeout, and both arrive.
//   - "paused": the process sends nothing for two minutes, heartbeats neither: what happens to one
//     whose host stands still, except that its own clock goes on.
//   - "crash": the process dies, and the request is never carried out; "crash-after": the process dies,
//     and the request is carried out.
//
// To ask for any other is a panic: it would never happen.
type Fault string

const (
	requestLost      Fault = "request-lost"
	answerLost       Fault = "answer-lost"
	late             Fault = "late"
	twice            Fault = "twice"
	throttled        Fault = "throttled"
	conflict         Fault = "conflict"
	serverError      Fault = "server-error"
	serverErrorAfter Fault = "server-error-after"
	denied           Fault = "denied"
	inDoubt          Fault = "in-doubt"
	inDoubtAfter     Fault = "in-doubt-after"
	slow             Fault = "slow"
	paused           Fault = "paused"
	crash            Fault = "crash"
	crashAfter       Fault = "crash-after"
)

// Faults are all of them.
func Faults() []Fault {
	return []Fault{
		requestLost, answerLost, late, twice, throttled, conflict, serverError, serverErrorAfter, denied,
		inDoubt, inDoubtAfter, slow, paused, crash, crashAfter,
	}
}

// validate stops a program that asks for a fault that there is not.
func (f Fault) validate(call string) {
	if !slices.Contains(Faults(), f) {
		misuse.Of("holdalltest", call, fmt.Sprintf("there is no Fault %q; there are %q", string(f), Faults()))
	}
}

// cutOff is what happens to a request while its process is cut off.
const cutOff Fault = "cut off"

const (
	refusal = 50 * time.Millisecond // how long a process that is cut off takes to notice
	delay   = 10 * time.Second      // of what arrives late
	slowly  = 5 * time.Second
	offline = 2 * time.Minute
)

// happensTo reports whether DynamoDB has such an answer to a request.
func (f Fault) happensTo(r Request) bool {
	if f != conflict {
		return true
	}
	return !slices.Contains([]string{"GetItem", "Query", "Scan", "BatchGetItem"}, r.Op)
}

// calls are what becomes of the one request; of any other fault, it passes.
var calls = map[Fault]faults.Fault{
	requestLost:      faults.LoseRequest(faults.Reset),
	inDoubt:          faults.LoseRequest(faults.Reset),
	cutOff:           faults.LoseRequest(faults.Reset),
	answerLost:       faults.LoseAnswer(faults.Reset),
	inDoubtAfter:     faults.LoseAnswer(faults.Reset),
	late:             faults.DeliverLate(delay, faults.Reset),
	twice:            faults.Duplicate(time.Second),
	slow:             faults.Slow(slowly),
	throttled:        faults.Throttle(faults.ThrottledTyped),
	conflict:         faults.Conflict(),
	serverError:      faults.ServerError(false),
	serverErrorAfter: faults.ServerError(true),
	denied:           faults.Deny(),
	crash:            faults.CrashHere(false),
	crashAfter:       faults.CrashHere(true),
}
