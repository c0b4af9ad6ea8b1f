package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

func execCommand(a *app) *cobra.Command {
	var wait time.Duration
	var purpose string
	cmd := &cobra.Command{
		Use:   "exec KEY... [--wait TIME] -- COMMAND [ARGUMENT...]",
		Short: "Run a command under locks",
		Long: "exec takes the locks of all keys, runs the command, and releases them when it has ended.\n" +
			"In its environment the command has HOLDALL_TOKEN, the fencing token, for stores that can refuse\n" +
			"who is late; HOLDALL_KEYS, one in a line; and HOLDALL_UNIT, by which rows name the holder.\n" +
			"HOLDALL_HELD has the units and keys of all execs around it: an exec under another that would\n" +
			"wait for its key, or one above or below it, ends at once with 125.\n\n" +
			"Signals are passed on, and so is the command's exit code, 128+n if signal n has ended it.\n" +
			"The command runs in a process group of its own. On a terminal it is in the foreground (in\n" +
			"a pipeline, on Linux: once it would be stopped for not being there), and Ctrl-Z does nothing:\n" +
			"who is stopped would hold the keys for ever.\n\n" +
			"If the locks are lost, the whole group gets SIGTERM at once, and SIGKILL before anybody else\n" +
			"can have the keys; where only time ran out that is a tenth of the lease later. Then the exit code\n" +
			"is 123. That needs this process alive and running: on Linux the command dies with it, but nobody\n" +
			"ends what the command has started itself, and nobody can while a machine is suspended. What must\n" +
			"not be written late checks the token.\n\n" +
			"What the command leaves running in the background when it ends is not under the locks any more.\n\n" +
			"Keys that begin with a dash stand between two --.",
		Example: "  holdall exec nightly-report --wait 0s -- ./report.sh\n" +
			"  holdall exec customer:42 customer:43 --wait 30s -- sh -c 'echo $HOLDALL_TOKEN'",
		Annotations: map[string]string{passesOn: ""},
		Args: func(cmd *cobra.Command, args []string) error {
			keys, command := keysAndCommand(cmd.ArgsLenAtDash(), args)
			if len(keys) == 0 || len(command) == 0 {
				return errors.New("exec needs keys, then --, then a command")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			limit := lockset.Wait{}
			if cmd.Flags().Changed("wait") {
				limit = lockset.For(max(wait, 0))
			}
			keys, command := keysAndCommand(cmd.ArgsLenAtDash(), args)
			if !cmd.Flags().Changed("purpose") { // no arguments: there may be secrets among them
				purpose = "exec " + filepath.Base(command[0])
			}
			return a.exec(cmd.Context(), keys, lockset.Options{Wait: limit, Purpose: purpose}, command)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "`time` to wait for others at most, all in all; 0s waits for nobody; as long as it takes if not given")
	cmd.Flags().StringVar(&purpose, "purpose", "", "what the keys are for, in at most 256 bytes, as others see it; \"exec\" and the `name` of the command if not given")
	return cmd
}

// keysAndCommand splits the arguments at the --. If that is the first of them, keys that may
// begin with a dash come after it, and another -- ends them.
func keysAndCommand(dash int, args []string) (keys, command []string) {
	if dash == 0 {
		if second := slices.Index(args, "--"); second >= 0 {
			return args[:second], args[second+1:]
		}
	}
	if dash < 0 {
		return args, nil
	}
	return args[:dash], args[dash:]
}

func (a *app) exec(ctx context.Context, names []string, o lockset.Options, command []string) error {
	keys := make([]ordering.Key, len(names))
	for i, name := range names {
		keys[i] = ordering.Key(name)
		if strings.ContainsAny(name, "\n\r") {
			return fmt.Errorf("key %q: has a line break", name)
		}
		if err := keys[i].Validate(); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(command[0]) // before anybody has to wait for us
	if err != nil {
		return cannotRun(err)
	}
	surviveClosedPipes()
	p := newProgress(a.stderr)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	units, err := a.unitsClient(ctx, func(cfg *unitofwork.Config) {
		cfg.Locks.Lease = cmp.Or(cfg.Locks.Lease, defaultLease)
		cfg.Locks.Margin = marginOf(cfg.Locks.Lease)
		cfg.Trace = a.waiting(p, o.Wait != lockset.For(0), cancel)
	})
	if err != nil {
		return err
	}
	set, err := a.acquire(ctx, units.Locks(), keys, o)
	p.clear()
	if err != nil {
		return notGot(err)
	}
	return a.under(set, units.Locks().Config(), path, command)
}

// acquire is Acquire, ended by the first signal.
func (a *app) acquire(ctx context.Context, locks *lockset.Client, keys []ordering.Key, wanted lockset.Options) (*lockset.Set, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	got, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case s := <-a.signals:
			cancel(&exit{interrupted{s}.code(), interrupted{s}})
		case <-got:
		}
	}()
	set, err := locks.Acquire(ctx, keys, func(o *lockset.Options) { *o = wanted })
	close(got)
	<-over
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		return set, err
	case err == nil: // just when all keys were had
		err = set.Release(context.WithoutCancel(ctx))
	}
	return nil, errors.Join(cause, err)
}

// notGot is the error of an acquisition, with its code.
func notGot(err error) error {
	var ended *exit // by a signal, or because its own caller has the key
	switch {
	case errors.As(err, &ended):
		return ended
	case errors.As(err, new(*lockset.HeldError)):
		return &exit{exitNotGot, err}
	}
	return err
}

func cannotRun(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return &exit{exitNoCommand, err}
	}
	return &exit{exitCannotStart, err}
}

// waiting tells whom we wait for, and gives up if that is our own caller.
func (a *app) waiting(p *progress, waits bool, giveUp context.CancelCauseFunc) *trace.Trace {
	return hooks.OnStart(trace.Wait, func(ctx context.Context, w trace.Event) context.Context {
		switch err := a.ownCaller(w); {
		case err != nil && waits:
			giveUp(err)
		case w.Owner != "":
			p.say("holdall: waiting for key %q, held by %q%s", string(w.Key), w.Owner, plain.For(w.Purpose))
		default:
			p.say("holdall: waiting for key %q", string(w.Key))
		}
		return ctx
	})
}

// under runs a command under a set, and releases it. The set's context does not end the
// command: that is told first.
func (a *app) under(set *lockset.Set, cfg lockset.Config, path string, command []string) error {
	names := make([]string, len(set.Keys()))
	for i, key := range set.Keys() {
		names[i] = string(key)
	}
	cmd := &exec.Cmd{
		Path: path, Args: command, Stdin: a.stdin, Stdout: a.stdout, Stderr: a.stderr,
		Env: append(os.Environ(), "HOLDALL_TOKEN="+set.Token().String(), "HOLDALL_KEYS="+strings.Join(names, "\n"), "HOLDALL_UNIT="+set.Nonce(), a.withHeld(set)),
	}
	code, lost := 0, error(nil)
	child, err := startChild(cmd, isTerminal(a.stdin) && isTerminal(a.stdout))
	if err != nil {
		err = cannotRun(err)
	} else {
		code, lost = a.supervise(child, set, cfg.Margin)
	}
	patience := cfg.Lease
	if lost != nil { // others have what is left of the keys soon, whatever we do
		patience = cfg.Margin
	}
	releasing, cancel := context.WithTimeout(context.WithoutCancel(set.Context()), patience)
	defer cancel()
	released := set.Release(releasing)
	switch {
	case err != nil:
		return err
	case lost == nil && errors.Is(released, lockset.ErrLost):
		lost = released
	case lost == nil && released != nil: // its work was done under the locks
		fmt.Fprintf(a.stderr, "holdall: the keys may be held for a lease yet: %s\n", plain.Error(released))
	}
	if lost != nil {
		return &exit{exitLost, fmt.Errorf("the command was not under its locks to the end: %w", lost)}
	}
	if code != exitDone {
		return &exit{code: code}
	}
	return nil
}
