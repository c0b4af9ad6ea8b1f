package lockrow

import "time"

// A waiter that gives up while it is the head keeps the row from the next one until it has left the
// queue. If most waiters do that, a row is free nearly all the time and no unit has it. So a waiter
// joins a queue only if it is likely to be served in time.
const (
	// ShortestWait is the least time that a waiter must have left before its deadline. A place costs
	// three requests (to join, to look, to leave): a waiter with less time only delays others.
	ShortestWait = 100 * time.Millisecond
	// timesExpected is how many times its expected wait a waiter must have left. Turns vary, and each
	// waiter ahead was as sure to be served. If the expected wait itself were enough, a crowd would be
	// served less than half as often as patient waiters.
	timesExpected = 4
)

// WorthJoining reports whether a waiter that has this much time left joins a queue in which its
// expected wait is this long.
func WorthJoining(expected, left time.Duration) bool {
	return left >= max(timesExpected*expected, ShortestWait)
}

// TurnsBefore returns how many turns at the row end before a blocked unit has its own: those of the
// units before its place, or before the place that it would take now, and the holder's.
func (r Row) TurnsBefore(unit string) int {
	place, _ := r.Place(unit)
	if !r.Free() || len(r.Below) > 0 {
		place++
	}
	return place
}
