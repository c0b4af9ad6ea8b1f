package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// lives is what is known, from one list to the next, of those who are on rows. Lists show most signs of life
// by themselves: web watches only who was silent for half a lease, or has just come; ls --watch watches all.
type lives map[ordering.Key]life

type life struct {
	unit, sign string
	since      time.Time        // sign has been known so long
	moved      bool             // there was another before it
	watched    inspect.Sighting // what the last watch has come to know of the unit
	limit      time.Duration    // a silence counts as death
}

// mostWatched is how many keys are watched at a time: that takes two read units for each, several times a lease.
const mostWatched = 200

// see adds to rows, as a list has just shown them, what is known of who is on them, and returns what is
// known then.
func (l lives) see(sightings []inspect.Sighting, now time.Time) lives {
	next := make(lives, len(sightings))
	for n, s := range sightings {
		unit := whoIsOn(s.Row)
		if unit == "" {
			continue
		}
		k, known := l[s.Row.Key]
		switch sign := signOf(s.Row); {
		case !known || k.unit != unit:
			k = life{unit: unit, sign: sign, since: now}
		case k.sign != sign:
			k.sign, k.since, k.moved, k.watched = sign, now, true, inspect.Sighting{}
		}
		if k.limit = k.watched.Limit; s.Row.Held() {
			k.limit = s.Row.Holder.Lease
		}
		next[s.Row.Key] = k
		sightings[n] = k.sighting(s.Row, now)
	}
	return next
}

// sighting is what is known of a row.
func (k life) sighting(r inspect.Row, now time.Time) inspect.Sighting {
	s := inspect.Sighting{Row: r, Unit: k.unit, Head: !r.Held(), Limit: k.limit, For: max(k.watched.For, now.Sub(k.since))}
	switch {
	case k.watched.Life == "dead":
		s.Life = "dead"
	case k.isAlive(now):
		s.Life = "alive"
	case k.watched.Life != "" || now.After(k.since):
		s.Life = "silent"
	}
	return s
}

// isAlive: heartbeats come every third of a lease, so who was alive is not called silent before half of one.
func (k life) isAlive(now time.Time) bool { return k.moved && now.Sub(k.since) < k.limit/2 }

// doubtful are the keys of those of whom it is not known whether they are alive, those that have been
// silent for longest first.
func (l lives) doubtful() []ordering.Key {
	var keys []ordering.Key
	now := time.Now()
	for key, k := range l {
		if k.watched.Life != "dead" && !k.isAlive(now) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y ordering.Key) int {
		return cmp.Or(l[x].since.Compare(l[y].since), ordering.Compare(x, y))
	})
	return keys[:min(len(keys), mostWatched)]
}

// note adds what a watch has seen.
func (l lives) note(seen []inspect.Sighting, now time.Time) {
	for _, s := range seen {
		k, known := l[s.Row.Key]
		if !known || s.Unit != k.unit {
			continue
		}
		k.watched, k.limit = s, s.Limit
		if s.Life == "alive" {
			k.sign, k.since, k.moved = signOf(s.Row), now, true
		}
		l[s.Row.Key] = k
	}
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
