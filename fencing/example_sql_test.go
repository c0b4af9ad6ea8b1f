package fencing_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// WriteStatement writes to SQL what was computed under a lock, unless somebody
// has had the lock since.
func WriteStatement(ctx context.Context, locks *lockset.Client, gate *fencing.Gate, db *sql.DB, account string) error {
	set, err := locks.Acquire(ctx, []ordering.Key{ordering.Join("account:" + account)})
	if err != nil {
		return err
	}
	balance := compute(set.Context(), account) // may take long; the lease may end meanwhile
	err = gate.Do(ctx, db, set.Token(), set.Keys(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO statements (account, balance) VALUES ($1, $2)
			ON CONFLICT (account) DO UPDATE SET balance = excluded.balance`, account, balance)
		return err
	})
	return errors.Join(err, set.Release(context.WithoutCancel(ctx)))
}

func compute(context.Context, string) int64 { return 100 }

// A statement is written under a lock. Then one arrives late, whose token is older.
func ExampleGate_Do() {
	ctx := context.Background()
	locks, db, gate := exampleStores(ctx)
	defer func() { _ = db.Close() }()
	fmt.Println(WriteStatement(ctx, locks, gate, db, "7"))

	late := []ordering.Key{ordering.Join("account:7")}
	err := gate.Do(ctx, db, 1_753_000_000_000_001, late, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE statements SET balance = 0")
		return err
	})
	fmt.Println(errors.Is(err, fencing.ErrStale))
	// Output:
	// <nil>
	// true
}

// Move does several statements in a transaction of its own, of which the first
// admits the token.
func Move(ctx context.Context, gate *fencing.Gate, db *sql.DB, token fencing.Token, from, to string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := gate.Admit(ctx, tx, token, ordering.Join("shelf:"+from), ordering.Join("shelf:"+to)); err != nil {
		return err // nothing may be written, nor read for writing
	}
	if _, err := tx.ExecContext(ctx, "UPDATE boxes SET shelf = $1 WHERE shelf = $2", to, from); err != nil {
		return err
	}
	return tx.Commit()
}

// The one who has been overtaken on one of its keys writes nothing at all.
func ExampleGate_Admit() {
	ctx := context.Background()
	_, db, gate := exampleStores(ctx)
	defer func() { _ = db.Close() }()
	fmt.Println(Move(ctx, gate, db, 1_753_000_000_000_009, "b", "c"))
	fmt.Println(Move(ctx, gate, db, 1_753_000_000_000_001, "a", "b"))
	// Output:
	// <nil>
	// key "shelf:b": token is stale: 1753000000000009 was there, ours is 1753000000000001
}

// OpenSQLite opens a file whose transactions say at once that they will write, and
// wait for each other, and makes the gate's table there.
func OpenSQLite(ctx context.Context, file string) (*sql.DB, *fencing.Gate, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, nil, err
	}
	gate, err := fencing.NewSQLiteGate("fences")
	if err != nil {
		return nil, nil, err
	}
	if err := gate.CreateTable(ctx, db); err != nil {
		return nil, nil, err
	}
	return db, gate, nil
}

// exampleStores returns a lock client, and a database that begins empty.
func exampleStores(ctx context.Context) (*lockset.Client, *sql.DB, *fencing.Gate) {
	dynamo := memdynamo.New(memdynamo.Config{})
	cfg := lockset.Config{Table: "locks"}
	if err := lockset.CreateTable(ctx, dynamo, cfg); err != nil {
		log.Fatal(err)
	}
	locks, err := lockset.New(dynamo, cfg)
	if err != nil {
		log.Fatal(err)
	}
	db, gate, err := OpenSQLite(ctx, ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	_, err = db.ExecContext(ctx, `CREATE TABLE statements (account TEXT PRIMARY KEY, balance INTEGER);
		CREATE TABLE boxes (id TEXT PRIMARY KEY, shelf TEXT)`)
	if err != nil {
		log.Fatal(err)
	}
	return locks, db, gate
}
