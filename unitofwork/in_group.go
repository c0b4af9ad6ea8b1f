package unitofwork

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// getInGroup reads records as those of its group before it have left them.
func (u *Unit) getInGroup(ctx context.Context, records []Record) error {
	f := u.follower
	u.mu.Lock()
	verdict := u.stage.verdict
	u.mu.Unlock()
	if verdict != nil {
		return verdict
	}
	if err := u.lookUpIn(f.group); err != nil {
		return u.conclusive(err)
	}
	items, err := u.inGroupItems(ctx, records)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return errEnded
	}
	shown, guards, err := u.parseAll(records, items, guardIsAKey)
	if err != nil {
		return err
	}
	for _, guard := range guards {
		if !f.mayUse(guard) {
			return u.voidWith(&voidError{key: guard, why: notTheGroups, keys: guards, alone: true})
		}
		u.run.Cover(guard) // of which it has nothing: so it knows its keys
	}
	if err := u.sawVersions(records, items, shown); err != nil {
		return err
	}
	u.show(shown)
	return nil
}

const notTheGroups = "is none of those that its group has"

// inGroupItems are records as the members before this one have left them, those that the group
// has read, and the others.
func (u *Unit) inGroupItems(ctx context.Context, records []Record) ([]map[string]types.AttributeValue, error) {
	g := u.follower.group
	items := make([]map[string]types.AttributeValue, len(records))
	var others []Record
	var at []int
	for i, r := range records {
		record := identityOf(r)
		item, written, known := g.merged.left(record)
		switch {
		case written && !known:
			guards, _ := foreseen(records)
			return nil, u.voidAlone(u.follower.guards[0], "guards a record that is not written as a whole", guards...)
		case !written:
			if item, known = g.read[record]; !known {
				others, at = append(others, r), append(at, i)
			}
		}
		items[i] = item
	}
	if len(others) == 0 {
		return items, nil
	}
	guards, err := foreseen(others)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(guards, func(guard ordering.Key) bool { return !u.follower.mayUse(guard) }); i >= 0 {
		return nil, u.voidAlone(guards[i], notTheGroups, guards...)
	}
	read, err := g.lead.readMore(ctx, others)
	if err != nil {
		if g.broken != nil || errors.Is(err, requests.ErrConflicts) {
			return nil, u.voidAlone(u.follower.guards[0], "is one of a group that somebody is in the way of")
		}
		return nil, err
	}
	for i, item := range read {
		items[at[i]] = item
	}
	return items, nil
}

// mayUse reports whether the group covers a guard. What becomes of a follower that was left
// out has nothing to do with it.
func (f *follower) mayUse(guard ordering.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state != running || f.group.covers(guard)
}

// coverInGroup is cover for a unit whose group runs it.
func (u *Unit) coverInGroup(guard ordering.Key) ordering.Key {
	f := u.follower
	f.mu.Lock()
	if f.state == running && !f.group.mayWrite(guard) {
		u.missing = append(u.missing, guard) // it may go on, and show what else it needs
	}
	f.mu.Unlock()
	return u.run.Cover(guard)
}

// endInGroup ends a follower whose function has returned, when its group has.
func (u *Unit) endInGroup(failed error) (nonce string, next lockset.Next, err error) {
	f := u.follower
	close(f.returned)
	u.mu.Lock()
	if len(u.missing) > 0 {
		_ = u.voidWith(&voidError{key: u.missing[0], why: notTheGroups, alone: true})
	}
	if failed == nil {
		u.checkVersions()
	}
	verdict, writes := u.stage.verdict, u.stage.writes
	if failed == nil {
		failed = u.stage.err
	}
	u.ended = u.ended || verdict == nil // what is staged from here on is refused
	u.mu.Unlock()
	switch {
	case verdict != nil:
		f.goAway()
		_ = u.conclude(u.outer, verdict)
		if errors.Is(verdict, ErrAlreadyCommitted) {
			return u.nonce, lockset.Decide, nil
		}
		return u.nonce, lockset.NextOf(verdict), verdict
	case !f.handIn(writes, failed):
		err := u.fellBack(&voidError{key: f.guards[0], why: tookLong, alone: true})
		u.tell()
		return u.nonce, lockset.StartOver, err
	}
	<-f.settled
	u.tell()
	if f.err != nil { // its own: that is its author's business
		return u.nonce, lockset.Decide, f.result
	}
	return u.nonce, lockset.NextOf(f.result), f.result
}

// leaveGroup ends what its group has to do with a unit whose function does not return.
func (u *Unit) leaveGroup() {
	if u.follows() {
		close(u.follower.returned)
		u.follower.goAway()
	}
}

// commitInGroup hands in what a unit has staged that has read nothing, and waits for what
// becomes of it.
func (u *Unit) commitInGroup(writes []write) error {
	f := u.follower
	close(f.returned)
	if err := u.lookUpIn(f.group); err != nil {
		f.goAway()
		if errors.Is(err, ErrAlreadyCommitted) {
			return u.doneBefore(err)
		}
		return u.notDone(err)
	}
	if !f.handIn(writes, nil) {
		return u.fellBack(&voidError{key: f.guards[0], why: tookLong, alone: true})
	}
	<-f.settled
	return f.result
}

// voidAlone makes the run void because it does not go with those of others: the next one
// comes along with nobody.
func (u *Unit) voidAlone(key ordering.Key, why string, others ...ordering.Key) error {
	return u.voidBy(&voidError{key: key, why: why, keys: others, alone: true})
}
