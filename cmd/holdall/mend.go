package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// mendFlags are those of mend alone: states of obstacles, by what is to be done about each.
type mendFlags struct {
	apply, keep, written, notWritten []string
	yes                              bool
}

func mendCommand(a *app) *cobra.Command {
	var f mendFlags
	cmd := &cobra.Command{
		Use:   "mend [UNIT]",
		Short: "Decide what is to become of a committed unit that cannot be finished",
		Long: "A unit is stuck if it is committed and cannot be finished: somebody has written one of its\n" +
			"records without the lock, or deleted one of its lock rows. Its keys stay locked until somebody\n" +
			"who knows the records decides what is right.\n\n" +
			"Without a unit, mend finishes what can be finished, as recover does, and lists the units that\n" +
			"are stuck. With the nonce of a unit it shows of each record what stands there and what the unit\n" +
			"wants to write, of each key whose row is gone what is under it, and asks:\n\n" +
			"  apply        do the unit's write on the record as it stands\n" +
			"  keep         leave the record as it stands, and count the write as done\n" +
			"  written      the row is gone, and all under the key was written\n" +
			"  not-written  the row is gone, and something under the key may not have been written\n\n" +
			"Scripts choose by flags. Each takes the state that mend shows, so nothing is done about\n" +
			"anything but what was looked at: if it has changed, it is refused and shown anew. A choice is\n" +
			"one transaction; if mend ends between two of them, run it again. The unit is finished after\n" +
			"the last one. It exits with 3 as long as a unit is stuck.\n\n" +
			"A nonce may begin with a dash: it stands behind --, after all flags.",
		Example: "  holdall mend\n  holdall mend 6fWqB2t0T3q4n8Y1m7cZxA\n  holdall mend --keep bc6c2da3383b --yes -- 6fWqB2t0T3q4n8Y1m7cZxA",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			choices, err := f.choices()
			switch {
			case err != nil:
				return wrongUsage(err)
			case len(args) == 0 && len(choices) > 0:
				return wrongUsage(errors.New("name the unit that the choices are about"))
			case len(choices) > 0 && !f.yes && !isTerminal(a.stdin):
				return errNobodyToAsk
			}
			if err := a.needUnits(); err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listStuck(cmd.Context())
			}
			return a.mend(cmd.Context(), args[0], choices, f.yes)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; a unit whose nonce begins with - stands behind --, as in: holdall mend -- UNIT", err)
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&f.apply, "apply", nil, "do the unit's write where the record has this `state`")
	flags.StringSliceVar(&f.keep, "keep", nil, "keep the record that has this `state`")
	flags.StringSliceVar(&f.written, "written", nil, "all was written under the key that has this `state`")
	flags.StringSliceVar(&f.notWritten, "not-written", nil, "not all was written under the key that has this `state`")
	flags.BoolVar(&f.yes, "yes", false, "do not ask whether the choices are meant")
	return cmd
}

// choices are the flags by state.
func (f *mendFlags) choices() (map[string]string, error) {
	by := map[string]string{}
	for choice, states := range map[string][]string{
		"apply": f.apply, "keep": f.keep, "written": f.written, "not-written": f.notWritten,
	} {
		for _, state := range states {
			if by[state] != "" {
				return nil, fmt.Errorf("state %q: there are two choices about it", state)
			}
			by[state] = choice
		}
	}
	return by, nil
}

type stuckJSON struct {
	Stuck  []stuckUnit `json:"stuck"`
	Errors []string    `json:"errors"` // of what could not be asked
}

type stuckUnit struct {
	Unit     string   `json:"unit"`
	Problems []string `json:"problems"`
}

// listStuck recovers, and lists what that left.
func (a *app) listStuck(ctx context.Context) error {
	units, p, err := a.recoverer(ctx)
	if err != nil {
		return err
	}
	_, err = recoverAll(ctx, units, p)
	if ctx.Err() != nil {
		return err
	}
	stuck, others := stuckUnits(requests.Joined(err))
	for _, s := range stuck {
		a.out.line("unit %s is %s", s.Unit, a.out.paint(bad, "stuck"))
		for _, problem := range s.Problems {
			a.out.line("  %s", plain.Line(problem))
		}
	}
	switch {
	case len(stuck) > 0:
		a.out.line("holdall mend -- UNIT shows what can be done")
	case len(others) == 0:
		a.out.line("no unit is stuck")
	}
	code := exitDone
	if len(stuck) > 0 && len(others) == 0 {
		code = exitFound
	}
	return errors.Join(append(others, a.out.endWith(code, stuckJSON{stuck, texts(others)}))...)
}

// stuckUnits are those that errors of Recover are about, and the errors about none.
func stuckUnits(errs []error) (stuck []stuckUnit, others []error) {
	stuck = []stuckUnit{}
	for _, err := range errs {
		e, is := err.(*unitofwork.UnappliedError) //nolint:errorlint // of an error of Recover's own
		if !is {
			others = append(others, err)
			continue
		}
		i := slices.IndexFunc(stuck, func(s stuckUnit) bool { return s.Unit == e.Unit })
		if i < 0 {
			i, stuck = len(stuck), append(stuck, stuckUnit{Unit: e.Unit})
		}
		stuck[i].Problems = append(stuck[i].Problems, plain.Error(err))
	}
	return stuck, others
}

// mend goes through what keeps a unit from being done, until nothing does, or nobody chooses.
func (a *app) mend(ctx context.Context, unit string, choices map[string]string, yes bool) error {
	a.logs = true // for whoever asks later what was chosen
	units, err := a.unitsClient(ctx, nil)
	if err != nil {
		return err
	}
	said := mendedJSON{Unit: unit, Obstacles: []obstacleJSON{}, Chosen: []chosenJSON{}}
	left := map[string]bool{} // states that the operator leaves as they are
	asks := len(choices) == 0 && isTerminal(a.stdin) && !a.out.asJSON()
	for {
		obstacles, err := units.StuckOf(ctx, unit)
		if unapplied := (*unitofwork.UnappliedError)(nil); errors.As(err, &unapplied) && unapplied.Key == "" {
			return a.noJournal(said, err)
		}
		if err != nil && len(obstacles) == 0 {
			return err
		}
		if len(obstacles) == 0 {
			said.Done = true
			a.sayUnused(choices)
			a.out.line("unit %s: %s, nothing is left to mend", unit, a.out.paint(good, "done"))
			return a.out.json(said)
		}
		chosen := 0
		for _, o := range obstacles {
			if left[o.State] {
				continue
			}
			a.sayObstacle(o)
			choice, err := a.choose(ctx, o, choices, asks, yes)
			if err != nil {
				return err
			}
			if choice == "" {
				left[o.State] = true
				continue
			}
			delete(choices, o.State)
			if err := units.Mend(ctx, o, choice); err != nil {
				fmt.Fprintf(a.stderr, "holdall: %s\n", plain.Error(err))
				if lockset.NextOf(err) != lockset.StartOver { // else it has changed: look again
					left[o.State] = true
					continue
				}
			} else {
				a.out.line("  %s", a.out.paint(good, choice+": done"))
				said.Chosen = append(said.Chosen, chosenJSON{o.State, choice})
			}
			chosen++
		}
		if chosen == 0 {
			if err != nil { // what else there is
				fmt.Fprintf(a.stderr, "holdall: %s\n", plain.Error(err))
			}
			return a.stillStuck(said, obstacles, choices)
		}
	}
}

// sayUnused says of choices that they were not carried out: somebody else may have chosen
// otherwise.
func (a *app) sayUnused(choices map[string]string) {
	for state, choice := range choices {
		fmt.Fprintf(a.stderr, "holdall: --%s %s: nothing has this state, or not any more\n", choice, state)
	}
}

func (a *app) stillStuck(said mendedJSON, obstacles []unitofwork.Obstacle, choices map[string]string) error {
	a.sayUnused(choices)
	for _, o := range obstacles {
		said.Obstacles = append(said.Obstacles, obstacleToJSON(o))
	}
	a.out.line("unit %s: still %s", said.Unit, a.out.paint(bad, "stuck"))
	return a.out.endWith(exitFound, said)
}

// noJournal says of a unit whose journal is damaged that there is no choice.
func (a *app) noJournal(said mendedJSON, err error) error {
	said.Problem = plain.Error(err)
	a.out.line("%s", plain.Line(said.Problem))
	a.out.line("There is no choice here. Restore the rows of the unit (attributes unit and part) from a backup of the\n" +
		"unit table into the table that is in use, and run: holdall recover")
	return a.out.endWith(exitFound, said)
}

// choose finds out what is to be done about an obstacle: by flags, or where it asks; "" leaves it.
func (a *app) choose(ctx context.Context, o unitofwork.Obstacle, choices map[string]string, asks, yes bool) (string, error) {
	choice := choices[o.State]
	switch {
	case choice != "" && !slices.Contains(o.Choices, choice):
		return "", wrongUsage(fmt.Errorf("--%s %s: that cannot be done here", choice, o.State))
	case choice != "":
		return choice, a.confirm(ctx, yes, fmt.Sprintf("%s, %s?", whereIs(o), choice))
	case len(o.Choices) == 0 || !asks:
		return "", nil
	}
	for {
		answer, err := a.ask(ctx, "  "+strings.Join(o.Choices, ", ")+" or leave? [leave] ")
		if err != nil || answer == "" || answer == "leave" {
			return "", err
		}
		if slices.Contains(o.Choices, answer) {
			return answer, nil
		}
	}
}
