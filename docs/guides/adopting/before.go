package adopting

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DB is what the old program uses of *dynamodb.Client.
type DB interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// DepositBefore is the old program at its best: it reads an account, writes it whole, and begins again
// if somebody has changed it in between, or is about to.
func DepositBefore(ctx context.Context, db DB, id string, amount int64) error {
	for {
		a, err := read(ctx, db, id)
		if err != nil {
			return err
		}
		was := a.Version
		a.Balance, a.Version = a.Balance+amount, was+1
		put, err := putOf(a)
		if err != nil {
			return err
		}
		put.ConditionExpression = aws.String("#v = :was")
		if was == 0 { // nobody may have counted yet
			put.ConditionExpression = aws.String("#v = :was OR attribute_exists(ID) AND attribute_not_exists(#v)")
		}
		put.ExpressionAttributeNames = map[string]string{"#v": "Version"}
		put.ExpressionAttributeValues = map[string]types.AttributeValue{
			":was": &types.AttributeValueMemberN{Value: strconv.FormatInt(was, 10)},
		}
		_, err = db.PutItem(ctx, put)
		if !errors.As(err, new(*types.ConditionalCheckFailedException)) && !errors.As(err, new(*types.TransactionConflictException)) {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func read(ctx context.Context, db DB, id string) (a Account, err error) {
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &Accounts.Name, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		return a, err
	}
	if len(out.Item) == 0 {
		return a, ErrNoAccount
	}
	err = attributevalue.UnmarshalMap(out.Item, &a)
	return a, err
}

func putOf(a Account) (*dynamodb.PutItemInput, error) {
	item, err := attributevalue.MarshalMap(a)
	return &dynamodb.PutItemInput{TableName: &Accounts.Name, Item: item}, err
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(rand.N(20 * time.Millisecond)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
