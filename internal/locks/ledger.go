package locks

import (
	"slices"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

// ledger is what a unit has asked for on its way to a set: what it holds by now, and what
// may have landed besides, or may yet.
//
// Invariants:
//   - steps [0, secured) are held; nothing later is, but for what a doubt may bring;
//   - every attempt that may have landed, or may yet, is in attempts; it is dead
//     when one of its rows has a fence that refuses it from then on.
type ledger struct {
	secured  int             // steps
	stamps   []fencing.Token // of the secured steps: their rows' fences are at least this
	attempts []attempt
	reach    int // how many steps were ever tried
}

// attempt is an acquiring write that was not seen to succeed, or the joining of
// a queue.
type attempt struct {
	rvn    string // empty if it joins a queue
	token  fencing.Token
	first  int          // index of its first step
	steps  plans.Plan   // none if it joins a queue
	at     ordering.Key // a row that refuses it once its token is burned there
	since  time.Time    // from before its first sending
	doubts bool         // a sending had no answer: it may land yet, or may have
	dead   bool         // it cannot land any more; it may have, before
}

// isJoin reports whether the attempt was to join a queue.
func (a attempt) isJoin() bool { return len(a.steps) == 0 }

// tried notes an attempt that was not seen to succeed.
func (l *ledger) tried(a attempt) { l.attempts = append(l.attempts, a) }

// won notes that the steps of an attempt are held, and what that says of others: the
// rows of these steps have a fence of at least its token now, so what is still under
// way for one of them with a token no higher will be refused. Nothing is said of what
// is under way for steps before.
func (l *ledger) won(a attempt) {
	for range a.steps {
		l.stamps = append(l.stamps, a.token)
	}
	l.secured += len(a.steps)
	for i, old := range l.attempts {
		l.attempts[i].dead = old.dead || old.token <= a.token && old.first+max(len(old.steps), 1) > a.first
	}
	l.attempts = slices.DeleteFunc(l.attempts, func(old attempt) bool { return old.dead && !old.doubts })
}

// wrote returns the attempt that wrote this RVN.
func (l *ledger) wrote(rvn string) (attempt, bool) {
	i := slices.IndexFunc(l.attempts, func(tried attempt) bool { return tried.rvn == rvn })
	if i < 0 {
		return attempt{}, false
	}
	return l.attempts[i], true
}

// toBurn returns the attempts that must not land any more: those without an
// answer and, in case the network has copies of those that were refused, for
// each row that they begin with the one with the highest token.
//
// If nothing was asked for but takings, and each of their sendings was refused, there are none: a
// copy could at worst take rows that others take over a lease later, and burning would cost every
// refused caller a second request.
func (l *ledger) toBurn() []attempt {
	if !slices.ContainsFunc(l.attempts, func(a attempt) bool { return a.doubts || a.isJoin() }) {
		return nil
	}
	var burn []attempt
	for i, tried := range l.attempts {
		if tried.dead {
			continue
		}
		covered := slices.ContainsFunc(l.attempts[i+1:], func(later attempt) bool {
			return later.at == tried.at && later.token >= tried.token
		})
		if tried.doubts || !covered {
			burn = append(burn, tried)
		}
	}
	return burn
}

// left notes that the unit is not in the queue of a row, and cannot join it any more.
func (l *ledger) left(key ordering.Key) {
	for i, tried := range l.attempts {
		l.attempts[i].dead = tried.dead || tried.isJoin() && tried.at == key
	}
}

// joined returns the rows whose queue the unit asked to join, unless that cannot have
// landed: once the tokens of a ledger are burned, it cannot any more.
func (l *ledger) joined() (keys []ordering.Key) {
	for _, tried := range l.attempts {
		if tried.isJoin() && !tried.dead {
			keys = append(keys, tried.at)
		}
	}
	return keys
}
