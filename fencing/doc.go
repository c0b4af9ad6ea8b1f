// Package fencing orders the holders of a lock by token, so that a store can
// refuse the writes of one that has been overtaken.
//
// The first minute, for an SQL database:
//
//	gate, err := fencing.NewPostgreSQLGate("fences") // gate.CreateTable makes its table
//
//	err = locks.With(ctx, keys, func(ctx context.Context, token fencing.Token) error {
//		return gate.Do(ctx, db, token, keys, func(tx *sql.Tx) error { // a *StaleError if it is late
//			_, err := tx.ExecContext(ctx, "UPDATE statements SET ...")
//			return err
//		})
//	})
//
// A [Gate] refuses stale writes to an SQL database, a [Fence] those to DynamoDB outside a
// unit of work; docs/fencing.md shows both, and what other stores can do.
//
// Leases and heartbeats only make progress; tokens make safety. The idea is described in
// Martin Kleppmann, "How to do distributed locking" (2016), and goes back to the sequencers
// of Chubby (Burrows, OSDI 2006).
//
// A call that no correct program makes panics and says so: with a nil context, function
// or input, or on a Gate that this package did not make.
package fencing
