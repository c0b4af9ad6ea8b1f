package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoDB is what a Caller asks: methods of *dynamodb.Client.
type DynamoDB interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	BatchExecuteStatement(context.Context, *dynamodb.BatchExecuteStatementInput, ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Describer says how a table is made, as *dynamodb.Client does. What a Caller asks need
// not be one.
type Describer interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// Item is an item of a table, or its key.
type Item = map[string]types.AttributeValue

// Each call below names its request by id: its repetitions are one with it. Errors are
// those of Do.

// Get reads one item, strongly consistent; nil if there is none.
func (c *Caller) Get(ctx context.Context, id, table string, key Item) (Item, error) {
	in := &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: c.capacity(),
	}
	out, _, err := Do(ctx, c, Request{Op: "GetItem", ID: id, Tables: []string{table}}, in, c.DB.GetItem)
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// Update sends a write that is no part of a transaction.
func (c *Caller) Update(ctx context.Context, id string, u *types.Update) (Sent, error) {
	in := &dynamodb.UpdateItemInput{
		TableName:                           u.TableName,
		Key:                                 u.Key,
		ConditionExpression:                 u.ConditionExpression,
		UpdateExpression:                    u.UpdateExpression,
		ExpressionAttributeNames:            u.ExpressionAttributeNames,
		ExpressionAttributeValues:           u.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
		ReturnConsumedCapacity:              c.capacity(),
	}
	_, sent, err := Do(ctx, c, Request{Op: "UpdateItem", ID: id, Tables: []string{*u.TableName}}, in, c.DB.UpdateItem)
	return sent, err
}

// Write sends a transaction of writes and checks. Its request token is id, which has 36
// characters at most.
func (c *Caller) Write(ctx context.Context, id string, actions []types.TransactWriteItem) (Sent, error) {
	in := &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String(id), TransactItems: actions, ReturnConsumedCapacity: c.capacity(),
	}
	tables := make([]string, len(actions))
	for i, action := range actions {
		tables[i] = tableOf(action)
	}
	_, sent, err := Do(ctx, c, Request{Op: "TransactWriteItems", ID: id, Tables: distinct(tables)}, in, c.DB.TransactWriteItems)
	return sent, err
}

// Read reads items as of one moment, in the order of the gets.
func (c *Caller) Read(ctx context.Context, id string, gets []types.TransactGetItem) ([]Item, error) {
	in := &dynamodb.TransactGetItemsInput{TransactItems: gets, ReturnConsumedCapacity: c.capacity()}
	tables := make([]string, len(gets))
	for i, get := range gets {
		tables[i] = *get.Get.TableName
	}
	out, _, err := Do(ctx, c, Request{Op: "TransactGetItems", ID: id, Tables: distinct(tables)}, in, c.DB.TransactGetItems)
	if err != nil {
		return nil, err
	}
	if len(out.Responses) != len(gets) {
		return nil, fmt.Errorf("TransactGetItems: %d answers to %d gets", len(out.Responses), len(gets))
	}
	items := make([]Item, len(gets))
	for i, response := range out.Responses {
		items[i] = response.Item
	}
	return items, nil
}

// Execute carries out statements on one table, each by itself, and returns an answer to
// each; [KindOfStatement] tells what it means.
func (c *Caller) Execute(ctx context.Context, id, table string, statements []types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	in := &dynamodb.BatchExecuteStatementInput{Statements: statements, ReturnConsumedCapacity: c.capacity()}
	out, _, err := Do(ctx, c, Request{Op: "BatchExecuteStatement", ID: id, Tables: []string{table}}, in, c.DB.BatchExecuteStatement)
	return answers(statements, out, err)
}

// ExecuteOnce is Execute by a single sending, whatever becomes of it: for a heartbeat,
// which sends the next one instead.
func (c *Caller) ExecuteOnce(ctx context.Context, statements []types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	in := &dynamodb.BatchExecuteStatementInput{Statements: statements, ReturnConsumedCapacity: c.capacity()}
	out, _, err := Once(ctx, c, "BatchExecuteStatement", 1, in, c.DB.BatchExecuteStatement)
	return answers(statements, out, err)
}

// ExecuteOne carries out a single statement. What the answer says of it is the error, as
// for a request of its own.
func (c *Caller) ExecuteOne(ctx context.Context, id, table string, statement types.BatchStatementRequest) error {
	in := &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{statement}, ReturnConsumedCapacity: c.capacity()}
	send := func(ctx context.Context, in *dynamodb.BatchExecuteStatementInput, opts ...func(*dynamodb.Options)) (*dynamodb.BatchExecuteStatementOutput, error) {
		out, err := c.DB.BatchExecuteStatement(ctx, in, opts...)
		responses, err := answers(in.Statements, out, err)
		if err != nil {
			return nil, err
		}
		return out, errorOf(responses[0].Error)
	}
	_, _, err := Do(ctx, c, Request{Op: "BatchExecuteStatement", ID: id, Tables: []string{table}}, in, send)
	return err
}

func answers(statements []types.BatchStatementRequest, out *dynamodb.BatchExecuteStatementOutput, err error) ([]types.BatchStatementResponse, error) {
	if err != nil {
		return nil, err
	}
	if len(out.Responses) != len(statements) {
		return nil, fmt.Errorf("BatchExecuteStatement: %d answers to %d statements", len(out.Responses), len(statements))
	}
	return out.Responses, nil
}

// Query lists all items that a query finds, page by page, strongly consistent; each page
// is a request with a name of its own.
func (c *Caller) Query(ctx context.Context, id func() string, in dynamodb.QueryInput) (items []Item, err error) {
	in.ConsistentRead, in.ReturnConsumedCapacity = aws.Bool(true), c.capacity()
	for {
		page := in // what was sent is not changed
		out, _, err := Do(ctx, c, Request{Op: "Query", ID: id(), Tables: []string{*in.TableName}}, &page, c.DB.Query)
		if err != nil {
			return nil, err
		}
		items = append(items, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items, nil
		}
	}
}

// DescribeTable says how a table is made.
func (c *Caller) DescribeTable(ctx context.Context, db Describer, id, table string) (*types.TableDescription, error) {
	in := &dynamodb.DescribeTableInput{TableName: aws.String(table)}
	out, _, err := Do(ctx, c, Request{Op: "DescribeTable", ID: id, Tables: []string{table}}, in, db.DescribeTable)
	if err != nil {
		return nil, err
	}
	if out.Table == nil {
		return nil, errNotTold
	}
	return out.Table, nil
}

// DescribeTimeToLive says which attribute tells when items of a table expire.
func (c *Caller) DescribeTimeToLive(ctx context.Context, db Describer, id, table string) (*types.TimeToLiveDescription, error) {
	in := &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)}
	out, _, err := Do(ctx, c, Request{Op: "DescribeTimeToLive", ID: id, Tables: []string{table}}, in, db.DescribeTimeToLive)
	if err != nil {
		return nil, err
	}
	if out.TimeToLiveDescription == nil {
		return nil, errNotTold
	}
	return out.TimeToLiveDescription, nil
}

var errNotTold = errors.New("the answer describes nothing")

// distinct returns the tables of a request, in order, each once.
func distinct(tables []string) []string { return slices.Compact(slices.Sorted(slices.Values(tables))) }

func tableOf(action types.TransactWriteItem) string {
	switch {
	case action.Put != nil:
		return aws.ToString(action.Put.TableName)
	case action.Update != nil:
		return aws.ToString(action.Update.TableName)
	case action.Delete != nil:
		return aws.ToString(action.Delete.TableName)
	default:
		return aws.ToString(action.ConditionCheck.TableName)
	}
}
