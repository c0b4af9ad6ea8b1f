package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// What a sweep does.
const (
	leftAlone = ""
	buried    = "buried"
	settled   = "settled"
	cleaned   = "cleaned"
	dropped   = "dropped"
	kept      = "kept"
)

// Swept is one thing that a sweep did about a key, or would do, or that it did nothing.
type Swept struct {
	Key ordering.Key
	// Deed is what was done about somebody who is dead, or would be:
	//
	//   - "": nothing. Life says why: nobody is there, somebody is alive, or the sweep ended before that
	//     was known.
	//   - "buried": the holder was dead, and its row was freed.
	//   - "settled": the holder was dead and had a journal, and what that says was done.
	//   - "cleaned": an intent was removed whose unit is dead, or does not hold its witness any more.
	//   - "dropped": a unit in the queue has lost its place, because the key stayed free for a lease.
	//   - "kept": somebody is dead and nothing could be done, or nobody can tell. Err says why.
	Deed    string
	Life    string        // of who was watched, as Sighting has it
	Unit    string        // nonce of the unit concerned; "" if there is none
	Owner   string        // its process, if the row names it
	Purpose string        // what it is for, if the row says so
	Witness ordering.Key  // of an intent: the key that it was left for
	For     time.Duration // for how long it is known to have been silent
	Err     error         // why somebody was kept
}

// SweepOptions say how [Sweep] sweeps.
type SweepOptions struct {
	// DryRun writes nothing, not even for how long somebody was silent, and tells what
	// would be done.
	DryRun bool
	// Progress is called after each look, in the goroutine that sweeps, with how many of the
	// keys are done with. It may be nil.
	Progress func(known, of int)
}

// Sweep watches the rows of keys for up to a lease, and frees those of the dead, as a unit
// does that waits for them; here nobody waits. Who is dead is decided by the same rule: a
// full lease of silence, as far as the client has seen it or a row says that others did, or two
// leases and 30 s by the table's own clock.
// Whoever is alive is not touched: every write has the condition that a waiter's has.
//
//   - The row of a dead holder is freed.
//   - If it is prepared, its unit is settled, where a client of package unitofwork, with the
//     unit table that the row names, was made of c. Otherwise it is kept.
//   - Intents on a row are removed if their units are dead, or do not hold their witnesses
//     any more. The witnesses need not be among keys: their rows are freed, too. Units whose
//     intents came since the sweep began count as alive.
//   - The queue of a row that any unit could take is dropped after a lease, later than waiters
//     would go past it: a living unit may be in it. Such a unit queues again.
//
// It returns what it did, in that order, at least one thing for each key. If ctx ends before
// all is known, the error is its cause, and it is written into the rows for how long their
// holders were silent, for at most Config.AttemptTimeout: so sweeps that are shorter than a
// lease find out the dead together. Any number of sweeps may run at the same time.
//
// It reads each row two or three times, at two read capacity units each. Large tables are to
// be swept in parts: all keys are in memory, with the witnesses of their intents.
//
// Other errors: *ordering.KeyError, *[lockset.TableError], *[lockset.NoAnswerError], [lockset.ErrClosed]. What could
// not be done about one key alone is in what is told of it.
func Sweep(ctx context.Context, c *lockset.Client, keys []ordering.Key, o SweepOptions) ([]Swept, error) {
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
	}
	engine := (*locks.Client)(c)
	ctx, end, err := engine.While(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	s := newSweep(ctx, engine, distinct(keys), o)
	err = s.run(ctx)
	if err != nil {
		s.leave(ctx)
	}
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	return s.told, err
}

// errRestless: others write it all the time.
var errRestless = errors.New("it has changed whenever it was to be written")
