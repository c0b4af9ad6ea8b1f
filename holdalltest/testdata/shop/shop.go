// Package shop is somebody's program, in a module of its own.
package shop

import (
	"context"
	"errors"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Item is what is in stock.
type Item struct {
	ID   string
	Left int
}

// Stock says where items live.
var Stock = unitofwork.Table[Item]{
	Name: "stock", PartitionKey: "ID",
	Guard: func(i *Item) ordering.Key { return ordering.Join("item:" + i.ID) },
}

// Config has the names of holdall's tables.
var Config = unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}

// ErrSoldOut: there is nothing left.
var ErrSoldOut = errors.New("sold out")

// Buy takes one from the stock, once for each order.
func Buy(ctx context.Context, db lockset.DynamoDB, order, item string) error {
	units, err := unitofwork.Open(db, Config)
	if err != nil {
		return err
	}
	return units.Do(ctx, unitofwork.Work{ID: order}, func(ctx context.Context, u *unitofwork.Unit) error {
		i := Stock.Ref(item)
		if err := u.Get(ctx, i); err != nil {
			return err
		}
		if i.T.Left == 0 {
			return ErrSoldOut
		}
		i.T.Left--
		return u.Put(i)
	})
}
