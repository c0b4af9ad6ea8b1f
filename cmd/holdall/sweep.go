package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

type sweepFlags struct {
	every  time.Duration
	dryRun bool
	list   inspect.ListOptions
}

func sweepCommand(a *app) *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep [PREFIX]",
		Short: "Free the keys of the dead, also where nobody waits for them",
		Long: "sweep lists the keys that somebody has or waits for, watches them for up to a lease, and\n" +
			"does about the dead what a unit does that waits for them: it frees their keys, removes\n" +
			"what they left on the keys above, and drops them from queues. Whoever shows a sign of life\n" +
			"is not touched. PREFIX is how the keys begin, as in ls. With --units it also finishes dead\n" +
			"units with a journal, as recover does; without, it leaves their keys as they are.\n\n" +
			"One may run, or several: as a scheduled job, as a service with --every, or for a time that is\n" +
			"shorter than a lease, ended by SIGTERM or SIGINT. Then it writes into the rows for how long\n" +
			"it has watched them, and the next one begins there. SIGKILL leaves no time for that.\n\n" +
			"It does not stop work outside the tables: a process that was only asleep learns at its next\n" +
			"request that it has lost its keys, and its commits are refused.\n\n" +
			"It exits with 3 if a key of the dead, or one that holdall cannot read, was kept and needs\n" +
			"somebody. With --every it goes on until it is stopped.",
		Example: "  holdall sweep --dry-run\n  holdall sweep customer:42\n  holdall sweep --every 1m --capacity 100 -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.list.Prefix = strings.Join(args, "") // of one at most
			if cmd.Flags().Changed("every") && f.every <= 0 || f.list.Units < 0 {
				return wrongUsage(errors.New("--every is more than zero, and --capacity not less"))
			}
			return a.sweep(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.every, "every", 0, "go on until stopped; `time` between the end of a round and the next")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and write nothing")
	flags.Float64Var(&f.list.Units, "capacity", 0, "`units` of read capacity a second that the list may take on average; 0 is as many as it gets")
	return cmd
}

func (a *app) sweep(ctx context.Context, f sweepFlags) error {
	units, p, err := a.recoverer(ctx)
	if err != nil {
		return err
	}
	i, err := a.inspector(ctx, nil)
	if err != nil {
		return err
	}
	return a.rounds(ctx, f.every > 0, f.every, func() error {
		defer p.clear()
		s := &sweeping{app: a, flags: f, locks: units.Locks(), progress: p, tally: tally{of: map[string]int{}}}
		err := s.round(ctx, i)
		return cmp.Or(context.Cause(ctx), err) // whether it was over or not
	})
}

// codeSaysAll reports whether an error is a code alone: all was said before.
func codeSaysAll(err error) bool {
	var e *exit
	return errors.As(err, &e) && e.err == nil
}

type sweeping struct {
	*app
	flags    sweepFlags
	locks    *lockset.Client
	progress *progress

	part   []ordering.Key
	weight int // of the part: its keys, and the intents on their rows
	tally  tally
}

// round sweeps a table in parts of so many rows and intents as ls has in memory.
func (s *sweeping) round(ctx context.Context, i *inspect.Inspector) error {
	list := s.flags.list
	list.Progress = s.progress.listed
	for r, err := range i.List(ctx, list) {
		switch {
		case err != nil && r.Damage == "":
			return err
		case r.Damage != "":
			if err := s.tell(inspect.Swept{Key: r.Key, Deed: "kept", Err: err}); err != nil {
				return err
			}
		case !r.Idle(), r.ExpiresAt.IsZero():
			s.part, s.weight = append(s.part, r.Key), s.weight+1+len(r.Intents)
		}
		if s.weight >= mostRows {
			if err := s.sweepPart(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.sweepPart(ctx); err != nil {
		return err
	}
	s.progress.clear()
	s.out.line("%s", s.tally.words(s.flags.dryRun))
	if s.tally.of["kept"] > 0 {
		return &exit{code: exitFound}
	}
	return nil
}

func (s *sweeping) sweepPart(ctx context.Context) error {
	if len(s.part) == 0 {
		return nil
	}
	slices.SortFunc(s.part, ordering.Compare)
	all, err := inspect.Sweep(ctx, s.locks, s.part, inspect.SweepOptions{DryRun: s.flags.dryRun, Progress: s.progress.watched})
	s.part, s.weight = s.part[:0], 0
	s.progress.clear()
	for _, one := range all {
		if err := s.tell(one); err != nil {
			return err
		}
	}
	return err
}

// sweptJSON is what was done about a key, or would be. Its names stay as they are.
type sweptJSON struct {
	Key           string  `json:"key"`
	Did           string  `json:"did"` // freed, settled, cleaned, dropped, kept
	DryRun        bool    `json:"dryRun,omitempty"`
	Unit          string  `json:"unit,omitempty"`
	Owner         string  `json:"owner,omitempty"`
	Purpose       string  `json:"purpose,omitempty"`
	Witness       string  `json:"witness,omitempty"` // of an intent: the key that it was left for
	SilentSeconds float64 `json:"silentSeconds,omitempty"`
	Error         string  `json:"error,omitempty"` // why it was kept
}

// tell says what was done; of those that were left alone, only how many there are.
func (s *sweeping) tell(did inspect.Swept) error {
	s.tally.count(did)
	if did.Deed == "" {
		return nil
	}
	colour := good
	if did.Deed == "kept" {
		colour = bad
	}
	s.out.line("%s", s.out.paint(colour, plain.Line(sweptWords(did, s.flags.dryRun))))
	return s.out.json(sweptJSON{
		Key: string(did.Key), Did: didWord(did.Deed), DryRun: s.flags.dryRun, Unit: did.Unit, Owner: did.Owner, Purpose: did.Purpose,
		Witness: string(did.Witness), SilentSeconds: inSeconds(did.For),
		Error: plain.Error(did.Err),
	})
}

// didWord is the word for it in JSON and in sums.
func didWord(d string) string {
	if d == "buried" {
		return "freed"
	}
	return d
}

// sweptWords says what was done about a key, or would be, to whoever is on call.
func sweptWords(did inspect.Swept, dryRun bool) string {
	who := plain.Unit(did.Unit, did.Owner, did.Purpose)
	done := func(what string) string {
		if dryRun {
			return "would be " + what
		}
		return what
	}
	text := string(did.Key) + ": "
	switch did.Deed {
	case "buried":
		text += done("freed") + "; " + who + " is dead"
	case "settled":
		text += done("settled by the journal of its unit") + "; " + who + " is dead"
	case "cleaned":
		return text + done("cleared") + " of what " + who + " has left for " + string(did.Witness)
	case "dropped":
		lost := "lost its place in the queue"
		if dryRun {
			lost = done("dropped from the queue")
		}
		text += who + " " + lost + ": it left the key untaken"
	default:
		return text + "kept: " + plain.Error(did.Err)
	}
	if did.For > 0 {
		text += ", silent for " + did.For.Truncate(time.Second).String()
	}
	return text
}

type tally struct {
	of    map[string]int
	alive int
}

func (t *tally) count(did inspect.Swept) {
	t.of[did.Deed]++
	if did.Deed == "" && did.Life == "alive" {
		t.alive++
	}
}

func (t *tally) words(dryRun bool) string {
	var parts []string
	for _, d := range []string{"buried", "settled", "cleaned", "dropped", "kept"} {
		if n := t.of[d]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, didWord(d)))
		}
	}
	text := "nobody is dead"
	switch {
	case len(parts) > 0 && dryRun:
		text = "would be: " + strings.Join(parts, ", ")
	case len(parts) > 0:
		text = strings.Join(parts, ", ")
	}
	text += fmt.Sprintf("; %d alive", t.alive)
	if dryRun {
		text += "; nothing was written"
	}
	return text
}
