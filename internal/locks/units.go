package locks

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// What units meet here, and sets do not.
var (
	// ErrFree says that a unit need not take its locks: the row that it has waited for is free.
	ErrFree = errors.New("the key that was in the way is free")
	// ErrTaken says that a run has come along with another unit of its process.
	ErrTaken = errors.New("another unit of this process takes it along")
	// ErrOvertaken says that a run has waited for units of its process that had, one after another,
	// now this and now that of what it needs.
	ErrOvertaken = errors.New("others of this process have one or another of its rows all the time")
	// ErrUnresolved says that the set has an [Ending] or a [Prepared], which lets go of it and is
	// not resolved yet.
	ErrUnresolved = next.Error("the set is on its way out already", next.FixCall)
)

// BusyError says that somebody has, or has had, a row that a run without locks needs.
type BusyError struct {
	Key     ordering.Key
	Reason  string
	Refusal lockrow.Refusal // of a commit
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("key %q %s", requests.Shortened(string(e.Key)), e.Reason)
}

// RecoverDead decides the fate of a dead unit with a journal, which is not this package's
// business: it returns when the unit is aborted and never will commit, so that its rows may
// be freed, or when all that it committed is done and its rows are free.
type RecoverDead func(ctx context.Context, unit string) (aborted bool, err error)

// Hold is what a unit has of a step.
type Hold int

// What a unit may have of a step.
const (
	Held  Hold = iota // it is the unit's
	Freed             // it was, and was freed
	Gone              // there is no row of it, or one that the unit cannot have had
)
