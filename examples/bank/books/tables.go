package books

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// DB is what the bank needs of DynamoDB. A *dynamodb.Client has it.
type DB interface {
	lockset.DynamoDB
	lockset.Tables
	Items
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DeleteTable(context.Context, *dynamodb.DeleteTableInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error)
}

// Create creates the bank's tables and holdall's two. An existing table is an error, because its
// records belong to another bank.
func (t *Tables) Create(ctx context.Context, db DB) error {
	for _, name := range t.names() {
		_, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err == nil {
			err = fmt.Errorf("table %q exists already: choose another -prefix", name)
		}
		if !errors.As(err, new(*types.ResourceNotFoundException)) {
			return err
		}
	}
	t.created = true
	errs := []error{lockset.CreateTable(ctx, db, t.Locks), unitofwork.CreateTable(ctx, db, t.Units)}
	for _, name := range t.names()[2:] {
		keys := []string{t.Customers.PartitionKey}
		if name == t.History.Name {
			keys = []string{t.History.PartitionKey, t.History.SortKey}
		}
		errs = append(errs, newtable.Create(ctx, db, newtable.Input(name, keys...)))
	}
	return errors.Join(errs...)
}

func (t *Tables) names() []string {
	return []string{t.Locks.Table, t.Units.Table, t.Customers.Name, t.Accounts.Name, t.Addresses.Name, t.Contacts.Name, t.History.Name}
}

// Remove deletes the tables if Create created them.
func (t *Tables) Remove(ctx context.Context, db DB) (err error) {
	for _, name := range t.names() {
		if t.created {
			err = errors.Join(err, newtable.Delete(ctx, db, name))
		}
	}
	return err
}

// Records are all records of the bank, read while nothing is written.
type Records struct {
	Customers []Customer
	Accounts  []Account
	Addresses []Detail
	Contacts  []Detail
	History   []Change
}

// Load reads all records. Call it only after all work has ended.
func (t *Tables) Load(ctx context.Context, db DB) (r Records, err error) {
	err = errors.Join(
		scan(ctx, db, t.Customers.Name, &r.Customers), scan(ctx, db, t.Accounts.Name, &r.Accounts),
		scan(ctx, db, t.Addresses.Name, &r.Addresses), scan(ctx, db, t.Contacts.Name, &r.Contacts),
		scan(ctx, db, t.History.Name, &r.History))
	return r, err
}

func scan[T any](ctx context.Context, db DB, table string, all *[]T) error {
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read table %q: %w", table, unanswered(err))
		}
		var records []T
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &records); err != nil {
			return fmt.Errorf("read table %q: %w", table, err)
		}
		*all = append(*all, records...)
	}
	return nil
}
