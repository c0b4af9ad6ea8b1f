// Package web is the page of the command: what ls and show say, in a browser, as it goes on. It
// reads the tables for all who look at once, and only while somebody does.
//
// What it shows is somebody else's text: keys, owners and purposes may be anything. Templates
// escape them, and the browser is told to run and load nothing but the files of this package.
package web

import (
	"context"
	"time"

	"github.com/holdall/holdall/lockset/inspect"
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

// Row is a row of the lock table, with what is known of who is on it.
type Row struct {
	inspect.Sighting
	Stuck bool // its holder is committed, and cannot be finished
}

// Who is the holder of the row; of a damaged row, what is wrong with it stands for the owner.
func (r Row) Who() inspect.Holder {
	if r.Row.Holder != nil {
		return *r.Row.Holder
	}
	return inspect.Holder{Owner: r.Row.Damage}
}

// Story is what is known of one key, in the words of show.
type Story struct {
	Row     inspect.Row
	Life    inspect.Sighting // of its holder, or of the head of its queue
	Becomes string           // what is decided about the holder, in a word; empty if nothing is known
	Words   []string         // a line for each fact, and what follows from it
	Picture []string
	Around  []Row // above, the witnesses of what is below

	Events []Event // what has happened while somebody looked, the last first
}

// Event is something that happened to a key.
type Event struct {
	At    time.Time // when it was seen
	Words string
}
