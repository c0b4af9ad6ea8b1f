package simulation

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/internal/faults"
)

// Plan is what a seed decides before anything happens.
type Plan struct {
	Seed           uint64
	Length         time.Duration
	Hosts, Workers int           // workers of each host
	Rush           time.Duration // from one time at which all workers want something to the next
	Spread         time.Duration // how far from it they begin
	Lease, Latency time.Duration
	MaxAge         time.Duration
	Retention      time.Duration
	ChunkSize      int
	Transaction    int // how many actions a transaction of a unit has at most: larger ones have a journal
	Poll, Grace    time.Duration
	Skew           time.Duration // no wall clock is wrong by more
	Families, Fan  int           // of keys: how many may be locked as one, and how many below each
	Depth          int           // of keys: levels
	Many           bool          // sets of up to 120 keys are common
	Wide           bool          // there are many keys that may be locked as one
	Quick          bool          // functions mostly take no time, and many want the same
	Mixed          bool          // every other host has a lease twice as long
	Dates          time.Duration // no two answers of DynamoDB of one moment have a Date further apart
	Callers        int           // hosts besides, whose processes live for one call

	Level     float64       // how likely a fault is, per request and kind, in fair weather
	Storms    []Storm       // when it is more likely
	MaxDelay  time.Duration // of late and second deliveries
	MaxWindow time.Duration // of half-visible transactions
	Mishaps   time.Duration // mean time between two of a host
}

// Storm is a time when more goes wrong.
type Storm struct {
	From, To time.Duration
	Worse    float64 // how many times
}

// draw returns the random numbers of one purpose: a function of the seed and the
// purpose, never of what was drawn before.
func draw(seed uint64, purpose ...any) *rand.Rand {
	h := fnv.New128a()
	_, _ = fmt.Fprint(h, seed)
	for _, p := range purpose {
		_, _ = fmt.Fprint(h, "\x00", p)
	}
	var sum [16]byte
	h.Sum(sum[:0])
	var a, b uint64
	for i := range 8 {
		a, b = a<<8|uint64(sum[i]), b<<8|uint64(sum[8+i])
	}
	r := rand.New(rand.NewPCG(a, b))
	r.Uint64() // FNV leaves the first bits of similar purposes similar
	return r
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// NewPlan draws the plan of a seed.
func NewPlan(seed uint64) Plan {
	r := draw(seed, "plan")
	p := Plan{
		Seed:      seed,
		Length:    time.Duration(10+r.IntN(20)) * time.Minute,
		Hosts:     2 + r.IntN(5),
		Workers:   1 + r.IntN(4),
		Lease:     time.Duration(oneOf(r, 1, 2, 3, 5, 10, 20)) * time.Second,
		Latency:   time.Duration(oneOf(r, 2, 5, 15, 40)) * time.Millisecond,
		ChunkSize: oneOf(r, 0, 0, 2, 5, 99),
		Families:  2 + r.IntN(4),
		Fan:       1 + r.IntN(4),
		Depth:     1 + r.IntN(3),
		Many:      r.IntN(8) == 0,
		Mixed:     r.IntN(5) == 0,
		Level:     oneOf(r, 0.0003, 0.001, 0.003),
		MaxWindow: time.Duration(1+r.IntN(10)) * 100 * time.Millisecond,
	}
	p.Rush = time.Duration(p.Workers) * 5 * time.Second
	p.Spread = min(oneOf(r, p.Lease, 3*p.Lease, p.Rush), p.Rush)
	if r.IntN(8) > 0 { // the default of Lease/50 mostly makes a course longer, not richer
		p.Grace = p.Lease / time.Duration(1+r.IntN(4))
		p.Poll = p.Grace / time.Duration(5+r.IntN(4))
	}
	p.MaxDelay = time.Duration(1+r.IntN(40)) * p.Lease / 10
	p.Mishaps = time.Duration(4+r.IntN(30)) * p.Lease
	if p.Wide = r.IntN(3) > 0; p.Wide { // mostly nobody is in the way
		p.Families = 30 + r.IntN(30)
	}
	if p.Many {
		p.Families, p.Fan, p.Depth = 1+r.IntN(2), 7+r.IntN(4), 3
	}
	if r.IntN(2) == 0 { // rows vanish while the course lasts
		p.Retention = time.Duration(3+r.IntN(4)) * time.Minute
		p.MaxAge = p.Retention / 2
		// A row lasts for a retention by the clock of the unit that left it. What a unit
		// without locks has seen is good for a lease, and a request may be late.
		p.Skew = min(oneOf(r, 0, p.Lease, p.Retention/2, p.Retention*8/10), p.Retention-5*p.Lease)
		p.MaxDelay = min(p.MaxDelay, (p.Retention-p.Skew)/2)
	} else {
		p.Retention, p.MaxAge = 14*24*time.Hour, 7*24*time.Hour
		p.Skew = oneOf(r, 0, 10*time.Millisecond, time.Second, time.Minute, 24*time.Hour)
	}
	for at := faults.UpTo(r, p.Length/4); at < p.Length; {
		s := Storm{From: at, To: at + faults.UpTo(r, 10*p.Lease), Worse: oneOf(r, 5.0, 20, 50)}
		p.Storms = append(p.Storms, s)
		at = s.To + faults.UpTo(r, p.Length/3)
	}
	p.Transaction = oneOf(r, 100, 100, 100, 30, 8, 3)
	if p.Quick = !p.Many && r.IntN(3) == 0; p.Quick {
		p.Workers, p.Spread = 4+r.IntN(8), time.Duration(oneOf(r, 1, 20, 200))*time.Millisecond
		p.Rush = time.Duration(p.Workers) * 3 * time.Second
		p.Hosts, p.Fan, p.Depth, p.Wide = 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(2), false
	}
	p.Dates = oneOf(r, 0, 0, time.Second, 5*time.Second)
	p.Callers = oneOf(r, 0, 0, 1, 3)
	return p
}

// leaseOf is the lease of the n-th host's processes.
func (p *Plan) leaseOf(n int) time.Duration {
	if p.Mixed && n%2 == 1 {
		return 2 * p.Lease
	}
	return p.Lease
}

// level is how likely a fault is, per request and kind, at a time.
func (p *Plan) level(at time.Duration) float64 {
	for _, s := range p.Storms {
		if at >= s.From && at < s.To {
			return min(p.Level*s.Worse, 0.04)
		}
	}
	return p.Level
}

func (p *Plan) String() string {
	return fmt.Sprintf("%d hosts with %d workers, %d with calls, for %v, lease %v, clocks wrong by up to %v, dates by %v, retention %v, requests under way for up to %v each way",
		p.Hosts, p.Workers, p.Callers, p.Length, p.Lease, p.Skew, p.Dates, p.Retention, p.Latency)
}
