package books

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/unitofwork"
)

// Plain does the same work without units, by GetItem and PutItem alone. The example exists to show
// what goes wrong then. The clock is for the tokens in history, which no commit stamps here.
func Plain(t *Tables, l Looker, clock *fencing.Clock) Run {
	return func(ctx context.Context, _ unitofwork.Work, fn func(context.Context, Unit) error) error {
		u := &plainUnit{tables: t, looker: l, token: clock.Next()}
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
	token  fencing.Token
	writes []func(context.Context) error
}

func (u *plainUnit) Nonce() string { return "plain-" + strconv.FormatInt(int64(u.token), 10) }

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
		if strings.HasPrefix(r.T.ID, contactPrefix) {
			return tables.Contacts.Name, r.T.ID, &r.T, &r.Found
		}
		return tables.Addresses.Name, r.T.ID, &r.T, &r.Found
	case *unitofwork.Ref[Change]:
		r.T.Token = cmp.Or(r.T.Token, u.token)
		return tables.History.Name, r.T.Record, &r.T, &r.Found
	}
	panic(fmt.Sprintf("%T is not a record of the bank", record))
}

func (u *plainUnit) Insert(records ...unitofwork.Record) error  { return u.Put(records...) }
func (u *plainUnit) Replace(records ...unitofwork.Record) error { return u.Put(records...) }

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
