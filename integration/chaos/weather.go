package chaos

import (
	"math/rand/v2"
	"time"
)

// fate is what happens to one request on its way.
type fate string

const (
	passed        fate = "passed"
	delayed       fate = "delayed"          // carried out and answered, later
	lost          fate = "request lost"     // the connection breaks before
	answerLost    fate = "answer lost"      // it breaks after
	answerBroken  fate = "answer broken"    // it breaks in the middle of the answer
	swallowed     fate = "answer swallowed" // carried out, and nothing comes back
	held          fate = "request late"     // nothing comes back; carried out later, whatever has become of the sender
	doubled       fate = "request doubled"  // carried out and answered, and carried out again later
	partitioned   fate = "cut off"          // by a partition of its branch
	engineIsDown  fate = "engine down"
	copied        fate = "copied after a restart"       // sent again to an engine that has forgotten its request tokens
	refusedAsCopy fate = "late ones and copies refused" // of late, doubled and copied ones
)

// weather says how often what happens to requests.
type weather struct {
	shares map[fate]float64 // of all requests; the rest pass
	lease  time.Duration    // to which what is late has some proportion
}

// fates in the order in which shares are drawn.
var fates = []fate{delayed, lost, answerLost, answerBroken, swallowed, held, doubled}

// usual weather: a little of everything, and more of what arrives when others may
// have taken over.
func usual(lease time.Duration) weather {
	w := weather{shares: map[fate]float64{}, lease: lease}
	for _, f := range fates {
		w.shares[f] = 0.003
	}
	w.shares[held] = 0.012
	return w
}

// storm is much of one thing.
func storm(of fate, lease time.Duration) weather {
	w := usual(lease)
	w.shares[of] = 0.2
	return w
}

// draw is what happens to a request, and how late what is late comes.
func (w weather) draw(r *rand.Rand) (fate, time.Duration) {
	n, x := r.Float64(), r.Float64()
	for _, f := range fates {
		if n -= w.shares[f]; n < 0 {
			return f, time.Duration(lateness(f, x) * float64(w.lease))
		}
	}
	return passed, 0
}

// lateness is by how many leases something is late, for an x from 0 to 1.
func lateness(f fate, x float64) float64 {
	switch f {
	case delayed:
		return x / 4 // an attempt is given up after a tenth
	case held:
		return 1 + 1.5*x // its sender is dead for others, or nearly
	default:
		return 2.5 * x
	}
}
