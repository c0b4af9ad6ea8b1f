package inspect

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

const (
	// writesAtOnce bounds the concurrent requests of one sweep that write.
	writesAtOnce = 16
	// mostRefused is how often a sweep tries to write a row that changes each time.
	mostRefused = 5
	// sweepSlack is the part of a lease by which a look may be late, so that many rows are
	// looked at together.
	sweepSlack = 100
)

// sweep is one call of [Sweep].
type sweep struct {
	cfg   locks.Config
	rows  *locks.Operator // with what the client has seen
	o     SweepOptions
	grace time.Duration // of the head of a queue
	keys  []*sweptKey

	mu    sync.Mutex // never held across I/O
	told  []Swept
	did   map[ordering.Key]bool // of which something is told
	would map[ordering.Key]bool // what a dry run has told of witnesses, or will of keys
}

// sweptKey is what a sweep knows of a key. One goroutine at a time has it.
type sweptKey struct {
	key     ordering.Key
	seen    seenRow                // last
	first   firsts                 // its row, and those of its witnesses
	intents map[lockrow.Entry]bool // those that it had when it was first seen with any
	silent  []seenRow              // of its row and witnesses, whose fate is not known yet
	due     time.Time              // when to look again
	refused int                    // how often in all
	acted   bool                   // something was done
	over    bool                   // nothing is left to be known
}

func newSweep(ctx context.Context, c *locks.Client, keys []ordering.Key, o SweepOptions) *sweep {
	cfg := c.Config()
	s := &sweep{
		cfg: cfg, rows: c.Operator(ctx), o: o,
		grace: max(cfg.Grace, cfg.Lease), did: map[ordering.Key]bool{}, would: map[ordering.Key]bool{},
	}
	for _, k := range keys {
		s.keys = append(s.keys, &sweptKey{key: k, first: firsts{}})
		s.would[k] = true
	}
	return s
}

// run looks at rows when they are due, and acts, until nothing is left to be known.
func (s *sweep) run(ctx context.Context) error {
	for {
		now, next := time.Now(), time.Time{}
		var due []*sweptKey
		known := 0
		for _, k := range s.keys {
			switch {
			case k.over:
				known++
			case !k.due.After(now):
				due = append(due, k)
			case next.IsZero() || k.due.Before(next):
				next = k.due
			}
		}
		if s.o.Progress != nil {
			s.o.Progress(known, len(s.keys))
		}
		switch {
		case len(due) > 0:
			if err := s.step(ctx, due); err != nil {
				return err
			}
		case next.IsZero():
			return nil
		default:
			if err := requests.Sleep(ctx, next.Sub(now)+s.cfg.Lease/sweepSlack); err != nil {
				return err
			}
		}
	}
}

// step looks at keys, and acts. Rows with intents come last: what was freed before has made
// some of these stale.
func (s *sweep) step(ctx context.Context, due []*sweptKey) error {
	keys := make([]ordering.Key, len(due))
	for n, k := range due {
		keys[n] = k.key
	}
	seen, err := readAll(ctx, s.rows, keys)
	if err != nil {
		return err
	}
	var plain, above []*sweptKey
	for n, k := range due {
		k.seen, k.silent = seen[n], nil
		if len(k.seen.Row.Below) > 0 {
			above = append(above, k)
		} else {
			plain = append(plain, k)
		}
	}
	if err := each(ctx, plain, s.judge); err != nil {
		return err
	}
	if err := each(ctx, above, s.judgeAbove); err != nil {
		return err
	}
	s.note(ctx, due, false)
	return nil
}

// each has f called for all keys, several at a time.
func each(ctx context.Context, keys []*sweptKey, f func(context.Context, *sweptKey) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for _, k := range keys {
		group.Go(func() error { return f(ctx, k) })
	}
	return group.Wait()
}

// judge acts on a row without intents.
func (s *sweep) judge(ctx context.Context, k *sweptKey) error {
	row := k.seen.shown
	if row.Damage != "" {
		s.end(k, Swept{Key: k.key, Deed: kept, Err: asError(s.cfg.Table, row)})
		return nil
	}
	is := sightingOf(k.seen, k.first.alive(k.seen.Row), k.seen.Watch(s.grace))
	does := Swept{Key: k.key, Life: is.Life, Unit: is.Unit, For: is.For}
	switch {
	case row.Held():
		does.Owner, does.Purpose = row.Holder.Owner, row.Holder.Purpose
	case is.Head:
		does.Owner, does.Purpose = row.Queue[0].Owner, row.Queue[0].Purpose
	}
	switch {
	case is.Life == silent && !(k.acted && row.Held()): // who took what was just freed is alive
		k.silent, k.due = []seenRow{k.seen}, nextLook(k.seen.At, is.For, is.Limit)
		return nil
	case is.Life != dead:
		s.end(k, does)
		return s.limit(ctx, k)
	}
	does.Deed = deedFor(is)
	return s.act(ctx, k, does)
}

// act does what is to be done about whoever is dead on a row without intents.
func (s *sweep) act(ctx context.Context, k *sweptKey, does Swept) (err error) {
	all := []Swept{does}
	switch dated := !k.seen.Row.TurnAt.IsZero(); {
	case does.Deed == settled:
		if err = s.rows.Settle(ctx, k.seen.Row, s.o.DryRun); err != nil && ctx.Err() == nil {
			does.Deed, does.Err = kept, err
		}
	case does.Deed == dropped && dated:
		for _, w := range k.seen.shown.Queue[1:] {
			next := does
			next.Unit, next.Owner, next.Purpose = w.Unit, w.Owner, w.Purpose
			all = append(all, next)
		}
	}
	switch {
	case does.Deed == kept:
		s.end(k, does)
		return nil
	case s.o.DryRun:
		s.tell(all...)
		s.end(k, Swept{Key: k.key})
		return nil
	case does.Deed == dropped && len(all) > 1:
		err = s.rows.Drop(ctx, k.seen.Row, true)
	case does.Deed == dropped:
		err = s.rows.Drop(ctx, k.seen.Row, false)
	case does.Deed == buried:
		err = s.rows.Bury(ctx, k.seen.Row)
	}
	return s.acted(ctx, k, err, all...)
}

// acted tells what was done, and has the key looked at once more: somebody else may be in the
// way there. What was refused was seen too late.
func (s *sweep) acted(ctx context.Context, k *sweptKey, err error, did ...Swept) error {
	refused := locks.Refused(err)
	switch {
	case err == nil:
		s.tell(did...)
		k.acted = true
		clear(k.first)
		k.due = time.Now()
	case ctx.Err() != nil || errors.As(err, new(*lockset.TableError)):
		return err
	case refused && k.refused < mostRefused:
		k.refused++
		k.due = time.Now()
	default:
		if refused {
			err = errRestless
		}
		last := did[len(did)-1]
		last.Deed, last.Err = kept, err
		s.end(k, last)
	}
	return nil
}

// judgeAbove acts on a row with intents: it looks at it and the witnesses as of one moment.
func (s *sweep) judgeAbove(ctx context.Context, k *sweptKey) error {
	seen, err := read(ctx, s.rows, append([]ordering.Key{k.key}, witnessesOf(k.seen.shown)...))
	if err != nil {
		return err
	}
	k.seen = seen[0]
	if len(k.seen.Row.Below) == 0 {
		return s.judge(ctx, k)
	}
	if k.intents == nil {
		k.intents = map[lockrow.Entry]bool{}
		for _, e := range k.seen.Row.Below {
			k.intents[e] = true
		}
	}
	witnesses := map[ordering.Key]seenRow{}
	for _, w := range seen[1:] {
		witnesses[w.shown.Key] = w
		k.first.alive(w.Row) // from now on
	}
	are := judgeIntents(k.seen.Row, witnesses, k.first, k.intents, k.seen.At)
	k.silent = are.silent
	if s.o.DryRun && len(are.silent) > 0 { // all is told at once
		k.due = are.next
		return nil
	}
	stuck := s.settleBelow(ctx, are.prepared)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch does := s.ofRemnants(k, are); {
	case s.o.DryRun && (len(does) > 0 || stuck == nil):
		s.tell(does...)
		s.end(k, Swept{Key: k.key, Life: lifeOf(are)})
	case len(does) > 0:
		return s.acted(ctx, k, s.rows.Clean(ctx, k.key, are.remnants), does...)
	case len(are.prepared) > 0 && stuck == nil: // their intents are stale now
		k.due = time.Now()
	case len(are.silent) > 0:
		k.due = are.next
	case stuck != nil:
		s.end(k, Swept{Key: k.key, Deed: kept, Life: dead, Unit: are.prepared[0].Row.Unit, Witness: are.prepared[0].shown.Key, Err: stuck})
	default:
		s.end(k, Swept{Key: k.key, Life: lifeOf(are)})
	}
	return nil
}

func lifeOf(are intentsSeen) string {
	if are.alive {
		return alive
	}
	return nobody
}

// settleBelow settles the units of prepared witnesses. It returns why that cannot be done, of
// one of them.
func (s *sweep) settleBelow(ctx context.Context, prepared []seenRow) (stuck error) {
	for _, w := range prepared {
		does := Swept{Key: w.shown.Key, Deed: settled, Life: dead, Unit: w.Row.Unit, Owner: w.Row.Owner, Purpose: w.Row.Purpose, For: w.Row.SilentFor(w.Watch(s.grace))}
		switch err := s.rows.Settle(ctx, w.Row, s.o.DryRun); {
		case err != nil:
			stuck = err
		case s.o.DryRun:
			s.wouldDo(does)
		default:
			s.tell(does)
		}
	}
	return stuck
}

// ofRemnants is what cleaning them does.
func (s *sweep) ofRemnants(k *sweptKey, are intentsSeen) (does []Swept) {
	for _, m := range lockrow.OneEach(are.remnants) {
		if m.Dead {
			holder := Swept{Key: m.Witness, Deed: buried, Life: dead, Unit: m.Unit, Owner: m.Row.Owner, Purpose: m.Row.Purpose}
			if s.o.DryRun {
				s.wouldDo(holder)
			} else {
				does = append(does, holder)
			}
		}
		does = append(does, Swept{Key: k.key, Deed: cleaned, Life: dead, Unit: m.Unit, Witness: m.Witness})
	}
	return does
}

// limit gives a row that a sweep has found free an expiry, if it has none: earlier
// versions removed it wherever a key below was used, and the last step of a journal may have been
// the last that its process did.
func (s *sweep) limit(ctx context.Context, k *sweptKey) error {
	row := k.seen.shown
	if s.o.DryRun || !row.Exists || row.Held() || !row.ExpiresAt.IsZero() {
		return nil
	}
	err := s.rows.Limit(ctx, k.seen.Row)
	if ctx.Err() != nil || errors.As(err, new(*lockset.TableError)) {
		return err
	}
	return nil
}
