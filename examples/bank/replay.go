package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/examples/bank/staff"
)

// replay enters a ledger, each row as one unit under its trans_id.
func (c *call) replay(ctx context.Context) (sound bool, err error) {
	f, err := os.Open(c.transactions)
	if err != nil {
		return false, err
	}
	entries, err := readLedger(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("%s: %w: nothing was entered", c.transactions, err)
	}
	var balances io.WriteCloser
	if c.balances != "" {
		if balances, err = os.Create(c.balances); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, balances.Close()) }()
	}
	s, err := c.open(ctx, staff.NewCustomers(&c.Config)) // there are none
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	row := func(n int) staff.Job {
		return staff.Job{Kind: "row", Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.Record(ctx, entries[n-1]) }}
	}
	for round := 1; round <= c.repeat; round++ {
		tally, took, err := c.work(ctx, s, len(entries), row)
		if err != nil {
			return false, err
		}
		again := tally.Events[staff.Repeated]
		say(c.stdout, "round %d: %s: %d entered, %d found entered already\n",
			round, c.pace(tally.Over(), "rows", took), tally.Kinds["row"][staff.Committed]-again, again)
		reportEvents(c.stdout, tally)
		if ctx.Err() != nil || len(tally.Unexpected) > 0 {
			return false, errors.New("not all rows were entered")
		}
	}
	records, err := s.Load(ctx, nil)
	if err != nil {
		return false, err
	}
	say(c.stdout, "\n%d accounts\n", len(records.Accounts))
	sound = c.reportAudit("audit of the books, after all work", "The books are", books.Audit(records))
	if balances == nil {
		return sound, nil
	}
	return sound, writeBalances(balances, records.Accounts)
}

// writeBalances writes account,balance lines, in the order of the accounts' IDs.
func writeBalances(w io.Writer, accounts []books.Account) error {
	slices.SortFunc(accounts, func(a, b books.Account) int { return strings.Compare(a.ID, b.ID) })
	out := csv.NewWriter(w)
	for _, a := range accounts {
		_ = out.Write([]string{a.ID, strconv.FormatInt(a.Balance, 10)}) // Error has the error
	}
	out.Flush()
	return out.Error()
}
