package ledger_test

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/ledger"
	"github.com/holdall/holdall/ordering"
)

var ownNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// FuzzRead: of any file, every line is an entry that a bank can book, or is named
// with its number; what is read reads the same when it is written as a ledger; and
// how it comes in pieces is of no matter.
func FuzzRead(f *testing.F) {
	for _, rows := range []string{
		`5;2378;930101;"PRIJEM";"VKLAD";700.00;700.00;"";;` + "\n",
		`6;2378;930102;"VYDAJ";"VYBER";14.6;685.40;"SLUZBY";;0` + "\r\n\n" + `8;0576;930104;"PRIJEM";"";0.07;1;"";"YZ";"62457513"`,
		`1;2;930101;VYBER;;92233720368.54;;;A"B;c` + "\n" + `1;2;930101;VYBER;;3;;;"A""B";/` + "\n",
		`1;2;000229;PRIJEM;;00000000000000000000001.5;;;;` + "\n",
		`1;2;930101;VYBER;;3;;;;` + "\n" + `1;2;930101;VYBER;;4;;;;`,
		"5;2;930101;PRIJEM;;1;;;A;\xff\n",
		"\"\n\x00\xff;;;;;;;;;\n",
	} {
		f.Add([]byte(header + rows))
		f.Add([]byte("\ufeff" + header + rows + rows))
	}
	f.Add([]byte("trans_id"))
	f.Fuzz(func(t *testing.T, file []byte) {
		entries, bad, err := ledger.Read(strings.NewReader(string(file)), "x")
		again, badAgain, errAgain := ledger.Read(iotest.OneByteReader(strings.NewReader(string(file))), "x")
		require.Equal(t, err, errAgain)
		require.Equal(t, entries, again)
		require.Equal(t, bad, badAgain)
		if err != nil {
			var row *ledger.RowError
			require.ErrorAs(t, err, &row)
			require.Equal(t, 1, row.Line)
			require.Empty(t, entries)
			return
		}
		lines := strings.Split(string(file), "\n")
		full := 0
		for _, line := range lines[1:] {
			if strings.TrimRight(line, "\r") != "" {
				full++
			}
		}
		require.Equal(t, full, len(entries)+len(bad), "every line is one or the other")
		for i, b := range bad {
			require.True(t, b.Line > 1 && b.Line <= len(lines) && (i == 0 || b.Line > bad[i-1].Line), "%v", b)
			require.NotEmpty(t, b.Reason)
			require.True(t, strings.HasPrefix(b.Error(), fmt.Sprintf("x:%d: ", b.Line)))
		}
		booked := map[string]books.Entry{}
		for _, e := range entries {
			canBeBooked(t, e)
			if was, twice := booked[e.ID]; twice {
				require.Equal(t, was, e, "one ID is one entry")
			}
			booked[e.ID] = e
		}
		read, bad, err := ledger.Read(strings.NewReader(asLedger(entries)), "y")
		require.NoError(t, err)
		require.Empty(t, bad)
		require.Equal(t, entries, read)
	})
}

func canBeBooked(t *testing.T, e books.Entry) {
	t.Helper()
	require.Regexp(t, ownNumber, e.ID)
	require.Regexp(t, ownNumber, e.Account)
	require.Len(t, e.Note, 6)
	require.LessOrEqual(t, math.Abs(float64(e.Amount)), math.MaxInt64/1e8)
	require.NoError(t, ordering.Join(e.Account).Validate())
	if e.Partner != "" {
		bank, account, _ := strings.Cut(e.Partner, "/")
		require.NoError(t, ordering.Join(bank, account).Validate(), "they become keys")
	}
}

// asLedger writes entries as a bank would.
func asLedger(entries []books.Entry) string {
	var text strings.Builder
	text.WriteString(header)
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	for _, e := range entries {
		kind, amount := "PRIJEM", e.Amount
		if amount < 0 {
			kind, amount = "VYDAJ", -amount
		}
		bank, account, _ := strings.Cut(e.Partner, "/")
		fmt.Fprintf(&text, `%s;%s;%s;%s;;%d.%02d;;;%s;%s`+"\n", e.ID, e.Account, e.Note, kind, amount/100, amount%100, quoted(bank), quoted(account))
	}
	return text.String()
}

var amount = regexp.MustCompile(`^[0-9]+(\.[0-9]{1,2})?$`)

// FuzzAmount: an amount is read exactly, or refused.
func FuzzAmount(f *testing.F) {
	for _, s := range []string{"700.00", "14.6", "0", "-1", "1e3", "1.005", ".5", "1.", "+1", "1_0", "92233720368.54", "92233720368.55", "18446744073709551616"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(s, ";\"\r\n") {
			return
		}
		entries, bad, err := ledger.Read(strings.NewReader(header+"1;2;930101;PRIJEM;;"+s+";;;;\n"), "x")
		require.NoError(t, err)
		require.Len(t, append(bad, nil), 2-len(entries))
		if len(entries) == 0 {
			var row *ledger.RowError
			require.True(t, errors.As(bad[0], &row) && row.Line == 2)
			whole, _ := strconv.ParseFloat(s, 64)
			require.True(t, !amount.MatchString(s) || whole*100 > math.MaxInt64/1e8-1, "%q: %v", s, bad[0])
			return
		}
		require.Regexp(t, amount, s)
		whole, fraction, _ := strings.Cut(s, ".")
		require.Equal(t, strings.TrimLeft(whole+(fraction + "00")[:2], "0"), strings.TrimLeft(strconv.FormatInt(entries[0].Amount, 10), "0"))
	})
}
