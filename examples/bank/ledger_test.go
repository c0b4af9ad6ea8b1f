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
	"github.com/holdall/holdall/ordering"
)

var header = strings.Join(columns, ";") + "\n"

// FuzzLedger: every line of any file is an entry that the bank can record, or is reported with its
// number; entries that are written as a ledger read the same again; and it does not matter in which
// pieces a file arrives.
func FuzzLedger(f *testing.F) {
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
		entries, bad, err := readLedger(strings.NewReader(string(file)))
		again, badAgain, errAgain := readLedger(iotest.OneByteReader(strings.NewReader(string(file))))
		require.Equal(t, err, errAgain)
		require.Equal(t, entries, again)
		require.Equal(t, bad, badAgain)
		if err != nil {
			var line *lineError
			require.ErrorAs(t, err, &line)
			require.Equal(t, 1, line.line)
			return
		}
		full := 0
		for _, line := range strings.Split(string(file), "\n")[1:] {
			if strings.TrimRight(line, "\r") != "" {
				full++
			}
		}
		require.Equal(t, full, len(entries)+len(bad), "every line is one or the other")
		for i, b := range bad {
			require.True(t, b.line > 1 && (i == 0 || b.line > bad[i-1].line), "%v", b)
			require.NotEmpty(t, b.err.Error())
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
			bank, account, _ := strings.Cut(e.Partner, "/")
			if e.Partner != "" {
				require.NoError(t, ordering.Join(bank, account).Validate(), "they become keys")
			}
			kind, amount := "PRIJEM", e.Amount
			if amount < 0 {
				kind, amount = "VYDAJ", -amount
			}
			quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
			text += fmt.Sprintf("%s;%s;%s;%s;;%d.%02d;;;%s;%s\n", e.ID, e.Account, e.Note, kind, amount/100, amount%100, quoted(bank), quoted(account))
		}
		read, bad, err := readLedger(strings.NewReader(text))
		require.NoError(t, err)
		require.Empty(t, bad)
		require.Equal(t, entries, read)
	})
}

// FuzzAmount: an amount is parsed exactly, or refused.
func FuzzAmount(f *testing.F) {
	for _, s := range []string{"700.00", "14.6", "0", "-1", "1e3", "1.005", ".5", "1.", "+1", "1_0", "92233720368.54", "922337203.69", "18446744073709551616"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := hundredths(s)
		whole, fraction, _ := strings.Cut(s, ".")
		if err != nil {
			require.Zero(t, got)
			return
		}
		require.Regexp(t, `^[0-9]+(\.[0-9]{1,2})?$`, s)
		exact := strings.TrimLeft(whole+(fraction + "00")[:2], "0")
		require.Equal(t, exact, strings.TrimLeft(fmt.Sprint(got), "0"))
	})
}

// What is wrong with a row is said, with its line. The rows around it are read.
func TestBadRows(t *testing.T) {
	good := "1;2;930101;PRIJEM;x;1.00;1.00;;;\n"
	for row, reason := range map[string]string{
		"3;2;930101":                                                  "3 fields, not 10",
		`3;2;930101;PRIJEM;"x;1;1;;;`:                                 "column ",
		"x;2;930101;PRIJEM;x;1;1;;;":                                  `trans_id "x" is not a number`,
		"3;-2;930101;PRIJEM;x;1;1;;;":                                 `account_id "-2" is not a number`,
		"3;2;930229;PRIJEM;x;1;1;;;":                                  `date "930229" is not a date`,
		"3;2;930101;PRIJEMKA;x;1;1;;;":                                `type "PRIJEMKA" is not PRIJEM, VYDAJ or VYBER`,
		"3;2;930101;PRIJEM;x;;1;;;":                                   `amount "" is not an amount`,
		"3;2;930101;PRIJEM;x;1.005;1;;;":                              `amount "1.005" is not an amount`,
		"3;2;930101;PRIJEM;x;1e3;1;;;":                                `amount "1e3" is not an amount`,
		"3;2;930101;PRIJEM;x;1000000000;1;;;":                         "is too large",
		"3;2;930101;PRIJEM;x;1;1;;YZ;":                                `account "" is empty`,
		"3;2;930101;PRIJEM;x;1;1;;Y/Z;1":                              `bank "Y/Z"`,
		"3;2;930101;PRIJEM;x;1;1;;" + strings.Repeat("b", 201) + ";1": "longer than 200",
		"3;2;930101;PRIJEM;x;1;1;;YZ;" + strings.Repeat("1", 201):     "longer than 200",
		"3;2;930101;PRIJEM;x;1;1;;A;\xff":                             "is not valid UTF-8",
		"1;2;930101;PRIJEM;x;2;1;;;":                                  "trans_id 1 is that of another row",
	} {
		entries, bad, err := readLedger(strings.NewReader(header + good + row + "\n4" + good[1:]))
		require.NoError(t, err)
		require.Len(t, entries, 2)
		require.Len(t, bad, 1, row)
		require.Contains(t, bad[0].Error(), reason)
		require.True(t, strings.HasPrefix(bad[0].Error(), "3: "))
	}
	for _, file := range []string{"", "\n", "trans_id;account_id\n1;2\n", strings.ToUpper(header)} {
		_, _, err := readLedger(strings.NewReader(file))
		require.ErrorContains(t, err, "1: the first line is not the header")
	}
	_, _, err := readLedger(iotest.ErrReader(errors.New("the disk is on fire")))
	require.EqualError(t, err, "1: the disk is on fire")
}

func TestBalances(t *testing.T) {
	var out strings.Builder
	require.NoError(t, writeBalances(&out, []books.Account{
		{ID: "ZZ/1", Balance: 1}, {ID: "10", Balance: -250}, {ID: "AB/9", Balance: 3}, {ID: "9"}, {ID: "AB/10", Balance: 2}, {ID: "a,b/1", Balance: 4}, {ID: "100", Balance: 7},
	}))
	require.Equal(t, "9,0\n10,-250\n100,7\nAB/10,2\nAB/9,3\nZZ/1,1\n\"a,b/1\",4\n", out.String())
}
