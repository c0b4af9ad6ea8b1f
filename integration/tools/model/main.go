// Model has Spin search the models of the protocol in docs/model, every state
// of them, and then each of them once more without one of its clauses: Spin has
// to find what that clause prevents. See docs/model/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/integration/tools/program"
)

func main() { program.Main("model", run) }

// run is the whole program: it returns when nothing that it started runs any
// more, and what it wrote is gone.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	pattern := flags.String("run", "", `only the searches whose name, "model" or "model without clause", matches this `+"`regexp`")
	list := flags.Bool("list", false, "print the clauses as Markdown tables and search nothing")
	whole := flags.Bool("whole", false, "only the models as they are, none without a clause")
	share := flags.String("part", "1/1", program.Share)
	workers := flags.Int("workers", min(2, runtime.NumCPU()), "how many searches run at once")
	timeout := flags.Duration("timeout", 10*time.Minute, "how long one search may take")
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
	folder := filepath.Join(root, "docs", "model")
	models, err := load(folder)
	if err != nil {
		return err
	}
	if *list {
		return printTables(ctx, root, models)
	}
	tasks, err := program.Part(chosen(models, wanted, *whole), *share)
	if err != nil {
		return err
	}
	switch {
	case *workers < 1:
		return errors.New("-workers: at least one is needed")
	case len(tasks) == 0:
		return fmt.Errorf("-run, -part: no search of %s matches %q", *share, *pattern)
	}
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is missing; it is in Debian's package of that name; or run: go -C integration run ./engines/install %[1]s", tool)
		}
	}
	dir, err := os.MkdirTemp("", "model-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l := &laboratory{models: folder, dir: dir, workers: *workers, timeout: *timeout, say: func(format string, a ...any) { fmt.Printf(format+"\n", a...) }}
	return l.examine(ctx, tasks)
}

// chosen are the searches to do: the models as they are first.
func chosen(models []model, wanted *regexp.Regexp, whole bool) (tasks []task) {
	add := func(t task) {
		if wanted.MatchString(t.String()) {
			tasks = append(tasks, t)
		}
	}
	for _, m := range models {
		add(task{model: m})
	}
	for _, m := range models {
		for i := range m.clauses {
			if !whole {
				add(task{m, &m.clauses[i]})
			}
		}
	}
	return tasks
}

// printTables prints the tables of docs/model/clauses.md.
func printTables(ctx context.Context, root string, models []model) error {
	mutants, _, err := program.Run(ctx, root, nil, "go", "-C", "integration", "run", "./tools/mutants", "-list")
	if err != nil {
		return fmt.Errorf("tools/mutants: %w\n%s", err, mutants)
	}
	text, err := tables(models, testsOf(mutants))
	if err != nil {
		return err
	}
	fmt.Print(text)
	return nil
}
