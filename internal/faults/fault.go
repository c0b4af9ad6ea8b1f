package faults

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Call is one call an owner makes.
type Call struct {
	// Op is the operation's name, such as "UpdateItem".
	Op string
	// N counts the calls of this Op by this Who, from 1.
	N int
	// Who is the owner, followed by "/" and the label if [As] set one.
	Who string
	// Input is the caller's input struct; a Script reads it and no more.
	Input any
	// Actions is how many actions or statements a call of several has, else 0.
	Actions int

	// first names what the call is about first, and turn counts the calls of
	// this Op by this Who about it: draws depend on these and not on N. An owner
	// may send several calls of one Op at a time, about different rows, and
	// which of them comes first is nobody's to say.
	first string
	turn  int
}

// Script decides what happens to a call. It is called once per call, by
// several goroutines at a time if the owner has several.
type Script func(Call) Fault

// Kind names what happened to a call. The first group are the faults a Script
// chooses from; the second is counted when it comes about.
type Kind string

// Kinds of faults, and what is counted beside them.
const (
	Passed         Kind = "passed"
	AnswerLost     Kind = "answer lost"
	RequestLost    Kind = "request lost"
	DeliveredLate  Kind = "delivered late"
	Duplicated     Kind = "duplicated"
	Slowed         Kind = "slowed"
	Throttled      Kind = "throttled"
	Conflicted     Kind = "conflicted"
	ToldInProgress Kind = "told in progress"
	ServerFailed   Kind = "server failed"
	Denied         Kind = "denied"
	TooLarge       Kind = "too large"
	Crashed        Kind = "crashed"

	WindowOpened   Kind = "window opened"   // a transaction became half visible
	WindowMissed   Kind = "window missed"   // asked for, but its rows were busy
	WindowConflict Kind = "window conflict" // refused because of a window
	StaleRead      Kind = "stale read"      // shown an old item by a window
	StillUnderWay  Kind = "still under way" // refused: its token is under way
	CutOff         Kind = "cut off"         // lost to a partition
	CrashedCall    Kind = "crashed call"    // made by a dead owner
)

// Look says how a lost request or answer looks to the caller. The two cannot
// be told apart, with one exception: an answer may also break in the middle.
type Look int

// How something lost looks.
const (
	Reset  Look = iota // the connection breaks, at once
	Hang               // nothing, until the context ends
	Broken             // the answer's first bytes arrive; only for LoseAnswer
)

// Throttling says in which of the service's ways a call is throttled.
type Throttling int

// Ways to be throttled.
const (
	Provisioned       Throttling = iota // ProvisionedThroughputExceededException
	ThrottledTyped                      // ThrottlingException as the SDK of today types it
	ThrottledGeneric                    // ThrottlingException as a smithy.GenericAPIError
	RequestLimit                        // RequestLimitExceeded
	InReasons                           // a cancelled transaction's reasons, a statement's error: ThrottlingError
	ProvisionedReason                   // the same: ProvisionedThroughputExceeded
)

// Fault is what happens to one call. Make one with the functions below.
type Fault struct {
	Kind     Kind
	Look     Look
	Delay    time.Duration // of the late, second or slow delivery
	Executed bool          // ServerFailed, Crashed: before that, it was executed
	How      Throttling
	Singly   bool  // Denied: statements of a batch are, and not the request
	At       []int // positions of the actions or statements refused; none: all

	// WindowFor opens a window of that length when the call is executed, on
	// the rows of the actions named in WindowRows; none: on all of them.
	WindowFor  time.Duration
	WindowRows []int
}

// Pass lets the call through.
func Pass() Fault { return Fault{Kind: Passed} }

// LoseAnswer executes the call and keeps the answer.
func LoseAnswer(look Look) Fault { return Fault{Kind: AnswerLost, Look: look} }

// LoseRequest never executes the call.
func LoseRequest(look Look) Fault { return Fault{Kind: RequestLost, Look: look} }

// DeliverLate tells the caller nothing and executes the call after d, whatever
// has become of the caller.
func DeliverLate(d time.Duration, look Look) Fault {
	return Fault{Kind: DeliveredLate, Delay: d, Look: look}
}

// Duplicate executes the call, answers, and executes it again d later.
func Duplicate(d time.Duration) Fault { return Fault{Kind: Duplicated, Delay: d} }

// Slow has the request take d longer to arrive. Whoever waits that long is answered.
func Slow(d time.Duration) Fault { return Fault{Kind: Slowed, Delay: d} }

// Throttle refuses the call for its rate. The ways that go by action or
// statement refuse those at the positions given, or all.
func Throttle(how Throttling, at ...int) Fault { return Fault{Kind: Throttled, How: how, At: at} }

// Conflict refuses the call because of somebody else's transaction: in a
// transaction or batch the actions or statements at the positions given, or
// all. Statements at other positions of a batch are executed.
func Conflict(at ...int) Fault { return Fault{Kind: Conflicted, At: at} }

// InProgress tells the sender of a transaction that its token is under way. It
// is: the transaction is executed after d, and until then every further
// sending with the token is told the same.
func InProgress(d time.Duration) Fault { return Fault{Kind: ToldInProgress, Delay: d} }

// Deny refuses the call, a batch as a whole, for want of a permission.
func Deny() Fault { return Fault{Kind: Denied} }

// DenyStatements refuses, for want of a permission, the statements of a batch
// at the positions given, or all. Statements at other positions are executed.
func DenyStatements(at ...int) Fault { return Fault{Kind: Denied, Singly: true, At: at} }

// RefuseAsTooLarge refuses the call for the length of its request, with which DynamoDB
// Local answers whatever is in it: a status, and no error of DynamoDB's.
func RefuseAsTooLarge() Fault { return Fault{Kind: TooLarge} }

// ServerError answers with an internal server error, before or after executing.
func ServerError(executed bool) Fault { return Fault{Kind: ServerFailed, Executed: executed} }

// CrashHere makes this the owner's last call, executed or not.
func CrashHere(executed bool) Fault { return Fault{Kind: Crashed, Executed: executed} }

// Window lets a TransactWriteItems through and opens a window on its rows.
func Window(d time.Duration, rows ...int) Fault { return Pass().WithWindow(d, rows...) }

// WithWindow adds to a fault that, when the transaction is executed, the rows
// of the actions at the positions given (none: all) stay as they were, to
// plain reads, for d; and are nobody's to write meanwhile. The window may well
// outlast the answer to the writer: it does on the service.
func (f Fault) WithWindow(d time.Duration, rows ...int) Fault {
	f.WindowFor, f.WindowRows = d, rows
	return f
}

// lasting faults go on after the caller was answered.
func (f Fault) lasting() bool {
	return f.Kind == DeliveredLate || f.Kind == Duplicated || f.Kind == ToldInProgress
}

// byStatement reports whether the fault goes by action or statement: of a batch
// it refuses some, and the others are executed.
func (f Fault) byStatement() bool {
	switch f.Kind {
	case Throttled:
		return f.How == InReasons || f.How == ProvisionedReason
	case Denied:
		return f.Singly
	default:
		return f.Kind == Conflicted
	}
}

func (f Fault) validFor(c Call) error {
	transaction := c.Op == opTransactWrite || c.Op == opTransactGet
	several := transaction || c.Op == opBatch
	if f.WindowFor > 0 && c.Op != opTransactWrite {
		return errors.New("only a TransactWriteItems can open a window")
	}
	if f.Look == Broken && f.Kind != AnswerLost {
		return errors.New("only an answer can break")
	}
	if len(f.At) > 0 && !several {
		return errors.New("a call of one action has no positions")
	}
	for _, at := range append(f.At[:len(f.At):len(f.At)], f.WindowRows...) {
		if at < 0 || at >= c.Actions {
			return fmt.Errorf("position %d of %d actions", at, c.Actions)
		}
	}
	switch f.Kind {
	case Throttled:
		if f.byStatement() && !several {
			return errors.New("a call of one action has no reasons")
		}
	case Conflicted:
		if c.Op == opGet || c.Op == opQuery || c.Op == opScan || c.Op == opBatchGet {
			return errors.New("a plain read meets no conflict")
		}
	case Denied:
		if f.Singly && c.Op != opBatch {
			return errors.New("only a batch has statements to deny")
		}
		if !f.Singly && len(f.At) > 0 {
			return errors.New("a call is denied as a whole")
		}
	case TooLarge:
		if len(f.At) > 0 {
			return errors.New("a call is too large as a whole")
		}
	case ToldInProgress:
		if c.Op != opTransactWrite {
			return errors.New("only a TransactWriteItems can be in progress")
		}
	case Passed, AnswerLost, RequestLost, DeliveredLate, Duplicated, Slowed, ServerFailed, Crashed:
	default:
		return fmt.Errorf("%q is no fault", f.Kind)
	}
	return nil
}

// actions counts what is in a call of several.
func actions(in any) int {
	switch in := in.(type) {
	case *dynamodb.TransactWriteItemsInput:
		return len(in.TransactItems)
	case *dynamodb.TransactGetItemsInput:
		return len(in.TransactItems)
	case *dynamodb.BatchExecuteStatementInput:
		return len(in.Statements)
	}
	return 0
}
