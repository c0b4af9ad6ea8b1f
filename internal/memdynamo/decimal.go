package memdynamo

import (
	"errors"
	"math/bits"
	"strings"
)

// decimal is a DynamoDB number: up to 38 significant digits, magnitude from
// 1E-130 to 9.99…E+125, exact. Its value is ±coefficient × 10^exp, where the
// coefficient (hi, lo: 128 bits, which 38 digits fit) has no trailing zero and
// zero is the zero struct: every number has one representation, so == on
// structs is equality of numbers. Immutable.
type decimal struct {
	hi, lo uint64
	exp    int16
	digits uint8
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

func errNotNumber(s string) error {
	return errors.New("The parameter cannot be converted to a numeric value: " + s)
}

// parseDecimal reads [+-]digits[.digits][e[+-]digits], with digits on at least
// one side of the point. Leading and trailing zeros do not count as digits.
func parseDecimal(s string) (decimal, error) {
	var d decimal
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		d.neg = s[i] == '-'
		i++
	}
	seen, point, tooLong, exp, zeros := false, false, false, 0, 0
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		seen = true
		if point {
			exp--
		}
		if c == '0' {
			if d.digits > 0 {
				zeros++ // digits only if another one follows
			}
			continue
		}
		if tooLong = tooLong || int(d.digits)+zeros+1 > maxDigits; tooLong {
			continue // still a number or not, by what follows
		}
		for ; zeros > 0; zeros-- {
			d.push(0)
		}
		d.push(uint64(c - '0'))
	}
	if !seen {
		return decimal{}, errNotNumber(s)
	}
	e, ok := parseExponent(s[i:])
	if !ok {
		return decimal{}, errNotNumber(s)
	}
	if tooLong {
		return decimal{}, errPrecision
	}
	return d.withExponent(exp + zeros + e)
}

// parseExponent reads "" or e[+-]digits, clamped to what is out of range anyway.
func parseExponent(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	neg := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	e := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		e = min(e*10+int(c-'0'), 1<<24)
	}
	if neg {
		e = -e
	}
	return e, true
}

// push appends a digit to the coefficient.
func (d *decimal) push(digit uint64) {
	d.hi, d.lo = mul128(d.hi, d.lo, 10)
	var carry uint64
	d.lo, carry = bits.Add64(d.lo, digit, 0)
	d.hi += carry
	d.digits++
}

// withExponent completes a coefficient without trailing zeros, or refuses it.
func (d decimal) withExponent(exp int) (decimal, error) {
	if d.digits == 0 {
		return decimal{}, nil
	}
	first := exp + int(d.digits) - 1
	if first > maxExponent {
		return decimal{}, errOverflow
	}
	if first < minExponent {
		return decimal{}, errUnderflow
	}
	d.exp = int16(exp)
	return d, nil
}

// mul128 multiplies by a factor that leaves the product within 128 bits.
func mul128(hi, lo, by uint64) (uint64, uint64) {
	carry, low := bits.Mul64(lo, by)
	return hi*by + carry, low
}

// scale128 multiplies by 10^n; the product must fit 128 bits.
func scale128(hi, lo uint64, n int) (uint64, uint64) {
	for ; n >= 19; n -= 19 {
		hi, lo = mul128(hi, lo, 1e19)
	}
	p := uint64(1)
	for ; n > 0; n-- {
		p *= 10
	}
	return mul128(hi, lo, p)
}

// String prints the number as DynamoDB returns it: plain, without an exponent.
func (d decimal) String() string {
	if d.digits == 0 {
		return "0"
	}
	var buf [maxDigits]byte
	digits := d.appendDigits(buf[:0])
	exp := int(d.exp)
	var b strings.Builder
	if d.neg {
		b.WriteByte('-')
	}
	switch point := len(digits) + exp; {
	case exp >= 0:
		b.Write(digits)
		b.WriteString(strings.Repeat("0", exp))
	case point > 0:
		b.Write(digits[:point])
		b.WriteByte('.')
		b.Write(digits[point:])
	default:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -point))
		b.Write(digits)
	}
	return b.String()
}

// appendDigits appends the coefficient's digits, the first one first.
func (d decimal) appendDigits(to []byte) []byte {
	var tmp [maxDigits + 1]byte
	i := len(tmp)
	hi, lo := d.hi, d.lo
	for hi != 0 || lo != 0 {
		var r uint64
		hi, lo, r = div10(hi, lo)
		i--
		tmp[i] = byte('0' + r)
	}
	return append(to, tmp[i:]...)
}

func div10(hi, lo uint64) (qhi, qlo, rest uint64) {
	if hi == 0 {
		return 0, lo / 10, lo % 10
	}
	qhi, r := hi/10, hi%10
	qlo, rest = bits.Div64(r, lo, 10)
	return qhi, qlo, rest
}

// cmp orders numbers: -1, 0 or +1.
func (d decimal) cmp(e decimal) int {
	if ds, es := d.sign(), e.sign(); ds != es {
		if ds < es {
			return -1
		}
		return 1
	}
	if d.neg {
		d, e = e, d
	}
	return d.cmpMagnitude(e)
}

func (d decimal) sign() int {
	switch {
	case d.neg:
		return -1
	case d.digits == 0:
		return 0
	}
	return 1
}

func (d decimal) cmpMagnitude(e decimal) int {
	if df, ef := int(d.exp)+int(d.digits), int(e.exp)+int(e.digits); df != ef {
		if df < ef {
			return -1
		}
		return 1
	}
	// First digits at the same place: scaled to the same count of digits,
	// which is at most 38, the coefficients compare as integers.
	dh, dl, eh, el := d.hi, d.lo, e.hi, e.lo
	if d.digits < e.digits {
		dh, dl = scale128(dh, dl, int(e.digits-d.digits))
	} else {
		eh, el = scale128(eh, el, int(d.digits-e.digits))
	}
	return cmp128(dh, dl, eh, el)
}

func cmp128(ah, al, bh, bl uint64) int {
	switch {
	case ah < bh || ah == bh && al < bl:
		return -1
	case ah == bh && al == bl:
		return 0
	}
	return 1
}

// size is what a number weighs in an item: a byte for two digits, one more,
// and one for the sign.
func (d decimal) size() int {
	if d.digits == 0 {
		return 1
	}
	n := (int(d.digits)+1)/2 + 1
	if d.neg {
		n++
	}
	return n
}

// sortable encodes the number so that strings sort as the numbers do.
func (d decimal) sortable() string {
	if d.digits == 0 {
		return "\x01"
	}
	hi, lo := scale128(d.hi, d.lo, maxDigits-int(d.digits))
	first := uint16(int(d.exp) + int(d.digits) - minExponent + 1)
	b := []byte{2, byte(first >> 8), byte(first)}
	for _, word := range [...]uint64{hi, lo} {
		for shift := 56; shift >= 0; shift -= 8 {
			b = append(b, byte(word>>shift))
		}
	}
	if d.neg {
		b[0] = 0
		for i := 1; i < len(b); i++ {
			b[i] = ^b[i]
		}
	}
	return string(b)
}

// smallDecimal is the number of a count.
func smallDecimal(n int) decimal {
	if n == 0 {
		return decimal{}
	}
	d, _ := decimal{lo: uint64(n)}.normal(0) // in range whatever the count
	return d
}
