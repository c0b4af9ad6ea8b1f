// Command bank shows holdall at work: tellers of several owners move money,
// move house, merge customers and pay interest, to one customer or to all of
// them as one, while owners die and others take their place. Then it audits the
// books.
//
//	go run ./examples/bank                # in memory, needs nothing
//	go run ./examples/bank -unsafe        # the same work without locks
//	go run ./examples/bank -crash         # owners die in the midst of large units, too
//	go run ./examples/bank replay -h      # enter a ledger from a file
//	go run ./examples/bank recover -h     # finish what dead owners left
//	go run ./examples/bank archive        # statements in SQL, and owners paused while they write them
//	go run ./examples/bank open -h        # the same bank as several processes: open, branch, audit
//
// The bank's own work is in internal/books; how owners and tellers deal with
// errors is in internal/staff.
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

// Exit codes.
const (
	exitSound = iota
	exitUnsound
	exitUsage
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // with a reader gone, as in "| head", the tables are still deleted
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with all it depends on. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command := "bank"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	var do func(context.Context, *options, io.Writer, io.Writer) (sound bool, err error)
	switch command {
	case "bank":
		do = demo
	case "replay":
		do = replay
	case "recover":
		do = recovery
	case "archive":
		do = archiving
	case "open":
		do = opening
	case "branch":
		do = branch
	case "audit":
		do = auditing
	default:
		say(stderr, "bank: unknown command %q: there are \"replay\", \"recover\", \"archive\", \"open\", \"branch\", \"audit\", or none for the demo; see bank -h\n", command)
		return exitUsage
	}
	o, err := parse(command, args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitSound
	case err != nil:
		say(stderr, "%s: %v; see %s -h\n", command, err, command)
		return exitUsage
	}
	sound, err := do(ctx, o, stdout, stderr)
	if err != nil {
		say(stderr, "%s: %v\n", command, err)
	}
	if err != nil || !sound {
		return exitUnsound
	}
	return exitSound
}

// say writes for people: an output that is gone is no reason to stop.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}
