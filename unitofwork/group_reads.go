package unitofwork

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// wanted are records, and those that followers are about to read, each once.
func (g *group) wanted(records []Record) []Record {
	all := slices.Clone(records)
	named := map[string]bool{}
	for _, r := range records {
		named[identityOf(r)] = true
	}
	for _, f := range g.followers {
		for _, r := range f.records {
			if name := identityOf(r); !named[name] {
				named[name] = true
				all = append(all, r)
			}
		}
	}
	return all
}

// readTogether reads records, those of the followers, and the records of all IDs, in one
// request, with rows in front. After an error nothing was read.
func (u *Unit) readTogether(ctx context.Context, reader *requests.Caller, request string, rows []types.TransactGetItem, saw func([]map[string]types.AttributeValue) error, records []Record) error {
	g := u.group
	all := g.wanted(records)
	gets := slices.Clone(rows)
	var ids []string
	if u.optimistic != nil && u.asksForID() {
		ids = append(ids, u.work.ID)
	}
	for _, f := range g.followers {
		if f.u.work.ID != "" {
			ids = append(ids, f.u.work.ID)
		}
	}
	for _, id := range ids {
		gets = append(gets, u.c.recordGet(id))
	}
	var read []map[string]types.AttributeValue
	var err error
	if gets = append(gets, getsOf(all)...); len(gets) > 0 {
		read, err = reader.Read(ctx, request, gets)
	}
	if err == nil && saw != nil {
		err = saw(read[:len(rows)])
	}
	if err != nil {
		return err
	}
	g.read, g.ids = map[string]map[string]types.AttributeValue{}, map[string]map[string]types.AttributeValue{}
	for i, id := range ids {
		g.ids[id] = read[len(rows)+i]
	}
	for i, r := range all {
		g.read[identityOf(r)] = read[len(rows)+len(ids)+i]
	}
	return nil
}

// pause stops the time that the leader's function has while it reads. From when what it returns is
// called, those who came along wait for the function, but not for long.
func (g *group) pause() (resume func()) {
	if g == nil {
		return func() {}
	}
	g.stopTimer()
	return func() {
		waiting := slices.Clone(g.followers)
		if len(waiting) == 0 {
			return
		}
		g.timer = time.AfterFunc(groupTime, func() {
			for _, f := range waiting {
				f.putBack(g)
			}
		})
	}
}

// itemsOf are records as they were read for all.
func (g *group) itemsOf(records []Record) []map[string]types.AttributeValue {
	items := make([]map[string]types.AttributeValue, len(records))
	for i, r := range records {
		items[i] = g.read[identityOf(r)]
	}
	return items
}

// readMore reads records for a follower, under keys that the group has.
func (u *Unit) readMore(ctx context.Context, records []Record) (items []map[string]types.AttributeValue, err error) {
	if u.optimistic == nil {
		return u.fetchAll(ctx, records)
	}
	g, err := u.run.Glance(ctx, nil)
	if err == nil {
		items, err = u.look(ctx, g, g.Gets(), records)
	}
	if err != nil {
		errors.As(err, &u.group.broken)
		return nil, err
	}
	for i, r := range records {
		u.sawForOthers(r, items[i])
		u.group.read[identityOf(r)] = items[i]
	}
	return items, nil
}

// seeForOthers notes what the records were read with that followers are about to read.
func (u *Unit) seeForOthers() {
	if u.group == nil {
		return
	}
	for _, f := range u.group.followers {
		for _, r := range f.records {
			u.sawForOthers(r, u.group.read[identityOf(r)])
		}
	}
}

func (u *Unit) sawForOthers(r Record, item map[string]types.AttributeValue) {
	if _, known := u.reads[identityOf(r)]; !known {
		u.reads[identityOf(r)] = u.c.stampOf(item)
	}
}

// lookTogether looks at the rows of the unit and of its followers, and reads for all. If that
// cannot be done, the unit looks for itself alone, and the followers are put back; but they go
// with it to where somebody is in its own way.
func (u *Unit) lookTogether(ctx context.Context, records []Record, expected []ordering.Key) (*locks.Glance, []map[string]types.AttributeValue, error) {
	g, err := u.run.Glance(ctx, slices.Concat(expected, u.group.keys()))
	if err == nil {
		err = u.readTogether(ctx, u.c.glancer, u.run.RequestID(), g.Gets(), g.Saw, records)
	}
	var way *locks.BusyError
	switch {
	case err == nil:
		if err := u.lookUpIn(u.group); err != nil {
			return nil, nil, u.conclusive(err)
		}
		return g, u.group.itemsOf(records), nil
	case errors.As(err, &way) && slices.Contains(rowsOf(expected), way.Key):
		return nil, nil, err
	}
	u.group.comeAlone(err)
	if g, err = u.run.Glance(ctx, expected); err != nil {
		return nil, nil, err
	}
	items, err := u.look(ctx, g, g.Gets(), records)
	return g, items, err
}

// lookUpIn looks for the unit's ID in what was read for all.
func (u *Unit) lookUpIn(g *group) error {
	if !u.asksForID() {
		return nil
	}
	u.lookedUp = true
	return u.judgeID(g.ids[u.work.ID])
}

// readForOthers reads what followers are about to read.
func (u *Unit) readForOthers(ctx context.Context) error {
	if u.optimistic == nil {
		return u.readTogether(ctx, u.c.caller, u.nonce, nil, nil, nil)
	}
	all := slices.Concat(u.run.Keys(), u.group.keys())
	g, err := u.run.Glance(ctx, all)
	if err == nil {
		err = u.readTogether(ctx, u.c.glancer, u.run.RequestID(), g.Gets(), g.Saw, nil)
	}
	if err != nil {
		return err
	}
	u.seeForOthers()
	u.mu.Lock()
	u.mine = u.run.Keys()
	u.mu.Unlock()
	g.Keep(all)
	return nil
}

// ownKeys are those that a run of this unit alone would take under locks, with others.
func (u *Unit) ownKeys(others ...ordering.Key) []ordering.Key {
	if u.mine == nil {
		return u.run.Keys(others...)
	}
	all := slices.Concat(u.mine, others)
	for _, w := range u.stage.writes {
		all = append(all, w.guard)
	}
	keys, _ := plans.Canonical(all...) // they are valid, or the error is the caller's to find
	return keys
}

// forget has what was read for all read again.
func (g *group) forget() {
	if g != nil {
		g.read = nil
	}
}
