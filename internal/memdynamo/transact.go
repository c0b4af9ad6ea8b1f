package memdynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	maxActions     = 100
	maxTransaction = 4 << 20
	twoOnOneItem   = "Transaction request cannot include multiple operations on one item"
	tooMuchAtOnce  = "Transaction payload size cannot exceed 4MB. Payload Size: %d"
)

// TransactWriteItems executes up to 100 actions, all or none. Refused, it
// gives *types.TransactionCanceledException with a reason for every action,
// all failed conditions among them, and changes nothing. As with the real
// client, an input without ClientRequestToken has one after the call.
func (db *DB) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if in == nil {
		in = new(dynamodb.TransactWriteItemsInput)
	}
	if in.ClientRequestToken == nil {
		in.ClientRequestToken = aws.String(db.newToken())
	}
	return do(ctx, db, "TransactWriteItems", in, db.transactWriteItems)
}

func (db *DB) transactWriteItems(in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	token := *in.ClientRequestToken
	if err := cmp.Or(checkLength(in), checkCount(len(in.TransactItems)), checkToken(token)); err != nil {
		return nil, err
	}
	actions := make([]action, len(in.TransactItems))
	for i := range in.TransactItems {
		var err error
		if actions[i], err = db.transactAction(&in.TransactItems[i]); err != nil {
			return nil, err
		}
	}
	costs, err := db.transact(actions, token, digest(actions))
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, true)}, err
}

func checkCount(n int) error {
	switch {
	case n < 1:
		return constraint("[]", "transactItems", "have length greater than or equal to 1")
	case n > maxActions:
		return constraint(fmt.Sprintf("[%d items]", n), "transactItems", "have length less than or equal to 100")
	}
	return nil
}

func checkToken(token string) error {
	switch {
	case len(token) < 1:
		return constraint(token, "clientRequestToken", "have length greater than or equal to 1")
	case len(token) > 36:
		return constraint(token, "clientRequestToken", "have length less than or equal to 36")
	}
	return nil
}

// transactAction prepares one action of a transaction.
func (db *DB) transactAction(in *types.TransactWriteItem) (action, error) {
	if err := check("", in); err != nil {
		return action{}, err
	}
	var all []request
	var err error
	writesIn(in, func(name string, part any, x request) {
		all = append(all, x)
		err = check("TransactWriteItems.TransactItems."+name+"Input", part)
	})
	switch {
	case len(all) != 1:
		return action{}, validation("TransactItems can only contain one of Check, Put, Update or Delete")
	case err != nil:
		return action{}, err
	}
	return db.prepare(all[0])
}

// writesIn calls do for each write in an item of a transaction, which may have one.
func writesIn(in *types.TransactWriteItem, do func(name string, part any, x request)) {
	if p := in.Put; p != nil {
		do("Put", p, request{
			verb: verbPut, table: p.TableName, item: p.Item,
			names: p.ExpressionAttributeNames, values: p.ExpressionAttributeValues, cond: p.ConditionExpression,
			onFailure: p.ReturnValuesOnConditionCheckFailure,
		})
	}
	if u := in.Update; u != nil {
		do("Update", u, request{
			verb: verbUpdate, table: u.TableName, item: u.Key,
			names: u.ExpressionAttributeNames, values: u.ExpressionAttributeValues, cond: u.ConditionExpression,
			update: u.UpdateExpression, onFailure: u.ReturnValuesOnConditionCheckFailure,
		})
	}
	if d := in.Delete; d != nil {
		do("Delete", d, request{
			verb: verbDelete, table: d.TableName, item: d.Key,
			names: d.ExpressionAttributeNames, values: d.ExpressionAttributeValues, cond: d.ConditionExpression,
			onFailure: d.ReturnValuesOnConditionCheckFailure,
		})
	}
	if c := in.ConditionCheck; c != nil {
		do("ConditionCheck", c, request{
			verb: verbCheck, table: c.TableName, item: c.Key,
			names: c.ExpressionAttributeNames, values: c.ExpressionAttributeValues, cond: c.ConditionExpression,
			onFailure: c.ReturnValuesOnConditionCheckFailure,
		})
	}
}

// places are where in the whole DB the items of a request are.
type places map[place]bool

type place struct {
	t   *table
	key key
}

// twice adds the place of an action's item and reports whether it was there.
func (p places) twice(a *action) bool {
	at := place{a.t, a.key}
	was := p[at]
	p[at] = true
	return was
}

// transact is the part of a transaction under the mutex.
func (db *DB) transact(actions []action, token string, sum uint64) (bill, error) {
	db.begin()
	defer db.mu.Unlock()
	failed, err := db.locateAll(actions)
	if err != nil {
		return nil, err
	}
	now := db.cfg.Now()
	switch seen, same := db.tokens.seen(token, sum, now); {
	case seen && !same:
		return nil, &types.IdempotentParameterMismatchException{
			Message: aws.String("The ClientRequestToken was already used with other parameters")}
	case seen:
		return db.replayed(actions), nil
	}
	var costs bill
	size, refused := 0, false
	for i := range actions {
		a := &actions[i]
		if failed[i] == nil {
			failed[i] = a.evaluate()
		}
		if a.bad != nil {
			return nil, a.bad
		}
		refused = refused || failed[i] != nil
		size += max(a.old.bytes(), a.new.bytes())
		costs.of(a.table).write += 2 * a.units()
	}
	if size > maxTransaction {
		return nil, validation(tooMuchAtOnce, size)
	}
	if !refused {
		for i := range actions {
			costs.of(actions[i].table).follow(&actions[i], 2)
		}
	}
	db.charge(costs)
	if refused {
		return nil, canceled(actions, failed)
	}
	for i := range actions {
		actions[i].store()
	}
	db.tokens.remember(token, sum, now)
	return costs, nil
}

// locateAll locates every action; the results are those that do not fit their
// tables' schemas.
func (db *DB) locateAll(actions []action) ([]error, error) {
	failed := make([]error, len(actions))
	taken := make(places, len(actions))
	for i := range actions {
		a := &actions[i]
		mismatch, bad := db.locate(a)
		if bad != nil {
			return nil, bad
		}
		failed[i] = mismatch
		if mismatch != nil && a.key == (key{}) {
			continue
		}
		if taken.twice(a) {
			return nil, validation(twoOnOneItem)
		}
	}
	return failed, nil
}

// replayed is what a repeated request costs: reading the items.
func (db *DB) replayed(actions []action) bill {
	var costs bill
	for i := range actions {
		a := &actions[i]
		costs.of(a.table).read += 2 * readUnits(a.t.get(a.key).bytes(), true)
	}
	db.charge(costs)
	return costs
}

// canceled is the error of a transaction some of whose actions failed.
func canceled(actions []action, failed []error) error {
	reasons := make([]types.CancellationReason, len(actions))
	codes := make([]string, len(actions))
	for i, err := range failed {
		codes[i] = "None"
		switch {
		case err == errCondition:
			codes[i] = "ConditionalCheckFailed"
			reasons[i].Message = aws.String(conditionMessage)
			if actions[i].wantOld {
				reasons[i].Item = encodeItem(actions[i].old)
			}
		case err != nil:
			codes[i] = "ValidationError"
			reasons[i].Message = aws.String(messageOf(err))
		}
		reasons[i].Code = aws.String(codes[i])
	}
	return &types.TransactionCanceledException{
		Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}

// TransactGetItems reads up to 100 items as they are at one moment.
func (db *DB) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return do(ctx, db, "TransactGetItems", in, db.transactGetItems)
}

func (db *DB) transactGetItems(in *dynamodb.TransactGetItemsInput) (*dynamodb.TransactGetItemsOutput, error) {
	if err := checkCount(len(in.TransactItems)); err != nil {
		return nil, err
	}
	gets := make([]action, len(in.TransactItems))
	for i := range in.TransactItems {
		var err error
		if gets[i], err = db.transactGet(&in.TransactItems[i]); err != nil {
			return nil, err
		}
	}
	costs, err := db.readAll(gets)
	out := &dynamodb.TransactGetItemsOutput{
		Responses:        make([]types.ItemResponse, len(gets)),
		ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, true),
	}
	for i := range gets {
		out.Responses[i].Item = gets[i].shown()
	}
	return out, err
}

func (db *DB) transactGet(in *types.TransactGetItem) (a action, err error) {
	if err := check("TransactGetItems.TransactItemsInput", in); err != nil {
		return a, err
	}
	g := in.Get
	if err := check("TransactGetItems.TransactItems.GetInput", g); err != nil {
		return a, err
	}
	return db.newGet(*g.TableName, g.Key, g.ExpressionAttributeNames, g.ProjectionExpression)
}

// readAll is the part of a transactional read under the mutex.
func (db *DB) readAll(actions []action) (bill, error) {
	db.begin()
	defer db.mu.Unlock()
	failed, err := db.locateAll(actions)
	if err != nil {
		return nil, err
	}
	if errors.Join(failed...) != nil {
		return nil, canceled(actions, failed)
	}
	var costs bill
	size := 0
	for i := range actions {
		a := &actions[i]
		a.old = a.t.get(a.key)
		size += a.old.bytes()
		costs.of(a.table).read += 2 * readUnits(a.old.bytes(), true)
	}
	if size > maxTransaction {
		return nil, validation(tooMuchAtOnce, size)
	}
	db.charge(costs)
	return costs, nil
}
