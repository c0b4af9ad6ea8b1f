// Command bank shows holdall at work: tellers of several owners move money,
// move house, merge customers and pay interest, to one customer or to all of
// them as one, while owners die and others take their place. Then it audits the
// books.
//
//	go run ./examples/bank                # in memory, needs nothing
//	go run ./examples/bank -lock          # every unit takes its locks first
//	go run ./examples/bank -unsafe        # the same work without units: plain reads and writes
//	go run ./examples/bank -crash         # owners die in the midst of large units, too
//	go run ./examples/bank replay -h      # enter a ledger from a file
//	go run ./examples/bank recover -h     # finish what dead owners left
//	go run ./examples/bank archive        # statements in SQL, and owners paused while they write them
//
// The bank's own work is in books. The staff that does it, the audit and the
// rest around it are in integration/bank: tests of several processes need them,
// too.
package main

import "github.com/holdall/holdall/integration/bank/office"

const usage = `Usage:

  bank [flags]           a bank at work: owners come and go, then its books are audited
  bank replay [flags]    enter a ledger from a file, each row once
  bank recover [flags]   finish or abort the large units that dead owners left in tables
  bank archive [flags]   write statements to SQL, by owners that are paused and overtaken meanwhile

The exit code is 0 if all went well and the audit holds, 1 if not, 2 if the call is wrong.
The report goes to stdout, progress to stderr.

`

var program = office.Program{Name: "bank", Usage: usage, Commands: map[string]func() office.Command{
	"":        func() office.Command { return &demo{} },
	"replay":  func() office.Command { return &replay{} },
	"recover": office.NewRecovery,
	"archive": func() office.Command { return &archiving{} },
}}

func main() { program.Main() }
