// Package lockset holds the leases of many keys as one.
//
// The first minute:
//
//	locks, err := lockset.New(db, lockset.Config{Table: "locks"})
//
//	keys := []ordering.Key{ordering.Join("customer:42"), ordering.Join("report:2026", "month:07")}
//	err = locks.With(ctx, keys, func(ctx context.Context, token fencing.Token) error {
//		return printer.Print(ctx, token) // ctx ends before anybody else can have the keys
//	})
//
// db is a *dynamodb.Client. [CreateTable] makes the table for tests; docs/templates.md has
// templates for production. examples/job is a whole program. For writes to DynamoDB use
// package unitofwork, which commits them under the locks.
//
// A set of keys is acquired in one global order, in transactions of whole steps, so sets
// never deadlock, in whatever order their keys are named. A lock on a key covers everything
// below it. A set is renewed as one, lost as one, and has one fencing token, which is higher
// than that of every earlier holder of a key that conflicts: package fencing makes other
// stores check it. Waiters are served first come, first served; [Options.Wait] bounds a wait.
//
// Sets are released by [Client.With], or by hand: [Client.Acquire] and [Set.Release].
//
// A nil function or option panics and says so. Mistakes that may come from data are errors.
package lockset
