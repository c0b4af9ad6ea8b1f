package heartbeat

import "time"

// Limit has the keys count as lost at end for this reason, whatever is renewed until then.
func (g *Group) Limit(end time.Time, reason error) {
	g.made("Limit")
	g.limit.Store(&limit{end, reason})
	g.moveDeadline()
	g.beginInTime()
	wake(g.lookAgain)
}

// limit is an end that does not depend on renewals.
type limit struct {
	at     time.Time
	reason error
}

// latest is the deadline of keys whose renewals are all confirmed.
func (g *Group) latest() time.Time {
	end := g.start.Add(g.cfg.MaxAge)
	if l := g.limit.Load(); l != nil && l.at.Before(end) {
		return l.at
	}
	return end
}
