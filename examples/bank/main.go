// Command bank shows holdall at work: tellers of several owners move money, change addresses, merge
// customers and pay a month's interest to all of them as one unit, while owners die and others take
// their place. Then it audits the books.
// "go run ./examples/bank -h" lists the commands and flags.
//
// The bank's own work is in books, the owners and tellers are in staff, and the SQL store of
// statements is in archive.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `Usage:

  bank [flags]           a bank at work: owners come and go, then its books are audited
  bank replay [flags]    enter a ledger from a file, each row once
  bank recover [flags]   finish or abort the large units that dead owners left in tables
  bank archive [flags]   write statements to SQL, by owners that are paused and overtaken meanwhile

The exit code is 0 if all went well and the audit holds, 1 if not, 2 if the call is wrong.
The report goes to stdout, progress to stderr.

`

// Exit codes.
const (
	exitSound = iota
	exitUnsound
	exitWrongCall
)

// call is one call of the program. Its methods demo, replay, recover and archive return whether what
// they did and audited is sound.
type call struct {
	options
	stdout, stderr io.Writer
}

func main() {
	signal.Ignore(syscall.SIGPIPE) // if the reader has gone, as in "| head", the tables are still deleted
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name, called := "", "bank"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
		called = name
	}
	c := &call{stdout: stdout, stderr: stderr}
	do, known := map[string]func(context.Context) (bool, error){
		"": c.demo, "replay": c.replay, "recover": c.recover, "archive": c.archive,
	}[name]
	if !known {
		say(stderr, "bank: unknown command %q; see bank -h\n", name)
		return exitWrongCall
	}
	flags, err := c.parse(name, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		say(stdout, "%sFlags of %s:\n\n", usage, strings.TrimSpace("bank "+name))
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return exitSound
	case err != nil:
		say(stderr, "%s: %v; see %s -h\n", called, err, called)
		return exitWrongCall
	}
	sound, err := do(ctx)
	if err != nil {
		say(stderr, "%s: %v\n", called, err)
	}
	if err != nil || !sound {
		return exitUnsound
	}
	return exitSound
}

// say prints for people. If the output has gone, the work continues.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}
