package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
)

var header = strings.Join(columns, ";") + "\n"

// FuzzLedger: a file is entries that the bank can record, or an error; and entries that are written as
// a ledger read the same again, with their exact amounts.
func FuzzLedger(f *testing.F) {
	for _, rows := range []string{
		`5;2378;930101;"PRIJEM";"VKLAD";700.00;700.00;"";;` + "\n",
		`6;2378;930102;"VYDAJ";"VYBER";14.6;685.40;"SLUZBY";;0` + "\r\n\n" + `8;0576;930104;"PRIJEM";"";0.07;1;"";"YZ";"62457513"`,
		`1;2;930101;VYBER;;92233720368.54;;;A"B;c` + "\n" + `1;2;930101;VYBER;;3;;;"A""B";/` + "\n",
		`1;2;930101;VYBER;;3;;;;` + "\n" + `1;2;930101;VYBER;;4;;;;`,
		"5;2;930101;PRIJEM;;1;;;A;\xff\n",
		"\"\n\x00\xff;;;;;;;;;\n",
	} {
		f.Add([]byte(header + rows))
	}
	f.Add([]byte("trans_id"))
	f.Fuzz(func(t *testing.T, file []byte) {
		entries, err := readLedger(strings.NewReader(string(file)))
		if err != nil {
			require.Empty(t, entries)
			require.Contains(t, err.Error(), "line ")
			return
		}
		text, by := header, map[string]books.Entry{}
		for _, e := range entries {
			if was, twice := by[e.ID]; twice {
				require.Equal(t, was, e, "one ID is one entry")
			}
			by[e.ID] = e
			require.Regexp(t, `^(0|[1-9][0-9]*)$`, e.ID)
			require.Regexp(t, `^(0|[1-9][0-9]*)$`, e.Account)
			require.LessOrEqual(t, math.Abs(float64(e.Amount)), float64(maxAmount))
			require.NoError(t, books.AccountKey(books.Child{ID: e.Partner}).Validate(), "they become keys")
			bank, account, _ := strings.Cut(e.Partner, "/")
			kind, amount := "PRIJEM", e.Amount
			if amount < 0 {
				kind, amount = "VYDAJ", -amount
			}
			quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
			text += fmt.Sprintf("%s;%s;%s;%s;;%d.%02d;;;%s;%s\n", e.ID, e.Account, e.Note, kind, amount/100, amount%100, quoted(bank), quoted(account))
		}
		read, err := readLedger(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, entries, read)
	})
}

// What is wrong with a row is said, with its line.
func TestBadRows(t *testing.T) {
	good := "1;2;930101;PRIJEM;x;1.00;1.00;;;\n"
	for row, reason := range map[string]string{
		"3;2;930101":                                                   "wrong number of fields",
		`3;2;930101;PRIJEM;"x;1;1;;;`:                                  `extraneous or missing "`,
		"x;2;930101;PRIJEM;x;1;1;;;":                                   `parsing "x"`,
		"3;-2;930101;PRIJEM;x;1;1;;;":                                  `parsing "-2"`,
		"3;2;930229;PRIJEM;x;1;1;;;":                                   `parsing time "930229"`,
		"3;2;930101;PRIJEMKA;x;1;1;;;":                                 `type "PRIJEMKA" is not PRIJEM, VYDAJ or VYBER`,
		"3;2;930101;PRIJEM;x;;1;;;":                                    `"" is not an amount`,
		"3;2;930101;PRIJEM;x;.5;1;;;":                                  `".5" is not an amount`,
		"3;2;930101;PRIJEM;x;1.;1;;;":                                  `"1." is not an amount`,
		"3;2;930101;PRIJEM;x;1.005;1;;;":                               `"1.005" is not an amount`,
		"3;2;930101;PRIJEM;x;1e3;1;;;":                                 "too large, or not a number",
		"3;2;930101;PRIJEM;x;-1;1;;;":                                  "too large, or not a number",
		"3;2;930101;PRIJEM;x;1000000000;1;;;":                          "too large, or not a number",
		"3;2;930101;PRIJEM;x;18446744073709551616;1;;;":                "too large, or not a number",
		"3;2;930101;PRIJEM;x;1;1;;YZ;":                                 `account "" is empty`,
		"3;2;930101;PRIJEM;x;1;1;;Y/Z;1":                               `bank "Y/Z" has a slash`,
		"3;2;930101;PRIJEM;x;1;1;;" + strings.Repeat("b", 5000) + ";1": "key",
		"3;2;930101;PRIJEM;x;1;1;;A;\xff":                              "key",
		"1;2;930101;PRIJEM;x;2;1;;;":                                   "trans_id 1 is that of another row",
	} {
		_, err := readLedger(strings.NewReader(header + good + row + "\n4" + good[1:]))
		require.ErrorContains(t, err, reason, row)
		require.ErrorContains(t, err, "line 3", row)
	}
	for amount, want := range map[string]int64{"700.00": 70000, "14.6": 1460, "0": 0, "0.07": 7, "00000000000000000000000001.5": 150, "922337203.68": 92233720368} {
		got, err := hundredths(amount)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, file := range []string{"", "\n", "trans_id;account_id\n1;2\n", strings.ToUpper(header)} {
		_, err := readLedger(strings.NewReader(file))
		require.ErrorContains(t, err, "line 1 is not the header")
	}
	_, err := readLedger(iotest.ErrReader(errors.New("the disk is on fire")))
	require.ErrorContains(t, err, "the disk is on fire")
}
