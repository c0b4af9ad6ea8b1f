// Package web is the page of the command: what ls and show say, in a browser, as it goes on. It
// reads the tables for all who look at once, and only while somebody does.
//
// What it shows is somebody else's text: keys, owners and purposes may be anything. Templates
// escape them, and the browser is told to run and load nothing but the files of this package.
package web

import (
	"context"
	"time"

	"github.com/holdall/holdall/ordering"
)

// Tables is what pages show of the tables, and the one thing that they may change.
type Tables interface {
	// Rows looks at all rows with somebody on them.
	Rows() Look[List]
	// Story looks at one key.
	Story(key ordering.Key) Look[Story]
	// Free takes a key from the unit that has it, as inspect.Inspector does. What happened is told in
	// words; the error is a *inspect.FreeError if nothing was changed.
	Free(ctx context.Context, key ordering.Key, unit, reason string) (string, error)
	// Hint is what to do next about an error; it may be empty.
	Hint(err error) string
}

// Look is something that is looked at again and again, by one goroutine at a time.
type Look[T any] interface {
	Read(ctx context.Context) (T, error)
	// Watch looks for signs of life until ctx ends or all are known, so that the next Read knows who
	// is alive.
	Watch(ctx context.Context) error
}

// List is what one reading of the lock table has found.
type List struct {
	Rows    []Row   // in the order of their keys
	More    int     // that were not kept: nobody who waits for one of them waits in a longer queue
	Looked  int     // rows looked at, with those that nobody has or wants
	Cost    float64 // read capacity units, of this reading
	Spent   float64 // of all that was read since the server began
	Unasked string  // why it is not known which units are stuck; empty if it is

	Rates       []Rate // none if nobody was asked for them
	RatesFailed string
}

// Row is a row of the lock table in the words of ls.
type Row struct {
	Key            ordering.Key
	State          string // in one word
	Owner, Purpose string // of the holder; Owner says what is wrong with a damaged row
	Unit           string
	Since          time.Time // by the holder's clock
	Life           Life
	Waiting        int
	Below          int // units that hold keys below it
	Held, Prepared bool
	Damaged        bool
	Stuck          bool // its holder is committed, and cannot be finished
}

// Life is what is known of who is to show a sign of life.
type Life struct {
	Alive, Dead bool
	Words       string // empty if there is nobody, or nothing is known
}

// Story is what is known of one key, in the words of show.
type Story struct {
	Key     ordering.Key
	State   string
	Words   []string // a line for each fact, and what follows from it
	Picture []string
	Holder  *Holder // nil if nobody has it
	Queue   []Waiter
	Around  []Row // above, the witnesses of what is below
	Fence   int64
	// Of a row that nobody has: who had it last. Else it is empty.
	LastOwner string
	// CommittedBy is the last unit that committed with it.
	CommittedBy string

	Events []Event // what has happened while somebody looked, the last first
}

// Holder is who has a key.
type Holder struct {
	Unit, Owner, Purpose string
	Since                time.Time // by its clock
	Lease                time.Duration
	Sign                 string // changes with every sign of life
	Life                 Life
	Prepared             bool   // a journal decides about it: nobody frees it before
	Becomes              string // what is decided about it, in a word; empty if nothing is known
}

// Waiter is a unit in a queue.
type Waiter struct{ Unit, Owner, Purpose string }

// Event is something that happened to a key.
type Event struct {
	At    time.Time // when it was seen
	Words string
}
