package comingfrom

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

// ErrBusy is told when others were faster, ten times.
var ErrBusy = errors.New("others are in the way; try again later")

// versioned is an account with the version that every write raises.
type versioned struct {
	Account
	Version int64
}

// TransferByVersions makes a payment, once, without holdall: it reads both accounts, and writes
// them if their versions are still the same, with a record of the payment.
func TransferByVersions(ctx context.Context, db *dynamodb.Client, payment, from, to string, amount int64) error {
	for n := range 10 {
		err := tryByVersions(ctx, db, payment, from, to, amount)
		if !errors.As(err, new(*types.TransactionCanceledException)) {
			return err
		}
		select {
		case <-time.After(rand.N(20 * time.Millisecond << min(n, 5))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ErrBusy
}

func tryByVersions(ctx context.Context, db *dynamodb.Client, payment, from, to string, amount int64) error {
	out, err := db.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String("accounts"), Key: id(from)}},
		{Get: &types.Get{TableName: aws.String("accounts"), Key: id(to)}},
		{Get: &types.Get{TableName: aws.String("payments"), Key: id(payment)}},
	}})
	if err != nil {
		return err
	}
	if len(out.Responses[2].Item) > 0 {
		return nil // it was made before
	}
	var a, b versioned
	err = errors.Join(attributevalue.UnmarshalMap(out.Responses[0].Item, &a), attributevalue.UnmarshalMap(out.Responses[1].Item, &b))
	if err != nil {
		return err
	}
	if a.ID == "" || b.ID == "" || a.Balance < amount {
		return ErrFunds
	}
	_, err = db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		set(a, a.Balance-amount), set(b, b.Balance+amount),
		{Put: &types.Put{
			TableName: aws.String("payments"), Item: id(payment),
			ConditionExpression: aws.String("attribute_not_exists(ID)"),
		}},
	}})
	return err
}

// set writes a balance if nobody has written the account since it was read.
func set(was versioned, balance int64) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String("accounts"), Key: id(was.ID),
		UpdateExpression:    aws.String("SET Balance = :balance, Version = :next"),
		ConditionExpression: aws.String("Version = :seen"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":balance": number(balance), ":seen": number(was.Version), ":next": number(was.Version + 1),
		},
	}}
}

func id(value string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: value}}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
