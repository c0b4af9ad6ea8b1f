// Fuzz runs every fuzz target of the repository, one after the other, each for the
// same time: any keys, any items in the tables, any configuration, expressions and
// files. A target that fails leaves its input in testdata/fuzz, and go test runs
// that from then on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/tools/program"
)

func main() { program.Main("fuzz", run) }

// run is the whole program: it returns when nothing that it started runs any more.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	pattern := flags.String("run", "", "only the targets whose folder and name match this `regexp`")
	list := flags.Bool("list", false, "print the targets and run nothing")
	each := flags.Duration("time", 30*time.Second, "how long each target runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	root, err := engines.Root()
	if err != nil {
		return err
	}
	all, err := targets(os.DirFS(root))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(t target) bool { return !wanted.MatchString(t.String()) })
	switch {
	case len(all) == 0:
		return fmt.Errorf("-run: no target matches %q", *pattern)
	case *each < time.Second:
		return errors.New("-time: at least a second is needed")
	case *list:
		for _, t := range all {
			fmt.Println(t)
		}
		return nil
	}
	return fuzz(ctx, root, all, *each)
}

// fuzz runs all targets, also behind one that fails, and prints what they did.
func fuzz(ctx context.Context, root string, all []target, each time.Duration) error {
	fmt.Printf("%d targets, %v each\n", len(all), each)
	begun, inputs := time.Now(), 0
	var failed []string
	for _, t := range all {
		r, err := t.fuzz(ctx, root, each)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		inputs += r.inputs
		fmt.Printf("%-42s %10d inputs %8d a second %5d new\n", t, r.inputs, r.rate(), r.interesting)
		if err != nil {
			failed = append(failed, t.String())
			fmt.Printf("%s: %v\n%s\n", t, err, r.output)
		}
	}
	fmt.Printf("%d inputs in %v\n", inputs, time.Since(begun).Round(time.Second))
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s; the inputs are in testdata/fuzz of their folders, "+
			"and go test -run 'NAME/INPUT' ./FOLDER runs one again", strings.Join(failed, ", "))
	}
	return nil
}

// target is one fuzz target.
type target program.Test

func (t target) String() string { return t.Folder + "." + t.Name }

// targets finds all fuzz targets of a repository, by folder.
func targets(repository fs.FS) (all []target, err error) {
	tests, err := program.Tests(repository)
	for _, t := range tests {
		if strings.HasPrefix(t.Name, "Fuzz") {
			all = append(all, target(t))
		}
	}
	return all, err
}
