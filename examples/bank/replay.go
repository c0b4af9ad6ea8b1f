package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

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
	nobody := staff.NewCustomers(&c.Config)
	s, err := c.open(ctx, nobody)
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
	records, err := s.Load(ctx, nobody.Keys())
	if err != nil {
		return false, err
	}
	say(c.stdout, "\n%d accounts\n", len(records.Accounts))
	return c.reportAudit("audit of the books, after all work", "The books are", books.Audit(records)), nil
}

// columns of a ledger, in the order of its first line.
var columns = []string{"trans_id", "account_id", "date", "type", "operation", "amount", "balance", "k_symbol", "bank", "account"}

// readLedger returns the entries of a ledger, or an error that names its first malformed row. A row
// that occurs twice is the same entry twice; it has one ID, so the bank records it once.
func readLedger(from io.Reader) (entries []books.Entry, err error) {
	r := csv.NewReader(from)
	r.Comma, r.FieldsPerRecord = ';', len(columns)
	if header, err := r.Read(); err != nil || !slices.Equal(header, columns) {
		return nil, errors.Join(fmt.Errorf("line 1 is not the header %q", strings.Join(columns, ";")), err)
	}
	first := map[string]books.Entry{}
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil { // it names the line
			return nil, err
		}
		entry, err := parse(fields)
		if other, twice := first[entry.ID]; err == nil && twice && other != entry {
			err = fmt.Errorf("trans_id %s is that of another row", entry.ID)
		}
		if err != nil {
			line, _ := r.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		first[entry.ID] = entry
		entries = append(entries, entry)
	}
}

func parse(fields []string) (e books.Entry, err error) {
	of := map[string]string{}
	for i, column := range columns {
		of[column] = fields[i]
	}
	id, noID := strconv.ParseUint(of["trans_id"], 10, 63)
	account, noAccount := strconv.ParseUint(of["account_id"], 10, 63)
	amount, noAmount := hundredths(of["amount"])
	_, noDate := time.Parse("060102", of["date"])
	if err := errors.Join(noID, noAccount, noAmount, noDate); err != nil {
		return e, err
	}
	e = books.Entry{ID: strconv.FormatUint(id, 10), Account: strconv.FormatUint(account, 10), Note: of["date"], Amount: amount} // 007 is 7
	switch of["type"] {
	case "PRIJEM":
	case "VYDAJ", "VYBER":
		e.Amount = -amount
	default:
		return e, fmt.Errorf("type %q is not PRIJEM, VYDAJ or VYBER", of["type"])
	}
	bank, partner := of["bank"], of["account"]
	if bank == "" { // cash: the account has no meaning then
		return e, nil
	}
	if strings.Contains(bank, "/") || partner == "" {
		return e, fmt.Errorf("bank %q has a slash, or its account %q is empty", bank, partner)
	}
	e.Partner = bank + "/" + partner
	return e, books.AccountKey(books.Child{ID: e.Partner}).Validate()
}

// maxAmount keeps the sum of a hundred million rows within an int64.
const maxAmount = math.MaxInt64 / 100_000_000

// hundredths parses an amount exactly, without floating point.
func hundredths(s string) (int64, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || point && (fraction == "" || len(fraction) > 2) {
		return 0, fmt.Errorf("%q is not an amount with at most two decimals", s)
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 2-len(fraction)), 10, 63)
	if err != nil || n > maxAmount {
		return 0, fmt.Errorf("amount %q is too large, or not a number", s)
	}
	return int64(n), nil
}
