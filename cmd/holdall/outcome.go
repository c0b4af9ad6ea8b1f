package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/unitofwork"
)

// refPrefix begins every Ref, and no ID.
const refPrefix = "unit:"

func outcomeCommand(a *app) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "outcome {REF | --id ID}",
		Short: "Say what became of a unit",
		Long: "outcome says whether a unit is committed: by the Ref of an InDoubtError, which its text and\n" +
			"its field have, or by the ID that the unit was given.\n\n" +
			"By an ID it is committed if any unit was committed under it; else it is undecided, since one\n" +
			"may yet be. It is told by the exit code, too: 0 committed, 3 not committed, 4 undecided,\n" +
			"5 forgotten.",
		Example: "  holdall outcome --id payment-4711\n  holdall outcome 'unit:6fWq…:1764000000000000:1764000000::customer:42'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.outcome(cmd.Context(), args, id)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "`ID` of the unit, as Work.ID has it")
	return cmd
}

// outcomes is what there is to say about each, and how to exit.
var outcomes = map[unitofwork.Outcome]struct {
	code          int
	colour, words string
}{
	unitofwork.Committed:    {exitDone, good, "all its writes are done, or will be by whoever comes by"},
	unitofwork.NotCommitted: {exitFound, bad, "none of its writes is done, and none ever will be"},
	unitofwork.Undecided:    {exitUndecided, warning, "it may yet be committed: ask again"},
	unitofwork.Forgotten:    {exitForgotten, warning, "nothing names it any more"},
}

// subject returns what to ask about: exactly one of a Ref and an ID.
func subject(args []string, id string) (string, error) {
	switch {
	case (len(args) == 0) == (id == ""):
		return "", wrongUsage(errors.New("give either the Ref of a unit, or --id and its ID"))
	case id != "" && strings.HasPrefix(id, refPrefix):
		return "", wrongUsage(errors.New("--id: this is a Ref: give it without --id"))
	case id != "":
		return id, nil
	case !strings.HasPrefix(args[0], refPrefix):
		return "", wrongUsage(errors.New("a Ref begins with " + refPrefix + "; an ID is given with --id"))
	}
	return args[0], nil
}

func (a *app) outcome(ctx context.Context, args []string, id string) error {
	about, err := subject(args, id)
	if err != nil {
		return err
	}
	if id != "" {
		if err := a.needUnits(); err != nil {
			return err
		}
	}
	units, err := a.unitsClient(ctx, nil)
	if err != nil {
		return err
	}
	outcome, err := units.Outcome(ctx, about)
	if err != nil {
		return err
	}
	is := outcomes[outcome]
	words := is.words
	if id != "" && outcome == unitofwork.Undecided {
		words = "nothing was committed under this ID, and may yet be"
	}
	a.out.line("%s: %s", a.out.paint(is.colour, outcome.String()), words)
	return a.out.endWith(is.code, struct {
		Asked   string `json:"asked"` // the Ref or the ID
		Outcome string `json:"outcome"`
	}{about, outcome.String()})
}
