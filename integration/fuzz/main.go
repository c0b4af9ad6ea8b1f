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
	"os/signal"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdall/holdall/integration/engines"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

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

// target is one fuzz target: a function of a test file.
type target struct {
	folder, name string
}

func (t target) String() string { return t.folder + "." + t.name }

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// targets finds all fuzz targets of a repository, by folder.
func targets(repository fs.FS) ([]target, error) {
	var all []target
	err := fs.WalkDir(repository, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(repository, p)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			all = append(all, target{path.Dir(p), found[1]})
		}
		return err
	})
	return all, err
}
