package lockset

import (
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/requests"
)

// What the caller may do next, as [NextOf] says it of any error:
//
//   - start over, with a fresh set: [ErrLost];
//   - try again later: [HeldError] (somebody has a key) and [NoAnswerError]
//     (DynamoDB did not answer, or was busy all along); ErrClosed, in another process;
//   - fix the call, the configuration or a table: an error that names the field, or a row which holdall
//     did not write; ordering.KeyError, [TableError]; what Client.Check has found.
var (
	// ErrLost matches every *heartbeat.LostError, which says why a set was lost.
	ErrLost = heartbeat.ErrLost
	// ErrNested matches the error of a call that would wait for its own caller. Under the context of
	// a set or a unit, the call needs a key that is held there, or one above or below such a key,
	// or it acquires a set that comes earlier in the order of keys, or is below the same parent. The
	// error names both keys and says what to do.
	ErrNested = nesting.ErrNested
	// ErrWaited matches the error of a wait that has lasted as long as Options.Wait allows, or was too
	// short to begin.
	ErrWaited = locks.ErrWaited
	// ErrClosed says that the client was closed. Another process may do it.
	ErrClosed = locks.ErrClosed
)

// TableError names a table that cannot be used as it stands: it does not exist,
// has another key schema, or may not be accessed; or nothing can be sent to it, for want of a
// Region, a host or credentials. It wraps the SDK's error.
//
//	Op     string   // the operation that was refused
//	Tables []string // the table; several if it is not known which of them, or if it is none of them
//	Record string   // the primary key of the record at fault, if it is known
//	Err    error    // the SDK's
type TableError = requests.TableError

// NoAnswerError says that DynamoDB did not answer in time, or only that it was
// busy, or could not be reached, or was not asked because the context had ended. It wraps the end.
//
//	Op   string // the operation
//	Last error  // what the last sending met; nil if nothing was sent
//	End  error  // why there was no further one: the context's cause, or patience
type NoAnswerError = requests.NoAnswerError

// HeldError says who had a key when the time to wait for it was over.
type HeldError = locks.HeldError
