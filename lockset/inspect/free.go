package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Freeing says how [Inspector.Free] takes a key from its holder.
type Freeing struct {
	// By is who frees it: others see it as the owner until they have the key. Default
	// Config.Owner.
	By string
	// Reason is why, in at most 256 bytes of UTF-8: others see it as the purpose until then. It
	// may be empty.
	Reason string
	// Now lets others in at once, before the holder can know. It may still work as if it had the
	// key, for up to a lease. What it writes through holdall, or to stores that check tokens, is
	// refused; whatever else it does is not. Nor is it the only key: others can have one above it,
	// and with that all that the holder still has below. Set it only if the holder is known to be
	// dead.
	Now bool
}

// FreeError says why a key was not taken from a unit. Nothing was changed.
type FreeError struct {
	Key    ordering.Key
	Unit   string // from which it was to be taken
	Row    Row    // as it was when that was decided
	Reason string
}

func (e *FreeError) Error() string {
	return fmt.Sprintf("key %q was not taken from unit %s: %s", string(e.Key), e.Unit, e.Reason)
}

// WhatNext is for lockset.NextOf.
func (e *FreeError) WhatNext() next.Next { return next.FixCall }

// Free takes a key from the unit that holds it, alive or dead. From that write on the unit's
// renewals and its commit are refused, and its set is lost with all its keys. It learns of that
// when it renews, or when its lease is over; only then can others have the key, a lease after this
// call and after they first look, unless o.Now says otherwise. Work that the unit does outside
// the tables is not stopped before it knows.
//
// The unit is named, so that nobody takes a key from another than was looked at. A unit that is
// prepared is left alone: its journal says what becomes of the key (unitofwork.Client.Recover).
//
// Errors: *[FreeError] if the unit does not have the key, or is prepared, or if a row above the key
// has no room for another intent; one that says so if o.Reason is no purpose, this process's clock
// leaves no tokens, or holdall did not write the row; *ordering.KeyError, *[lockset.TableError],
// *[lockset.NoAnswerError]. After the last of them it is not known whether the key was taken: call it
// again, or look.
func (i *Inspector) Free(ctx context.Context, key ordering.Key, unit string, o Freeing) error {
	if err := key.Validate(); err != nil {
		return err
	}
	if reason := lockrow.WrongWith(o.Reason); reason != "" {
		return &locks.ConfigError{Field: "Freeing.Reason", Reason: reason}
	}
	if o.By == "" {
		o.By = i.cfg.Owner
	}
	operator := i.c.Operator(ctx)
	for n, unheard := 0, false; ; n++ {
		seen, above, err := i.lookToFree(ctx, key)
		if err != nil {
			return err
		}
		row := seen.Row
		if row.Unit == operator.Nonce() || unheard && row.TakenFrom == unit { // an answer was lost
			return nil
		}
		refuse := func(reason string) error {
			// What was not answered may have been carried out, and others have had the key since. Or it
			// may be yet, if the unit is not prepared.
			if unheard && (row.Unit != unit || row.Prepared == "") {
				return &lockset.NoAnswerError{Op: "Free", Last: errors.New(reason), End: errNotTold}
			}
			return &FreeError{Key: key, Unit: unit, Row: seen.shown, Reason: reason}
		}
		if reason := whyNotFree(row, unit, above, o.Now); reason != "" {
			return refuse(reason)
		}
		lost, err := operator.Revoke(ctx, row, above, locks.Revocation(o))
		unheard = unheard || lost
		if !locks.Refused(err) {
			return err
		}
		if n == mostFrees {
			return refuse("its row, or one above it, changes all the time: try again")
		}
		if err := requests.Sleep(ctx, betweenFrees); err != nil {
			return err
		}
	}
}

var errNotTold = errors.New("a request was not answered, and the row does not tell whether it took the key")

// lookToFree reads the row of a key and those above it. The token of who frees it is to be higher
// than their fences.
func (i *Inspector) lookToFree(ctx context.Context, key ordering.Key) (row seenRow, above []lockrow.Row, err error) {
	seen, err := read(ctx, i.rows, append([]ordering.Key{key}, key.Ancestors()...))
	if err != nil {
		return row, nil, err
	}
	for n, s := range seen {
		if s.shown.Damage != "" {
			return row, nil, asError(i.cfg.Table, s.shown)
		}
		i.c.Clock().Saw(s.Row.Fence)
		if n > 0 {
			above = append(above, s.Row)
		}
	}
	return seen[0], above, nil
}

// mostFrees is how often a row may change between the look and the write, and betweenFrees the pause
// before the next look.
const (
	mostFrees    = 10
	betweenFrees = 10 * time.Millisecond
)

// whyNotFree says why a key that is shown so, with what is above it, is not to be taken from a
// unit; "" if it may be.
func whyNotFree(row lockrow.Row, unit string, above []lockrow.Row, now bool) string {
	switch {
	case row.Free():
		return "it is free"
	case row.Unit != unit:
		return fmt.Sprintf("unit %s of owner %q has it", row.Unit, row.Owner)
	case row.Prepared != "":
		return fmt.Sprintf("the unit has its journal in table %q, which says what becomes of the key: recover it", row.Prepared)
	case now: // leaves no intent
		return ""
	}
	if full := lockrow.FullAbove(row, above); full != nil {
		return fmt.Sprintf("the row of %q above it has %d intents, and no room for another: sweep it", string(full.Key), len(full.Below))
	}
	return ""
}
