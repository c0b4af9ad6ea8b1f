package unitofwork

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// leadsOn reports whether the unit leads those who came along although its function has failed:
// they need not read again. What it was told was true before anybody had staged anything, so its
// error is told whatever becomes of them.
func (u *Unit) leadsOn(failed error) bool {
	if !u.group.waits() || u.group.read == nil || u.work.ID != "" || u.outer.Err() != nil {
		return false
	}
	if u.optimistic == nil && context.Cause(u.set.Context()) != nil {
		return false
	}
	u.failed = failed
	return true
}

// lead runs those who came along. If the unit has read nothing, what they are about to read is
// read first.
func (u *Unit) lead(ctx context.Context, writes []write, toRead bool) []write {
	if toRead {
		if err := u.readForOthers(ctx); err != nil {
			u.group.comeAlone(err)
		}
	}
	return u.runFollowers(ctx, writes)
}

// runFollowers has those who came along run their functions, one after another, on what the
// leader has staged, and returns what all of them write.
func (u *Unit) runFollowers(ctx context.Context, writes []write) []write {
	g := u.group
	if !g.waits() {
		return writes
	}
	g.stopTimer()
	g.inside = map[*follower]bool{}
	u.mu.Lock() // a Get may be under way, which learns what is the key of a table
	for i := range writes {
		u.stage.locatePut(&writes[i])
	}
	u.mu.Unlock()
	if !g.merged.add(writes) { // it is not known which record one of them writes
		g.putBack()
		return writes
	}
	end := time.Now().Add(groupTime)
	for _, f := range g.followers {
		if !time.Now().Before(end) || ctx.Err() != nil || g.broken != nil {
			f.putBack(g)
			continue
		}
		if f.start(g) {
			g.run(f, time.Until(end))
		}
	}
	return g.merged.writes
}

// run has a follower run its function, and takes what it writes.
func (g *group) run(f *follower, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-f.over:
	case <-timer.C:
		f.leaveOut()
	}
	f.mu.Lock()
	over := f.state == handedIn
	f.mu.Unlock()
	if !over || f.err != nil {
		return
	}
	writes, err := g.lead.stampedFor(f)
	others := g.others(writes)
	all := g.merged.clone()
	g.inside[f] = err == nil && all.add(writes) && g.hasRoomFor(f, all.writes, len(rowsOf(others)))
	if g.inside[f] {
		g.merged = all
		for _, guard := range others {
			g.lead.run.Cover(guard)
		}
	}
}

// hasRoomFor reports whether the group's transaction has room for one more unit, with which these
// are all its writes, and at most so many rows that it has not yet.
func (g *group) hasRoomFor(f *follower, all []write, rows int) bool {
	actions := g.lead.rowCount() + rows + len(all) + len(g.insideIDs())
	if f.u.work.ID != "" {
		actions++
	}
	if g.lead.work.ID != "" {
		actions++
	}
	return actions <= g.lead.c.cfg.TransactionSize && sizeOf(all).Fits(requests.Room)
}

// insideIDs are the followers with an ID whose writes go into the transaction.
func (g *group) insideIDs() (with []*follower) {
	if g == nil {
		return nil
	}
	for _, f := range g.followers {
		if g.inside[f] && f.u.work.ID != "" {
			with = append(with, f)
		}
	}
	return with
}

// insideKeys are the keys that those followers have named who commit something in the transaction.
func (g *group) insideKeys() (keys []ordering.Key) {
	if g == nil {
		return nil
	}
	for _, f := range g.followers {
		if g.inside[f] && (len(f.writes) > 0 || f.u.work.ID != "") {
			keys = append(keys, f.u.work.Keys...)
		}
	}
	return keys
}

// isNotAlone reports whether the leader's transaction has writes of others.
func (g *group) isNotAlone() bool {
	return g != nil && slices.Contains(slices.Collect(maps.Values(g.inside)), true)
}

// hasRun reports whether followers have run.
func (g *group) hasRun() bool { return g != nil && g.inside != nil }

// brokenBy is who was found to have had the group's rows while followers ran; nil if nobody was.
func (g *group) brokenBy() *locks.BusyError {
	if g == nil {
		return nil
	}
	return g.broken
}

// apart is ctx, or, if others' writes are in the transaction, one that does not end with the
// leader's caller.
func (g *group) apart(ctx context.Context) context.Context {
	if g.isNotAlone() {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// stampedFor are a follower's writes, as the leader's commit has them.
func (u *Unit) stampedFor(f *follower) ([]write, error) {
	writes := slices.Clone(f.writes)
	for i := range writes {
		w := &writes[i]
		f.u.stage.locatePut(w)
		if u.optimistic != nil { // when the token is known
			continue
		}
		var err error
		if w.item, err = u.stage.stamper.Stamp(w.item); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// settle tells those who have run what became of them.
func (g *group) settle() {
	if g == nil {
		return
	}
	g.stopTimer()
	for _, f := range g.followers {
		f.settle(g.lead, g.inside[f])
	}
}
