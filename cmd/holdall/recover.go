package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

type recovered struct {
	Committed []string `json:"committed"`
	Aborted   []string `json:"aborted"`
	Alive     []string `json:"alive"`
	Errors    []string `json:"errors"`
}

func recoverCommand(a *app) *cobra.Command {
	var watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Finish what processes left behind that died with a large unit",
		Long: "recover looks for units with a journal that are not done with, and finishes those whose\n" +
			"processes are dead: what they had committed is done, what they had not never will be. It\n" +
			"watches each for a lease. It may run anywhere, any number of times, and beside your\n" +
			"processes; it needs the permissions for the tables that those units write.\n\n" +
			"It exits with 1 if a unit could not be finished; the others were. With --watch it does so\n" +
			"again and again until it is stopped, and says with -o json in a line what each round found.",
		Example: "  holdall recover\n  holdall recover --watch --every 5m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every <= 0 {
				return wrongUsage(errors.New("--every must be above zero"))
			}
			return a.recover(cmd.Context(), watch, every)
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "go on until stopped")
	cmd.Flags().DurationVar(&every, "every", time.Minute, "with --watch: `time` between the end of a round and the next")
	return cmd
}

func (a *app) recover(ctx context.Context, watch bool, every time.Duration) error {
	if err := a.needUnits(); err != nil {
		return err
	}
	units, p, err := a.recoverer(ctx)
	if err != nil {
		return err
	}
	return a.rounds(ctx, watch, every, func() error { return a.recoverOnce(ctx, units, p) })
}

// rounds calls round, and if it is to go on, again and again until it is stopped: every is the time
// between the end of one and the next.
func (a *app) rounds(ctx context.Context, goesOn bool, every time.Duration, round func() error) error {
	for n := 1; ; n++ {
		err := round()
		switch {
		case !goesOn || n == 1 && hopeless(err):
			return err
		case ctx.Err() != nil: // which ends it, whether this round was over or not
			return context.Cause(ctx)
		case err != nil && !codeSaysAll(err):
			fmt.Fprintf(a.stderr, "holdall: %s\n", plain.Error(err))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
	}
}

// hopeless reports whether nothing but another call can help: if that is so at first,
// nobody wants to watch.
func hopeless(err error) bool {
	return errors.As(err, new(*lockset.TableError)) || errors.As(err, new(*locks.ConfigError))
}

// recoverer returns a client that says what it recovers.
func (a *app) recoverer(ctx context.Context) (*unitofwork.Client, *progress, error) {
	p := newProgress(a.stderr)
	units, err := a.unitsClient(ctx, func(cfg *unitofwork.Config) { cfg.Trace = a.recovering(p) })
	return units, p, err
}

// recovering has the hooks that tell how far it has come.
func (a *app) recovering(p *progress) *trace.Trace {
	return trace.Join(
		hooks.On(trace.Progress, func(_ context.Context, i trace.Event) {
			of := ""
			if i.Of > 0 {
				of = fmt.Sprintf(" of %d", i.Of)
			}
			p.say("unit %s: %s %d%s", i.Unit, i.Phase, i.Done, of)
		}),
		hooks.On(trace.Recovered, func(_ context.Context, i trace.Event) {
			p.clear()
			if i.Outcome == hooks.Committed {
				a.out.line("unit %s: %s, and all of it is done now", i.Unit, a.out.paint(good, "committed"))
			} else {
				a.out.line("unit %s: %s, it never was committed", i.Unit, a.out.paint(warning, "aborted"))
			}
		}),
	)
}

// recoverOnce is a round. Its error joins those of the units that could not be finished.
func (a *app) recoverOnce(ctx context.Context, units *unitofwork.Client, p *progress) error {
	found, err := recoverAll(ctx, units, p)
	if ctx.Err() != nil {
		return err
	}
	for _, unit := range found.Alive {
		a.out.line("unit %s: %s, left alone", unit, a.out.paint(good, "alive"))
	}
	if len(found.Committed)+len(found.Aborted)+len(found.Alive) == 0 && err == nil {
		a.out.line("no unit is left to finish")
	}
	list := func(of []string) []string { return append([]string{}, of...) } // in JSON, one that is empty is a list
	said := a.out.json(recovered{list(found.Committed), list(found.Aborted), list(found.Alive), texts(requests.Joined(err))})
	return errors.Join(err, said)
}

// recoverAll is Recover, with the line of progress.
func recoverAll(ctx context.Context, units *unitofwork.Client, p *progress) (unitofwork.Recovery, error) {
	defer p.clear()
	p.say("looking for units that are not done with; each is watched for a lease of %v", units.Locks().Config().Lease)
	return units.Recover(ctx)
}

// texts are those of errors, for JSON.
func texts(errs []error) []string {
	all := []string{}
	for _, err := range errs {
		all = append(all, plain.Error(err))
	}
	return all
}
