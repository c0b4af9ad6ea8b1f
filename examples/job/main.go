// Command job has two hosts run the same job, in one place at a time. When the
// host at work dies, or leaves its network, the other goes on after a lease.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/internal/local"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// host is one process. db is a *dynamodb.Client: config.LoadDefaultConfig with
// config.WithHTTPClient(lockset.HTTPClient()), then dynamodb.NewFromConfig.
func host(ctx context.Context, db lockset.DynamoDB, name string, started func()) error {
	locks, err := lockset.New(db, lockset.Config{Table: "locks", Owner: name, Lease: 2 * time.Second})
	if err != nil {
		return err
	}
	keys := []ordering.Key{ordering.Join("job:reports")}
	for {
		// The context of the work ends before anybody else can have the lock. Work that does
		// not look at it, or was suspended meanwhile, may still write: give the token to
		// stores that can refuse an older one (docs/fencing.md).
		err := locks.With(ctx, keys, func(ctx context.Context, _ fencing.Token) error {
			fmt.Println(name, "is at work")
			started()
			return reports(ctx)
		}, func(o *lockset.Options) { o.Wait, o.Purpose = lockset.For(100*time.Millisecond), "reports" })
		var held *lockset.HeldError
		if !errors.As(err, &held) || ctx.Err() != nil {
			fmt.Println(name, "is done:", err)
			return err
		}
		fmt.Println(name, "waits for", held.Owner, "with its", held.Purpose)
	}
}

// reports takes a while, and looks at its context in between.
func reports(ctx context.Context) error {
	for range 3 {
		select {
		case <-time.After(60 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func main() {
	ctx := context.Background()
	db, err := local.DynamoDB(ctx) // in memory, for this example
	if err != nil {
		log.Fatal(err)
	}
	var hosts sync.WaitGroup
	hosts.Go(func() {
		err = host(ctx, db, "host-1", func() {
			hosts.Go(func() { _ = host(ctx, db, "host-2", func() {}) })
		})
	})
	hosts.Wait()
	if err != nil {
		log.Fatal(err)
	}
}
