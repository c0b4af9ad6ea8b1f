package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

var config = unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}

// Whatever goes wrong at whichever request: an order that is sent until it is answered is placed
// once, and every pen is in stock or in an order.
func TestOrdersUnderFaults(t *testing.T) {
	send := func(id string) func(context.Context, *holdalltest.Process) error {
		return func(ctx context.Context, p *holdalltest.Process) error {
			units, err := unitofwork.Open(p, config)
			if err == nil {
				_, err = place(ctx, units, order{ID: id, Item: "pen", Quantity: 2})
			}
			return err
		}
	}
	holdalltest.Check{
		Setup: func(ctx context.Context, db *holdalltest.DB) error {
			units, err := unitofwork.Open(db.Client(), config)
			if err != nil {
				return err
			}
			return errors.Join(
				lockset.CreateTable(ctx, db.Client(), config.Locks), unitofwork.CreateTable(ctx, db.Client(), config),
				db.CreateTable(ctx, "orders", "ID", ""), db.CreateTable(ctx, "stock", "ID", ""),
				units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
					return u.Insert(stock.Of(item{"pen", 10}))
				}),
			)
		},
		Work: send("k1"), Again: true, Rival: send("k2"), Locks: config.Locks,
		Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
			units, err := unitofwork.Open(p, config)
			if err != nil {
				return err
			}
			pens, first, rival := stock.Ref("pen"), orders.Ref("k1"), orders.Ref("k2")
			if err := units.Read(ctx, pens, first, rival); err != nil {
				return err
			}
			switch sold := first.T.Quantity + rival.T.Quantity; {
			case pens.T.Left+sold != 10:
				return fmt.Errorf("%d in stock, %d sold, of 10", pens.T.Left, sold)
			case told.OK() && !first.Found:
				return errors.New("an order that was answered is not there")
			}
			return nil
		},
	}.Run(t)
}
