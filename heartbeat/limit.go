package heartbeat

import "time"

// limit is an end that does not depend on renewals: at first that of Config.MaxAge.
type limit struct {
	at     time.Time
	reason error
}

// Limit has the keys count as lost at end for this reason, whatever is renewed until then. An end after
// that of Config.MaxAge, or of an earlier call, changes nothing.
func (g *Group) Limit(end time.Time, reason error) {
	g.mu.Lock()
	if end.Before(g.limit.Load().at) {
		g.limit.Store(&limit{end, reason})
	}
	g.mu.Unlock()
	g.moveDeadline()
	g.beginInTime()
	wake(g.lookAgain)
}
