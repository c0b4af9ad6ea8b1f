package diary

import (
	"context"
	"errors"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/integration/bank/staff"
	"github.com/holdall/holdall/ordering"
)

// Sends says that a job is about to send statements to the archive. There are none
// if the customer has no accounts.
type Sends struct {
	Job        string            `json:"job"`
	Statements []books.Statement `json:"statements"`
}

// Archived says what the archive answered: committed if it has them, refused if
// they were stale. Of what is unknown it may have all or nothing.
type Archived struct {
	Sends
	Outcome staff.Outcome `json:"outcome"`
	Why     string        `json:"why,omitempty"` // it is unknown
}

// followed is the archive as one job sees it.
type followed struct {
	diary *Diary
	job   string
	to    books.Archive
}

// Write writes statements, and writes down what came of it. A job may come here
// several times, each time with another token.
func (f followed) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	sends := Sends{f.job, statements}
	// Before: who is killed in between may have written them.
	f.diary.Write(Line{Sends: &sends})
	err := f.to.Write(ctx, token, keys, statements)
	archived := Archived{Sends: sends, Outcome: staff.Committed}
	switch {
	case errors.Is(err, fencing.ErrStale):
		archived.Outcome = staff.Refused
	case err != nil:
		archived.Outcome, archived.Why = staff.Unknown, err.Error()
	}
	f.diary.Write(Line{Archived: &archived})
	return err
}
