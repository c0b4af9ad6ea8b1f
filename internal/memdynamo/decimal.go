package memdynamo

import (
	"cmp"
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// decimal is a DynamoDB number: up to 38 significant digits, magnitude from
// 1E-130 to 9.99…E+125, exact. Its value is ±digits × 10^exp, where the digits
// begin and end with no zero and zero is the zero struct: every number has one
// representation, so == on structs is equality of numbers. Immutable.
type decimal struct {
	digits string
	exp    int16
	neg    bool
}

const (
	maxDigits   = 38
	maxExponent = 125  // of the first digit
	minExponent = -130 // of the first digit
)

var (
	errPrecision = errors.New("Attempting to store more than 38 significant digits in a Number")
	errOverflow  = errors.New("Number overflow. Attempting to store a number with magnitude larger than supported range")
	errUnderflow = errors.New("Number underflow. Attempting to store a number with magnitude smaller than supported range")
)

// parseDecimal reads [+-]digits[.digits][e[+-]digits], with digits on at least
// one side of the point. Leading and trailing zeros do not count as digits.
func parseDecimal(s string) (decimal, error) {
	mantissa, exp := s, int64(0)
	var err error
	if e := strings.IndexAny(s, "eE"); e >= 0 {
		mantissa = s[:e]
		if exp, err = strconv.ParseInt(s[e+1:], 10, 32); errors.Is(err, strconv.ErrRange) {
			err = nil // clamped to what is out of range anyway
		}
	}
	neg := strings.HasPrefix(mantissa, "-")
	if neg || strings.HasPrefix(mantissa, "+") {
		mantissa = mantissa[1:]
	}
	digits, fraction, _ := strings.Cut(mantissa, ".")
	digits += fraction
	if err != nil || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, errors.New("The parameter cannot be converted to a numeric value: " + s)
	}
	return newDecimal(neg, digits, int(exp)-len(fraction))
}

// newDecimal is ±digits × 10^exp, or the error DynamoDB gives where it cannot be stored.
func newDecimal(neg bool, digits string, exp int) (decimal, error) {
	digits = strings.TrimLeft(digits, "0")
	significant := strings.TrimRight(digits, "0")
	exp += len(digits) - len(significant)
	switch first := exp + len(significant) - 1; {
	case significant == "":
		return decimal{}, nil
	case len(significant) > maxDigits:
		return decimal{}, errPrecision
	case first > maxExponent:
		return decimal{}, errOverflow
	case first < minExponent:
		return decimal{}, errUnderflow
	}
	return decimal{digits: significant, exp: int16(exp), neg: neg}, nil
}

// smallDecimal is the number of a count.
func smallDecimal(n int) decimal {
	d, _ := parseDecimal(strconv.Itoa(n)) // in range whatever the count
	return d
}

// String prints the number as DynamoDB returns it: plain, without an exponent.
func (d decimal) String() string {
	sign := ""
	if d.neg {
		sign = "-"
	}
	switch point := len(d.digits) + int(d.exp); {
	case d.digits == "":
		return "0"
	case d.exp >= 0:
		return sign + d.digits + strings.Repeat("0", int(d.exp))
	case point > 0:
		return sign + d.digits[:point] + "." + d.digits[point:]
	default:
		return sign + "0." + strings.Repeat("0", -point) + d.digits
	}
}

// cmp orders numbers: -1, 0 or +1.
func (d decimal) cmp(e decimal) int {
	if d.sign() != e.sign() {
		return cmp.Compare(d.sign(), e.sign())
	}
	// First digits at the same place compare as texts do.
	c := cmp.Or(cmp.Compare(int(d.exp)+len(d.digits), int(e.exp)+len(e.digits)), strings.Compare(d.digits, e.digits))
	if d.neg {
		return -c
	}
	return c
}

func (d decimal) sign() int {
	switch {
	case d.neg:
		return -1
	case d.digits == "":
		return 0
	}
	return 1
}

// size is what a number weighs in an item: a byte for two digits, one more,
// and one for the sign.
func (d decimal) size() int {
	if d.digits == "" {
		return 1
	}
	n := (len(d.digits)+1)/2 + 1
	if d.neg {
		n++
	}
	return n
}

// sortable encodes the number so that strings sort as the numbers do.
func (d decimal) sortable() string {
	if d.digits == "" {
		return "\x01"
	}
	first := uint16(int(d.exp) + len(d.digits) - minExponent)
	b := append([]byte{2, byte(first >> 8), byte(first)}, d.digits...)
	b = append(b, 0) // so that, inverted, -1 is behind -1.5
	if d.neg {
		b[0] = 0
		for i := 1; i < len(b); i++ {
			b[i] = ^b[i]
		}
	}
	return string(b)
}

func (d decimal) negate() decimal {
	d.neg = !d.neg && d.digits != ""
	return d
}

// add is the exact sum, or the error DynamoDB gives where it cannot be stored.
func (d decimal) add(e decimal) (decimal, error) {
	exp := min(d.exp, e.exp)
	if a, ok := d.small(exp); ok {
		if b, ok := e.small(exp); ok {
			sum := strconv.FormatInt(a+b, 10)
			return newDecimal(a+b < 0, strings.TrimPrefix(sum, "-"), int(exp))
		}
	}
	sum := new(big.Int).Add(d.big(exp), e.big(exp))
	return newDecimal(sum.Sign() < 0, strings.TrimPrefix(sum.String(), "-"), int(exp))
}

// small is the number in units of 10^exp, if two of them are sure to fit an int64 together.
func (d decimal) small(exp int16) (n int64, ok bool) {
	shift := int(d.exp - exp)
	if len(d.digits)+shift > 18 || d.digits == "" {
		return 0, d.digits == ""
	}
	n, _ = strconv.ParseInt(d.digits, 10, 64)
	for range shift {
		n *= 10
	}
	if d.neg {
		n = -n
	}
	return n, true
}

// big is the number in units of 10^exp.
func (d decimal) big(exp int16) *big.Int {
	n, _ := new(big.Int).SetString("0"+d.digits, 10)
	n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.exp-exp)), nil))
	if d.neg {
		n.Neg(n)
	}
	return n
}
