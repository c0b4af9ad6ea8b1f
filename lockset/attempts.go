package lockset

// Pure: decides, does no I/O.

import (
	"slices"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
)

// attempt is an acquiring write that was not seen to succeed, or the joining of
// a queue.
type attempt struct {
	rvn    string // empty if it joins a queue
	token  fencing.Token
	first  int           // index of its first step
	steps  ordering.Plan // none if it joins a queue
	at     ordering.Key  // a row that refuses it once its token is burned there
	since  time.Time     // from before its first sending
	doubts bool          // a sending had no answer: it may land yet, or may have
	dead   bool          // it cannot land any more; it may have, before
}

// toBurn returns the attempts that must not land any more: those without an
// answer and, in case the network has copies of those that were refused, for
// each row that they begin with the one with the highest token.
func (a *acquisition) toBurn() []attempt {
	var burn []attempt
	for i, tried := range a.attempts {
		if tried.dead {
			continue
		}
		covered := slices.ContainsFunc(a.attempts[i+1:], func(later attempt) bool {
			return later.at == tried.at && later.token >= tried.token
		})
		if tried.doubts || !covered {
			burn = append(burn, tried)
		}
	}
	return burn
}

// attempted returns the attempt that wrote this RVN.
func (a *acquisition) attempted(rvn string) (attempt, bool) {
	for _, tried := range a.attempts {
		if tried.rvn == rvn {
			return tried, true
		}
	}
	return attempt{}, false
}
