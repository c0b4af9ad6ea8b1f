// Package newtable says what a plain new table is, on demand, with strings for keys; and makes
// and deletes one, which takes seconds on AWS.
package newtable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Input describes a table with a partition key, and a sort key if that is named and not empty.
func Input(name string, keys ...string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: Keys(keys...)}
	for _, key := range keys {
		if key == "" {
			continue
		}
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(key), AttributeType: types.ScalarAttributeTypeS,
		})
	}
	return in
}

// Keys are the key schema of a table or an index: a partition key, and a sort key if that is named and
// not empty.
func Keys(names ...string) (schema []types.KeySchemaElement) {
	for i, name := range names {
		if name != "" {
			schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(name), KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[min(i, 1)]})
		}
	}
	return schema
}

// Maker makes tables, as *dynamodb.Client does.
type Maker interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// Create makes a table, unless there is one of that name, and returns when it can be used.
func Create(ctx context.Context, db Maker, in *dynamodb.CreateTableInput) error {
	err := patiently(ctx, func() error {
		_, err := db.CreateTable(ctx, in)
		return err
	})
	if err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
		return err
	}
	return await(ctx, func() (bool, error) {
		out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName})
		if errors.As(err, new(*types.ResourceNotFoundException)) {
			return false, nil // DescribeTable is eventually consistent: it may not know of the table yet
		}
		return err == nil && out.Table.TableStatus == types.TableStatusActive, err
	})
}

// Deleter deletes tables, as *dynamodb.Client does.
type Deleter interface {
	DeleteTable(context.Context, *dynamodb.DeleteTableInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error)
}

// Delete deletes a table, as soon as it can be, if it is there. It does not wait until it is gone.
func Delete(ctx context.Context, db Deleter, name string) error {
	err := await(ctx, func() (bool, error) {
		_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		// It is being made, or changed; or too many tables are at a time.
		if errors.As(err, new(*types.ResourceInUseException)) || errors.As(err, new(*types.LimitExceededException)) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil
	}
	return err
}

// patiently does again what is refused because too many tables are being made at a time.
func patiently(ctx context.Context, do func() error) (err error) {
	waited := await(ctx, func() (bool, error) {
		err = do()
		return !errors.As(err, new(*types.LimitExceededException)), nil
	})
	return errors.Join(err, waited)
}

// await asks again and again until it is done, fails, or the context ends.
func await(ctx context.Context, done func() (bool, error)) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		if is, err := done(); is || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for a table: %w", context.Cause(ctx))
		}
	}
}
