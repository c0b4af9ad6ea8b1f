package lockrow

import "time"

// A waiter that gives up while it is the head keeps the row from the next one for as long as it
// takes to leave. Where most waiters do, a row is free nearly all the time and nobody has it. So
// only those join a queue that are likely to be served in time.
const (
	// ShortestWait must be left before a waiter's deadline. A place costs three requests (to join,
	// to look, to leave): whoever has less time only keeps others waiting.
	ShortestWait = 100 * time.Millisecond
	// timesExpected is how many times its expected wait a waiter must have left. Turns differ, and
	// waiters join behind others of whom each was as sure to be served: if the expected wait itself
	// is enough, a crowd gets less than half of what patient waiters get.
	timesExpected = 4
)

// WorthJoining reports whether a waiter that gives up after left joins a queue in which it expects
// to wait for expected.
func WorthJoining(expected, left time.Duration) bool {
	return left >= max(timesExpected*expected, ShortestWait)
}

// TurnsBefore returns how many turns at the row end before that of a unit which the row blocks: those
// of the units before its place, or before the place that it would take now, and that of whoever has
// the row.
func (r Row) TurnsBefore(unit string) int {
	place, _ := r.Place(unit)
	if !r.Free() || len(r.Below) > 0 {
		place++
	}
	return place
}
