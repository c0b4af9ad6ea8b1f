package unitofwork

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// glances is how often a Get reads records whose guards it learns from what it reads.
const glances = 3

// foreseen are the guards that records have as far as their references tell.
func foreseen(records []Record) (guards []ordering.Key, err error) {
	for _, r := range records {
		g, err := r.guards()
		if err == nil && g.guarded && !g.guessed {
			if err = guardIsAKey(g.now); err == nil {
				guards = append(guards, g.now)
			}
		}
		if err != nil {
			table, key, _ := r.location()
			return nil, refusal(table, actions.KeyText(key), err)
		}
	}
	return guards, nil
}

// glance reads records under guards that are expected. If other keys guard them it shows
// nothing and returns the guards that were found.
func (u *Unit) glance(ctx context.Context, records []Record, expected []ordering.Key) (shown []parsed, found []ordering.Key, err error) {
	g, err := u.run.Glance(ctx, expected)
	if err != nil {
		return nil, nil, u.glanceError(err, expected)
	}
	u.looks()
	gets := g.Gets()
	if len(gets) > maxGlance {
		return nil, nil, u.void(expected[0], "is one of too many to be looked at", expected...)
	}
	gathered := u.gather(records, expected)
	var items []map[string]types.AttributeValue
	if gathered {
		g, items, err = u.lookTogether(ctx, records, expected)
	} else {
		items, err = u.look(ctx, g, gets, records)
	}
	if err != nil {
		return nil, nil, u.glanceError(err, expected)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return nil, nil, errEnded
	}
	shown, found, err = u.parseAll(records, items, guardIsAKey)
	if err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(found, func(guard ordering.Key) bool { return !g.Covers(guard) }) {
		u.group.forget()
		return nil, found, nil
	}
	for i, r := range records {
		record, now := identityOf(r), u.c.stampOf(items[i])
		if before, again := u.reads[record]; again && before != now && shown[i].guarded {
			return nil, nil, u.voidLocked(shown[i].guard, "guards a record that was written since it was read")
		}
		u.reads[record] = now
	}
	if err := u.sawVersions(records, items, shown); err != nil {
		return nil, nil, err
	}
	u.seeForOthers()
	if u.mine != nil || u.group.waits() {
		u.mine = slices.Concat(u.mine, found, u.work.Keys)
	}
	g.Keep(slices.Concat(found, u.work.Keys, u.group.keys()))
	u.named = true
	return shown, nil, nil
}

// look reads records with the rows in front, in as many requests as that takes.
func (u *Unit) look(ctx context.Context, g *locks.Glance, gets []types.TransactGetItem, records []Record) (items []map[string]types.AttributeValue, err error) {
	for rest := records; len(rest) > 0; {
		room := requests.MaxActions - len(gets)
		if u.asksForID() {
			room--
		}
		part := rest[:min(room, len(rest))]
		rest = rest[len(part):]
		some, err := u.fetchWith(ctx, g, gets, part)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	return items, nil
}

// fetchWith reads records with the rows in front, and with the first of them the record of
// the unit's ID. It halves what is too large for one request: the rows are in each.
func (u *Unit) fetchWith(ctx context.Context, g *locks.Glance, rows []types.TransactGetItem, records []Record) (items []map[string]types.AttributeValue, err error) {
	err = requests.Halve(records, requests.MayBePart, func(some []Record) error {
		gets := slices.Clone(rows)
		asks := u.asksForID()
		if asks {
			gets = append(gets, u.c.recordGet(u.work.ID))
		}
		reader := u.c.glancer
		if len(rows) == 0 { // no key is known for which locks could be taken
			reader = u.c.caller
		}
		read, err := reader.Read(ctx, u.run.RequestID(), append(gets, getsOf(some)...))
		if err != nil {
			return err
		}
		if asks {
			u.lookedUp = true
			if err := u.judgeID(read[len(rows)]); err != nil {
				return u.conclusive(err)
			}
		}
		if err := g.Saw(read[:len(rows)]); err != nil {
			return err
		}
		items = append(items, read[len(gets):]...)
		return nil
	})
	return items, err
}

// glanceError tells what is in the way of a glance from what is wrong with it.
func (u *Unit) glanceError(err error, expected []ordering.Key) error {
	var way *locks.BusyError
	keys := slices.Concat(expected, u.Keys())
	switch {
	case errors.As(err, &way):
		return u.voidBy(u.met(way.Key, way.Reason, expected...))
	case errors.Is(err, requests.ErrConflicts) && len(keys) > 0: // without a key nothing can be locked
		return u.voidBy(u.met(keys[0], "is being written by others", expected...))
	case errors.Is(err, locks.ErrOvertaken):
		return u.void(expected[0], wasOvertaken, expected...)
	case errors.As(err, new(*lockrow.RowError)), errors.Is(err, lockset.ErrWaited):
		return u.conclusive(err)
	}
	return err
}

func (u *Unit) asksForID() bool { return u.work.ID != "" && !u.lookedUp }

// stampOf is the fence that an item has.
func (c *Client) stampOf(item map[string]types.AttributeValue) (s stamp) {
	var isFence bool
	if _, s.there = item[c.cfg.FenceAttribute]; s.there {
		s.fence, isFence = fencing.Fence{Attribute: c.cfg.FenceAttribute}.Of(item)
		s.foreign = !isFence
	}
	return s
}

const wasOvertaken = "is one of several that others of this process have, now this and now that"
