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
	Led          Way = "in one transaction with another of its process, which led it"
)

// course is what hooks know from one run of a unit to the next.
type course struct {
	begun  bool         // not by Do: it has one run, under locks, and never commits
	open   atomic.Bool  // this run has no locks
	void   atomic.Bool  // an earlier one had none, and was void
	sent   atomic.Bool  // this run has sent a request
	waited atomic.Int64 // by runs without locks, in nanoseconds: for units of the same owner
}

type courseKey struct{}

// marked runs units under contexts by which hooks tell the runs of one from those of others.
type marked struct {
	books.Runner
	tries func(unit string) // as Config.Tries
}

// Do calls the runner's Do.
func (m marked) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	c := &course{}
	return m.Runner.Do(context.WithValue(ctx, courseKey{}, c), work, func(ctx context.Context, u books.Unit) error {
		err := fn(ctx, u)
		if err == nil && m.tries != nil && c.open.Load() {
			m.tries(u.Nonce()) // no hook tells of the commit of one that another leads
		}
		return err
	})
}

// courseOf is that of a unit's hooks.
func courseOf(ctx context.Context) *course {
	if c, ok := ctx.Value(courseKey{}).(*course); ok {
		return c
	}
	return &course{begun: true}
}

// ended notes how a run ended, and returns how the unit came to that.
func (c *course) ended(e trace.UnitEnd) Way {
	switch {
	case e.Leader != "":
		c.void.Store(e.Outcome == trace.FellBack)
		return Led
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
func (t *Tally) fellBack(e trace.UnitEnd, sent bool) {
	switch {
	case e.Leader != "": // inGroup says it
	case !e.Optimistic:
		t.FoundMore.Add(1)
	case sent:
		t.Void.Add(1)
	default:
		t.Avoided.Add(1)
	}
}

// Groups counts what became of units that came along with others of their owner.
type Groups struct {
	Led    int // groups with others than their leaders that were committed
	Along  int // these others
	Failed int // whose functions failed, which was told when their group was committed
	Void   int // runs that count for nothing: they were left out, or their group came to nothing

	leaders map[string]bool
}

// inGroup counts a run that has come along with another, and ended.
func (t *Tally) inGroup(e trace.UnitEnd) {
	if e.Leader == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch g := &t.Groups; e.Outcome {
	case trace.Committed:
		g.Along++
		g.leaders[e.Leader] = true
		g.Led = len(g.leaders)
	case trace.NotCommitted:
		g.Failed++
	case trace.FellBack:
		g.Void++
	}
}
