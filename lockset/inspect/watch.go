package inspect

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// What is known of who is to show a sign of life on a row.
const (
	nobody = ""
	silent = "silent"
	alive  = "alive"
	dead   = "dead"
)

// Sighting is what is known of one row, and of who is to show a sign of life on it: its
// holder, or the head of the queue for which a free row waits.
type Sighting struct {
	Row Row // as it was seen last
	// Life is what is known of who is to show a sign of life on the row:
	//
	//   - "": nobody is. The row is free, and nobody waits for it; or what is held is below it, and the
	//     witnesses of its intents tell.
	//   - "silent": there was no sign of life as long as it was watched, and that is less than a lease.
	//   - "alive": there was one since the watch began. Of a row that waits for the head of its
	//     queue: the queue has moved.
	//   - "dead": there was none for a full lease while this process watched, or for two leases and 30 s
	//     by the table's own clock; or those who wait have left a free row untaken for Config.Grace,
	//     or for two Grace and 2 s.
	Life string
	Unit string // nonce of who is watched; "" if nobody
	Head bool   // it is the head of the queue, not the holder
	// For is how long there has been no sign of life: as this process has seen it, or as the row
	// shows by the table's own clock, whichever is longer.
	For time.Duration
	// Limit is how long this process must have seen no sign of life until the unit counts as dead:
	// the holder's lease, or Config.Grace of this inspector for the head of a queue. By the table's
	// own clock it takes two of them, and 30 s or 2 s.
	Limit time.Duration
}

// Watch looks at the rows of keys again and again, until each of their holders is known to
// be alive or dead: for up to a lease, and a heartbeat is enough. What is returned is in the
// order of the keys, each once. It costs two read capacity units for each row and look, and there are
// about eight looks a lease; those that are known are not looked at any more.
//
// If ctx ends before all is known, the error is its cause, and what is returned is what is
// known by then: of rows that were not read yet, only their keys. progress is called after each look at
// all rows that are still of interest, in the goroutine that watches, with how many are known by then; it
// may be nil. Other errors: *ordering.KeyError, *[lockset.TableError], *[lockset.NoAnswerError].
func (i *Inspector) Watch(ctx context.Context, keys []ordering.Key, progress func(known, of int)) ([]Sighting, error) {
	keys = distinct(keys)
	sightings, open := make([]Sighting, len(keys)), make([]int, len(keys))
	first := firsts{}
	for n, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
		sightings[n].Row.Key, open[n] = k, n
	}
	for {
		seen, err := readAll(ctx, i.rows, pick(keys, open))
		if ctx.Err() != nil {
			return sightings, context.Cause(ctx)
		}
		if err != nil {
			return sightings, err
		}
		left := open[:0]
		for j, n := range open {
			sightings[n] = sightingOf(seen[j], first.alive(seen[j].Row), seen[j].Watch(i.cfg.Grace))
			if sightings[n].Life == silent {
				left = append(left, n)
			}
		}
		open = left
		if progress != nil {
			progress(len(keys)-len(open), len(keys))
		}
		if len(open) == 0 {
			return sightings, nil
		}
		if err := requests.Sleep(ctx, untilNextLook(pick(sightings, open))); err != nil {
			return sightings, err
		}
	}
}

// firsts are rows as they were seen when a watch of them began.
type firsts map[ordering.Key]lockrow.Row

// alive reports whether somebody has shown a sign of life on a row since the watch of it began. It
// does not go by how long the silence is known to be: another may have recorded that it is longer,
// and an answer may come that is older than what this process knows. Where a holder has gone, and
// others are in the queue, nothing is known of their head: the watch begins again with that.
func (f firsts) alive(r lockrow.Row) bool {
	first, known := f[r.Key]
	if !known || !first.Free() && r.Free() {
		f[r.Key] = r
		return false
	}
	return r.LastSign() != first.LastSign()
}

// sightingOf decides what a look at a row says, by the verdict that a unit would come to
// that wants the key; signed is whether somebody has shown a sign of life meanwhile.
func sightingOf(s seenRow, signed bool, at lockrow.Watch) Sighting {
	sighting := Sighting{Row: s.shown}
	if s.shown.Damage != "" {
		return sighting
	}
	j := lockrow.Judge(s.Row, lockrow.Want{Key: s.shown.Key, Entry: lockrow.Entry{Unit: "nobody", Witness: s.shown.Key}}, 0, at)
	switch past := !j.Turn.Past.IsZero(); {
	case j.Verdict == lockrow.Await:
		sighting.Life = silent
		if signed {
			sighting.Life = alive
		}
	case j.Verdict == lockrow.Bury, j.Verdict == lockrow.Recover, j.Verdict == lockrow.Pass, past:
		sighting.Life = dead
	default:
		return sighting
	}
	sighting.For = s.Row.SilentFor(at)
	if s.shown.Held() {
		sighting.Unit, sighting.Limit = s.shown.Holder.Unit, s.shown.Holder.Lease
	} else {
		sighting.Unit, sighting.Limit, sighting.Head = s.shown.Queue[0].Unit, at.Grace, true
	}
	return sighting
}

// untilNextLook is the pause before the silent are looked at again: there are several looks
// in the time between two heartbeats, and one when the first of them counts as dead.
func untilNextLook(silent []Sighting) time.Duration {
	const perLimit = 8
	pause := time.Duration(-1)
	for _, s := range silent {
		next := max(min(s.Limit/perLimit, s.Limit-s.For), time.Millisecond)
		if pause < 0 || next < pause {
			pause = next
		}
	}
	return pause
}

// readAll reads rows, as many at a time as a transaction has: of one moment are only those.
func readAll(ctx context.Context, rows *locks.Operator, keys []ordering.Key) ([]seenRow, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(looksAtOnce)
	chunks := slices.Collect(slices.Chunk(keys, requests.MaxActions))
	found := make([][]seenRow, len(chunks))
	for n, some := range chunks {
		group.Go(func() (err error) {
			found[n], err = read(ctx, rows, some)
			return err
		})
	}
	err := group.Wait()
	return slices.Concat(found...), err
}

// looksAtOnce bounds the concurrent requests of one look at many rows.
const looksAtOnce = 8

// distinct returns keys in their order, each once.
func distinct(keys []ordering.Key) []ordering.Key {
	known := make(map[ordering.Key]bool, len(keys))
	return slices.DeleteFunc(slices.Clone(keys), func(k ordering.Key) bool {
		before := known[k]
		known[k] = true
		return before
	})
}

// pick returns those of all that stand at these places.
func pick[T any](all []T, places []int) []T {
	some := make([]T, len(places))
	for j, n := range places {
		some[j] = all[n]
	}
	return some
}
