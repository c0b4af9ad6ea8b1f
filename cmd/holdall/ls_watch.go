package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// errRound ends a round of looks: the next list is due.
var errRound = errors.New("the next list is due")

// watchList lists again and again. Between two lists it watches what the last has shown, so
// that the next one knows who is alive and who is silent for how long.
func (a *app) watchList(ctx context.Context, i *inspect.Inspector, f lsFlags) error {
	known := map[ordering.Key]watched{}
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
		known = merge(sightings, known)
		if err := a.printRound(sightings, more); err != nil {
			return err
		}
		round, cancel := context.WithDeadlineCause(ctx, next, errRound)
		seen, err := i.Watch(round, keysToWatch(sightings), inspect.WatchOptions{})
		if err == nil { // all are known before the next list is due
			<-round.Done()
			err = context.Cause(round)
		}
		cancel()
		if !errors.Is(err, errRound) || ctx.Err() != nil {
			return err
		}
		for _, s := range seen {
			known[s.Row.Key] = watched{s, s.Life == inspect.Alive || known[s.Row.Key].moved && known[s.Row.Key].Unit == s.Unit}
		}
	}
}

// keysToWatch are those of rows with somebody on them.
func keysToWatch(sightings []inspect.Sighting) (keys []ordering.Key) {
	for _, s := range sightings {
		if s.Row.Held() || s.Row.Awaited() {
			keys = append(keys, s.Row.Key)
		}
	}
	return keys
}

// watched is what is known of a row from one list to the next.
type watched struct {
	inspect.Sighting
	moved bool // who is on it has shown a sign of life since the first list
}

// merge adds to rows, as a list has just shown them, what was known of those who are on
// them, and returns what is known now. Heartbeats come every third of a lease: who was alive
// is not called silent before half of one.
func merge(sightings []inspect.Sighting, known map[ordering.Key]watched) map[ordering.Key]watched {
	now := make(map[ordering.Key]watched, len(sightings))
	for n, s := range sightings {
		before, there := known[s.Row.Key]
		if !there || before.Unit == "" || before.Unit != whoIsOn(s.Row) {
			continue
		}
		if signOf(before.Row) != signOf(s.Row) {
			before.Life, before.For, before.moved = inspect.Alive, 0, true
		}
		before.Row = s.Row
		now[s.Row.Key] = before
		if before.moved && before.Life == inspect.Silent && before.For < before.Limit/2 {
			before.Life = inspect.Alive
		}
		sightings[n] = before.Sighting
	}
	return now
}

// signOf changes with every sign of life of a holder.
func signOf(r inspect.Row) string {
	if r.Holder == nil {
		return ""
	}
	return r.Holder.RVN
}

// whoIsOn is the unit that is to show a sign of life.
func whoIsOn(r inspect.Row) string {
	switch {
	case r.Held():
		return r.Holder.Unit
	case r.Awaited():
		return r.Queue[0].Unit
	}
	return ""
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
