package requests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Tables is what creating a table needs.
type Tables interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// tableWait is how long CreateTable waits for a table at most.
const tableWait = 5 * time.Minute

// CreateTable creates a table unless it exists with the same keys, waits until
// it is active, and turns TTL on for the attribute ttl. The error names the
// table.
func CreateTable(ctx context.Context, db Tables, in *dynamodb.CreateTableInput, ttl string) error {
	ctx, cancel := context.WithTimeout(ctx, tableWait)
	defer cancel()
	name := aws.ToString(in.TableName)
	wrap := func(op string, err error) error { return &TableError{Op: op, Tables: []string{name}, Err: err} }

	_, err := db.CreateTable(ctx, in)
	if err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
		return wrap("CreateTable", err)
	}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName})
		if err != nil {
			return wrap("DescribeTable", err)
		}
		if want, has := schema(in.KeySchema), schema(out.Table.KeySchema); want != has {
			return wrap("CreateTable", fmt.Errorf("the table exists with another key schema: %s, not %s", has, want))
		}
		if out.Table.TableStatus == types.TableStatusActive {
			break
		}
		if err := Sleep(ctx, pause); err != nil {
			return wrap("DescribeTable", err)
		}
	}
	_, err = db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: in.TableName,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(ttl), Enabled: aws.Bool(true),
		},
	})
	var api smithy.APIError // DynamoDB has no code of its own for this
	if err != nil && !(errors.As(err, &api) && strings.Contains(api.ErrorMessage(), "already enabled")) {
		return wrap("UpdateTimeToLive", err)
	}
	return nil
}

func schema(elements []types.KeySchemaElement) string {
	var parts []string
	for _, e := range elements {
		parts = append(parts, aws.ToString(e.AttributeName)+" "+string(e.KeyType))
	}
	return strings.Join(parts, ", ")
}
