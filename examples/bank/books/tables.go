package books

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	strict := strictly{db, t}
	if err := lockset.CreateTable(ctx, strict, t.Locks); err != nil {
		return err
	}
	if err := unitofwork.CreateTable(ctx, strict, t.Units); err != nil {
		return err
	}
	for _, table := range []struct{ name, partition, sort string }{
		{t.Customers.Name, t.Customers.PartitionKey, t.Customers.SortKey},
		{t.Accounts.Name, t.Accounts.PartitionKey, t.Accounts.SortKey},
		{t.Addresses.Name, t.Addresses.PartitionKey, t.Addresses.SortKey},
		{t.Contacts.Name, t.Contacts.PartitionKey, t.Contacts.SortKey},
		{t.History.Name, t.History.PartitionKey, t.History.SortKey},
	} {
		if err := newtable.Create(ctx, strict, newtable.Input(table.name, table.partition, table.sort)); err != nil {
			return err
		}
	}
	return nil
}

// strictly creates tables and refuses existing ones, which the CreateTable functions of lockset and
// unitofwork accept.
type strictly struct {
	lockset.Tables
	t *Tables
}

func (s strictly) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, options ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	out, err := s.Tables.CreateTable(ctx, in, options...)
	if errors.As(err, new(*types.ResourceInUseException)) {
		return nil, fmt.Errorf("table %q exists already: choose another -prefix", aws.ToString(in.TableName))
	}
	if err == nil {
		s.t.created = append(s.t.created, aws.ToString(in.TableName))
	}
	return out, err
}

// Remove deletes the tables that Create created, and no others.
func (t *Tables) Remove(ctx context.Context, db DB) error {
	var errs []error
	for _, name := range slices.Backward(t.created) {
		if _, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			errs = append(errs, fmt.Errorf("delete table %q: %w", name, err))
		}
	}
	t.created = nil
	return errors.Join(errs...)
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
