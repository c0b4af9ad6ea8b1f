package faults

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"
)

// Rand returns random numbers of this call's own, for a Script that draws: a
// function of the seed, of who calls, about which row, of how many such calls
// they made before, and of the purpose; never of the order in which calls arrive.
func (c Call) Rand(seed uint64, purpose string) *rand.Rand {
	b := strconv.AppendUint(make([]byte, 0, 256), seed, 10)
	for _, text := range []string{c.Who, c.Op, c.first} {
		b = append(append(b, 0), text...)
	}
	b = strconv.AppendInt(append(b, 0), int64(c.turn), 10)
	sum := sha256.Sum256(append(append(b, 0), purpose...))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])))
}

// UpTo draws a duration in (0, limit], to the nanosecond, so that hardly two
// things ever happen at the same instant; 0 if the limit is.
func UpTo(r *rand.Rand, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return 1 + time.Duration(r.Int64N(int64(limit)))
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
