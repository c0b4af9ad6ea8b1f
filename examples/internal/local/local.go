// Package local is where the examples run: a DynamoDB in this process's memory,
// with their tables.
package local

import (
	"context"
	"errors"
	"log"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// DynamoDB returns one that has holdall's two tables, "locks" and "units", and
// others whose partition key is the text "ID".
func DynamoDB(ctx context.Context, tables ...string) (*dynamodb.Client, error) {
	db := holdalltest.DynamoDB()
	client := db.Client()
	err := errors.Join(
		lockset.CreateTable(ctx, client, lockset.Config{Table: "locks"}),
		unitofwork.CreateTable(ctx, client, unitofwork.Config{Table: "units"}),
	)
	for _, name := range tables {
		err = errors.Join(err, db.CreateTable(ctx, name, "ID", ""))
	}
	return client, err
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
