package lockset

import "time"

// Wait limits how long a unit or a set waits for others: the record wait. The zero value is the
// default of the field that has it.
//
// A unit joins a queue only if it is likely to be served in time. Before the end of its wait, or
// before its context's deadline, there must be at least 100 ms, and four times the expected wait,
// which follows from the turns that this process has seen at the key. Otherwise the call fails at
// the first refusal, with a [HeldError] that says how long the wait would be.
type Wait struct {
	kind  waitKind
	limit time.Duration
}

type waitKind int

const (
	byDefault waitKind = iota
	limited
	forever
)

// For returns a wait of at most d in all; For(0) waits for nobody. The wait ends a few requests' time
// early if what is left is too short to take the key. Only waiting counts: a call acquires whatever
// it can acquire without waiting, as long as DynamoDB answers. If DynamoDB does not answer, the call
// returns within one [Config.AttemptTimeout] after the end of the wait; with For(0) it sends a
// request twice.
func For(d time.Duration) Wait { return Wait{limited, d} }

// Forever returns a wait that lasts until the context ends.
func Forever() Wait { return Wait{kind: forever} }

// End returns when a wait that begins now is over: the zero time if it never is.
func (w Wait) End() time.Time {
	if w.kind != limited {
		return time.Time{}
	}
	return time.Now().Add(w.limit)
}
