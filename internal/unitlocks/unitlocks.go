// Package unitlocks is what units of work need of lock sets, and users of lockset do not:
// to end a set inside a transaction, to have it wait for the decision of a journal, and to
// read what lock rows say of units. Package lockset provides it, by [Of].
package unitlocks

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lineup"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Of returns what units need of a *lockset.Client.
var Of func(client any) Client

// Client is what units need of a lock table. It is safe for concurrent use.
type Client interface {
	// Set returns what units need of a *lockset.Set.
	Set(set any) Set
	// Acquire is that of a *lockset.Client, for a caller that keeps its place among others of
	// its process. end is that of its record wait, zero if it has none.
	//
	// A caller that passes would rather pass rows without locks than hold them: if it has waited for
	// a row, has no other, and nobody alive is known to wait for that one, the error is [ErrFree].
	Acquire(ctx context.Context, keys []ordering.Key, end time.Time, caller *lineup.Caller, passes bool) (set any, err error)
	// Run begins a run of a unit without locks, for a caller as Acquire has it.
	Run(ctx context.Context, end time.Time, caller *lineup.Caller) Run
	// Caller returns the client's way to DynamoDB, with what it has observed of it.
	Caller() requests.Caller
	// Gone says that a caller comes no more: what a Run has kept for it is for others.
	Gone(caller *lineup.Caller)
	// LockTable is the table, to be told from those of other clients.
	LockTable() nesting.Table
	// RequestID returns a new name for a request of nobody's in particular.
	RequestID(ctx context.Context) string
	// RowGet returns the get of a key's lock row, for a transactional read that asks
	// about a unit's fate together with something else.
	RowGet(key ordering.Key) types.TransactGetItem
	// RowHand reads the answer to RowGet: whether the key's holder has a journal, so that
	// what the key guards may be written in part; and in whose hands the key is, or was
	// last: as long as that is the same, no unit has taken the key and committed. The
	// error is a *lockset.RowError.
	RowHand(key ordering.Key, item map[string]types.AttributeValue) (prepared bool, hand string, err error)
	// RowFate reads the answer to RowGet: what the row of one of its keys says about the
	// commit of a unit with this nonce and token; open is whether it was one without locks.
	// The error is a *lockset.RowError.
	RowFate(key ordering.Key, item map[string]types.AttributeValue, unit string, token fencing.Token, open bool) (lockrow.Fate, error)
	// RecoverWith sets who decides the fate of dead units whose journal is in a unit
	// table. A client that knows no unit table waits for their rows until another process
	// has decided; one that knows others refuses to: all who use a lock table must know
	// the journals of all.
	RecoverWith(table string, decide RecoverDead)
	// PreparedOf returns what a unit of another process has, or this one's if that is
	// known to be dead, to finish what it began.
	PreparedOf(ctx context.Context, nonce string, token fencing.Token, plan ordering.Plan) Prepared
	// LetExpire gives the rows above the keys of a plan an expiry again, when the unit that was
	// prepared has freed it. It does what it can.
	LetExpire(ctx context.Context, plan ordering.Plan)
	// Silence looks at a key for a sign of life of a unit: whether the unit has it, and
	// for how much longer it must stay silent, by this process's own clock, to be dead.
	// The error is as requests have them, or a *lockset.RowError.
	Silence(ctx context.Context, key ordering.Key, unit string) (has bool, left time.Duration, err error)
	// NoteSilences records for others for how long holders of keys are known to be silent, as
	// far as that is worth it. It goes on for a sending or two, also if ctx has ended.
	NoteSilences(ctx context.Context, keys []ordering.Key)
}

// RecoverDead decides the fate of a dead unit with a journal, which is not package lockset's
// business: it returns when the unit is aborted and never will commit, so that its rows may
// be freed, or when all that it committed is done and its rows are free.
type RecoverDead func(ctx context.Context, unit string) (aborted bool, err error)

// ErrUnresolved says that the set has an [Ending] or a [Prepared], which lets go of it and is
// not resolved yet.
var ErrUnresolved = next.Error("the set is on its way out already", next.FixCall)

// Set is what units need of a lock set. It is safe for concurrent use.
type Set interface {
	// Under returns a context that ends when ctx does, when the set is lost or released, or by
	// end. It compares the set's deadline with the clock. After unlink the set has nothing to do
	// with it.
	Under(ctx context.Context) (under context.Context, end context.CancelCauseFunc, unlink func())
	// RequestID returns a new request token, distinct from all others of the set.
	RequestID() string
	// TakeAlong is as that of a [Run], for units that need nothing but what the set has.
	TakeAlong(fits func(with any) bool)
	// End ends the set's heartbeats and waits for one under way, because both they and a
	// commit write the lock rows. From here on nobody counts as holding. The error is a
	// *lockset.LostError, also if the set was released already. If the set has an Ending
	// or a Prepared that is not resolved, the error matches [ErrUnresolved], at once;
	// while it is being released, End waits for that, as long as ctx lives.
	End(ctx context.Context) (Ending, error)
	// Prepare has all rows of the set name the unit table that has the unit's journal, in
	// transactions of whole steps, several at a time; progress is told of every one, and
	// must be safe for concurrent use. The set is renewed as before. After an error some
	// rows may be prepared, and the set is to be released: a *lockset.LostError if a key
	// was not ours any more.
	//
	// After success exactly one of the Prepared's Done and Release must follow, once: a
	// second one panics. If the set has a Prepared or an Ending that is not resolved, the
	// error matches [ErrUnresolved], at once.
	Prepare(ctx context.Context, table string, progress func(steps int)) (Prepared, error)
}

// Ending is a set on its way out: its heartbeats have ended, its keys are still its own
// until Deadline, and they can be freed inside a transaction of the caller's, so that the
// release is the lock check. Exactly one of Committed, Resolve and Return must follow, once:
// a second one panics. After Return, Retake makes it as if there had been none.
type Ending interface {
	// Deadline is when others may take over.
	Deadline() time.Time
	// Actions returns the writes that free every row of the set under the condition that
	// it is still the set's, and leave the unit's commit stamp. In one transaction with
	// other writes they make those happen only under the locks.
	Actions() []types.TransactWriteItem
	// RequestID returns a new request token, distinct from all others of the set.
	RequestID() string
	// Refused tells which of the set's keys refused a transaction that began with Actions,
	// by its cancellation reasons: a *lockset.LostError, or nil if none did.
	Refused(reasons []types.CancellationReason) error
	// Return gives the set back after a transaction with Actions that was refused for
	// what else was in it, so that it can be prepared. It is not renewed any more. Until
	// all of it is prepared a copy of the transaction may be carried out: a caller that
	// does not get that far retakes the set, and resolves.
	Return()
	// Retake takes back what was given back, when nobody else uses it any more. It waits
	// for a release of it that is under way, or for Prepare.
	Retake()
	// Committed notes that a transaction with Actions was carried out: nothing is held any
	// more.
	Committed()
	// Resolve releases the set, and so finds out what became of a transaction with Actions
	// that was refused or had no answer: it races it with the release, for as long as ctx
	// lives. If the release wins, the transaction never can. The fate is FateCommitted,
	// FateNever, or one of the others if there was no telling; the error says why, if
	// anything does, or what could not be released.
	Resolve(ctx context.Context) (lockrow.Fate, error)
}

// Prepared is what a unit has whose fate a journal decides. Its rows are prepared: nobody
// buries them, however long they are silent, before it is known what the journal says.
// Steps are freed by transactions of the caller's, together with what the journal says of
// them. It is safe for concurrent use.
type Prepared interface {
	// RequestID returns a new request token, distinct from all others.
	RequestID() string
	// LetGo takes steps out of the heartbeats: they are about to be freed.
	LetGo(keys []ordering.Key)
	// CheckHeld is the condition that a step is still the unit's.
	CheckHeld(step ordering.Step) types.TransactWriteItem
	// Free are the writes that free a step, with the unit's commit stamp: first the
	// intents, then the key. If the owner dies, the row tells whoever finishes the unit
	// that the step is done. So it stays for twice the retention: at least for the
	// retention, by any clock that is wrong by less than that.
	Free(step ordering.Step) []types.TransactWriteItem
	// Hold asks what the unit has of a step.
	Hold(ctx context.Context, step ordering.Step) (Hold, error)
	// HoldOf reads the row of a step's key, as a refused transaction has shown it. A step
	// that was freed leaves its row, with a fence no lower than the unit's token, for the
	// retention. The error is a *lockset.RowError.
	HoldOf(step ordering.Step, item map[string]types.AttributeValue) (Hold, error)
	// RestoreFreed puts back the row of a step's key that was deleted, as the unit would have
	// freed it: what is under it counts as done. It refuses if there is a row. The row's fence is a
	// new token, since the row that is gone may have had a higher one than the unit's.
	// The error is a *lockset.ConfigError if this process's clock leaves no tokens.
	RestoreFreed(step ordering.Step) (types.TransactWriteItem, error)
	// RestoreHeld are the writes that give the unit the key of a step back whose row was deleted:
	// prepared, with its journal in this unit table. The first refuses if there is a row, each of
	// the others if somebody has a key above the step's, or has left no room there.
	RestoreHeld(step ordering.Step, table string) []types.TransactWriteItem
	// Done ends what the unit had: all of it is free, or the rest is left to others.
	Done(free bool)
	// Release frees all rows of a unit that is aborted, those that are still its own, as
	// far as DynamoDB answers.
	Release(ctx context.Context) error
}

// Hold is what the unit has of a step.
type Hold int

// What a unit may have of a step.
const (
	Held  Hold = iota // it is the unit's
	Freed             // it was, and was freed
	Gone              // there is no row of it, or one that the unit cannot have had
)
