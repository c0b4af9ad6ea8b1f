package staff

import (
	"math/rand/v2"
	"sync"

	"github.com/holdall/holdall/trace"
)

// ambush picks the instant at which an owner dies in the midst of a large unit:
// the next one that begins, at a point drawn for it. It is safe for concurrent
// use.
type ambush struct {
	mu    sync.Mutex
	draw  *rand.Rand
	laid  bool
	unit  string      // the one it waits for; empty until one begins
	phase trace.Phase // at which its owner dies
}

// lay makes the next large unit that begins the last of its owner.
func (a *ambush) lay() {
	a.mu.Lock()
	defer a.mu.Unlock()
	phases := []trace.Phase{trace.Journaling, trace.Preparing, trace.Applying}
	a.laid, a.unit, a.phase = true, "", phases[a.draw.IntN(len(phases))]
}

// farthest is how many requests of an owner get through, at most, after all locks
// of its last unit are marked: one decides, and the others apply.
const farthest = 10

// strikes reports whether the owner of a unit that has come so far is to die, how
// many requests later, and at which phase that is.
func (a *ambush) strikes(p trace.Progress) (phase trace.Phase, later int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.laid && a.unit == "" && p.Phase == trace.Journaling {
		a.unit = p.Unit
	}
	if !a.laid || p.Unit != a.unit {
		return "", 0, false
	}
	switch {
	case a.phase == trace.Applying && p.Phase == trace.Preparing && p.Done == p.Of:
		later = 1 + a.draw.IntN(farthest)
	case a.phase != p.Phase:
		return "", 0, false
	}
	a.laid = false
	return a.phase, later, true
}
