// Command bank is the example bank as several processes: one opens it, any number
// of branches work on it, one audits it. Each of them may be killed; all that they
// share are the tables.
package main

import "github.com/holdall/holdall/integration/bank/office"

const usage = `Usage:

  bank open [flags]      make a bank on which several processes work
  bank branch [flags]    be one of these processes, until it is told to end, or killed
  bank recover [flags]   finish or abort the large units that dead owners left in tables
  bank audit [flags]     finish what dead branches left, and audit what they have done

The exit code is 0 if all went well and the audit holds, 1 if not, 2 if the call is wrong.
The report goes to stdout, progress to stderr.

`

var program = office.Program{Name: "bank", Usage: usage, Commands: map[string]func() office.Command{
	"open":    func() office.Command { return &opening{} },
	"branch":  func() office.Command { return &branch{} },
	"recover": office.NewRecovery,
	"audit":   func() office.Command { return &auditing{} },
}}

func main() { program.Main() }
