package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
	"github.com/holdall/holdall/integration/tools/mutants/written"
	"github.com/holdall/holdall/integration/tools/program"
)

// laboratory builds mutants and runs the tests that are to catch them.
type laboratory struct {
	root    string // of a repository; nothing is written there
	dir     string // everything is written here
	workers int
	timeout time.Duration // of the first run with a mutant
	long    time.Duration // of a run without mutants, and of a second run
	say     func(format string, a ...any)
}

// result is the outcome of one run. detail explains a verdict that needs it.
type result struct {
	verdict verdict
	detail  string
	took    time.Duration
}

// examine runs the control, then the mutants. It returns an error unless the control
// passes and every mutant is caught.
func (l *laboratory) examine(ctx context.Context, mutants []written.Mutant) error {
	begun := time.Now()
	if err := l.control(ctx, mutants); err != nil {
		return err
	}
	var escaped []string
	sum := tally{}
	err := l.twice(ctx, len(mutants), func(ctx context.Context, i int, again bool) result {
		return l.try(ctx, mutants[i], fmt.Sprint("mutant", i), l.limit(again))
	}, func(i int, r result) {
		m := mutants[i]
		sum[r.verdict]++
		l.say("%3d/%d  %4.1f s  %s  %s  [%s %s]", sum.all(), len(mutants), r.took.Seconds(), r.verdict, m.Clause, m.In, m.Test)
		if r.verdict != caught {
			escaped = append(escaped, fmt.Sprintf("%s: %s (%s, by %s %s)", r.verdict, m.Clause, m.File, m.In, m.Test))
			l.say("%s", indented(r.detail))
		}
	})
	if err != nil {
		return err
	}
	l.say("%d mutants, in %.0f s: %s", len(mutants), time.Since(begun).Seconds(), sum)
	if len(escaped) > 0 {
		slices.Sort(escaped)
		return errors.New("these were not caught by the test they name:\n  " + strings.Join(escaped, "\n  "))
	}
	return nil
}

// control runs what is to catch the mutants on the tree as it is.
func (l *laboratory) control(ctx context.Context, mutants []written.Mutant) error {
	begun := time.Now()
	tests, runs := map[string][]string{}, 0 // by package
	for _, m := range mutants {
		if !slices.Contains(tests[m.In], m.Test) {
			tests[m.In] = append(tests[m.In], m.Test)
			runs++
		}
	}
	packages := slices.Sorted(maps.Keys(tests))
	err := l.each(ctx, len(packages), func(ctx context.Context, i int) error {
		in := packages[i]
		binary := filepath.Join(l.dir, fmt.Sprint("control", i))
		output, err := l.build(ctx, in, binary, "")
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("control: ./%s does not compile: %w\n%s", in, err, indented(output))
		}
		defer func() { _ = os.Remove(binary) }()
		for _, test := range tests[in] {
			if r := l.test(ctx, in, test, binary, "", l.long); r.verdict != survived && ctx.Err() == nil {
				return fmt.Errorf("control: without any mutant, %s %s does not pass\n%s", in, test, indented(r.detail))
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	l.say("control: the tree as it is passes %d runs in %d packages, in %.0f s", runs, len(packages), time.Since(begun).Seconds())
	return nil
}

// each calls f for 0 to n-1, as many at a time as there are workers, until one
// fails, and returns when all calls have.
func (l *laboratory) each(ctx context.Context, n int, f func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.workers)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return f(ctx, i)
		})
	}
	return group.Wait()
}

// twice runs n mutants, as many at a time as there are workers. After them, it runs
// again those that have to be, one at a time. report gets the final result of each
// mutant; its calls do not overlap.
func (l *laboratory) twice(ctx context.Context, n int, run func(ctx context.Context, i int, again bool) result, report func(i int, r result)) error {
	var mu sync.Mutex // held while a result is noted
	var unfinished []int
	err := l.each(ctx, n, func(ctx context.Context, i int) error {
		r := run(ctx, i, false)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		if runsAgain(r.verdict) {
			unfinished = append(unfinished, i)
		} else {
			report(i, r)
		}
		return nil
	})
	if err != nil || len(unfinished) == 0 {
		return err
	}
	l.say("%d did not end, and run again, one at a time, each for at most %v", len(unfinished), l.long)
	slices.Sort(unfinished)
	for _, i := range unfinished {
		r := run(ctx, i, true)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report(i, r)
	}
	return nil
}

// limit returns how long a run with a mutant may take.
func (l *laboratory) limit(again bool) time.Duration {
	if again {
		return l.long
	}
	return l.timeout
}

// try builds one mutant and runs its test.
func (l *laboratory) try(ctx context.Context, m written.Mutant, name string, limit time.Duration) result {
	begun := time.Now()
	file := filepath.Join(l.root, filepath.FromSlash(m.File))
	text, err := os.ReadFile(file)
	if err != nil {
		return result{verdict: gone, detail: err.Error()}
	}
	weakened, err := m.Weaken(string(text))
	if err != nil {
		return result{verdict: gone, detail: err.Error()}
	}
	in := func(extension string) string { return filepath.Join(l.dir, name+extension) }
	defer func() {
		for _, extension := range []string{".go", ".json", ".test"} {
			_ = os.Remove(in(extension))
		}
	}()
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: in(".go")}})
	if err == nil {
		err = errors.Join(os.WriteFile(in(".go"), []byte(weakened), 0o600), os.WriteFile(in(".json"), overlay, 0o600))
	}
	if err != nil {
		return result{verdict: unbuilt, detail: err.Error(), took: time.Since(begun)}
	}
	if output, err := l.build(ctx, m.In, in(".test"), in(".json")); err != nil {
		return result{verdict: unbuilt, detail: output, took: time.Since(begun)}
	}
	r := l.test(ctx, m.In, m.Test, in(".test"), in(".json"), limit)
	r.took = time.Since(begun)
	return r
}

// build builds the test binary of a package, with an overlay if one is named.
// Trimmed paths let the go command know what it has built before, elsewhere.
func (l *laboratory) build(ctx context.Context, in, binary, overlay string) (output string, err error) {
	args := []string{"test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	module := tree.ModuleOf(l.root, in)
	output, _, err = program.Run(ctx, l.folder(module), nil, "go", append(args, tree.Pattern(module, in))...)
	return output, err
}

// folder returns where a folder of the repository is.
func (l *laboratory) folder(name string) string {
	return filepath.Join(l.root, filepath.FromSlash(name))
}

// test runs one test as the go command would: in the folder of its package. What
// the test itself builds has the overlay, too.
func (l *laboratory) test(ctx context.Context, in, test, binary, overlay string, limit time.Duration) result {
	args := []string{"-test.run", "^" + test + "$", "-test.v", "-test.timeout", limit.String(), "-test.count", "1"}
	var env []string
	if overlay != "" {
		env = append(env, "GOFLAGS=-overlay="+overlay)
	}
	output, _, err := program.Run(ctx, l.folder(in), env, binary, args...)
	return result{verdict: verdictOf(test, output, err != nil), detail: output}
}

// indented is the beginning of an output, without what went well.
func indented(output string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(output), "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || line == "PASS" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- PASS: ")
	})
	if most := 20; len(lines) > most {
		lines = append(lines[:most], "...")
	}
	return "    " + strings.Join(lines, "\n    ")
}
