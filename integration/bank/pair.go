package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/office"
	"github.com/holdall/holdall/integration/bank/staff"
)

// kindPair are cash on one of two accounts, by units that have read the other one.
const kindPair = "pair"

func (d *branchDesk) pair(n int, draw *rand.Rand) staff.Job {
	one := draw.IntN(2)
	entry := books.Entry{ID: fmt.Sprintf("%s-%s-%d", d.Name, kindPair, n), Account: office.Pair[one], Amount: 1 + draw.Int64N(10_00)}
	return staff.Job{Kind: kindPair, Once: true, Do: func(ctx context.Context, b *books.Bank) error {
		own := *b
		own.Run = staff.Beside{Runner: b.Run, Account: b.Tables.Accounts.Of(books.Account{ID: office.Pair[1-one]})}
		return own.Record(ctx, entry)
	}}
}
