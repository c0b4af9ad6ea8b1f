// Package timeline makes pictures of recordings: who held which key when, who waited behind whom,
// what each unit did and what became of it.
//
// [Read] makes a [Model] of the events of one or more recordings. [WritePage] draws it as a page
// that needs no network, and [WriteTrace] as a trace for Perfetto.
package timeline

import "time"

// Model is what recordings say, in order. Times are nanoseconds of Unix time; texts are indices
// of Strings, of which the first is empty; what refers to another list is an index of it, or none.
type Model struct {
	Sources    []string
	Lines, Bad int   // lines that are events, and that are none
	Begin, End int64 // of all that was recorded
	Strings    []string

	Processes []Process
	Keys      []Key  // the hottest first, each before those below it
	Units     []Unit // by their start
	Spans     []Span // those of a unit together, by their start; each after the one that it is in
	Waits     []Wait
	Holds     []Hold
	Marks     []Mark
}

const none = -1

// Process is one of those that recorded.
type Process struct {
	Name  int32
	Rows  int32 // that its units need, so that none overlap
	Units int32
	Last  int64 // event
}

// Key is one that a unit held, waited for, or fell back for; or one above it.
type Key struct {
	Name   int32
	Parent int32
	Depth  int32
	Waits  int32
	// Waited and Held are how long units did so, all in all, not counting keys below.
	Waited, Held int64
	Holders      int32 // rows that they need
	Waiters      int32 // the same
}

// Way is how a unit ran.
type Way uint8

// The ways of units.
const (
	WithoutLocks Way = iota
	Together         // in a group, as its leader or a follower
	UnderLocks
	LockSet // one that was acquired by itself
	Apart   // no unit: reads and requests outside of any
	ways
)

// Ways names them.
var Ways = [ways]string{"without locks", "together", "under locks", "lock set", "apart from units"}

// Unit is one run of a unit, or what is told outside of any.
type Unit struct {
	Process    int32
	Start, End int64
	Name       int32 // its nonce
	ID         int32
	Purpose    int32 // as those who waited for it were told
	Outcome    int32
	Leader     int32 // a unit, or none
	Key        int32 // for which it fell back
	Token      int32
	Err        int32
	Rows       int32
	Writes     int32
	Way        Way
	Fate       Fate
	Begun      bool // its start was recorded

	First, Spans int32 // Model.Spans[First:][:Spans]
	Row          int32 // among those of its process

	last   int64 // the latest event of it
	leads  bool
	leader int32 // its nonce
}

// Fate is how the record of a unit ends.
type Fate uint8

// The fates of units.
const (
	Ended Fate = iota
	Died       // its process did, as far as is recorded: End is its last sign of life
	NoEnd      // its end is not recorded, and its process goes on
	fates
)

// Kind is what a span is.
type Kind uint8

// The kinds of spans.
const (
	Acquire Kind = iota
	WaitFor
	Function
	ReadRecords
	Commit
	Request
	kinds
)

// Kinds names them.
var Kinds = [kinds]string{"acquire", "wait", "function", "read", "commit", "request"}

// Span is something that took time within a unit.
type Span struct {
	Unit       int32
	In         int32 // the span that it is in, or none
	Start, End int64
	Text       int32
	Err        int32
	Kind       Kind
	Open       bool // its end is not recorded
}

// Wait is a span that is one.
type Wait struct {
	Span    int32
	Key     int32
	Holder  int32 // the unit behind which it was, or none
	Name    int32 // the holder's nonce
	Owner   int32
	Purpose int32
	Queue   int32
	Held    []int32 // keys
	Row     int32   // among those who wait for the key
}

// Having is how a unit has a key.
type Having uint8

// How a unit may have a key.
const (
	Held   Having = iota
	Taking        // while it waits for others of its set
	Told          // as those say who wait for it: it may run without locks, or is not recorded
	havings
)

// Left is how it came to an end.
type Left uint8

// How having a key may end.
const (
	Freed     Left = iota
	WasLost        // its lease had ended
	WasBuried      // another freed it after its holder's death
	StillHeld      // when the recording ends
	lefts
)

// Hold is a bar of a key.
type Hold struct {
	Key        int32
	Unit       int32 // or none, if it is not recorded
	Name       int32 // its nonce
	Start, End int64
	Having     Having
	Left       Left
	Row        int32
}

// MarkKind is what a mark is.
type MarkKind uint8

// The kinds of marks.
const (
	Started MarkKind = iota
	Paused
	Note
	Renewed
	RenewFailed
	Raised
	Lost
	Buried
	Cleaned
	Dropped
	HandedOver
	Joined
	Phase
	Unfinished
	Recovered
	StartingOver
	Released
	markKinds
)

// MarkKinds names them.
var MarkKinds = [markKinds]string{
	"started", "paused", "note", "heartbeat", "heartbeat failed", "token raised", "lost", "buried", "cleaned", "dropped", "handed over",
	"joined the queue", "journal", "unfinished", "recovered", "starting over", "released",
}

// Mark is something that happened at one moment.
type Mark struct {
	At       int64
	Process  int32
	Unit     int32 // in which it happened, or none
	Of       int32 // the unit that it is about, or none: of Buried the dead one
	Name     int32 // that one's nonce
	Key      int32 // or none
	Text     int32
	Err      int32
	N, Outof int32
	Kind     MarkKind
}

// At is a time of the model.
func (m *Model) At(t int64) time.Time { return time.Unix(0, t).UTC() }
