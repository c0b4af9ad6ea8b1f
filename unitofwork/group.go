package unitofwork

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// group is a unit of Do that leads others of its process. To the tables it is one unit: its
// members run their functions one after another, each on what those before it have staged, and
// are committed in one transaction, with the leader's locks, or without (group commit: DeWitt
// et al., "Implementation Techniques for Main Memory Database Systems", 1984).
//
// It is touched by the leader's goroutine, and by that of the follower which that one waits for.
type group struct {
	lead      *Unit // the leader's run
	followers []*follower
	timer     *time.Timer // puts back those who wait for their turn when the leader takes long

	gathered bool                                       // the leader has looked who comes along
	counted  map[string]bool                            // records and IDs that are read together; nil before the first follower
	looked   []ordering.Key                             // whose rows are read with them, in order; under locks none
	read     map[string]map[string]types.AttributeValue // for all, by identity; nil before
	ids      map[string]map[string]types.AttributeValue // the records of IDs, as read

	merged merged
	inside map[*follower]bool // whose writes are in merged
	broken *locks.BusyError   // somebody else was found to have had the group's rows
}

const (
	// groupSize is how many units are committed together at most.
	groupSize = 32
	// groupRoom is how many rows, records and IDs a group reads together at most.
	groupRoom = 96
	// groupTime is how long those who wait for their turn wait for functions at most.
	groupTime = 20 * time.Millisecond
)

// leads begins a run of the unit that leads a group: nobody has come along with it.
func (u *Unit) leads(r *runs) {
	if r.group != nil {
		r.group = &group{lead: u}
		u.group = r.group
	}
}

// stopTimer ends the time that those who wait for their turn wait, if it runs.
func (g *group) stopTimer() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// keys are those that wait for their turn wait for.
func (g *group) keys() (keys []ordering.Key) {
	if g != nil {
		for _, f := range g.followers {
			keys = append(keys, f.guards...)
		}
	}
	return keys
}

// putBack has those who wait for their turn stand in line again.
func (g *group) putBack() {
	if g == nil {
		return
	}
	g.stopTimer()
	for _, f := range g.followers {
		f.putBack(g)
	}
	g.followers = nil
}

// gather takes along who waits for what the unit has, which is about to read records, or has
// read nothing. It reports whether anybody waits for its turn.
func (u *Unit) gather(records []Record, guards []ordering.Key) bool {
	g := u.group
	if g == nil {
		return false
	}
	if !g.gathered {
		g.gathered = true
		fits := func(with any) bool {
			if g.counted == nil { // as nearly always, nobody waits
				g.counted = map[string]bool{}
				count(g.counted, records, u.work.ID)
				g.looked, _ = plans.Canonical(guards...)
			}
			return g.fits(with.(*follower))
		}
		if u.optimistic != nil {
			u.run.TakeAlong(fits)
		} else {
			u.set.TakeAlong(fits)
		}
	}
	return len(g.followers) > 0 && g.read == nil
}

// fits reports whether a follower comes along, and has it wait for its turn.
func (g *group) fits(f *follower) bool {
	if len(g.followers)+1 >= groupSize || !g.admits(f) || !f.take(g) {
		return false
	}
	g.followers = append(g.followers, f)
	return true
}

// admits reports whether what a follower reads fits, and counts it.
func (g *group) admits(f *follower) bool {
	id := f.u.work.ID
	notHeld := func(guard ordering.Key) bool { return g.lead.holds(guard) != nil }
	if id != "" && g.counted[nameOfID(id)] || g.lead.optimistic == nil && slices.ContainsFunc(f.guards, notHeld) {
		return false
	}
	counted, plan := maps.Clone(g.counted), plans.Plan{}
	count(counted, f.records, id)
	if g.lead.optimistic != nil {
		plan, _ = plans.New(slices.Concat(g.looked, f.guards)...)
	}
	if len(counted)+plan.Rows() > min(groupRoom, g.lead.c.cfg.TransactionSize) || plan.Rows() > maxGlance {
		return false
	}
	g.counted, g.looked = counted, plan.Keys()
	return true
}

// count notes the names of what a unit reads.
func count(names map[string]bool, records []Record, id string) {
	for _, r := range records {
		names[identityOf(r)] = true
	}
	if id != "" {
		names[nameOfID(id)] = true
	}
}

func nameOfID(id string) string { return "id\x00" + id }

func identityOf(r Record) string {
	table, key, _ := r.location()
	return identity(table, actions.KeyText(key))
}

// covers reports whether what the leader has, or has looked at, covers a guard.
func (g *group) covers(guard ordering.Key) bool {
	if g.lead.optimistic == nil {
		return g.lead.holds(guard) == nil
	}
	return g.lead.run.Covers(guard)
}

// mayWrite reports whether a follower may write under a guard: without locks under any.
func (g *group) mayWrite(guard ordering.Key) bool {
	return g.lead.optimistic != nil || g.lead.holds(guard) == nil
}

// others are guards of a follower's writes that the leader's run does not rely on yet.
func (g *group) others(writes []write) (guards []ordering.Key) {
	for _, w := range writes {
		if g.lead.optimistic != nil && !g.lead.run.Covers(w.guard) {
			guards = append(guards, w.guard)
		}
	}
	return guards
}

// comeAlone puts the followers back. If DynamoDB does not take what they read together, one of
// them is at fault: they do not come along any more.
func (g *group) comeAlone(err error) {
	if errors.As(err, new(*lockset.TableError)) {
		for _, f := range g.followers {
			f.mu.Lock()
			f.loner = true
			f.mu.Unlock()
		}
	}
	g.putBack()
}

// waits reports whether anybody came along.
func (g *group) waits() bool { return g != nil && len(g.followers) > 0 }
