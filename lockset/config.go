package lockset

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdall/holdall/trace"
)

// Config says where the locks are and how they are kept. The zero value of
// every field but Table is its default.
type Config struct {
	// Table is the name of the lock table. Required.
	Table string
	// HashKey is the name of the table's hash key. Default "key".
	HashKey string
	// Owner names this process in the rows it holds, for people to read.
	// Default: the host's name and a UUID.
	Owner string

	// Lease is how long a holder may be silent before others take over, at
	// least a second. All owners should use the same. Default 20 s.
	Lease time.Duration
	// Heartbeat is the time between renewals. Default Lease/3.
	Heartbeat time.Duration
	// Margin is how long before the end of its lease a holder counts itself as
	// lost: clocks may run at rates that differ by Margin/Lease. Default
	// Lease/10.
	Margin time.Duration
	// AttemptTimeout bounds the first sending of a request, until answers are observed to take
	// longer. It doubles with each sending that is not answered in time, as far as the lease allows:
	// a heartbeat, two sendings and the margin fit into it. A large request has more time.
	// Default Lease/10.
	AttemptTimeout time.Duration
	// Poll is the longest pause between two looks at a row that blocks, at the
	// head of its queue; every place further back looks less often, down to five
	// times less. Default Lease/50.
	Poll time.Duration
	// Grace is how long waiters may leave an available row untaken if the row does not say since
	// when it has been available; then the first one is removed as dead. If the row says so, a
	// process that looks only once goes past all of them after two Grace and 2 s, and one that has
	// watched it does after three Poll. At least five times Poll. Default Lease/4.
	Grace time.Duration
	// MaxAge is how long a set may be held; then it is lost. Below Retention.
	// Default 7 days.
	MaxAge time.Duration
	// Retention is how long rows outlive their use, and by how much clocks may
	// be wrong. Above the MaxAge of every client of the table: a unit that gives up
	// may raise the fence of a row that another holds, and so sets when the row expires.
	// At most ten years. Default 14 days.
	Retention time.Duration
	// ChunkSize is how many rows one acquiring transaction writes at most, up
	// to 99. Default 24.
	ChunkSize int

	// Now reads the wall clock, for proposing tokens and for attributes that
	// inform people; no lease depends on it. Default time.Now.
	Now func() time.Time
	// Rand returns 16 random bytes for a new unit, from which its nonce and all
	// its jitter follow. ctx is the caller's, in which a simulation finds the caller.
	// Default: crypto/rand.
	Rand func(ctx context.Context) [16]byte

	// Logger gets what an operator may want to know. Default: nothing is logged.
	Logger *slog.Logger
	// Trace is called as things happen. Default: nothing is called.
	Trace *trace.Trace
}
