package lockset

import "github.com/holdall/holdall/internal/next"

// Next says what a caller may do after an error.
type Next = next.Next

// What a caller may do next.
const (
	// Decide: there is no error, or it is the caller's own, or of a condition it
	// staged, or of a context that ended before anything was asked.
	Decide = next.Decide
	// StartOver: nothing was written; a fresh set or unit with a fresh token may
	// succeed. unitofwork's Client.Do does it (Work.Attempts), but not after an error that the
	// caller's own function returned while its locks were held.
	StartOver = next.StartOver
	// TryLater: nothing was written; a key is held by another, or DynamoDB did
	// not answer or was busy.
	TryLater = next.TryLater
	// FixCall: this call wrote nothing, and will not until the call, the
	// configuration or the table is changed.
	FixCall = next.FixCall
	// AskLater: the outcome of a unit is not known; unitofwork's Client.Outcome may tell.
	AskLater = next.AskLater
)

// NextOf says what the caller may do after err, which this package or unitofwork returned. Of an
// error of the caller's own it says [Decide], unless that wraps one of these, or one of fencing or
// ordering: then it says what that one does. Of several that are joined it is the first of
// [AskLater], [StartOver], [TryLater] and [FixCall] that one of them says.
func NextOf(err error) Next { return next.Of(err) }
