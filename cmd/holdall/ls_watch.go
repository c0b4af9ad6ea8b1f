package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
)

// errRound ends a round of looks: the next list is due.
var errRound = errors.New("the next list is due")

// watchList lists again and again. Between two lists it watches what the last has shown, so
// that the next one knows who is alive and who is silent for how long.
func (a *app) watchList(ctx context.Context, i *inspect.Inspector, f lsFlags) error {
	var known lives
	for {
		next := time.Now().Add(f.every)
		var rows []inspect.Row
		more := false
		for r, err := range a.list(ctx, i, f) {
			if err != nil {
				return err
			}
			if more = len(rows) == mostRows; more {
				break
			}
			rows = append(rows, r)
		}
		sightings, err := a.sight(ctx, i, f, rows)
		if err != nil {
			return err
		}
		known = known.see(sightings, time.Now())
		if err := a.printRound(sightings, more); err != nil {
			return err
		}
		round, cancel := context.WithDeadlineCause(ctx, next, errRound)
		seen, err := i.Watch(round, slices.Collect(maps.Keys(known)), nil)
		if err == nil { // all are known before the next list is due
			<-round.Done()
			err = context.Cause(round)
		}
		cancel()
		if !errors.Is(err, errRound) || ctx.Err() != nil {
			return err
		}
		known.note(seen, time.Now())
	}
}

// roundJSON begins each list in JSON.
type roundJSON struct {
	At   time.Time `json:"at"`
	Rows int       `json:"rows"`
	More bool      `json:"more,omitempty"` // than are listed
}

func (a *app) printRound(sightings []inspect.Sighting, more bool) error {
	now := time.Now().UTC()
	if err := a.out.json(roundJSON{now, len(sightings), more}); err != nil {
		return err
	}
	if isTerminal(a.stdout) {
		a.out.line("\x1b[H\x1b[2Jtable %s", a.table) // from the top of an empty screen
	}
	note := ""
	if more {
		note = ", and more: give a PREFIX"
	}
	a.out.line("%s: %s%s", now.Format(time.TimeOnly), plain.Count(len(sightings), "key", "keys"), note)
	return a.printRows(sightings, true, false)
}
