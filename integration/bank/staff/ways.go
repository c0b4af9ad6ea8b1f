package staff

import (
	"context"
	"sync/atomic"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Way is how a unit came to its end.
type Way string

// Ways of units.
const (
	WithoutLocks Way = "without locks"
	AfterVoid    Way = "under locks, after a run without locks that was void"
	LockedFirst  Way = "under locks that it took first"
)

// course is what hooks know from one run of a unit to the next.
type course struct {
	open atomic.Bool // this run has no locks
	void atomic.Bool // an earlier one had none, and was void
}

type courseKey struct{}

// marked runs units under contexts by which hooks tell the runs of one from those of others.
type marked struct{ books.Runner }

// Do calls the runner's Do.
func (m marked) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	return m.Runner.Do(context.WithValue(ctx, courseKey{}, &course{}), work, fn)
}

// courseOf is that of a unit's hooks. A unit that Do has not begun has one run, under locks.
func courseOf(ctx context.Context) *course {
	if c, ok := ctx.Value(courseKey{}).(*course); ok {
		return c
	}
	return &course{}
}

// ended notes how a run ended, and returns how the unit came to that.
func (c *course) ended(e trace.UnitEnd) Way {
	switch {
	case e.Optimistic:
		c.void.Store(e.Outcome == trace.FellBack)
		return WithoutLocks
	case c.void.Load():
		return AfterVoid
	default:
		return LockedFirst
	}
}

// fellBack counts a run that counts for nothing.
func (t *Tally) fellBack(e trace.UnitEnd) {
	if e.Optimistic {
		t.Void.Add(1)
	} else {
		t.FoundMore.Add(1)
	}
}
