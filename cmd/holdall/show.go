package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func showCommand(a *app) *cobra.Command {
	var noWatch bool
	var below int
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show who has a key, who waits for it, and what is above and below it",
		Long: "show says in words and in a picture who has a key, since when, whether it is alive, who\n" +
			"waits, what is held above and below, and what is decided about a unit with a journal.\n\n" +
			"Whether a holder is alive is not in the table: show looks again and again, for up to a\n" +
			"lease, until it sees a sign of life or may call it dead. Silence from before it began to\n" +
			"look does not count.",
		Example: "  holdall show customer:42/account:1\n  holdall show --no-watch customer:42 -o json | jq .row.holder",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := ordering.Key(args[0])
			if err := key.Validate(); err != nil {
				return wrongUsage(err)
			}
			return a.show(cmd.Context(), key, !noWatch, below)
		},
	}
	cmd.Flags().BoolVar(&noWatch, "no-watch", false, "look once, and do not say who is alive")
	cmd.Flags().IntVar(&below, "below", 0, "also list up to `n` keys below it; scans the table")
	return cmd
}

// shown is all that show has found out about a key.
type shown struct {
	inspect.View
	Below     []inspect.Row // that are not idle, as many as were asked for
	MoreBelow bool
	lives     map[ordering.Key]inspect.Sighting // of what was watched
	journal   *unitofwork.JournalState          // nil if it was not looked for
	units     string                            // the unit table that was asked
	unasked   error                             // why it could not be asked
	now       time.Time
	goesOn    bool // watching does
}

func (a *app) show(ctx context.Context, key ordering.Key, watch bool, below int) error {
	i, err := a.inspector(ctx, nil)
	if err != nil {
		return err
	}
	found := shown{lives: map[ordering.Key]inspect.Sighting{}}
	look := func() (err error) {
		if found.View, err = i.Look(ctx, key); err == nil && below > 0 {
			found.Below, found.MoreBelow, err = i.Below(ctx, key, below, inspect.ListOptions{})
		}
		return err
	}
	if err := look(); err != nil {
		return err
	}
	if keys := found.keysToWatch(); watch && len(keys) > 0 {
		seen, err := a.watch(ctx, i, keys)
		if err != nil {
			return err
		}
		for _, s := range seen {
			found.lives[s.Row.Key] = s
		}
		// What was watched has gone on: all of it is shown as of one moment again.
		if err := look(); err != nil {
			return err
		}
		found.forgetOthers()
	}
	open := func(ctx context.Context, table string) (*unitofwork.Client, error) {
		return a.unitsClient(ctx, func(cfg *unitofwork.Config) { cfg.Table = table })
	}
	if found.unasked = findJournal(ctx, &found, a.units, open); found.unasked != nil && ctx.Err() != nil {
		return found.unasked
	}
	found.now = time.Now()
	if a.out.asJSON() {
		return a.out.json(found.json())
	}
	a.out.lines(found.words())
	a.out.line("")
	a.out.lines(found.picture())
	return nil
}

// around are the key's row and those above and below it.
func (s *shown) around() []inspect.Row {
	return slices.Concat(s.Above, []inspect.Row{s.Row}, s.Witnesses, s.Below)
}

// keysToWatch are those with somebody on them whose life matters to the key: rows above it
// matter only if they are held.
func (s *shown) keysToWatch() (keys []ordering.Key) {
	for _, r := range s.around() {
		if r.Held() || r.Key == s.Row.Key && r.Awaited() && len(r.Intents) == 0 {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// forgetOthers drops what was known of units that are not there any more.
func (s *shown) forgetOthers() {
	now := map[ordering.Key]string{}
	for _, r := range s.around() {
		now[r.Key] = whoIsOn(r)
	}
	maps.DeleteFunc(s.lives, func(key ordering.Key, life inspect.Sighting) bool {
		return life.Unit == "" || now[key] != life.Unit
	})
}

// life is what is known of who is on a row, behind a comma; nothing if nothing is.
func (s *shown) life(key ordering.Key) string {
	if words := plain.Life(s.lives[key]); words != "" {
		return ", " + words
	}
	return ""
}

// findJournal looks for the journal of the unit that has the key, in the unit table that its
// row names, or else in that of the flags.
func findJournal(ctx context.Context, s *shown, flags string, open func(context.Context, string) (*unitofwork.Client, error)) error {
	h := s.Row.Holder
	if h == nil {
		return nil
	}
	if s.units = cmp.Or(h.Prepared, flags); s.units == "" {
		return nil
	}
	units, err := open(ctx, s.units)
	if err != nil {
		return err
	}
	state, err := units.JournalOf(ctx, h.Unit)
	if err == nil {
		s.journal = &state
	}
	return err
}

// shownJSON is what show prints in JSON. Its names stay as they are.
type shownJSON struct {
	Row       rowJSON      `json:"row"`
	Above     []rowJSON    `json:"above"`
	Witnesses []rowJSON    `json:"witnesses"`
	Below     []rowJSON    `json:"below,omitempty"` // if it was asked for
	MoreBelow bool         `json:"moreBelow,omitempty"`
	Journal   *journalJSON `json:"journal,omitempty"` // of the unit that has the key
	Unasked   string       `json:"journalError,omitempty"`
}

type journalJSON struct {
	Table     string    `json:"table"`
	Outcome   string    `json:"outcome"`
	Done      bool      `json:"done"`
	Open      bool      `json:"open"`
	Stuck     bool      `json:"stuck"`
	Began     time.Time `json:"began,omitzero"`
	DecidedAt time.Time `json:"decidedAt,omitzero"`
	Rows      int       `json:"rows"`
	Decided   int       `json:"decidedRows,omitempty"`
	Steps     int       `json:"keys,omitempty"`
	Writes    int       `json:"writes,omitempty"`
	Problem   string    `json:"problem,omitempty"`
}

func (s *shown) json() shownJSON {
	all := func(rows []inspect.Row) []rowJSON {
		list := []rowJSON{}
		for _, r := range rows {
			list = append(list, jsonOf(r, s.lives[r.Key]))
		}
		return list
	}
	j := shownJSON{
		Row: jsonOf(s.Row, s.lives[s.Row.Key]), Above: all(s.Above), Witnesses: all(s.Witnesses), Below: all(s.Below), MoreBelow: s.MoreBelow,
		Unasked: plain.Error(s.unasked),
	}
	if of := s.journal; of != nil {
		j.Journal = &journalJSON{
			Table: s.units, Outcome: of.Outcome.String(), Done: of.Done, Open: of.Open, Stuck: of.Stuck(),
			Began: of.Began.UTC(), DecidedAt: of.DecidedAt.UTC(),
			Rows: of.Rows, Decided: of.Decided, Steps: of.Steps, Writes: of.Writes, Problem: of.Problem,
		}
	}
	return j
}

// moment is a time as people read it, with how long ago it was. What is ahead was written by
// another clock.
func moment(t, now time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	text := t.UTC().Format(time.DateTime) + "Z"
	if ahead := t.Sub(now); ahead > clockOff {
		return fmt.Sprintf("%s (%s ahead of this host's clock)", text, plain.Ago(ahead))
	}
	return fmt.Sprintf("%s (%s ago)", text, plain.Ago(now.Sub(t)))
}
