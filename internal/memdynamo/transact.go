package memdynamo

import (
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
	if err := firstError(
		required("TransactWriteItems", need{"TransactItems", in.TransactItems == nil}), checkLength(in),
		known(in), checkCapacity(in.ReturnConsumedCapacity), checkCount(len(in.TransactItems)), checkToken(*in.ClientRequestToken),
	); err != nil {
		return nil, err
	}
	actions := make([]action, len(in.TransactItems))
	for i := range in.TransactItems {
		if err := db.transactAction(&actions[i], &in.TransactItems[i]); err != nil {
			return nil, err
		}
	}
	costs, err := db.transact(actions, *in.ClientRequestToken, digest(actions))
	if err != nil {
		return nil, err
	}
	return &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, true)}, nil
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
func (db *DB) transactAction(a *action, in *types.TransactWriteItem) error {
	if err := known(in); err != nil {
		return err
	}
	n := 0
	for _, given := range []bool{in.Put != nil, in.Update != nil, in.Delete != nil, in.ConditionCheck != nil} {
		if given {
			n++
		}
	}
	if n != 1 {
		return validation("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	switch {
	case in.Put != nil:
		return db.transactPut(a, in.Put)
	case in.Update != nil:
		return db.transactUpdate(a, in.Update)
	case in.Delete != nil:
		return db.transactDelete(a, in.Delete)
	default:
		return db.transactCheck(a, in.ConditionCheck)
	}
}

func (db *DB) transactPut(a *action, in *types.Put) error {
	if err := firstError(required("TransactWriteItems.TransactItems.Put", need{"Item", in.Item == nil}, need{"TableName", in.TableName == nil}),
		known(in), checkTableName(in.TableName)); err != nil {
		return err
	}
	if err := a.put(*in.TableName, in.Item); err != nil {
		return err
	}
	return db.prepare(a, expressions{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		cond: in.ConditionExpression, onFailure: in.ReturnValuesOnConditionCheckFailure})
}

func (db *DB) transactUpdate(a *action, in *types.Update) error {
	if err := firstError(required("TransactWriteItems.TransactItems.Update", need{"Key", in.Key == nil}, need{"TableName", in.TableName == nil},
		need{"UpdateExpression", in.UpdateExpression == nil}), known(in), checkTableName(in.TableName)); err != nil {
		return err
	}
	if err := a.keyed(verbUpdate, *in.TableName, in.Key); err != nil {
		return err
	}
	return db.prepare(a, expressions{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		cond: in.ConditionExpression, update: in.UpdateExpression, onFailure: in.ReturnValuesOnConditionCheckFailure})
}

func (db *DB) transactDelete(a *action, in *types.Delete) error {
	if err := firstError(required("TransactWriteItems.TransactItems.Delete", need{"Key", in.Key == nil}, need{"TableName", in.TableName == nil}),
		known(in), checkTableName(in.TableName)); err != nil {
		return err
	}
	if err := a.keyed(verbDelete, *in.TableName, in.Key); err != nil {
		return err
	}
	return db.prepare(a, expressions{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		cond: in.ConditionExpression, onFailure: in.ReturnValuesOnConditionCheckFailure})
}

func (db *DB) transactCheck(a *action, in *types.ConditionCheck) error {
	if err := firstError(required("TransactWriteItems.TransactItems.ConditionCheck", need{"Key", in.Key == nil}, need{"TableName", in.TableName == nil},
		need{"ConditionExpression", in.ConditionExpression == nil}), known(in), checkTableName(in.TableName)); err != nil {
		return err
	}
	if err := a.keyed(verbCheck, *in.TableName, in.Key); err != nil {
		return err
	}
	return db.prepare(a, expressions{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		cond: in.ConditionExpression, onFailure: in.ReturnValuesOnConditionCheckFailure})
}

// place is where in the whole DB an item is.
type place struct {
	t   *table
	key key
}

// transact is the part of a transaction under the mutex.
func (db *DB) transact(actions []action, token string, sum uint64) (bill, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
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
	taken := make(map[place]struct{}, len(actions))
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
		p := place{a.t, a.key}
		if _, twice := taken[p]; twice {
			return nil, validation(twoOnOneItem)
		}
		taken[p] = struct{}{}
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
	if err := firstError(required("TransactGetItems", need{"TransactItems", in.TransactItems == nil}),
		known(in), checkCapacity(in.ReturnConsumedCapacity), checkCount(len(in.TransactItems))); err != nil {
		return nil, err
	}
	gets := make([]*get, len(in.TransactItems))
	actions := make([]action, len(gets))
	for i := range in.TransactItems {
		g, err := db.transactGet(&in.TransactItems[i])
		if err != nil {
			return nil, err
		}
		gets[i], actions[i] = g, g.action
	}
	costs, err := db.readAll(actions)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.TransactGetItemsOutput{
		Responses:        make([]types.ItemResponse, len(gets)),
		ConsumedCapacity: costs.consumed(in.ReturnConsumedCapacity, true),
	}
	for i, g := range gets {
		out.Responses[i].Item = g.show(actions[i].old)
	}
	return out, nil
}

func (db *DB) transactGet(in *types.TransactGetItem) (*get, error) {
	if err := firstError(known(in), required("TransactGetItems.TransactItems", need{"Get", in.Get == nil})); err != nil {
		return nil, err
	}
	g := in.Get
	if err := firstError(known(g), required("TransactGetItems.TransactItems.Get", need{"Key", g.Key == nil}, need{"TableName", g.TableName == nil}),
		checkTableName(g.TableName)); err != nil {
		return nil, err
	}
	return db.newGet(*g.TableName, g.Key, g.ExpressionAttributeNames, g.ProjectionExpression)
}

// readAll is the part of a transactional read under the mutex.
func (db *DB) readAll(actions []action) (bill, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.usage.Requests++
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
