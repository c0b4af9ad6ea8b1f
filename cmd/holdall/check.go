package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/lockset"
)

// finding is one line of check in JSON.
type finding struct {
	Table   string `json:"table"` // empty if it concerns this host's clock
	Problem string `json:"problem"`
	Do      string `json:"do"`
	Error   string `json:"error,omitempty"`
}

func checkCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Say what is not as holdall needs it, and what to do",
		Long: "check asks DynamoDB whether the tables are as holdall needs them: keys, state, TTL, the\n" +
			"permissions of whoever runs it, and this host's clock. It writes nothing, and may be run\n" +
			"at any time. Without --units it looks at the lock table alone.\n\n" +
			"It exits with 3 if it has found something.",
		Example: "  holdall check --table locks --units units\n  holdall check -o json | jq -r '.findings[].do'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.check(cmd) },
	}
}

func (a *app) check(cmd *cobra.Command) error {
	ctx := cmd.Context()
	units, err := a.unitsClient(ctx, nil)
	if err != nil {
		return err
	}
	err = units.Check(ctx)
	var check *lockset.CheckError
	if err != nil && !errors.As(err, &check) {
		return err
	}
	found := []finding{}
	if check != nil {
		for _, f := range check.Findings {
			one := finding{Table: f.Table, Problem: f.Problem, Do: f.Do}
			if f.Err != nil {
				one.Error = oneLine(f.Err)
			}
			found = append(found, one)
			a.out.line("%s", a.out.paint(bad, f.String()))
		}
	}
	if len(found) == 0 {
		a.out.line("%s", a.out.paint(good, "nothing found"))
	}
	if err := a.out.json(struct {
		OK       bool      `json:"ok"`
		Findings []finding `json:"findings"`
	}{len(found) == 0, found}); err != nil {
		return err
	}
	if len(found) > 0 {
		return &exit{code: exitFound}
	}
	return nil
}
