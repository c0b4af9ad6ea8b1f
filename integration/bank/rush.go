package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/unitofwork"
)

// kindRush are payments between the accounts that a customer was opened with who is never
// merged into others. Several are begun at once.
const kindRush = "rush"

// quirks are those of a rush's payments. Most have none: they are to be committed together.
var quirks = []staff.Quirk{
	staff.Usual, staff.Usual, staff.Fails, staff.Usual, staff.Usual, staff.Panics, staff.Usual,
	staff.Usual, staff.GoesOn, staff.Fails, staff.Usual, staff.Usual, staff.Lingers, staff.Usual,
	staff.Usual, staff.Updates, staff.Usual, staff.Fails, staff.Usual, staff.Insists, staff.Usual,
}

// nextOfRush is next for those who are in a hurry.
func (d *branchDesk) nextOfRush() (staff.Job, bool) {
	n := d.rush.next()
	job := d.rushJob(n)
	job.Name = fmt.Sprintf("%s/%s-%d", d.Name, kindRush, n)
	if d.diary != nil {
		job = d.diary.Follow(n, job)
	}
	return job, true
}

// rushJob is the n-th: every other has an ID, and every eighth is asked for twice at once under
// its own.
func (d *branchDesk) rushJob(n int) staff.Job {
	draw := rand.New(rand.NewPCG(^d.Seed, uint64(n)))
	pair := d.hot()
	if draw.IntN(2) == 0 {
		slices.Reverse(pair)
	}
	payment := books.Payment{ID: fmt.Sprintf("%s-%s-%d", d.Name, kindRush, n), From: pair[0], To: pair[1], Amount: 1 + draw.Int64N(10_00)}
	quirk, twice := quirks[n%len(quirks)], n%8 == 0
	var again atomic.Bool
	pay := func(ctx context.Context, b *books.Bank) error {
		own, odd := *b, staff.Odd{Runner: b.Run, Quirk: quirk, Nameless: n%2 != 0}
		if odd.Quirk == staff.GoesOn && again.Swap(true) { // else it might never be done
			odd.Quirk = staff.Usual
		}
		own.Run = odd
		return own.Pay(ctx, payment)
	}
	return staff.Job{Kind: kindRush, Once: n%2 == 0, Asks: n%4 == 0, Do: func(ctx context.Context, b *books.Bank) error {
		if !twice {
			return pay(ctx, b)
		}
		other := make(chan error, 1)
		go func() { other <- pay(ctx, b) }()
		return ofTwo(pay(ctx, b), <-other)
	}}
}

// ofTwo is what became of what was asked for twice, under one ID: what says that it is done,
// before what says that it may be, before what says that it is not.
func ofTwo(one, other error) error {
	if one == nil || other != nil && unitofwork.NextOf(one) == unitofwork.AskLater {
		return one
	}
	return other
}

// hot are the accounts that all want: those that the first customer was opened with.
func (d *branchDesk) hot() (accounts []books.Child) {
	for _, a := range d.town.Accounts {
		if a.Home == office.Customer(0) && len(accounts) < 2 {
			accounts = append(accounts, a)
		}
	}
	return accounts
}
