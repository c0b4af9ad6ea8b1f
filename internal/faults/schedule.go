package faults

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"
)

// Rates are probabilities, per call, in the seeded schedule. All but Window
// exclude each other and add up to at most 1; a fault that makes no sense for
// an operation lets it pass. Window is drawn by itself, for whatever
// TransactWriteItems gets executed.
type Rates struct {
	LoseAnswer, LoseRequest, DeliverLate, Duplicate float64
	Throttle, Conflict, InProgress, ServerError     float64
	Window                                          float64
}

func (r Rates) exclusive() []float64 {
	return []float64{
		r.LoseAnswer, r.LoseRequest, r.DeliverLate, r.Duplicate,
		r.Throttle, r.Conflict, r.InProgress, r.ServerError,
	}
}

func (r Rates) validate() error {
	sum := 0.0
	for _, p := range append(r.exclusive(), r.Window) {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("faults: %v is no rate", p)
		}
		sum += p
	}
	if sum-r.Window > 1 {
		return fmt.Errorf("faults: the rates add up to %v", sum-r.Window)
	}
	return nil
}

// draws returns the random numbers of one call: a function of these and of
// nothing else. The purpose keeps latencies from shifting when rates change.
func draws(seed uint64, c Call, purpose string) *rand.Rand {
	b := strconv.AppendUint(make([]byte, 0, 256), seed, 10)
	for _, text := range []string{c.Who, c.Op, c.first} {
		b = append(append(b, 0), text...)
	}
	b = strconv.AppendInt(append(b, 0), int64(c.turn), 10)
	sum := sha256.Sum256(append(append(b, 0), purpose...))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

// Rand returns random numbers of this call's own, for a Script that draws: a
// function of the seed, of who calls, about which row, of how many such calls
// they made before, and of the purpose; never of the order in which calls arrive.
func (c Call) Rand(seed uint64, purpose string) *rand.Rand { return draws(seed, c, purpose) }

// UpTo draws a duration in (0, limit], to the nanosecond, so that hardly two
// things ever happen at the same instant; 0 if the limit is.
func UpTo(r *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return 1 + time.Duration(r.Int64N(int64(limit)))
}

// schedule is the seeded Script.
func schedule(cfg Config) Script {
	return func(c Call) Fault {
		r := draws(cfg.Seed, c, "fault")
		f := drawKind(r, cfg, c)
		if c.Op == opTransactWrite && c.Actions > 0 && r.Float64() < cfg.Rates.Window {
			f = f.WithWindow(UpTo(r, cfg.MaxWindow), Some(r, c.Actions)...)
		}
		if f.validFor(c) != nil {
			return Pass()
		}
		return f
	}
}

func drawKind(r *rand.Rand, cfg Config, c Call) Fault {
	p := r.Float64()
	which := 0
	for _, rate := range cfg.Rates.exclusive() {
		if p < rate {
			break
		}
		p -= rate
		which++
	}
	look := Look(r.IntN(2))
	switch which {
	case 0:
		return LoseAnswer(Look(r.IntN(3)))
	case 1:
		return LoseRequest(look)
	case 2:
		return DeliverLate(UpTo(r, cfg.MaxDelay), look)
	case 3:
		return Duplicate(UpTo(r, cfg.MaxDelay))
	case 4:
		how := Throttling(r.IntN(int(lastThrottling) + 1))
		if c.Actions == 0 { // no reasons to carry it
			return Throttle(how % InReasons)
		}
		return Throttle(how, Some(r, c.Actions)...)
	case 5:
		if c.Actions == 0 {
			return Conflict()
		}
		return Conflict(Some(r, c.Actions)...)
	case 6:
		return InProgress(UpTo(r, cfg.MaxDelay))
	case 7:
		return ServerError(r.IntN(2) == 0)
	default:
		return Pass()
	}
}

// Some draws at least one of n positions, in order; n is at least 1.
func Some(r *rand.Rand, n int) []int {
	var at []int
	for i := range n {
		if r.IntN(2) == 0 {
			at = append(at, i)
		}
	}
	if at == nil {
		at = []int{r.IntN(n)}
	}
	return at
}

// Nonces returns a source of what makes units unlike all others, for lockset.Config.Rand: the same
// ones each time for an owner of the same name. It is safe for concurrent use.
func Nonces(who string) func(context.Context) [16]byte {
	var drawn atomic.Int64
	return func(context.Context) (bytes [16]byte) {
		h := fnv.New128a()
		_, _ = h.Write([]byte(who)) // never fails
		_ = binary.Write(h, binary.BigEndian, drawn.Add(1))
		copy(bytes[:], h.Sum(nil))
		return bytes
	}
}
