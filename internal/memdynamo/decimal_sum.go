package memdynamo

import (
	"math/big"
	"math/bits"
	"strings"
)

func (d decimal) negate() decimal {
	if d.digits > 0 {
		d.neg = !d.neg
	}
	return d
}

// add is the exact sum, or the error DynamoDB gives where it cannot be stored.
func (d decimal) add(e decimal) (decimal, error) {
	if d.digits == 0 {
		return e, nil
	}
	if e.digits == 0 {
		return d, nil
	}
	if d.exp < e.exp {
		d, e = e, d
	}
	shift := int(d.exp) - int(e.exp)
	if int(d.digits)+shift > maxDigits {
		return d.addBig(e, shift)
	}
	dh, dl := scale128(d.hi, d.lo, shift) // below 10^38: the sum fits 128 bits
	sum := decimal{neg: d.neg}
	switch c := cmp128(dh, dl, e.hi, e.lo); {
	case d.neg == e.neg:
		var carry uint64
		sum.lo, carry = bits.Add64(dl, e.lo, 0)
		sum.hi, _ = bits.Add64(dh, e.hi, carry)
	case c == 0:
		return decimal{}, nil
	case c > 0:
		sum.hi, sum.lo = sub128(dh, dl, e.hi, e.lo)
	default:
		sum.neg = e.neg
		sum.hi, sum.lo = sub128(e.hi, e.lo, dh, dl)
	}
	return sum.normal(int(e.exp))
}

func sub128(ah, al, bh, bl uint64) (uint64, uint64) {
	lo, borrow := bits.Sub64(al, bl, 0)
	hi, _ := bits.Sub64(ah, bh, borrow)
	return hi, lo
}

// normal strips the coefficient's trailing zeros and counts its digits.
func (d decimal) normal(exp int) (decimal, error) {
	for {
		qh, ql, r := div10(d.hi, d.lo)
		if r != 0 {
			break
		}
		d.hi, d.lo = qh, ql
		exp++
	}
	n := uint8(0)
	for hi, lo := d.hi, d.lo; hi != 0 || lo != 0; n++ {
		hi, lo, _ = div10(hi, lo)
	}
	if n > maxDigits {
		return decimal{}, errPrecision
	}
	d.digits = n
	return d.withExponent(exp)
}

// addBig adds numbers too far apart for 128 bits; d has the higher exponent,
// by shift.
func (d decimal) addBig(e decimal, shift int) (decimal, error) {
	sum := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), nil)
	sum.Mul(sum, d.big())
	sum.Add(sum, e.big())
	text := sum.String() // not zero: the magnitudes differ
	digits := strings.TrimRight(strings.TrimPrefix(text, "-"), "0")
	if len(digits) > maxDigits {
		return decimal{}, errPrecision
	}
	r := decimal{neg: sum.Sign() < 0}
	for _, c := range []byte(digits) {
		r.push(uint64(c - '0'))
	}
	zeros := len(strings.TrimPrefix(text, "-")) - len(digits)
	return r.withExponent(int(e.exp) + zeros)
}

func (d decimal) big() *big.Int {
	n := new(big.Int).SetUint64(d.hi)
	n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(d.lo))
	if d.neg {
		n.Neg(n)
	}
	return n
}
