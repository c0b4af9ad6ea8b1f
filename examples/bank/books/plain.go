package books

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/unitofwork"
)

// Plain does the same work without units, with nothing but GetItem and
// PutItem: what goes wrong then is what this example is about.
type Plain struct {
	Tables *Tables
	Looker Looker
	Clock  *fencing.Clock // of the tokens in history: here the bank has to write them itself
}

// Do runs fn and then writes what it put, one item after the other.
func (p Plain) Do(ctx context.Context, _ unitofwork.Work, fn func(context.Context, Unit) error) error {
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

// Nonce names the unit, as a Unit's does.
func (u *plainUnit) Nonce() string { return "plain-" + strconv.FormatInt(int64(u.token), 10) }

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

func (u *plainUnit) Insert(records ...unitofwork.Record) error  { return u.Put(records...) }
func (u *plainUnit) Replace(records ...unitofwork.Record) error { return u.Put(records...) }

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
			r.T.Token = cmp.Or(r.T.Token, u.token) // nobody stamps it
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
