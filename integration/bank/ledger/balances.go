package ledger

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/holdall/holdall/examples/bank/books"
)

// WriteBalances writes account,balance lines without a header, in hundredths:
// own accounts by number, then partners, as bank/account, in byte order.
func WriteBalances(w io.Writer, accounts []books.Account) error {
	sorted := slices.Clone(accounts)
	slices.SortFunc(sorted, func(a, b books.Account) int { return compare(a.ID, b.ID) })
	out := csv.NewWriter(w)
	for _, a := range sorted {
		if err := out.Write([]string{a.ID, strconv.FormatInt(a.Balance, 10)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// compare orders IDs. Own ones are numbers without leading zeros, so the longer
// is the larger.
func compare(a, b string) int {
	partnerA, partnerB := strings.Contains(a, "/"), strings.Contains(b, "/")
	switch {
	case partnerA != partnerB && partnerA:
		return 1
	case partnerA != partnerB:
		return -1
	case partnerA:
		return strings.Compare(a, b)
	default:
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	}
}
