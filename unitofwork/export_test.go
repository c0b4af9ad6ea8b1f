package unitofwork

// What errors say beside their texts, and what an operator may choose.
type (
	Choice        = string
	EntryError    = entryError
	FenceError    = fenceError
	GuardError    = guardError
	JournalError  = journalError
	KeysError     = keysError
	StageError    = stageError
	TooLargeError = tooLargeError
	VersionError  = versionError
)

var (
	ErrChanged      = errChanged
	ErrEnded        = errEnded
	ErrManaged      = errManaged
	ErrNoChoice     = errNoChoice
	ErrNoLocks      = errNoLocks
	ErrNotCommitted = errNotCommitted
	ErrSuperseded   = errSuperseded
)

const (
	ApplyWrite = applyWrite
	KeepRecord = keepRecord
	NotWritten = notWritten
	WasWritten = wasWritten
)
