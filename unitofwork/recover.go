package unitofwork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/actions"
	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Recovery is what [Client.Recover] found.
type Recovery struct {
	Committed []string // units that had committed, and are done now
	Aborted   []string // units that had not, and never will
	Alive     []string // units that showed a sign of life
}

// Recover finds units with a journal that are not done with, and finishes those
// whose owners are dead: what they committed is done, what they did not never
// will be. It is safe to run anywhere, any number of times, also at the same
// time; run it as a scheduled job. Whoever waits for a key of a dead unit does the
// same for that unit.
//
// It reads the entries of open units, one partition of the unit table, and watches
// each for a lease like anybody, so it takes at least a lease if any unit is alive
// or has died just now. It scans nothing.
//
// Events of the kinds trace.Progress and trace.Recovered tell how far it has come.
//
// The error joins those of the units that could not be finished, among them
// *[UnappliedError]; the others were.
func (c *Client) Recover(ctx context.Context) (Recovery, error) {
	var found Recovery
	if c.cfg.Table == "" {
		return found, &locks.ConfigError{Field: "Table", Reason: "is required to recover"}
	}
	ctx, _, end, err := c.enter(ctx)
	if err != nil {
		return found, err
	}
	defer end()
	open, errs, err := c.open(ctx)
	if err != nil {
		return found, err
	}
	for watched := false; len(open) > 0; watched = true {
		var again []openUnit
		longest, keys := time.Duration(0), []ordering.Key(nil)
		for _, o := range open {
			_, left, err := c.locks.Silence(ctx, o.key, o.unit) // no time is left of a key that it has not
			if err == nil && left <= 0 {
				err = c.recoverOne(ctx, o.unit, &found)
			}
			switch {
			case err != nil && ctx.Err() == nil:
				errs = append(errs, err)
			case err == nil && left > 0 && watched:
				found.Alive = append(found.Alive, o.unit)
			case err != nil || left > 0: // cut off, or to be watched
				again, keys, longest = append(again, o), append(keys, o.key), max(longest, left)
			}
		}
		if open = again; len(open) > 0 {
			if err := requests.Sleep(ctx, longest); err != nil {
				c.locks.NoteSilences(ctx, keys)
				return found, oneline.Join(append(errs, err)...)
			}
		}
	}
	return found, oneline.Join(errs...)
}

// recoverOne decides about one unit, and removes what is left of its journal.
func (c *Client) recoverOne(ctx context.Context, unit string, found *Recovery) error {
	v, err := c.abort(ctx, unit)
	switch {
	case err != nil:
		return err
	case v.State == journal.Aborted:
		if err := c.rollBack(ctx, unit); err != nil && !errors.Is(err, errNoRow) {
			return err
		}
		found.Aborted = append(found.Aborted, unit)
	case v.State == journal.Committed:
		if err := c.rollForward(ctx, unit, v); err != nil {
			return err
		}
		found.Committed = append(found.Committed, unit)
	}
	return c.purge(ctx, unit)
}

// openUnit is the entry of a unit that is not done with.
type openUnit struct {
	unit string
	key  ordering.Key // one of those that it has
}

// otherLocks says that a unit's keys are in a lock table that is not this client's:
// nothing can be said about them here.
func (c *Client) otherLocks(unit, table string) error {
	return &locks.ConfigError{Field: "Table", Reason: fmt.Sprintf(
		"of locks is %q, and unit %q of table %q has its locks in %q: recover it with a client of that table", c.lockConfig.Table, unit, c.cfg.Table, table)}
}

// entryError says that an entry of the unit table, by which a unit with a journal is
// found, is not one that holdall wrote. Nothing was touched. Find out who else writes
// to the table.
type entryError struct {
	Table, Entry string
}

func (e *entryError) Error() string {
	return fmt.Sprintf("table %q: the entry %s of an open unit is not one that we understand", e.Table, e.Entry)
}

// WhatNext is for lockset.NextOf.
func (e *entryError) WhatNext() next.Next { return next.FixCall }

// open lists the units that are not done with; wrong are entries that this client
// can make nothing of.
func (c *Client) open(ctx context.Context) (all []openUnit, wrong []error, err error) {
	items, err := c.query(ctx, journal.OpenUnits, "")
	if err != nil {
		return nil, nil, err
	}
	for _, item := range items {
		unit, ok := item[journal.AttrPart].(*types.AttributeValueMemberS)
		key, ok2 := item[journal.AttrKey].(*types.AttributeValueMemberS)
		locks, ok3 := item[journal.AttrLocks].(*types.AttributeValueMemberS)
		if !ok || !ok2 || !ok3 || ordering.Key(key.Value).Validate() != nil || !lockrow.IsUnit(unit.Value) {
			wrong = append(wrong, &entryError{Table: c.cfg.Table, Entry: actions.KeyText(item)})
			continue
		}
		if locks.Value != c.lockConfig.Table {
			wrong = append(wrong, c.otherLocks(unit.Value, locks.Value))
			continue
		}
		all = append(all, openUnit{unit.Value, ordering.Key(key.Value)})
	}
	return all, wrong, nil
}

// purge removes whatever there is of a unit's journal, and its entry.
func (c *Client) purge(ctx context.Context, unit string) error {
	items, err := c.query(ctx, unit, "journal/")
	if err != nil {
		return err
	}
	keys := make([]map[string]types.AttributeValue, len(items))
	for i, item := range items {
		keys[i] = map[string]types.AttributeValue{journal.AttrUnit: item[journal.AttrUnit], journal.AttrPart: item[journal.AttrPart]}
	}
	if err := c.remove(ctx, keys); err != nil {
		return err
	}
	return c.removeEntry(ctx, unit)
}

// query lists rows of the unit table under one hash key, without their bodies.
func (c *Client) query(ctx context.Context, unit, begins string) ([]map[string]types.AttributeValue, error) {
	in := dynamodb.QueryInput{
		TableName:              aws.String(c.cfg.Table),
		KeyConditionExpression: aws.String("#unit = :unit"), ProjectionExpression: aws.String("#unit, #part, #key, #locks"),
		ExpressionAttributeNames:  map[string]string{"#unit": journal.AttrUnit, "#part": journal.AttrPart, "#key": journal.AttrKey, "#locks": journal.AttrLocks},
		ExpressionAttributeValues: map[string]types.AttributeValue{":unit": &types.AttributeValueMemberS{Value: unit}},
	}
	if begins != "" {
		in.KeyConditionExpression = aws.String("#unit = :unit AND begins_with(#part, :part)")
		in.ExpressionAttributeValues[":part"] = &types.AttributeValueMemberS{Value: begins}
	}
	return c.caller.Query(ctx, func() string { return c.locks.RequestID(ctx) }, in)
}
