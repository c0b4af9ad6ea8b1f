// Package ledger reads a bank's ledger from a file, and writes what the
// accounts have in the end.
package ledger

import (
	"bufio"
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
	"unicode/utf8"

	"github.com/holdall/holdall/examples/bank/books"
)

// columns of the file, in order, as its first line has them.
var columns = []string{"trans_id", "account_id", "date", "type", "operation", "amount", "balance", "k_symbol", "bank", "account"}

const (
	colID = iota
	colAccount
	colDate
	colType
	_
	colAmount
	_
	_
	colBank
	colPartner
)

// maxName bounds the name of a bank and of an account in it: they become keys.
const maxName = 200

// RowError says what is wrong with a line of a file.
type RowError struct {
	File   string
	Line   int
	Reason string
}

func (e *RowError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// ReadFile reads a ledger. Rows that are malformed are returned apart; the
// error is one of reading, or a *RowError for a file that is no ledger at all.
func ReadFile(name string) ([]books.Entry, []*RowError, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	return Read(f, name)
}

// Read is ReadFile for a file that is open. A row that is there twice is the
// same entry twice: it has one ID, so the bank records it once.
func Read(r io.Reader, name string) ([]books.Entry, []*RowError, error) {
	lines := bufio.NewReader(r)
	var entries []books.Entry
	var bad []*RowError
	first := map[string]seen{}
	for n := 1; ; n++ {
		text, err := lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && n == 1 && text == "":
			return nil, nil, &RowError{name, n, "the file is empty"}
		case errors.Is(err, io.EOF) && text == "":
			return entries, bad, nil
		case err != nil && !errors.Is(err, io.EOF):
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		line := strings.TrimRight(text, "\r\n")
		if n == 1 {
			if err := header(strings.TrimPrefix(line, "\ufeff")); err != nil {
				return nil, nil, &RowError{name, n, err.Error()}
			}
			continue
		}
		if line == "" {
			continue
		}
		entry, err := row(line)
		if err == nil {
			err = first[entry.ID].conflict(entry)
		}
		if err != nil {
			bad = append(bad, &RowError{name, n, err.Error()})
			continue
		}
		if _, ok := first[entry.ID]; !ok {
			first[entry.ID] = seen{n, entry}
		}
		entries = append(entries, entry)
	}
}

// seen is where an ID was first.
type seen struct {
	line  int
	entry books.Entry
}

func (s seen) conflict(e books.Entry) error {
	if s.line == 0 || s.entry == e {
		return nil
	}
	return fmt.Errorf("trans_id %s is that of another row, on line %d", e.ID, s.line)
}

func header(line string) error {
	fields, err := split(line)
	if err != nil || !slices.Equal(fields, columns) {
		return fmt.Errorf("the first line is not the header %q", strings.Join(columns, ";"))
	}
	return nil
}

// split takes one line apart. Each line by itself: a quotation mark that is
// missing must not swallow the rest of the file.
func split(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma = ';'
	fields, err := r.Read()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return nil, fmt.Errorf("column %d: %w", parse.Column, parse.Err)
	}
	return fields, err
}

func row(line string) (books.Entry, error) {
	var e books.Entry
	if !utf8.ValidString(line) {
		return e, errors.New("is not valid UTF-8")
	}
	fields, err := split(line)
	if err != nil {
		return e, err
	}
	if len(fields) != len(columns) {
		return e, fmt.Errorf("%d fields, not %d", len(fields), len(columns))
	}
	complain := func(col int, reason string) (books.Entry, error) {
		return books.Entry{}, fmt.Errorf("%s %q %s", columns[col], fields[col], reason)
	}
	var ok bool
	if e.ID, ok = number(fields[colID]); !ok {
		return complain(colID, "is not a number")
	}
	if e.Account, ok = number(fields[colAccount]); !ok {
		return complain(colAccount, "is not a number")
	}
	if _, err := time.Parse("060102", fields[colDate]); err != nil {
		return complain(colDate, "is not a date, YYMMDD")
	}
	e.Note = fields[colDate]
	if e.Amount, err = hundredths(fields[colAmount]); err != nil {
		return complain(colAmount, err.Error())
	}
	switch fields[colType] {
	case "PRIJEM":
	case "VYDAJ", "VYBER":
		e.Amount = -e.Amount
	default:
		return complain(colType, "is none of PRIJEM, VYDAJ, VYBER")
	}
	bank, partner := fields[colBank], fields[colPartner]
	switch {
	case bank == "": // cash: the account is of no meaning then
		return e, nil
	case len(bank) > maxName || strings.Contains(bank, "/"):
		return complain(colBank, fmt.Sprintf("is longer than %d bytes or has a slash", maxName))
	case partner == "" || len(partner) > maxName:
		return complain(colPartner, fmt.Sprintf("is empty or longer than %d bytes, and there is a bank", maxName))
	}
	e.Partner = bank + "/" + partner
	return e, nil
}

// number returns a number as it is usually written, so that 007 is 7.
func number(s string) (string, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return strconv.FormatUint(n, 10), err == nil
}

// maxAmount keeps the sum of a hundred million rows within an int64.
const maxAmount = math.MaxInt64 / 100_000_000

// hundredths reads an amount, exactly: it is never a floating-point number.
func hundredths(s string) (int64, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || point && (fraction == "" || len(fraction) > 2) {
		return 0, errors.New("is not an amount with at most two decimals")
	}
	fraction += strings.Repeat("0", 2-len(fraction))
	n, err := strconv.ParseUint(whole+fraction, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > maxAmount:
		return 0, errors.New("is too large")
	case err != nil:
		return 0, errors.New("is not an amount with at most two decimals")
	}
	return int64(n), nil
}
