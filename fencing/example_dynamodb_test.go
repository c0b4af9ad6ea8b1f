package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/memdynamo"
)

// Updater is what writes: *dynamodb.Client has it.
type Updater interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Rename changes a record outside a unit, under a lock whose token this is.
func Rename(ctx context.Context, db Updater, token fencing.Token, id, name string) error {
	fence := fencing.Fence{Token: token}
	in := &dynamodb.UpdateItemInput{
		TableName:                 aws.String("customers"),
		Key:                       map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: id}},
		UpdateExpression:          aws.String("SET FullName = :name"),
		ConditionExpression:       aws.String("attribute_exists(ID)"), // its own stays
		ExpressionAttributeValues: map[string]types.AttributeValue{":name": &types.AttributeValueMemberS{Value: name}},
	}
	if err := fence.Update(in); err != nil { // or Put, or Delete; once for each input
		return err
	}
	_, err := db.UpdateItem(ctx, in)
	return fence.Stale(err) // a *StaleError, or err
}

// RenameBuilt does the same with the expressions of the SDK's package.
func RenameBuilt(ctx context.Context, db Updater, token fencing.Token, id, name string) error {
	fence := fencing.Fence{Token: token}
	own := expression.AttributeExists(expression.Name("ID"))
	update := expression.Set(expression.Name("FullName"), expression.Value(name))
	e, err := expression.NewBuilder().WithCondition(own.And(fence.Condition())).WithUpdate(fence.Set(update)).Build()
	if err != nil {
		return err
	}
	_, err = db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:        aws.String("customers"),
		Key:              map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: id}},
		UpdateExpression: e.Update(), ConditionExpression: e.Condition(),
		ExpressionAttributeNames: e.Names(), ExpressionAttributeValues: e.Values(),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld, // for Stale
	})
	return fence.Stale(err)
}

func ExampleFence() {
	ctx := context.Background()
	db := memdynamo.New(memdynamo.Config{})
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String("customers"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("ID"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("ID"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		log.Fatal(err)
	}
	put := &dynamodb.PutItemInput{TableName: aws.String("customers"), Item: item{"ID": text("42")}}
	if _, err := db.PutItem(ctx, put); err != nil {
		log.Fatal(err)
	}
	sleeper, successor := fencing.Token(1_753_000_000_000_001), fencing.Token(1_753_000_000_000_009)
	fmt.Println(Rename(ctx, db, successor, "42", "Ada"))
	fmt.Println(RenameBuilt(ctx, db, successor, "42", "Ada L."))
	fmt.Println(Rename(ctx, db, sleeper, "42", "Bob"))
	fmt.Println(errors.Is(RenameBuilt(ctx, db, sleeper, "42", "Bob"), fencing.ErrStale))
	// Output:
	// <nil>
	// <nil>
	// token is stale: 1753000000000009 was there, ours is 1753000000000001
	// true
}
