package unitlocks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Run is what a run of a unit without locks needs of a lock table: it looks at the rows
// that it would lock, together with what it reads, and commits if nobody has had them
// since. It is not safe for concurrent use. End must be called.
type Run interface {
	// Nonce returns the run's nonce, by which rows name it once it has committed.
	Nonce() string
	// RequestID returns a new request token, distinct from all others of the run.
	RequestID() string
	// Glance prepares a look at the rows for records with these guards, which are valid
	// keys. The first one waits for units of this process that have them: the error is a
	// *lockset.HeldError if the record wait or ctx ended, [ErrOvertaken], or an *[BusyError] if the first one
	// was a lease ago.
	Glance(ctx context.Context, guards []ordering.Key) (Glance, error)
	// Offer has the run come along with another unit of its process, if that has what it waits
	// for and takes it: then the error of Glance, or of Pass, is [ErrTaken]. The run has
	// nothing then.
	Offer(with any)
	// TakeAlong takes along units that wait for what the run has, those that fit, as they
	// arrived. What they offered is given to fits, which must not call the Run.
	TakeAlong(fits func(with any) bool)
	// PutBack has a run that came along wait again, where it did, when its Glance or Pass is
	// called again.
	PutBack()
	// Covers reports whether a key that was looked at covers a guard.
	Covers(guard ordering.Key) bool
	// Cover returns the key that covers a guard, which is a valid key: one that was looked
	// at, or the guard itself, under which the run only writes then.
	Cover(guard ordering.Key) ordering.Key
	// Keys are those that a run under locks would take, in order, with others.
	Keys(others ...ordering.Key) []ordering.Key
	// Rows is how many rows the commit would pass or check.
	Rows() int
	// Pass makes a commit possible, with a new token. It passes the rows of the keys that cover
	// written, which are valid keys, and of those above them, and checks the other rows. If the
	// run has looked at nothing it waits as the first Glance does, and the error is the same. A
	// second one is for a token that was too low, or when more is written.
	Pass(ctx context.Context, written []ordering.Key) (Pass, error)
	// Keep ends the run, and keeps what it has from others of this process for the next one of
	// its caller.
	Keep()
	// End lets go of what the run keeps from others of this process, if Keep did not.
	End()
}

// Glance is a look at lock rows. It is not safe for concurrent use.
type Glance interface {
	// Gets are the gets of the rows, to be in front of those of records, in each request of
	// the glance.
	Gets() []types.TransactGetItem
	// Saw reads the answers to Gets, of one moment. The error is an *[BusyError] or a
	// *lockset.RowError.
	Saw(items []map[string]types.AttributeValue) error
	// Covers reports whether a key that was looked at covers a guard.
	Covers(guard ordering.Key) bool
	// Keep has the run rely on what was looked at, as far as it guards these records.
	Keep(guards []ordering.Key)
}

// ErrFree says that a unit need not take its locks: the row that it has waited for is free.
var ErrFree = errors.New("the key that was in the way is free")

// ErrTaken says that a run has come along with another unit of its process.
var ErrTaken = errors.New("another unit of this process takes it along")

// ErrOvertaken says that a run has waited for units of its process that had, one after another,
// now this and now that of what it needs.
var ErrOvertaken = errors.New("others of this process have one or another of its rows all the time")

// BusyError says that somebody has, or has had, a row that a run without locks needs.
type BusyError struct {
	Key     ordering.Key
	Reason  string
	Refusal lockrow.Refusal // of a commit
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("key %q %s", requests.Shortened(string(e.Key)), e.Reason)
}

// Pass is a commit without locks, on what its run has seen.
type Pass interface {
	// Token is what the commit stamps.
	Token() fencing.Token
	// Key is a key whose row the commit passes: by it the outcome can be asked. It is empty if
	// the commit passes no row, and only checks some.
	Key() ordering.Key
	// Deadline is until when the transaction is sent.
	Deadline() time.Time
	// Actions returns the actions that pass or check the run's rows if nobody has had them
	// since, and leave its commit stamp on those that are passed. In one transaction with
	// other writes they make those happen only then.
	Actions() []types.TransactWriteItem
	// RequestID returns a new request token, distinct from all others of the run.
	RequestID() string
	// Refused tells which rows refused a transaction that began with Actions, by its
	// cancellation reasons: an *[BusyError], a *lockset.RowError, or nil if none did.
	Refused(reasons []types.CancellationReason) error
	// Committed notes that the transaction was carried out.
	Committed()
	// Resolve finds out what became of the transaction, which was refused or had no answer,
	// for as long as ctx lives: it makes its token unusable, so that it never can be carried
	// out later. The fate is FateCommitted, FateNever, FateStopped if it passes no row that
	// tells but cannot be carried out any more, or FateUnknown if rows do not tell; the error
	// says why there is no telling, if anything does.
	Resolve(ctx context.Context) (lockrow.Fate, error)
}
