package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdall/holdall/examples/bank/books"
)

// columns of a ledger, in the order of its first line.
var columns = []string{"trans_id", "account_id", "date", "type", "operation", "amount", "balance", "k_symbol", "bank", "account"}

// maxName limits the names of a bank and of an account there, which become keys.
const maxName = 200

// lineError says what is wrong with a line of a ledger.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("%d: %v", e.line, e.err) }

// readLedger returns the entries of a ledger and the errors of its malformed rows. It returns an error
// if the ledger cannot be read, or has no header. A row that occurs twice is the same entry twice; it
// has one ID, so the bank records it once.
func readLedger(r io.Reader) (entries []books.Entry, bad []*lineError, err error) {
	lines := bufio.NewReader(r)
	first := map[string]books.Entry{}
	for n := 1; ; n++ {
		text, err := lines.ReadString('\n')
		line := strings.TrimRight(text, "\r\n")
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, nil, &lineError{n, err}
		case n == 1:
			if fields, err := split(strings.TrimPrefix(line, "\ufeff")); err != nil || !slices.Equal(fields, columns) {
				return nil, nil, &lineError{n, fmt.Errorf("the first line is not the header %q", strings.Join(columns, ";"))}
			}
		case text == "":
			return entries, bad, nil
		case line != "":
			entry, err := parse(line)
			if other, twice := first[entry.ID]; err == nil && twice && other != entry {
				err = fmt.Errorf("trans_id %s is that of another row", entry.ID)
			}
			if err != nil {
				bad = append(bad, &lineError{n, err})
				continue
			}
			first[entry.ID] = entry
			entries = append(entries, entry)
		}
	}
}

// split parses each line by itself, so that a missing quotation mark does not swallow the rest of the
// file.
func split(line string) ([]string, error) {
	if !utf8.ValidString(line) {
		return nil, errors.New("is not valid UTF-8")
	}
	r := csv.NewReader(strings.NewReader(line))
	r.Comma = ';'
	fields, err := r.Read()
	if parse := new(csv.ParseError); errors.As(err, &parse) {
		return nil, fmt.Errorf("column %d: %w", parse.Column, parse.Err)
	}
	if err == nil && len(fields) != len(columns) {
		err = fmt.Errorf("%d fields, not %d", len(fields), len(columns))
	}
	return fields, err
}

func parse(line string) (e books.Entry, err error) {
	fields, err := split(line)
	if err != nil {
		return e, err
	}
	of := map[string]string{}
	for i, column := range columns {
		of[column] = fields[i]
	}
	id, noID := strconv.ParseUint(of["trans_id"], 10, 63)
	account, noAccount := strconv.ParseUint(of["account_id"], 10, 63)
	e.ID, e.Account = strconv.FormatUint(id, 10), strconv.FormatUint(account, 10) // 007 is 7
	e.Note = of["date"]
	amount, err := hundredths(of["amount"])
	bank, partner := of["bank"], of["account"]
	switch _, notADate := time.Parse("060102", e.Note); {
	case noID != nil:
		return books.Entry{}, fmt.Errorf("trans_id %q is not a number", of["trans_id"])
	case noAccount != nil:
		return books.Entry{}, fmt.Errorf("account_id %q is not a number", of["account_id"])
	case notADate != nil:
		return books.Entry{}, fmt.Errorf("date %q is not a date, YYMMDD", e.Note)
	case err != nil:
		return books.Entry{}, fmt.Errorf("amount %q %w", of["amount"], err)
	case of["type"] == "PRIJEM":
		e.Amount = amount
	case of["type"] == "VYDAJ", of["type"] == "VYBER":
		e.Amount = -amount
	default:
		return books.Entry{}, fmt.Errorf("type %q is not PRIJEM, VYDAJ or VYBER", of["type"])
	}
	switch {
	case bank == "": // cash: the account has no meaning then
		return e, nil
	case len(bank) > maxName || strings.Contains(bank, "/"):
		return books.Entry{}, fmt.Errorf("bank %q is longer than %d bytes or has a slash", bank, maxName)
	case partner == "" || len(partner) > maxName:
		return books.Entry{}, fmt.Errorf("account %q is empty or longer than %d bytes, and there is a bank", partner, maxName)
	}
	e.Partner = bank + "/" + partner
	return e, nil
}

// maxAmount keeps the sum of a hundred million rows within an int64.
const maxAmount = math.MaxInt64 / 100_000_000

// hundredths parses an amount exactly, without floating point.
func hundredths(s string) (int64, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || point && (fraction == "" || len(fraction) > 2) {
		return 0, errors.New("is not an amount with at most two decimals")
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 2-len(fraction)), 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > maxAmount:
		return 0, errors.New("is too large")
	case err != nil:
		return 0, errors.New("is not an amount with at most two decimals")
	}
	return int64(n), nil
}
