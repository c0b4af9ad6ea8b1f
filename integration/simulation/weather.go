package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/faults"
)

// requestFault is what may befall one request.
type requestFault struct {
	name   string
	weight float64 // against the others
	make   func(r *rand.Rand, c faults.Call, p *Plan) faults.Fault
}

const opTransact = "TransactWriteItems"

// requestFaults are all of them; docs/faults.md has a line for each.
var requestFaults = []requestFault{
	{"request lost", 1, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.LoseRequest(faults.Reset) }},
	{"request swallowed", 1, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.LoseRequest(faults.Hang) }},
	{"request late", 1, func(r *rand.Rand, _ faults.Call, p *Plan) faults.Fault {
		return faults.DeliverLate(faults.UpTo(r, p.MaxDelay), oneOf(r, faults.Reset, faults.Hang))
	}},
	{"request doubled", 1, func(r *rand.Rand, _ faults.Call, p *Plan) faults.Fault {
		return faults.Duplicate(faults.UpTo(r, p.MaxDelay))
	}},
	{"request doubled, forgotten", 0.3, func(r *rand.Rand, _ faults.Call, p *Plan) faults.Fault {
		if p.Retention < time.Hour {
			return faults.Pass() // nothing is under way for as long as rows are kept
		}
		return faults.Duplicate(tokensForgotten + faults.UpTo(r, p.MaxDelay))
	}},
	{"answer lost", 1, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.LoseAnswer(faults.Reset) }},
	{"answer swallowed", 1, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.LoseAnswer(faults.Hang) }},
	{"answer broken", 1, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.LoseAnswer(faults.Broken) }},
	{"throttled", 1, func(r *rand.Rand, _ faults.Call, _ *Plan) faults.Fault {
		return faults.Throttle(oneOf(r, faults.Provisioned, faults.ThrottledTyped, faults.ThrottledGeneric, faults.RequestLimit))
	}},
	{"throttled in part", 1, func(r *rand.Rand, c faults.Call, _ *Plan) faults.Fault {
		if c.Actions == 0 {
			return faults.Pass()
		}
		return faults.Throttle(oneOf(r, faults.InReasons, faults.ProvisionedReason), faults.Some(r, c.Actions)...)
	}},
	{"conflict", 1, func(_ *rand.Rand, c faults.Call, _ *Plan) faults.Fault {
		if c.Actions > 0 || c.Op == "GetItem" {
			return faults.Pass()
		}
		return faults.Conflict()
	}},
	{"conflict in part", 2, func(r *rand.Rand, c faults.Call, _ *Plan) faults.Fault {
		if c.Actions == 0 {
			return faults.Pass()
		}
		return faults.Conflict(faults.Some(r, c.Actions)...)
	}},
	{"transaction in progress", 1, func(r *rand.Rand, c faults.Call, p *Plan) faults.Fault {
		if c.Op != opTransact {
			return faults.Pass()
		}
		return faults.InProgress(faults.UpTo(r, p.MaxDelay))
	}},
	{"server error", 0.5, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.ServerError(false) }},
	{"server error, carried out", 0.5, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.ServerError(true) }},
	{"crash before a request", 0.1, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.CrashHere(false) }},
	{"crash after a request", 0.1, func(*rand.Rand, faults.Call, *Plan) faults.Fault { return faults.CrashHere(true) }},
	{"half-visible transaction", 4, func(r *rand.Rand, c faults.Call, p *Plan) faults.Fault {
		if c.Op != opTransact {
			return faults.Pass()
		}
		return faults.Window(faults.UpTo(r, p.MaxWindow), faults.Some(r, c.Actions)...)
	}},
}

// tokensForgotten is longer than DynamoDB remembers the token of a transaction.
const tokensForgotten = 10*time.Minute + time.Second

// often is how likely a request meets the fault that a course is about.
const often = 0.04

// heed weighs a request: most are looks at a row that blocks, from which little
// can go wrong; what writes is worth more attention.
func heed(c faults.Call) float64 {
	switch c.Op {
	case "GetItem":
		return 0.2
	case opTransact:
		return 3
	default:
		return 1
	}
}

// befalls draws what befalls a request, and names it; "" for nothing.
func (w *world) befalls(c faults.Call) (string, faults.Fault) {
	at := time.Since(w.start)
	if at >= w.until {
		return "", faults.Pass()
	}
	r := c.Rand(w.plan.Seed, "weather")
	p, level := r.Float64(), w.plan.level(at)*heed(c)
	for _, kind := range requestFaults {
		rate := level * kind.weight
		if w.settings.Only != "" {
			rate = 0
			if w.settings.Only == kind.name {
				rate = often * min(kind.weight, 1) * heed(c)
			}
		}
		if p >= rate {
			p -= rate
			continue
		}
		f := kind.make(r, c, w.plan)
		if slices.Contains(w.settings.Without, kind.name) || f.Kind == faults.Passed && f.WindowFor == 0 {
			return "", faults.Pass()
		}
		return kind.name, f
	}
	return "", faults.Pass()
}
