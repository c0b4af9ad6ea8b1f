package store

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/integration/bank/audit"
)

// Load reads all of the bank's records. It is for when all work has ended.
func (t *Tables) Load(ctx context.Context) (audit.Records, error) {
	var r audit.Records
	var err error
	load := func(table string, into func(context.Context, DB, string) error) {
		if err == nil {
			err = into(ctx, t.db, table)
		}
	}
	load(t.Books.Customers.Name, all(&r.Customers))
	load(t.Books.Accounts.Name, all(&r.Accounts))
	load(t.Books.Addresses.Name, all(&r.Addresses))
	load(t.Books.Contacts.Name, all(&r.Contacts))
	load(t.Books.History.Name, all(&r.History))
	return r, err
}

// Customers reads all customers, in no particular order.
func (t *Tables) Customers(ctx context.Context) (customers []books.Customer, err error) {
	err = all(&customers)(ctx, t.db, t.Books.Customers.Name)
	return customers, err
}

// all scans a table, page by page, into a slice.
func all[T any](into *[]T) func(context.Context, DB, string) error {
	return func(ctx context.Context, db DB, table string) error {
		pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{
			TableName: aws.String(table), ConsistentRead: aws.Bool(true),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return fmt.Errorf("read table %q: %w", table, books.Unanswered(err))
			}
			var records []T
			if err := attributevalue.UnmarshalListOfMaps(page.Items, &records); err != nil {
				return fmt.Errorf("read table %q: %w", table, err)
			}
			*into = append(*into, records...)
		}
		return nil
	}
}
