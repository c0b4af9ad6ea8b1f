package hooks

// What the Outcome of a trace.Event may say.
const (
	Committed       = "committed"
	CommittedBefore = "committed before"
	NotCommitted    = "not committed"
	InDoubt         = "in doubt"
	FellBack        = "fell back"
	LetGo           = "let go"
)

// What its Phase may say, in order. Once a unit is [Applying] it is committed.
const (
	Checking   = "checking"
	Journaling = "journaling"
	Preparing  = "preparing"
	Applying   = "applying"
)
