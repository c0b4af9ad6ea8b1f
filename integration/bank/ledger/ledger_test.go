package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/ledger"
)

const header = `"trans_id";"account_id";"date";"type";"operation";"amount";"balance";"k_symbol";"bank";"account"` + "\n"

func TestRows(t *testing.T) {
	file := header +
		`5;2378;930101;"PRIJEM";"VKLAD";700.00;700.00;"";;` + "\n" +
		`6;2378;930102;"VYDAJ";"VYBER";14.6;685.40;"SLUZBY";;0` + "\r\n" + // no bank: the account means nothing
		`7;2378;930103;"VYBER";"VYBER";3;682.40;"";;` + "\n" +
		"\n" +
		`8;0576;930104;"PRIJEM";"PREVOD Z UCTU";0.07;1.00;"";"YZ";"62457513"` + "\n" +
		`9;576;930104;"VYDAJ";"PREVOD NA UCET";1234567.89;1.00;"";AB;cd/e` // no end of line
	entries, bad, err := ledger.Read(strings.NewReader(file), "x")
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Equal(t, []books.Entry{
		{ID: "5", Note: "930101", Account: "2378", Amount: 70000},
		{ID: "6", Note: "930102", Account: "2378", Amount: -1460},
		{ID: "7", Note: "930103", Account: "2378", Amount: -300},
		{ID: "8", Note: "930104", Account: "576", Partner: "YZ/62457513", Amount: 7},
		{ID: "9", Note: "930104", Account: "576", Partner: "AB/cd/e", Amount: -123456789},
	}, entries)
}

func TestBadRows(t *testing.T) {
	good := `1;2;930101;"PRIJEM";"VKLAD";700.00;700.00;"";;`
	for _, c := range []struct{ name, row, reason string }{
		{"too few fields", `3;2;930101`, "3 fields, not 10"},
		{"too many fields", good + `;`, "11 fields, not 10"},
		{"commas", strings.ReplaceAll(good, ";", ","), "column"},
		{"a quotation mark too many", `3;2;930101;"PRI"JEM";x;1.00;1.00;"";;`, "column 16"},
		{"a quotation mark that is missing", `3;2;930101;"PRIJEM;x;1.00;1.00;;;`, "column"},
		{"no text at all", "\xff\xfe;2;930101;PRIJEM;x;1.00;1.00;;;", "UTF-8"},
		{"no trans_id", `;2;930101;PRIJEM;x;1.00;1.00;;;`, `trans_id "" is not a number`},
		{"negative trans_id", `-3;2;930101;PRIJEM;x;1.00;1.00;;;`, `trans_id "-3" is not a number`},
		{"trans_id in words", `three;2;930101;PRIJEM;x;1.00;1.00;;;`, `trans_id "three"`},
		{"trans_id of another row", `1;2;930101;PRIJEM;x;1.00;1.00;;;`, "trans_id 1 is that of another row, on line 2"},
		{"no account", `3;;930101;PRIJEM;x;1.00;1.00;;;`, `account_id "" is not a number`},
		{"account in words", `3;a;930101;PRIJEM;x;1.00;1.00;;;`, `account_id "a"`},
		{"no such date", `3;2;930230;PRIJEM;x;1.00;1.00;;;`, `date "930230"`},
		{"no date", `3;2;;PRIJEM;x;1.00;1.00;;;`, `date ""`},
		{"unknown type", `3;2;930101;PRIJEMKA;x;1.00;1.00;;;`, `type "PRIJEMKA" is none of`},
		{"no amount", `3;2;930101;PRIJEM;x;;1.00;;;`, `amount "" is not an amount`},
		{"amount in words", `3;2;930101;PRIJEM;x;much;1.00;;;`, `amount "much" is not an amount`},
		{"negative amount", `3;2;930101;PRIJEM;x;-1.00;1.00;;;`, `amount "-1.00" is not an amount`},
		{"three decimals", `3;2;930101;PRIJEM;x;1.005;1.00;;;`, `amount "1.005" is not an amount`},
		{"no decimals after the point", `3;2;930101;PRIJEM;x;1.;1.00;;;`, `amount "1." is not an amount`},
		{"no digits before the point", `3;2;930101;PRIJEM;x;.50;1.00;;;`, `amount ".50" is not an amount`},
		{"an exponent", `3;2;930101;PRIJEM;x;1e3;1.00;;;`, `amount "1e3" is not an amount`},
		{"too much", `3;2;930101;PRIJEM;x;1000000000.00;1.00;;;`, "is too large"},
		{"far too much", `3;2;930101;PRIJEM;x;99999999999999999999999;1.00;;;`, "is too large"},
		{"a bank without an account", `3;2;930101;PRIJEM;x;1.00;1.00;;"YZ";`, `account "" is empty`},
		{"a bank with a slash", `3;2;930101;PRIJEM;x;1.00;1.00;;"Y/Z";1`, `bank "Y/Z"`},
		{"a bank with a long name", `3;2;930101;PRIJEM;x;1.00;1.00;;` + strings.Repeat("b", 201) + `;1`, "longer than 200"},
		{"an account with a long name", `3;2;930101;PRIJEM;x;1.00;1.00;;YZ;` + strings.Repeat("1", 201), "longer than 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := `4;2;930101;"PRIJEM";"VKLAD";1.00;1.00;"";;`
			entries, bad, err := ledger.Read(strings.NewReader(header+good+"\n"+c.row+"\n"+after+"\n"), "dir/trans.asc")
			require.NoError(t, err)
			require.Len(t, entries, 2, "the rows around it are read")
			require.Len(t, bad, 1)
			require.Equal(t, "4", entries[1].ID)
			require.True(t, strings.HasPrefix(bad[0].Error(), "dir/trans.asc:3: "), bad[0].Error())
			require.ErrorContains(t, bad[0], c.reason)
		})
	}
}

// A row that is there twice has one ID: the bank records it once.
func TestTheSameRowTwice(t *testing.T) {
	row := `1;2;930101;"PRIJEM";"VKLAD";700.00;700.00;"";;` + "\n"
	entries, bad, err := ledger.Read(strings.NewReader(header+row+row), "x")
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Len(t, entries, 2)
	require.Equal(t, entries[0], entries[1])
}

func TestNoLedger(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "x:1: the file is empty",
		"\n":                                "x:1: the first line is not the header",
		"trans_id;account_id\n1;2\n":        "x:1: the first line is not the header",
		strings.ToUpper(header):             "x:1: the first line is not the header",
		strings.Replace(header, `"`, "", 1): "x:1: the first line is not the header",
	} {
		_, _, err := ledger.Read(strings.NewReader(text), "x")
		require.ErrorContains(t, err, want)
	}
	_, _, err := ledger.Read(iotest.ErrReader(errors.New("the disk is on fire")), "x")
	require.EqualError(t, err, "x: the disk is on fire")
	_, _, err = ledger.ReadFile(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)

	entries, bad, err := ledger.Read(strings.NewReader("\ufeff"+header), "x")
	require.NoError(t, err, "a byte order mark is none of our business")
	require.Empty(t, entries)
	require.Empty(t, bad)
}

func TestBalances(t *testing.T) {
	var out strings.Builder
	require.NoError(t, ledger.WriteBalances(&out, []books.Account{
		{ID: "ZZ/1", Balance: 1}, {ID: "10", Balance: -250}, {ID: "AB/9", Balance: 3}, {ID: "9", Balance: 0},
		{ID: "AB/10", Balance: 2}, {ID: "a,b/1", Balance: 4}, {ID: "100", Balance: 7},
	}))
	require.Equal(t, "9,0\n10,-250\n100,7\nAB/10,2\nAB/9,3\nZZ/1,1\n\"a,b/1\",4\n", out.String())
}
