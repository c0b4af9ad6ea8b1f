package inspect

import (
	"context"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/ordering"
)

// wouldDo tells what would be done about a witness, once, if it is not one of the keys.
func (s *sweep) wouldDo(does Swept) {
	s.mu.Lock()
	before := s.would[does.Key]
	s.would[does.Key] = true
	s.mu.Unlock()
	if !before {
		s.tell(does)
	}
}

func (s *sweep) tell(did ...Swept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, did...)
	for _, one := range did {
		s.did[one.Key] = true
	}
}

// end is done with a key. That nothing is left to be done is told if nothing was done.
func (s *sweep) end(k *sweptKey, with Swept) {
	k.over, k.silent = true, nil
	s.mu.Lock()
	did := s.did[k.key]
	s.mu.Unlock()
	if with.Deed != leftAlone || !did {
		s.tell(with)
	}
}

// leave tells what is not known yet when a sweep ends too soon, and records for how long
// everybody was silent.
func (s *sweep) leave(ctx context.Context) {
	for _, k := range s.keys {
		if k.over || s.did[k.key] {
			continue
		}
		with := Swept{Key: k.key, Life: silent, Unit: k.seen.Row.Unit, Owner: k.seen.Row.Owner, Purpose: k.seen.Row.Purpose}
		if !k.seen.Since.IsZero() {
			with.For = s.rows.SilentFor(k.seen.Seen)
		}
		s.tell(with)
	}
	if ctx.Err() == nil { // DynamoDB does not answer, or not this client
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.AttemptTimeout)
	defer cancel()
	s.note(ctx, s.keys, true)
}

// note records for how long those are silent of whom nothing else is known, whatever becomes
// of that.
func (s *sweep) note(ctx context.Context, keys []*sweptKey, ended bool) {
	if s.o.DryRun {
		return
	}
	silent := map[ordering.Key]lockrow.Row{} // a witness may be a key, too
	for _, k := range keys {
		for _, r := range k.silent {
			silent[r.shown.Key] = r.Row
		}
	}
	s.rows.Note(ctx, silent, ended)
}
