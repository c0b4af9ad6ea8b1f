package unitofwork

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// Get reads records, of any tables, as of one moment: one TransactGetItems for
// every 100, or for less where they are larger than DynamoDB's 4 MB. It sees the
// tables, and what units have staged with which this one is committed ([Client.Do]), not what
// itself has staged. An absent record is no error: its Found
// is false. What several requests read, of one Get or of several, is one state all the same:
// the unit holds what guards it, or has seen that nobody else has had it.
//
// Errors: one that names the record for a reference that cannot be one or comes twice, and for a record
// that no key guards which the unit holds, where keys are not found (Work.Lock, [Client.Begin]);
// *lockset.TableError, which names the table, *lockset.NoAnswerError, the error of ctx. After an error
// no record is changed. The unit does not commit then, even if a later Get succeeds: the commit returns
// the error as well, as it does that of a refused write. In Do, return any error as it is: Do then calls
// the function again, or returns what became of the unit, which is nil if its ID was committed before.
//
// A record of a [Table] without a Guard is read as it is; no key guards it.
func (u *Unit) Get(ctx context.Context, records ...Record) error {
	if u.hasEnded() {
		return errEnded
	}
	read := u.get
	if u.optimistic != nil {
		read = u.getWithoutLocks
	}
	err := errUnfinished
	defer func() {
		if err != nil && !errors.Is(err, errEnded) { // the function did not wait for what its end cut short
			u.mu.Lock()
			defer u.mu.Unlock()
			_ = u.stage.keep(err)
		}
	}()
	err = u.c.traceRead(ctx, u.nonce, records, func(ctx context.Context) error { return read(ctx, records) })
	return err
}

// traceRead reads records, of a unit if it names one, when they have been checked.
func (c *Client) traceRead(ctx context.Context, unit string, records []Record, read func(context.Context) error) error {
	if err := check(records); err != nil {
		return err
	}
	began := time.Now()
	ctx = hooks.Start(ctx, c.cfg.Trace, trace.Event{Kind: trace.Read, Unit: unit, Records: len(records)})
	err := read(ctx)
	hooks.Tell(ctx, c.cfg.Trace, trace.Event{Kind: trace.Read, Unit: unit, Records: len(records), Took: time.Since(began), Err: err})
	return err
}

// get reads records that were checked.
func (u *Unit) get(ctx context.Context, records []Record) error {
	read := u.fetchAll
	if u.group != nil && u.gathering.TryLock() { // else another Get is at it
		defer u.gathering.Unlock()
		bound, cancel := u.bound(ctx) // whoever waits for it is not to wait for long
		defer cancel()
		ctx = bound
		defer u.group.pause()()
		read = u.getTogether
	}
	items, err := read(ctx, records)
	if err != nil {
		return err
	}
	shown, guards, err := u.parseRead(records, items)
	if err != nil {
		return err
	}
	if err := u.refuseNested(ctx, guards...); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stage.verdict != nil {
		return u.stage.verdict
	}
	if i := slices.IndexFunc(guards, func(g ordering.Key) bool { return u.holds(g) != nil }); i >= 0 {
		return u.voidLocked(guards[i], wasFound, guards...)
	}
	if err := u.sawVersions(records, items, shown); err != nil {
		return err
	}
	u.show(shown)
	return nil
}

// parseRead reads items as records whose guards are held, or may be found.
func (u *Unit) parseRead(records []Record, items []map[string]types.AttributeValue) (shown []parsed, guards []ordering.Key, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stage.verdict != nil {
		return nil, nil, u.stage.verdict
	}
	allowed := u.holds
	if u.finds {
		allowed = guardIsAKey
	}
	return u.parseAll(records, items, func(guard ordering.Key) error {
		if err := u.nested(guard); err != nil {
			return err
		}
		return allowed(guard)
	})
}

// getTogether reads records, together with those of others that wait for what the unit has.
func (u *Unit) getTogether(ctx context.Context, records []Record) ([]map[string]types.AttributeValue, error) {
	if !u.gather(records, nil) {
		return u.fetchAll(ctx, records)
	}
	if err := u.readTogether(ctx, u.c.caller, u.nonce, nil, nil, records); err != nil {
		u.group.comeAlone(err)
		return u.fetchAll(ctx, records)
	}
	return u.group.itemsOf(records), nil
}

// fetchAll reads records, in as many requests as that takes.
func (u *Unit) fetchAll(ctx context.Context, records []Record) (items []map[string]types.AttributeValue, err error) {
	for chunk := range slices.Chunk(records, requests.MaxActions) {
		some, err := u.fetch(ctx, chunk)
		if err != nil {
			return nil, err
		}
		items = append(items, some...)
	}
	return items, nil
}

// parseAll reads items as records, and returns their guards, those that they have.
func (u *Unit) parseAll(records []Record, items []map[string]types.AttributeValue, allowed func(ordering.Key) error) (shown []parsed, guards []ordering.Key, err error) {
	shown = make([]parsed, len(records))
	for i, r := range records {
		table, key, _ := r.location() // check has looked at the error
		u.stage.learn(table, key)
		u.c.sawFence(items[i])
		if shown[i], err = parse(r, items[i], allowed); err != nil {
			if errors.As(err, new(*guardError)) || errors.Is(err, lockset.ErrNested) {
				return nil, nil, u.stage.keep(err)
			}
			return nil, nil, err
		}
		if shown[i].guarded {
			guards = append(guards, shown[i].guard)
		}
	}
	return shown, guards, nil
}

func (u *Unit) show(shown []parsed) {
	for _, p := range shown {
		p.show(u.nonce)
	}
}

// check says which reference cannot be one, or comes twice.
func check(records []Record) error {
	named := map[string]bool{}
	for _, r := range records {
		table, key, err := locate(r)
		record := actions.KeyText(key)
		switch {
		case err != nil:
		case !actions.IsText(key):
			err = actions.ErrNoText
		case named[identity(table, record)]:
			err = errors.New("is named twice in one read")
		}
		if err != nil {
			return refusal(table, record, err)
		}
		named[identity(table, record)] = true
	}
	return nil
}

// fetch halves a read that DynamoDB will not do: it may be too large, and if it is
// not, the half that fails tells which record is at fault.
func (u *Unit) fetch(ctx context.Context, records []Record) (items []map[string]types.AttributeValue, err error) {
	err = requests.Halve(records, requests.MayBePart, func(some []Record) error {
		read, err := u.c.caller.Read(ctx, u.nonce, getsOf(some))
		items = append(items, read...)
		return err
	})
	return items, err
}

// parse reads an item as a record whose guard is to be as allowed says. The record is not
// changed before it is shown. The error is a *[stageError].
func parse(r Record, item map[string]types.AttributeValue, allowed func(ordering.Key) error) (parsed, error) {
	p, err := r.parse(item)
	switch {
	case err == nil && p.guessed:
		err = &guardError{Absent: true}
	case err == nil && p.guarded:
		err = allowed(p.guard)
		if unguarded := (*guardError)(nil); errors.As(err, &unguarded) {
			unguarded.Absent = len(item) == 0
		}
	}
	if err != nil {
		table, key, _ := r.location()
		err = refusal(table, actions.KeyText(key), err)
	}
	return p, err
}

// sawFence keeps the tokens of this process above those that records have.
func (c *Client) sawFence(item map[string]types.AttributeValue) {
	if fence, ok := (fencing.Fence{Attribute: c.cfg.FenceAttribute}).Of(item); ok {
		c.locks.Clock().Saw(fence)
	}
}
