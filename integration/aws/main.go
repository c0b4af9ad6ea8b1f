// Command aws runs holdall's suites on the caller's AWS account, or on an engine in AWS's
// place, and leaves nothing behind: make aws. docs/aws.md has what it finds out.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// How the program exits.
const (
	exitPassed = 0
	exitFailed = 1 // a test has, or tables may be left
	exitUsage  = 2 // it has not begun
)

func main() {
	// A terminal that is closed, and a pipe whose reader is gone, end a run like any other: by deleting its tables.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdin, os.Stdout))
}

// command does what the first argument says: run, clean or policy.
func command(ctx context.Context, args []string, in io.Reader, out io.Writer) int {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	do, known := map[string]func(context.Context, options, io.Reader, io.Writer) (int, error){
		"run": run, "clean": clean,
		"policy": func(_ context.Context, o options, _ io.Reader, out io.Writer) (int, error) {
			fmt.Fprint(out, policy(o))
			return exitPassed, nil
		},
	}[verb]
	if !known {
		fmt.Fprint(out, needs)
		return exitUsage
	}
	o, err := parse(args, out)
	if err != nil {
		return exitUsage
	}
	code, err := do(ctx, o, in, out)
	if err != nil {
		fmt.Fprintln(out, "aws:", err)
	}
	return code
}

// run runs the suites. Whatever becomes of them, it deletes their tables.
func run(ctx context.Context, o options, in io.Reader, out io.Writer) (int, error) {
	t, err := find(ctx, o)
	if err != nil {
		return exitUsage, err
	}
	defer t.stop()
	return runOn(ctx, o, t, in, out)
}

// runOn is run on a target. Before the caller has agreed, nothing is asked but which tables
// there are.
func runOn(ctx context.Context, o options, t target, in io.Reader, out io.Writer) (int, error) {
	chosen, db := choose(o.Only), t.admin()
	left, err := tablesIn(ctx, db, o.namespace())
	if err != nil {
		return exitUsage, err
	}
	if len(left) > 0 {
		return exitUsage, fmt.Errorf("%d tables are there of another run, such as %q: wait until that has ended, or: make aws-clean REGION=%s PREFIX=%s", len(left), left[0], o.Region, o.Prefix)
	}
	fmt.Fprint(out, plan(o, t, chosen))
	if !o.elsewhere() {
		if err := agree(ctx, o, in, out); err != nil {
			return exitUsage, err
		}
	}
	return runSuites(ctx, o, t, db, chosen, out)
}

func choose(only string) (chosen []suite) {
	for _, s := range suites {
		if only == "" || s.Name == only {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

func runSuites(ctx context.Context, o options, t target, db administration, chosen []suite, out io.Writer) (int, error) {
	until, cancel := context.WithTimeoutCause(ctx, o.Timeout, errors.New("the time of this run is over"))
	defer cancel()
	until, end := context.WithCancelCause(until)
	defer end(nil)
	m := &meter{requests: o.Requests, units: o.Units, over: func() { end(errors.New("the limit of this run is reached")) }}
	k, err := keep(t, o.namespace(), m)
	if err != nil {
		return exitFailed, err
	}
	code := exitPassed
	var results []result
	for _, s := range chosen {
		if until.Err() != nil {
			results = append(results, result{Suite: s.Name, Err: fmt.Errorf("not begun: %w", context.Cause(until))})
			code = exitFailed
			continue
		}
		fmt.Fprintf(out, "\n%s …\n", s.Name)
		r := s.run(until, k, out)
		results = append(results, r)
		if !r.ok() {
			code = exitFailed
		}
	}
	k.close()
	report(out, o, t, results, m.usage())
	return tidy(ctx, o, db, k.asked(), out, code)
}

// tidyTime is how long deleting may take.
const tidyTime = 10 * time.Minute

// tidy deletes tables, also of a run that was told to end, and no others. Who tells it once more
// is obeyed.
func tidy(ctx context.Context, o options, db administration, names []string, out io.Writer, code int) (int, error) {
	again, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	again, cancel := context.WithTimeout(again, tidyTime)
	defer cancel()
	fmt.Fprintln(out, "deleting the tables …")
	others, err := deleteAll(again, db, o.namespace(), names)
	if err != nil {
		return exitFailed, fmt.Errorf("%w; tables may be left: make aws-clean REGION=%s PREFIX=%s", err, o.Region, o.Prefix)
	}
	if len(others) > 0 {
		return exitFailed, fmt.Errorf("%d tables are there that were made elsewhere meanwhile, such as %q, and are left as they are: has another run the same prefix?", len(others), others[0])
	}
	fmt.Fprintf(out, "no table is left whose name begins with %q\n", o.namespace())
	return code, nil
}

// clean deletes what a run that was killed has left.
func clean(ctx context.Context, o options, in io.Reader, out io.Writer) (int, error) {
	t, err := find(ctx, o)
	if err != nil {
		return exitUsage, err
	}
	defer t.stop()
	db := t.admin()
	names, err := tablesIn(ctx, db, o.namespace())
	if err != nil {
		return exitUsage, err
	}
	if len(names) == 0 {
		fmt.Fprintf(out, "no table's name begins with %q\n", o.namespace())
		return exitPassed, nil
	}
	if t.Caller != "" {
		fmt.Fprintf(out, "account %s, Region %s\n", t.Caller, t.Region)
	}
	fmt.Fprintf(out, "to be deleted:\n  %s\n", strings.Join(names, "\n  "))
	if !o.elsewhere() {
		if err := agree(ctx, o, in, out); err != nil {
			return exitUsage, err
		}
	}
	return tidy(ctx, o, db, names, out, exitPassed)
}

// agree asks for the prefix, unless the caller has given it as consent.
func agree(ctx context.Context, o options, in io.Reader, out io.Writer) error {
	said := o.Consent
	if said == "" {
		fmt.Fprintf(out, "type the prefix to go on: ")
		line := make(chan string, 1)
		go func() {
			text, _ := bufio.NewReader(in).ReadString('\n') // what ends without a line says nothing
			line <- text
		}()
		select {
		case text := <-line:
			said = strings.TrimSpace(text)
		case <-ctx.Done():
			return errors.New("told to end; nothing was done")
		}
	}
	if said != o.Prefix {
		return fmt.Errorf("%q is not the prefix %q: nothing was done", said, o.Prefix)
	}
	return nil
}
