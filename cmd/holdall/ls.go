package main

import (
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

type lsFlags struct {
	only  []selection // one at most
	watch bool
	every time.Duration
	list  inspect.ListOptions
}

// selection is a flag that chooses rows: by what the table tells, and by what a watch has to find out.
type selection struct {
	flag, usage string
	wants       func(inspect.Row) bool
	life        string
}

var selections = []selection{
	{"held", "only keys that a unit holds", inspect.Row.Held, ""},
	{"waiting", "only keys that units wait for", inspect.Row.Awaited, ""},
	{"prepared", "only keys of units with a journal that decides about them", inspect.Row.Prepared, ""},
	{"dead", "only keys of the dead; watches for up to a lease", hasSomebody, "dead"},
	{"alive", "only keys of the living; watches for up to a lease", hasSomebody, "alive"},
	{"all", "also keys that nobody has or wants", func(inspect.Row) bool { return true }, ""},
}

func hasSomebody(r inspect.Row) bool { return r.Held() || r.Awaited() }

// selection is the one that was given, or that of all keys that somebody has or wants.
func (f *lsFlags) selection() selection {
	if len(f.only) > 0 {
		return f.only[0]
	}
	return selection{wants: func(r inspect.Row) bool { return !r.Idle() }}
}

func lsCommand(a *app) *cobra.Command {
	var f lsFlags
	given := map[string]*bool{}
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List who has which keys, and who waits",
		Long: "ls lists the keys that are held, or have keys held below them, or are waited for. PREFIX\n" +
			"is how the keys begin: customer:4 finds customer:42, customer:4/ only what is below it.\n\n" +
			"It scans the whole table: a million small rows are some 30,000 read capacity units.\n" +
			"--capacity says how many that may take a second.\n\n" +
			"Whether a holder is alive is not in the table. --dead and --alive look again and again,\n" +
			"for up to a lease. The head of a queue that leaves a free key untaken is dead, too.",
		Example: "  holdall ls customer:42\n  holdall ls --dead\n  holdall ls --capacity 100 -o json | jq -r .key",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.list.Prefix = strings.Join(args, "") // of one at most
			for _, s := range selections {
				if *given[s.flag] {
					f.only = append(f.only, s)
				}
			}
			if err := f.check(); err != nil {
				return wrongUsage(err)
			}
			return a.ls(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	for _, s := range selections {
		given[s.flag] = flags.Bool(s.flag, false, s.usage)
	}
	flags.BoolVar(&f.watch, "watch", false, "list again and again, until it is interrupted")
	flags.DurationVar(&f.every, "every", 5*time.Second, "`time` between two lists of --watch")
	flags.Float64Var(&f.list.Units, "capacity", 0, "`units` of read capacity a second that the scan may take on average; 0 is as many as it gets")
	flags.BoolVar(&f.list.Consistent, "consistent", false, "read consistently, for twice the capacity")
	return cmd
}

// check says which flags do not go together.
func (f *lsFlags) check() error {
	switch {
	case len(f.only) > 1:
		return errors.New("give one of --held, --waiting, --prepared, --dead, --alive and --all")
	case f.watch && f.selection().life != "":
		return errors.New("--watch shows who is alive and who is dead: it does not go with --dead and --alive")
	case f.watch && f.every <= 0 || f.list.Units < 0:
		return errors.New("--every is more than zero, and --capacity not less")
	}
	return nil
}

// inspector looks at the lock table. change may be nil.
func (a *app) inspector(ctx context.Context, change func(*lockset.Config)) (*inspect.Inspector, error) {
	cfg, db, err := a.connected(ctx)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&cfg)
	}
	return inspect.New(db, cfg)
}

// How many rows are in memory at a time, so that they can be sorted, aligned and watched.
// The rest of a longer list follows in parts like this one.
const mostRows = 5000

func (a *app) ls(ctx context.Context, f lsFlags) error {
	i, err := a.inspector(ctx, nil)
	if err != nil {
		return err
	}
	if f.watch {
		return a.watchList(ctx, i, f)
	}
	part, listed := []inspect.Row{}, 0
	tell := func() error {
		sightings, err := a.sight(ctx, i, f, part)
		if err != nil {
			return err
		}
		listed += len(sightings)
		err = a.printRows(sightings, f.selection().life != "", listed > len(sightings))
		part = part[:0]
		return err
	}
	for r, err := range a.list(ctx, i, f) {
		if err != nil {
			return err
		}
		if part = append(part, r); len(part) == mostRows {
			if err := tell(); err != nil {
				return err
			}
		}
	}
	if err := tell(); err != nil {
		return err
	}
	if listed == 0 {
		a.out.line("%s", a.out.paint(faint, "no such keys"))
	}
	return nil
}

// list lists the rows that are wanted, those that are damaged among them, and says on a
// terminal how far it has come, unless that is told elsewhere.
func (a *app) list(ctx context.Context, i *inspect.Inspector, f lsFlags) func(func(inspect.Row, error) bool) {
	return func(yield func(inspect.Row, error) bool) {
		told := newProgress(a.stderr)
		defer told.clear()
		if f.list.Progress == nil {
			f.list.Progress = told.listed
		}
		for r, err := range i.List(ctx, f.list) {
			switch {
			case err != nil && r.Damage == "":
				yield(r, err)
				return
			case !f.selection().wants(r):
			case !yield(r, nil):
				return
			}
		}
	}
}

// sight has what is known of rows: they are watched if that was asked for.
func (a *app) sight(ctx context.Context, i *inspect.Inspector, f lsFlags, rows []inspect.Row) ([]inspect.Sighting, error) {
	slices.SortFunc(rows, func(x, y inspect.Row) int { return ordering.Compare(x.Key, y.Key) })
	sightings := make([]inspect.Sighting, len(rows))
	keys := make([]ordering.Key, len(rows))
	for n, r := range rows {
		sightings[n], keys[n] = inspect.Sighting{Row: r}, r.Key
	}
	life := f.selection().life
	if life == "" || len(keys) == 0 {
		return sightings, nil
	}
	sightings, err := a.watch(ctx, i, keys)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(sightings, func(s inspect.Sighting) bool { return s.Life != life }), nil
}

// watch watches keys, and says on a terminal how many are known.
func (a *app) watch(ctx context.Context, i *inspect.Inspector, keys []ordering.Key) ([]inspect.Sighting, error) {
	told := newProgress(a.stderr)
	defer told.clear()
	return i.Watch(ctx, keys, told.watched)
}

// printRows prints a part of a list; lives are shown if they were looked for.
func (a *app) printRows(sightings []inspect.Sighting, lives, goesOn bool) error {
	if a.out.asJSON() {
		for _, s := range sightings {
			if err := a.out.json(jsonOf(s.Row, s)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(sightings) == 0 {
		return nil
	}
	head := []string{"KEY", "STATE", "OWNER", "SINCE", "LIFE", "WAITING", "UNIT"}
	life := slices.Index(head, "LIFE")
	var t columns
	var paint []string // the colour of each row
	if !goesOn {
		t, paint = columns{head}, []string{faint}
	}
	now := time.Now()
	for _, s := range sightings {
		t, paint = append(t, cells(s, now)), append(paint, colourOf(s))
	}
	if !lives {
		t.drop(life)
	}
	for n, line := range t.lines() {
		a.out.line("%s", a.out.paint(paint[n], plain.Line(line)))
	}
	return nil
}

func cells(s inspect.Sighting, now time.Time) []string {
	r := s.Row
	state, owner, since, unit, waiting := plain.State(r), "", "", "", ""
	switch {
	case r.Damage != "":
		owner = r.Damage
	case r.Held():
		owner, unit = r.Holder.Owner+plain.For(r.Holder.Purpose), r.Holder.Unit
		if !r.Holder.Since.IsZero() {
			since = plain.Ago(now.Sub(r.Holder.Since))
		}
	case len(r.Intents) > 0:
		state = fmt.Sprintf("%d %s", len(r.Intents), plain.Below)
	}
	if r.Awaited() {
		waiting = fmt.Sprint(len(r.Queue))
	}
	return []string{string(r.Key), state, owner, since, plain.Life(s), waiting, unit}
}

func colourOf(s inspect.Sighting) string {
	switch {
	case s.Row.Damage != "", s.Life == "dead":
		return bad
	case s.Row.Prepared():
		return warning
	case s.Life == "alive":
		return good
	}
	return ""
}
