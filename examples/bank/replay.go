package main

import (
	"cmp"
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
	entries, err := c.readLedger()
	if err != nil {
		return false, err
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
			round, c.pace(tally.Over(), "rows", took), tally.Total(staff.Committed)-again, again)
		reportWays(c.stdout, tally)
		reportRequests(c.stdout, tally)
		reportEvents(c.stdout, tally)
		switch {
		case ctx.Err() != nil:
			return false, errors.New("interrupted: not all rows were entered")
		case len(tally.Unexpected) > 0:
			return false, errors.New("not all rows could be entered")
		}
	}
	records, err := s.Load(ctx, nil)
	if err != nil {
		return false, err
	}
	say(c.stdout, "\n%d accounts\n", len(records.Accounts))
	if !c.reportAudit("audit of the books, after all work", "The books are", books.Audit(records)) || c.balances == "" {
		return books.Sound(books.Audit(records)), nil
	}
	f, err := os.Create(c.balances)
	if err != nil {
		return false, fmt.Errorf("-balances: %w", err)
	}
	return true, errors.Join(writeBalances(f, records.Accounts), f.Close())
}

// readLedger reports malformed rows, and stops at them unless they are to be left out.
func (c *call) readLedger() ([]books.Entry, error) {
	f, err := os.Open(c.transactions)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	entries, bad, err := readLedger(f)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", c.transactions, err)
	}
	for _, row := range bad {
		say(c.stderr, "%s:%v\n", c.transactions, row)
	}
	switch {
	case len(bad) > 0 && !c.skipBad:
		return nil, fmt.Errorf("%d malformed rows, nothing was entered; -skip-bad leaves them out", len(bad))
	case len(bad) > 0:
		say(c.stderr, "left out %d malformed rows\n", len(bad))
	}
	return entries, nil
}

// writeBalances writes account,balance lines: own accounts by number, then those of partners, which
// are named bank/account, in byte order.
func writeBalances(w io.Writer, accounts []books.Account) error {
	partner := func(id string) int { return min(strings.Count(id, "/"), 1) }
	slices.SortFunc(accounts, func(a, b books.Account) int {
		order := cmp.Compare(partner(a.ID), partner(b.ID))
		if order == 0 && partner(a.ID) == 0 { // numbers without leading zeros
			order = cmp.Compare(len(a.ID), len(b.ID))
		}
		return cmp.Or(order, strings.Compare(a.ID, b.ID))
	})
	out := csv.NewWriter(w)
	for _, a := range accounts {
		_ = out.Write([]string{a.ID, strconv.FormatInt(a.Balance, 10)}) // Error has the error
	}
	out.Flush()
	return out.Error()
}
