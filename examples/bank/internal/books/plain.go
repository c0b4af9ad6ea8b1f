package books

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Items is what reading and writing single items asks of DynamoDB.
type Items interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// Looker reads single items, under no lock.
type Looker struct {
	DB      Items
	Observe func(lockset.RequestInfo) // is told of every request
	Timeout time.Duration             // for one request; zero: none but the context's
}

func (l Looker) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, l.Timeout)
}

func (l Looker) observe(op string, start time.Time, used *types.ConsumedCapacity, err error) {
	info := lockset.RequestInfo{Op: op, N: 1, Duration: time.Since(start), Err: err}
	if used != nil {
		info.Capacity = aws.ToFloat64(used.CapacityUnits)
	}
	l.Observe(info)
}

// look reads one record by the key it has so far.
func look[T any](ctx context.Context, l Looker, t *unitofwork.Table[T], r *unitofwork.Ref[T]) error {
	item, err := attributevalue.MarshalMap(r.T)
	if err != nil {
		return err
	}
	key := map[string]types.AttributeValue{t.PartitionKey: item[t.PartitionKey]}
	if t.SortKey != "" {
		key[t.SortKey] = item[t.SortKey]
	}
	ctx, cancel := l.bound(ctx)
	defer cancel()
	start := time.Now()
	out, err := l.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(t.Name), Key: key, ConsistentRead: aws.Bool(true),
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		l.observe("GetItem", start, nil, err)
		return err
	}
	l.observe("GetItem", start, out.ConsumedCapacity, nil)
	var record T
	if err := attributevalue.UnmarshalMap(out.Item, &record); err != nil {
		return err
	}
	r.T, r.Found = record, len(out.Item) > 0
	return nil
}

// Plain does the same work without locks, with nothing but GetItem and
// PutItem: what goes wrong then is what this example is about.
type Plain struct {
	Tables *Tables
	Looker Looker
	Clock  *fencing.Clock // names changes in history, as tokens do
}

// Do runs fn and then writes what it put, one item after the other.
func (p Plain) Do(ctx context.Context, _ []ordering.Key, fn func(context.Context, Unit) error, _ ...func(*unitofwork.Options)) error {
	u := &plainUnit{p: p, token: p.Clock.Next()}
	if err := fn(ctx, u); err != nil {
		return err
	}
	for _, write := range u.writes {
		if err := write(ctx); err != nil {
			return err
		}
	}
	return nil
}

type plainUnit struct {
	p      Plain
	token  fencing.Token
	writes []func(context.Context) error
}

func (u *plainUnit) Token() fencing.Token { return u.token }

func (u *plainUnit) Get(ctx context.Context, records ...unitofwork.Record) error {
	t, l := u.p.Tables, u.p.Looker
	for _, record := range records {
		var err error
		switch r := record.(type) {
		case *unitofwork.Ref[Customer]:
			err = look(ctx, l, &t.Customers, r)
		case *unitofwork.Ref[Account]:
			err = look(ctx, l, &t.Accounts, r)
		case *unitofwork.Ref[Address]:
			err = look(ctx, l, &t.Addresses, r)
		case *unitofwork.Ref[Contact]:
			err = look(ctx, l, &t.Contacts, r)
		default:
			err = fmt.Errorf("get: %T is no record of the bank", record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *plainUnit) Put(records ...unitofwork.Record) error {
	t := u.p.Tables
	for _, record := range records {
		switch r := record.(type) {
		case *unitofwork.Ref[Customer]:
			u.put(t.Customers.Name, &r.T)
		case *unitofwork.Ref[Account]:
			u.put(t.Accounts.Name, &r.T)
		case *unitofwork.Ref[Address]:
			u.put(t.Addresses.Name, &r.T)
		case *unitofwork.Ref[Contact]:
			u.put(t.Contacts.Name, &r.T)
		case *unitofwork.Ref[Change]:
			u.put(t.History.Name, &r.T)
		default:
			return fmt.Errorf("put: %T is no record of the bank", record)
		}
	}
	return nil
}

// put writes the record as it stands at the end of the unit.
func (u *plainUnit) put(table string, record any) {
	u.writes = append(u.writes, func(ctx context.Context) error {
		item, err := attributevalue.MarshalMap(record)
		if err != nil {
			return err
		}
		ctx, cancel := u.p.Looker.bound(ctx)
		defer cancel()
		start := time.Now()
		out, err := u.p.Looker.DB.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String(table), Item: item, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil {
			u.p.Looker.observe("PutItem", start, nil, err)
			return err
		}
		u.p.Looker.observe("PutItem", start, out.ConsumedCapacity, nil)
		return nil
	})
}
