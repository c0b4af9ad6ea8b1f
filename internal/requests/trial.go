package requests

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/expressions"
)

// Trial is a request of a kind that is sent to a table, which reads nothing of use and
// writes nothing: it shows whether DynamoDB takes requests of its kind.
type Trial struct {
	name       string // of the request, for people
	permission string // that IAM asks for
	send       func(context.Context) error
}

// The item on which trials are made exists nowhere; and the condition of a write never
// holds, even if it did.

// Get tries to read the item.
func (e *Examination) Get() Trial {
	return Trial{"GetItem", "dynamodb:GetItem", func(ctx context.Context) error {
		_, err := e.Caller.Get(ctx, e.ID(), e.Table, e.Item)
		return err
	}}
}

// Read tries to read the item in a transaction.
func (e *Examination) Read() Trial {
	return Trial{"TransactGetItems", "dynamodb:GetItem", func(ctx context.Context) error {
		get := types.TransactGetItem{Get: &types.Get{TableName: aws.String(e.Table), Key: e.Item}}
		_, err := e.Caller.Read(ctx, e.ID(), []types.TransactGetItem{get})
		return err
	}}
}

// Query tries to list what has the item's hash key.
func (e *Examination) Query() Trial {
	return Trial{"Query", "dynamodb:Query", func(ctx context.Context) error {
		_, err := e.Caller.Query(ctx, e.ID, dynamodb.QueryInput{
			TableName:                 aws.String(e.Table),
			KeyConditionExpression:    aws.String("#hash = :hash"),
			ExpressionAttributeNames:  map[string]string{"#hash": e.Keys[0]},
			ExpressionAttributeValues: map[string]types.AttributeValue{":hash": e.Item[e.Keys[0]]},
		})
		return err
	}}
}

// Update tries to update the item.
func (e *Examination) Update() Trial {
	return Trial{"UpdateItem", "dynamodb:UpdateItem", func(ctx context.Context) error {
		_, err := e.Caller.Update(ctx, e.ID(), e.update())
		return err
	}}
}

// UpdateInTransaction tries to update the item in a transaction.
func (e *Examination) UpdateInTransaction() Trial {
	return e.transaction("Update", "dynamodb:UpdateItem", types.TransactWriteItem{Update: e.update()})
}

// CheckInTransaction tries to check the item in a transaction.
func (e *Examination) CheckInTransaction() Trial {
	return e.transaction("ConditionCheck", "dynamodb:ConditionCheckItem", types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{}})
}

// PutInTransaction tries to put the item in a transaction.
func (e *Examination) PutInTransaction() Trial {
	return e.transaction("Put", "dynamodb:PutItem", types.TransactWriteItem{Put: &types.Put{}})
}

// DeleteInTransaction tries to delete the item in a transaction.
func (e *Examination) DeleteInTransaction() Trial {
	return e.transaction("Delete", "dynamodb:DeleteItem", types.TransactWriteItem{Delete: &types.Delete{}})
}

// UpdateByStatement tries to update the item by PartiQL.
func (e *Examination) UpdateByStatement() Trial {
	return e.statement("UPDATE", "dynamodb:PartiQLUpdate", fmt.Sprintf(`UPDATE "%s" SET "%s"=?`, e.Table, e.TTL), text("never"))
}

// DeleteByStatement tries to delete the item by PartiQL.
func (e *Examination) DeleteByStatement() Trial {
	return e.statement("DELETE", "dynamodb:PartiQLDelete", fmt.Sprintf(`DELETE FROM "%s"`, e.Table))
}

// never is a condition that never holds.
const never = "attribute_exists(#hash) AND attribute_not_exists(#hash)"

func (e *Examination) update() *types.Update {
	return &types.Update{
		TableName: aws.String(e.Table), Key: e.Item, ConditionExpression: aws.String(never),
		UpdateExpression: aws.String("REMOVE #ttl"), ExpressionAttributeNames: map[string]string{"#hash": e.Keys[0], "#ttl": e.TTL},
	}
}

// transaction has one action alone: of several, DynamoDB names only the first that it
// denies.
func (e *Examination) transaction(name, permission string, action types.TransactWriteItem) Trial {
	if of := expressions.In(action); of.Update == nil {
		*of.Table, *of.Item, *of.Condition = aws.String(e.Table), e.Item, aws.String(never)
		*of.Names = map[string]string{"#hash": e.Keys[0]}
	}
	return Trial{name + " in TransactWriteItems", permission, func(ctx context.Context) error {
		_, err := e.Caller.Write(ctx, e.ID(), []types.TransactWriteItem{action})
		return err
	}}
}

// statement adds a condition that never holds: a TTL attribute is a number.
func (e *Examination) statement(name, permission, begin string, parameters ...types.AttributeValue) Trial {
	var where []string
	for _, key := range e.Keys {
		where, parameters = append(where, fmt.Sprintf(`"%s"=?`, key)), append(parameters, e.Item[key])
	}
	where, parameters = append(where, fmt.Sprintf(`"%s"=?`, e.TTL)), append(parameters, text("never"))
	statement := types.BatchStatementRequest{
		Statement: aws.String(begin + " WHERE " + strings.Join(where, " AND ")), Parameters: parameters,
	}
	return Trial{name + " in BatchExecuteStatement", permission, func(ctx context.Context) error {
		return e.Caller.ExecuteOne(ctx, e.ID(), e.Table, statement)
	}}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
