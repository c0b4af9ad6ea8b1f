package books

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/trace"
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
	for _, name := range []string{t.Customers.Name, t.Accounts.Name, t.Details.Name} {
		errs = append(errs, newtable.Create(ctx, db, newtable.Input(name, "id")))
	}
	history := newtable.Input(t.History.Name, t.History.PartitionKey, t.History.SortKey)
	return errors.Join(append(errs, newtable.Create(ctx, db, history))...)
}

func (t *Tables) names() []string {
	return []string{t.Locks.Table, t.Units.Table, t.Customers.Name, t.Accounts.Name, t.Details.Name, t.History.Name}
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
	Details   []Detail
	History   []Change
}

// Load reads all records. Call it only after all work has ended.
func (t *Tables) Load(ctx context.Context, db DB) (r Records, err error) {
	err = errors.Join(
		scan(ctx, db, t.Customers.Name, &r.Customers), scan(ctx, db, t.Accounts.Name, &r.Accounts),
		scan(ctx, db, t.Details.Name, &r.Details), scan(ctx, db, t.History.Name, &r.History))
	return r, err
}

func scan[T any](ctx context.Context, db DB, table string, all *[]T) error {
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read table %q: %w", table, err)
		}
		var records []T
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &records); err != nil {
			return fmt.Errorf("read table %q: %w", table, err)
		}
		*all = append(*all, records...)
	}
	return nil
}

// Items are the operations that read and write outside units.
type Items interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// Looker reads and writes single items outside units.
type Looker struct {
	DB      Items
	Observe func(trace.Event) // called after every request; may be nil
	Timeout time.Duration     // of one request; zero: only the context limits it
}

// request sends one request, limits its time and reports it to Observe.
func request[O any](ctx context.Context, l Looker, op string, send func(context.Context) (O, error), used func(O) *types.ConsumedCapacity) (O, error) {
	if l.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Timeout)
		defer cancel()
	}
	start := time.Now()
	out, err := send(ctx)
	if l.Observe != nil {
		end := trace.Event{Kind: trace.Request, Op: op, N: 1, Took: time.Since(start), Err: err}
		if err == nil && used(out) != nil {
			end.Capacity = aws.ToFloat64(used(out).CapacityUnits)
		}
		l.Observe(end)
	}
	return out, err
}

// ErrUnanswered says that DynamoDB did not answer a read outside units. A retry may succeed.
var ErrUnanswered = errors.New("no answer to a read outside units")

// look reads the record with an ID outside units.
func look(ctx context.Context, l Looker, table, id string, record any) (found bool, err error) {
	in := &dynamodb.GetItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
		ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	out, err := request(ctx, l, "GetItem", func(ctx context.Context) (*dynamodb.GetItemOutput, error) { return l.DB.GetItem(ctx, in) },
		func(o *dynamodb.GetItemOutput) *types.ConsumedCapacity { return o.ConsumedCapacity })
	if api, is := errors.AsType[smithy.APIError](err); is && api.ErrorFault() == smithy.FaultClient {
		return false, err // it was answered, and refused
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return len(out.Item) > 0, attributevalue.UnmarshalMap(out.Item, record)
}

// Plain does the same work without units, by GetItem and PutItem alone. The example exists to show
// what goes wrong then. The tokens in history, which no commit stamps here, are the time.
func Plain(t *Tables, l Looker) Run {
	return func(ctx context.Context, _ unitofwork.Work, fn func(context.Context, Unit) error) error {
		u := &plainUnit{tables: t, looker: l, nonce: "plain-" + rand.Text(), token: fencing.Token(time.Now().UnixMicro())}
		if err := fn(ctx, u); err != nil {
			return err
		}
		for _, write := range u.writes { // one item after the other
			if err := write(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

type plainUnit struct {
	tables *Tables
	looker Looker
	nonce  string
	token  fencing.Token
	writes []func(context.Context) error
}

func (u *plainUnit) Nonce() string { return u.nonce }

func (u *plainUnit) Get(ctx context.Context, records ...unitofwork.Record) error {
	for _, r := range records {
		table, id, record, found := u.of(r)
		exists, err := look(ctx, u.looker, table, id, record)
		if err != nil {
			return err
		}
		*found = exists
	}
	return nil
}

// of returns a reference's table, ID, record and Found.
func (u *plainUnit) of(record unitofwork.Record) (table, id string, t any, found *bool) {
	tables := u.tables
	switch r := record.(type) {
	case *unitofwork.Ref[Customer]:
		return tables.Customers.Name, r.T.ID, &r.T, &r.Found
	case *unitofwork.Ref[Account]:
		return tables.Accounts.Name, r.T.ID, &r.T, &r.Found
	case *unitofwork.Ref[Detail]:
		return tables.Details.Name, r.T.ID, &r.T, &r.Found
	case *unitofwork.Ref[Change]:
		r.T.Stamp = u.token
		return tables.History.Name, r.T.Record, &r.T, &r.Found
	}
	panic(fmt.Sprintf("%T is not a record of the bank", record))
}

func (u *plainUnit) Insert(records ...unitofwork.Record) error { return u.Put(records...) }

// Put writes records as they are when the function has ended.
func (u *plainUnit) Put(records ...unitofwork.Record) error {
	for _, r := range records {
		table, _, record, _ := u.of(r)
		u.writes = append(u.writes, func(ctx context.Context) error {
			item, err := attributevalue.MarshalMap(record)
			if err != nil {
				return err
			}
			in := &dynamodb.PutItemInput{TableName: &table, Item: item, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
			_, err = request(ctx, u.looker, "PutItem", func(ctx context.Context) (*dynamodb.PutItemOutput, error) { return u.looker.DB.PutItem(ctx, in) },
				func(o *dynamodb.PutItemOutput) *types.ConsumedCapacity { return o.ConsumedCapacity })
			return err
		})
	}
	return nil
}
