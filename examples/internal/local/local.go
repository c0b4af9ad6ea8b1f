// Package local is where the examples run: a DynamoDB in this process's memory,
// with their tables.
package local

import (
	"context"
	"errors"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// DynamoDB returns one that has holdall's two tables, "locks" and "units", and
// others whose partition key is the text "ID".
func DynamoDB(ctx context.Context, tables ...string) (*memdynamo.DB, error) {
	db := memdynamo.New(memdynamo.Config{})
	err := errors.Join(
		lockset.CreateTable(ctx, db, lockset.Config{Table: "locks"}),
		unitofwork.CreateTable(ctx, db, unitofwork.Config{Table: "units"}),
	)
	for _, name := range tables {
		_, made := db.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName: aws.String(name), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("ID"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("ID"), KeyType: types.KeyTypeHash}},
		})
		err = errors.Join(err, made)
	}
	return db, err
}

// Units is a client of such a DynamoDB.
func Units(tables ...string) *unitofwork.Client {
	db, err := DynamoDB(context.Background(), tables...)
	if err != nil {
		log.Fatal(err)
	}
	units, err := unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
	if err != nil {
		log.Fatal(err)
	}
	return units
}

// Replace writes records.
func Replace(units *unitofwork.Client, records ...unitofwork.Record) {
	err := units.Do(context.Background(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
		return u.Replace(records...)
	})
	if err != nil {
		log.Fatal(err)
	}
}
