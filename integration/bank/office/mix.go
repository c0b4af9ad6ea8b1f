package office

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
)

// Mix is the share of each kind of work. It is a flag.Value.
type Mix map[string]int

// DefaultMix is the demo's.
func DefaultMix() Mix {
	return Mix{books.KindPayment: 1600, books.KindMove: 200, books.KindInterest: 179, books.KindMerge: 20, books.KindMonthEnd: 1}
}

func (m Mix) String() string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s=%d", kind, m[kind]))
	}
	return strings.Join(parts, ",")
}

// Set takes kind=share pairs. Kinds that are not named have no share.
func (m Mix) Set(s string) error {
	known := DefaultMix()
	clear(m)
	total := 0
	for part := range strings.SplitSeq(s, ",") {
		kind, share, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(share)
		if _, ok := known[kind]; !ok || err != nil || n < 0 || n > 1_000_000 {
			return fmt.Errorf("%q is not one of %v with its share, such as payment=80", part, slices.Sorted(maps.Keys(known)))
		}
		m[kind] = n
		total += n
	}
	if total == 0 {
		return errors.New("no kind has a share")
	}
	return nil
}

// pick returns the kind of which a number drawn from [0, total) is.
func (m Mix) pick(draw func(total int) int) string {
	total := 0
	for _, share := range m {
		total += share
	}
	n := draw(total)
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if n -= m[kind]; n < 0 {
			return kind
		}
	}
	return books.KindPayment
}
