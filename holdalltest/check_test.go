package holdalltest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

type Order struct {
	ID    string
	State string
}

type Stock struct {
	ID   string
	Left int
}

var (
	orders = unitofwork.Table[Order]{Name: "orders", PartitionKey: "ID", Guard: func(o *Order) ordering.Key { return ordering.Join("order:" + o.ID) }}
	stocks = unitofwork.Table[Stock]{Name: "stocks", PartitionKey: "ID", Guard: func(s *Stock) ordering.Key { return ordering.Join("stock:" + s.ID) }}
)

func open(db lockset.DynamoDB) (*unitofwork.Client, error) {
	return unitofwork.Open(db, config)
}

var config = unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}

// place takes one of a stock for an order, once.
func place(ctx context.Context, units *unitofwork.Client, id string, lock bool) error {
	work := unitofwork.Work{ID: "place " + id, Lock: lock, Keys: []ordering.Key{"order:" + ordering.Key(id), "stock:shoes"}}
	return units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		order, stock := orders.Ref(id), stocks.Ref("shoes")
		if err := u.Get(ctx, order, stock); err != nil {
			return err
		}
		stock.T.Left--
		order.T.State = "placed"
		return u.Put(order, stock)
	})
}

func setup(ctx context.Context, db *holdalltest.DB) error {
	client := db.Client()
	return errors.Join(
		lockset.CreateTable(ctx, client, config.Locks), unitofwork.CreateTable(ctx, client, config),
		db.CreateTable(ctx, "orders", "ID", ""), db.CreateTable(ctx, "stocks", "ID", ""),
		put(ctx, db),
	)
}

func put(ctx context.Context, db *holdalltest.DB) error {
	units, err := open(db.Process("setup"))
	if err != nil {
		return err
	}
	return units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
		return u.Insert(stocks.Of(Stock{"shoes", 10}))
	})
}

func check(lock bool) holdalltest.Check {
	return holdalltest.Check{
		Setup: setup,
		Locks: config.Locks,
		Again: true,
		Work: func(ctx context.Context, p *holdalltest.Process) error {
			units, err := open(p)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return place(ctx, units, "1", lock)
		},
		Rival: func(ctx context.Context, p *holdalltest.Process) error {
			units, err := open(p)
			if err != nil {
				return err
			}
			return place(ctx, units, "2", lock)
		},
		Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
			units, err := open(p)
			if err != nil {
				return err
			}
			first, second, stock := orders.Ref("1"), orders.Ref("2"), stocks.Ref("shoes")
			if err := units.Read(ctx, first, second, stock); err != nil {
				return err
			}
			placed := 0
			for _, o := range []*unitofwork.Ref[Order]{first, second} {
				if o.Found {
					placed++
				}
			}
			switch {
			case stock.T.Left != 10-placed:
				return fmt.Errorf("%d orders, and %d of 10 left", placed, stock.T.Left)
			case told.OK() && !first.Found:
				return errors.New("there is no order")
			}
			return nil
		},
	}
}

func TestAnOrderService(t *testing.T) {
	check(false).Run(t)
}

func TestAnOrderServiceThatLocks(t *testing.T) {
	check(true).Run(t)
}
