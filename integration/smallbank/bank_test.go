package smallbank

import (
	"errors"
	"math/rand/v2"
	"strconv"

	"github.com/holdall/holdall/ordering"
)

// kind is one of the bank's six transactions.
type kind int

const (
	balance kind = iota // reads both accounts of a customer
	depositChecking
	transactSavings
	amalgamate  // moves all that a customer has to another's checking account
	writeCheck  // takes an amount from the checking account, and a fee if both together have less
	sendPayment // moves an amount from one checking account to another
	kinds
)

// mix is how many of a hundred transactions are of each kind.
var mix = [kinds]int{15, 15, 15, 15, 25, 15}

const (
	customers    = 18_000
	opening      = 10_000 // in each account at first
	mostAmount   = 100
	hotInHundred = 90 // accesses, of the hot customers
	few          = 10 // customers: those are all that there are
)

// order is a transaction that somebody wants done.
type order struct {
	kind     kind
	customer int
	to       int // the other customer of amalgamate and of sendPayment
	amount   int64
}

// drawn is the next order of a client, of so many hot customers.
func drawn(r *rand.Rand, hot int) order {
	o := order{customer: customer(r, hot), amount: 1 + r.Int64N(mostAmount)}
	for n := r.IntN(100); n >= mix[o.kind]; o.kind++ {
		n -= mix[o.kind]
	}
	if o.kind == transactSavings && r.IntN(2) == 0 {
		o.amount = -o.amount
	}
	for o.to = customer(r, hot); o.to == o.customer; {
		o.to = customer(r, hot)
	}
	return o
}

func customer(r *rand.Rand, hot int) int {
	if hot > few && r.IntN(100) >= hotInHundred {
		return hot + r.IntN(customers-hot)
	}
	return r.IntN(hot)
}

// account is one of the two that a customer has.
type account struct {
	customer int
	checking bool
}

func (a account) name() string { return strconv.Itoa(a.customer) }

// guard is the key that guards an account, alone or together with the other one.
func guard(customer string, checking, apart bool) ordering.Key {
	switch {
	case !apart:
		return ordering.Join("customer:" + customer)
	case checking:
		return ordering.Join("customer:"+customer, "checking")
	default:
		return ordering.Join("customer:"+customer, "savings")
	}
}

// accounts are those that an order reads. It writes none but these.
func (o order) accounts() []account {
	savings, checking := account{o.customer, false}, account{o.customer, true}
	switch o.kind {
	case depositChecking:
		return []account{checking}
	case transactSavings:
		return []account{savings}
	case amalgamate:
		return []account{savings, checking, {o.to, true}}
	case sendPayment:
		return []account{checking, {o.to, true}}
	default:
		return []account{savings, checking}
	}
}

// errFunds is the bank's no, after which nothing is written.
var errFunds = errors.New("not enough money")

// carriedOut is what an order makes of what its accounts have, and by how much the bank has
// more afterwards.
func (o order) carriedOut(had []int64) (has []int64, more int64, err error) {
	switch o.kind {
	case depositChecking:
		return []int64{had[0] + o.amount}, o.amount, nil
	case transactSavings:
		if had[0]+o.amount < 0 {
			return nil, 0, errFunds
		}
		return []int64{had[0] + o.amount}, o.amount, nil
	case amalgamate:
		return []int64{0, 0, had[2] + had[0] + had[1]}, 0, nil
	case writeCheck:
		amount := o.amount
		if had[0]+had[1] < amount {
			amount++ // the fee
		}
		return []int64{had[0], had[1] - amount}, -amount, nil
	case sendPayment:
		if had[0] < o.amount {
			return nil, 0, errFunds
		}
		return []int64{had[0] - o.amount, had[1] + o.amount}, 0, nil
	default:
		return had, 0, nil
	}
}

// writes reports whether an order writes the i-th of its accounts.
func (o order) writes(i int) bool {
	return o.kind != balance && (o.kind != writeCheck || i == 1)
}
