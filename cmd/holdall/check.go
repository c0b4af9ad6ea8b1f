package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

type finding struct {
	Table   string `json:"table"` // empty if it concerns this host's clock
	Problem string `json:"problem"`
	Do      string `json:"do"`
	// Advice says that everything works as it is.
	Advice bool   `json:"advice"`
	Error  string `json:"error,omitempty"`
}

func (f finding) String() string {
	text := requests.Finding{Table: f.Table, Problem: f.Problem, Do: f.Do}.String()
	if f.Advice {
		return "advice: " + text
	}
	return text
}

func checkCommand(a *app) *cobra.Command {
	var fleet bool
	var capacity float64
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what is not as holdall needs it, and what to do",
		Long: "check asks DynamoDB whether the tables are as holdall needs them: keys, state, TTL, the\n" +
			"permissions of whoever runs it, and this host's clock; protection, replicas in other Regions,\n" +
			"and whether it was throttled meanwhile. It writes nothing, and may be run at any time. Without\n" +
			"--units it looks at the lock table alone.\n\n" +
			"With --fleet it also reads all lock rows, for what processes have left there: leases that\n" +
			"differ, clocks that are ahead, rows that holdall did not write. It scans the table: a million\n" +
			"small rows are some 30,000 read capacity units.\n\n" +
			"It exits with 3 if it has found something other than advice.",
		Example: "  holdall check --table locks --units units\n  holdall check -o json | jq -r '.findings[].do'",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context(), fleet, capacity) },
	}
	cmd.Flags().BoolVar(&fleet, "fleet", false, "read all lock rows, too")
	cmd.Flags().Float64Var(&capacity, "capacity", 0, "with --fleet: `units` of read capacity a second to take at most; 0 is as many as it gets")
	return cmd
}

func (a *app) check(ctx context.Context, fleet bool, capacity float64) error {
	found, err := a.findings(ctx, fleet, capacity)
	if err != nil {
		return err
	}
	code := exitDone
	for _, f := range found {
		colour := warning
		if !f.Advice {
			code, colour = exitFound, bad
		}
		a.out.line("%s", a.out.paint(colour, f.String()))
	}
	if len(found) == 0 {
		a.out.line("%s", a.out.paint(good, "nothing found"))
	}
	return a.out.endWith(code, struct {
		OK       bool      `json:"ok"` // nothing but advice
		Findings []finding `json:"findings"`
	}{code == exitDone, found})
}

// findings are all: the library's first.
func (a *app) findings(ctx context.Context, fleet bool, capacity float64) ([]finding, error) {
	var sent, throttled atomic.Int64
	units, err := a.unitsClient(ctx, func(cfg *unitofwork.Config) {
		cfg.Trace = hooks.On(trace.Request, func(_ context.Context, r trace.Event) {
			sent.Add(1)
			var api smithy.APIError
			// What was signed by a wrong clock was not throttled, and the clock is a finding of its own; nor was
			// what was signed with credentials that have expired.
			if r.Answer == "busy" && !requests.ConcernsAll(r.Err) && !(errors.As(r.Err, &api) && strings.Contains(api.ErrorMessage(), "Signature")) {
				throttled.Add(1)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	found := []finding{}
	err = units.Check(ctx)
	var check *requests.CheckError
	switch {
	case errors.As(err, &check):
		for _, f := range check.Findings {
			found = append(found, finding{Table: f.Table, Problem: f.Problem, Do: f.Do, Error: plain.Error(f.Err)})
		}
	case err != nil:
		return nil, err
	}
	if requests.ConcernsAll(err) { // nothing else would be answered
		return found, nil
	}
	tables, err := a.checkTables(ctx)
	if err != nil {
		return nil, err
	}
	found = append(found, tables...)
	if fleet {
		rows, err := a.checkFleet(ctx, units.Locks().Config(), capacity)
		if err != nil {
			return nil, err
		}
		found = append(found, rows...)
	}
	return append(found, ofThrottling(a.table, throttled.Load(), sent.Load())...), nil
}
