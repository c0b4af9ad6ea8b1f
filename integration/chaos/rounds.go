package chaos

import (
	"math/rand/v2"
	"time"
)

// mishap is what a round does.
type mishap string

const (
	killBranch    mishap = "a branch killed"                          // SIGKILL; another takes its name, its diary and what it had begun
	killGroup     mishap = "a branch killed while it commits a group" // the same, when it commits several units of a rush
	stopBranch    mishap = "a branch stopped beyond its lease"        // SIGSTOP, and SIGCONT much later
	stopShortly   mishap = "a branch stopped for a moment"            // and SIGCONT before its lease is over
	killEngine    mishap = "the engine killed"                        // and restarted on its file; copies of the latest writes follow
	storms        mishap = "a storm on the network"                   // much of one fault, for everybody
	partition     mishap = "a branch cut off"                         // all requests and answers
	recoverWorker mishap = "a recovery beside the work"               // Client.Recover
)

// round is one thing that goes wrong.
type round struct {
	mishap mishap
	branch int           // of which one
	of     fate          // of which storm
	length time.Duration // of what has an end
	pause  time.Duration // before the next round begins
}

// share says how often a mishap is drawn.
type share struct {
	of mishap
	n  int
}

// everything is for an engine that keeps what it has acknowledged when it is killed.
var everything = []share{
	{killBranch, 22}, {killGroup, 8}, {stopBranch, 22}, {stopShortly, 6}, {killEngine, 16}, {storms, 14}, {partition, 8}, {recoverWorker, 4},
}

// first are the first rounds, of branches that commit groups: in few they might not come about.
var first = []mishap{killGroup, partition}

// clientsOnly is for an engine that forgets.
var clientsOnly = []share{
	{killBranch, 30}, {killGroup, 10}, {stopBranch, 24}, {stopShortly, 8}, {storms, 16}, {partition, 8}, {recoverWorker, 4},
}

// plan draws rounds. The same seed draws the same ones; when they come about, the
// machine decides.
type plan struct {
	shares   []share
	branches int
	lease    time.Duration
	pace     time.Duration // between two rounds, on average
	draws    *rand.Rand
	drawn    int // rounds
}

func (p *plan) next() round {
	r := round{mishap: p.mishap(), branch: p.draws.IntN(p.branches), of: fates[p.draws.IntN(len(fates))]}
	p.drawn++
	if p.drawn <= len(first) {
		r.mishap = first[p.drawn-1]
	}
	if (p.drawn <= len(first) || r.mishap == killGroup) && r.branch%locksFirst == locksFirst-1 { // which has no groups
		r.branch = 0
	}
	leases := 0.0
	switch r.mishap {
	case stopBranch:
		leases = 1.2 + 1.3*p.draws.Float64()
	case stopShortly:
		leases = 0.05 + 0.55*p.draws.Float64()
	case storms:
		leases = 0.2 + 1.3*p.draws.Float64()
	case partition: // many are longer than anybody asks for what became of a commit
		leases = 0.2 + 2.6*p.draws.Float64()
	case killEngine, killBranch, killGroup: // until it is started again
		leases = 0.3 * p.draws.Float64()
	}
	r.length = time.Duration(leases * float64(p.lease))
	r.pause = time.Duration((0.5 + p.draws.Float64()) * float64(p.pace))
	return r
}

func (p *plan) mishap() mishap {
	total := 0
	for _, s := range p.shares {
		total += s.n
	}
	n := p.draws.IntN(total)
	for _, s := range p.shares {
		if n -= s.n; n < 0 {
			return s.of
		}
	}
	return killBranch
}
