package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/integration/tools/program"
)

// load reads all models of a folder, in the order of their names.
func load(dir string) ([]model, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no models", dir)
	}
	slices.Sort(files)
	var models []model
	for _, file := range files {
		own, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		whole, err := included(file, map[string]bool{})
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(file), ".pml"), string(own), whole)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// included is a file's text with what it includes, each once.
func included(file string, seen map[string]bool) (string, error) {
	if seen[file] {
		return "", nil
	}
	seen[file] = true
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	all := string(text)
	for _, found := range includeLine.FindAllStringSubmatch(all, -1) {
		more, err := included(filepath.Join(filepath.Dir(file), found[1]), seen)
		if err != nil {
			return "", err
		}
		all += more
	}
	return all, nil
}

// laboratory searches models.
type laboratory struct {
	models  string // the folder they are in; nothing is written there
	dir     string // everything is written here
	workers int
	timeout time.Duration
	say     func(format string, a ...any)
}

// task is one search: of a model as it is, or without a clause.
type task struct {
	model  model
	clause *clause
}

func (t task) String() string {
	if t.clause == nil {
		return t.model.name
	}
	return t.model.name + " without " + t.clause.name
}

// examine does all searches and returns an error unless each comes to what it
// has to.
func (l *laboratory) examine(ctx context.Context, tasks []task) error {
	begun := time.Now()
	var mu sync.Mutex // held while a line is written
	var failed []string
	clauses := 0
	var spent time.Duration
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.workers)
	for i, t := range tasks {
		if t.clause != nil {
			clauses++
		}
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			f, output := l.search(ctx, t, filepath.Join(l.dir, fmt.Sprint("search", i)))
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			spent += f.spent
			line := t.model.story(f)
			if reason := t.model.wrong(t.clause, f); reason != "" {
				line = reason
				failed = append(failed, t.String()+": "+reason)
				if f.broken != "" {
					line += "\n" + indented(output)
				}
			}
			l.say("%6.1f s  %s: %s", f.spent.Seconds(), t, line)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	l.say("%d models, %d without one of their clauses: %d as they have to be, in %.0f s, with %.0f s of processors",
		len(tasks)-clauses, clauses, len(tasks)-len(failed), time.Since(begun).Seconds(), spent.Seconds())
	if len(failed) > 0 {
		slices.Sort(failed)
		return errors.New("these are not as they have to be:\n  " + strings.Join(failed, "\n  "))
	}
	return nil
}

// search has Spin write the program that searches, builds it and runs it.
func (l *laboratory) search(ctx context.Context, t task, dir string) (f found, output string) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return found{broken: err.Error()}, ""
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var spent time.Duration
	defer func() { f.spent = spent }()
	command := func(ctx context.Context, name string, args ...string) (string, error) {
		output, used, err := program.Run(ctx, dir, nil, name, args...)
		spent += used
		return output, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.timeout, fmt.Errorf("it took longer than %v", l.timeout))
	defer cancel()
	spin := []string{"-a"}
	if t.clause != nil {
		spin = append(spin, "-DWITHOUT_"+t.clause.name)
	}
	output, err := command(ctx, "spin", append(spin, filepath.Join(l.models, t.model.name+".pml"))...)
	if err != nil || strings.Contains(output, "Error:") {
		return found{broken: "Spin does not understand it"}, output
	}
	effort := "-O2"
	if t.clause != nil && !t.clause.redundant() { // it ends soon: the compiler would take longer than the search
		effort = "-O0"
	}
	if output, err := command(ctx, "gcc", append(slices.Concat([]string{effort, "-w", "-o", "pan"}, t.model.compile), "pan.c")...); err != nil {
		return found{broken: "what Spin wrote does not compile"}, output
	}
	output, err = command(ctx, filepath.Join(dir, "pan"), t.model.search...)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return read(output, err), output
}

// indented is the beginning of an output.
func indented(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if most := 20; len(lines) > most {
		lines = append(lines[:most], "...")
	}
	return "    " + strings.Join(lines, "\n    ")
}
