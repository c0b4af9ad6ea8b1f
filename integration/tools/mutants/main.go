// Mutants weakens the protocol, one clause at a time, and sees whether a test
// notices: it drops a condition, skips a re-stamp, trusts a plain read. Each
// mutant changes exactly one place of one file, by an overlay over a copy of the
// tree, so that work in the tree may go on; each is to be caught by the test it
// names, not by the compiler and not by running out of time. A mutant that
// survives is a check that is missing, or a clause that can go.
//
// The mutants that are written by hand are one for each clause of the models that the
// code can break, and changes that the drawing does not make: see written.
//
// With -random, mutants are drawn by a seed instead, from all that operators of the
// language and of expressions can change in the library and the modules beside it. Any of
// the quick tests may catch them, or the simulation after those: see random.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/integration/tools/mutants/written"
	"github.com/holdall/holdall/integration/tools/program"
)

func main() { program.Main("mutants", run) }

// run is the whole program: it returns when nothing that it started runs any
// more, and what it wrote is gone.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	pattern := flags.String("run", "", "only the mutants whose clause, file or test matches this `regexp`")
	list := flags.Bool("list", false, "print the mutants as a Markdown table and run nothing")
	n := flags.Int("random", 0, "draw `n` mutants instead of those written by hand; -run matches the lines that are printed of them")
	seed := flags.Uint64("seed", 1, "draw those of -random by this `seed`")
	hours := flags.Float64("hours", 20, "with -random: simulate so many `hours` with what survives the quick tests")
	least := flags.Float64("least", 90, "with -random: how many `percent` have to be caught")
	share := flags.String("part", "1/1", program.Share)
	workers := flags.Int("workers", runtime.NumCPU(), "how many to build and run at once")
	timeout := flags.Duration("timeout", 2*time.Minute, "how long the first run with a mutant may take")
	long := flags.Duration("long", 15*time.Minute, "how long a run without mutants may take, and the second, alone, of a mutant that did not end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if *workers < 1 {
		return errors.New("-workers: at least one is needed")
	}
	root, err := engines.Root()
	if err != nil {
		return err
	}
	l := &laboratory{workers: *workers, timeout: *timeout, long: *long, say: func(format string, a ...any) { fmt.Printf(format+"\n", a...) }}
	if *n > 0 {
		r := drawnByChance(*n, *seed)
		r.wanted, r.share, r.list, r.least = wanted, *share, *list, *least
		if *hours > 0 {
			r.last = []check{simulation(*hours)}
		}
		return l.over(root, func() error { return r.examine(ctx, l) })
	}
	all, err := written.All()
	if err != nil {
		return err
	}
	chosen, err := program.Part(selected(all, wanted), *share)
	if err != nil {
		return err
	}
	switch {
	case len(chosen) == 0:
		return fmt.Errorf("-run, -part: no mutant of %s matches %q", *share, *pattern)
	case *list:
		fmt.Print(table(chosen))
		return nil
	}
	return l.over(root, func() error { return l.examine(ctx, chosen) })
}

// over has the laboratory work on a copy of the tree, as long as f takes.
func (l *laboratory) over(root string, f func() error) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l.dir, l.root = dir, filepath.Join(dir, "tree")
	if err := snapshot(root, l.root); err != nil {
		return err
	}
	return f()
}
