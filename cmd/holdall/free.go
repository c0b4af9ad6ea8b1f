package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

type freeFlags struct {
	unit, reason string
	now, yes     bool
}

func freeCommand(a *app) *cobra.Command {
	var f freeFlags
	cmd := &cobra.Command{
		Use:   "free KEY --unit NONCE",
		Short: "Take a key from the unit that holds it",
		Long: "free takes a key from a unit, alive or dead, which loses all of its keys: from then on its\n" +
			"commit and its renewals are refused. It learns of that when it renews, and others have the\n" +
			"key a lease later. What it does outside the tables is not stopped before it knows.\n\n" +
			"--now lets others in at once. The unit may then work beside them for up to a lease, as if it\n" +
			"had the key: give it only if the process is known to be gone.\n\n" +
			"show KEY names the unit. One that has a journal keeps its key until its journal has decided:\n" +
			"free leaves it alone, and finishes the dead with a journal, as recover does. If the unit is\n" +
			"alive, free exits with 3.",
		Example: "  holdall free customer:42 --unit 6fWqB2t0T3q4n8Y1m7cZxA --reason 'deploy hangs'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.unit == "" {
				return wrongUsage(errors.New("--unit is required: holdall show " + plain.Line(args[0]) + " names the unit that has the key"))
			}
			return a.free(cmd.Context(), ordering.Key(args[0]), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.unit, "unit", "", "`nonce` of the unit that has the key")
	flags.StringVar(&f.reason, "reason", "", "`why`, in at most 256 bytes; others see it as long as the key is kept from them")
	flags.BoolVar(&f.now, "now", false, "let others in at once, before the unit can know")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

type freed struct {
	Key  string `json:"key"`
	Unit string `json:"unit"`
	Now  bool   `json:"now"`
}

func (a *app) free(ctx context.Context, key ordering.Key, f freeFlags) error {
	a.logs = true // for whoever asks later who took the key, and why
	i, err := a.inspector(ctx, nil)
	if err != nil {
		return err
	}
	breaks := "What it does outside the tables goes on until it knows."
	if f.now {
		breaks = "Others have the key before it can know: for up to a lease both may work outside the tables."
	}
	if err := a.confirm(ctx, f.yes, fmt.Sprintf("Take key %q from unit %s? Its commit is refused from then on. %s", string(key), f.unit, breaks)); err != nil {
		return err
	}
	err = i.Free(ctx, key, f.unit, inspect.Freeing{Reason: f.reason, Now: f.now})
	var refused *inspect.FreeError
	if errors.As(err, &refused) && refused.Row.Prepared() && refused.Row.Holder.Unit == f.unit {
		fmt.Fprintf(a.stderr, "holdall: %s\n", plain.Error(err))
		a.units = refused.Row.Holder.Prepared // whatever the flags name
		return a.settle(ctx, i, key, f.unit)
	}
	if err != nil {
		return err
	}
	others, goesOn := "others can have it in a lease of the unit's", untilItKnows
	if f.now {
		others, goesOn = a.out.paint(warning, "others can have it now"), strings.Replace(untilItKnows, "is before", "may be after", 1)
	}
	a.out.line("key %s was taken from unit %s: its commit and its renewals are refused, and %s", plain.Line(string(key)), f.unit, others)
	a.out.line("%s", goesOn)
	if !f.now {
		a.out.line("Until then show names as the holder a unit of %s", plain.Line(fmt.Sprintf("%q%s", i.Config().Owner, plain.For(f.reason))))
	}
	return a.out.json(freed{string(key), f.unit, f.now})
}

// settle recovers, for a key that only a journal frees.
func (a *app) settle(ctx context.Context, i *inspect.Inspector, key ordering.Key, unit string) error {
	if err := a.recover(ctx, false, 0); err != nil {
		return err
	}
	view, err := i.Look(ctx, key)
	if h := view.Row.Holder; err == nil && h != nil && h.Unit == unit {
		return &exit{exitFound, fmt.Errorf("key %q stays with unit %s until its journal is settled", string(key), unit)}
	}
	return err
}

// untilItKnows says what a unit goes on with whose key was taken.
const untilItKnows = "What the unit does outside the tables goes on until it knows, which is before others have the key."

// confirm asks on a terminal. Elsewhere nobody answers, and --yes is required.
func (a *app) confirm(ctx context.Context, yes bool, question string) error {
	if yes {
		return nil
	}
	if !isTerminal(a.stdin) {
		return errNobodyToAsk
	}
	text, err := a.ask(ctx, question+" [y/N] ")
	if err != nil || text == "y" || text == "yes" {
		return err
	}
	return errors.New("nothing was done")
}

var errNobodyToAsk = wrongUsage(errors.New("--yes is required where nobody can be asked"))

// ask asks on a terminal, and returns the answer in lower case.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.stderr, question)
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(a.stdin).ReadString('\n')
		answer <- text
	}()
	select {
	case text := <-answer:
		return strings.ToLower(strings.TrimSpace(text)), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
