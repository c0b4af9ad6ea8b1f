// Package office is what the bank's programs have in common: commands and their
// flags, the town and its work, a staff that does it, and the reports.
package office

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Exit codes.
const (
	Sound = iota
	Unsound
	WrongCall
)

// Given says which flags were given.
type Given map[string]bool

// Check is a flag that cannot be used, if it is wrong.
type Check struct {
	Wrong        bool
	Flag, Reason string
}

// Command is one thing that a program does. There is a new one for each call.
type Command interface {
	Flags(*flag.FlagSet)
	// Complete fills in the defaults that depend on other flags.
	Complete(Given)
	Check(Given) []Check
	// Do reports whether what it did, or audited, is sound.
	Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error)
}

// Program has commands by name. The one without a name is what it does if none is
// named.
type Program struct {
	Name, Usage string
	Commands    map[string]func() Command
}

// Main runs the program and ends the process.
func (p Program) Main() {
	signal.Ignore(syscall.SIGPIPE) // with a reader gone, as in "| head", the tables are still deleted
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(p.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Run is Main with all it depends on. It returns the exit code.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name, called := "", p.Name
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
		called = name
	}
	if p.Commands[name] == nil {
		if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
			Say(stdout, "%s", p.Usage)
			return Sound
		}
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(p.Commands)), func(name string) bool { return name == "" })
		Say(stderr, "%s: unknown command %q: there are %s; see %s -h\n", p.Name, name, strings.Join(names, ", "), p.Name)
		return WrongCall
	}
	cmd := p.Commands[name]()
	flags, err := Parse(cmd, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		Say(stdout, "%sFlags of %s:\n\n", p.Usage, strings.TrimSpace(p.Name+" "+name))
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return Sound
	case err != nil:
		Say(stderr, "%s: %v; see %s -h\n", called, err, called)
		return WrongCall
	}
	sound, err := cmd.Do(ctx, stdout, stderr)
	if err != nil {
		Say(stderr, "%s: %v\n", called, err)
	}
	if err != nil || !sound {
		return Unsound
	}
	return Sound
}

// Parse gives a command what the arguments say. The error names the first flag that
// cannot be used.
func Parse(cmd Command, args []string) (*flag.FlagSet, error) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller prints the error, once
	cmd.Flags(fs)
	if err := fs.Parse(args); err != nil {
		return fs, err
	}
	if fs.NArg() > 0 {
		return fs, fmt.Errorf("%q is no flag: only flags are expected here", fs.Arg(0))
	}
	given := Given{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	cmd.Complete(given)
	for _, c := range cmd.Check(given) {
		if c.Wrong {
			return fs, fmt.Errorf("-%s %s", c.Flag, c.Reason)
		}
	}
	return fs, nil
}

// Say writes for people: an output that is gone is no reason to stop.
func Say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}
