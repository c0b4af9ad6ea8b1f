package inspect

import (
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// deedFor is what a sweep does about somebody who was found dead.
func deedFor(s Sighting) string {
	switch {
	case s.Head:
		return dropped
	case s.Row.Prepared():
		return settled
	}
	return buried
}

// nextLook is when to look again at somebody who is silent for so long, of at most limit:
// when half of that is over, for the living renew their leases every third, and at its end.
func nextLook(now time.Time, silent, limit time.Duration) time.Time {
	if left := limit/2 - silent; left > 0 {
		return now.Add(left)
	}
	return now.Add(max(limit-silent, time.Millisecond))
}

// intentsSeen is what the intents of a row and their witnesses come to.
type intentsSeen struct {
	remnants []lockrow.Remnant // to be removed
	prepared []seenRow         // witnesses of the dead, whose journals are to be settled
	silent   []seenRow         // witnesses of which it is not known yet
	next     time.Time         // when to look at the first of them again
	alive    bool              // somebody is
}

// judgeIntents decides about the intents of a row by their witnesses. first has these as they were
// at first, and old are the intents that were there then. One that came since, or whose witness was
// not read because it came just now, is somebody's who is alive: where units come and go all the
// time, a sweep that waited for each would never end.
func judgeIntents(r lockrow.Row, witnesses map[ordering.Key]seenRow, first firsts, old map[lockrow.Entry]bool, now time.Time) (seen intentsSeen) {
	for _, e := range r.Below {
		w, read := witnesses[e.Witness]
		if !read {
			seen.alive = true
			continue
		}
		stale, j := lockrow.JudgeWitness(e, w.Row, w.Watch(0))
		switch {
		case w.shown.Damage != "": // nobody can tell whose it is
		case stale:
			seen.remnants = append(seen.remnants, lockrow.Remnant{Entry: e, Row: w.Row})
		case j.Verdict == lockrow.Bury:
			seen.remnants = append(seen.remnants, lockrow.Remnant{Entry: e, Row: w.Row, Dead: true})
		case j.Verdict == lockrow.Recover:
			seen.prepared = append(seen.prepared, w)
		case first.alive(w.Row) || !old[e]:
			seen.alive = true
		default:
			next := nextLook(now, now.Sub(w.Since), w.Row.Lease)
			if len(seen.silent) == 0 || next.Before(seen.next) {
				seen.next = next
			}
			seen.silent = append(seen.silent, w)
		}
	}
	return seen
}
