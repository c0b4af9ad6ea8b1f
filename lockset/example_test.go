package lockset_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// A client on AWS, with a connection pool that suits many small requests.
func ExampleNew() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	db := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.HTTPClient = lockset.HTTPClient() })
	locks, err := lockset.New(db, lockset.Config{
		Table:  "locks",
		Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the lease is", locks.Config().Lease)
}

// Print prints while nobody else does: the printer rejects a token lower than the highest
// it has seen, so it is safe even if this process is suspended and comes back late.
func Print(ctx context.Context, locks *lockset.Client, printer *Printer, document string) error {
	keys := []ordering.Key{ordering.Join("printer:3"), ordering.Join("document:" + document)}
	return locks.With(ctx, keys, func(ctx context.Context, token fencing.Token) error {
		return printer.Print(ctx, token, document) // ctx ends before anybody else can have the keys
	})
}

// Printer rejects whoever is late.
type Printer struct{ highest fencing.Token }

// Print prints a document under a token.
func (p *Printer) Print(_ context.Context, token fencing.Token, document string) error {
	if token < p.highest {
		return &fencing.StaleError{Token: token, Found: p.highest}
	}
	p.highest = token
	fmt.Println("printed:", document)
	return nil
}

// Locks alone, for work that is not in DynamoDB.
func ExampleClient_With() {
	ctx := context.Background()
	locks, err := lockset.New(exampleDB(ctx), lockset.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(Print(ctx, locks, &Printer{}, "a report"))
	// Output:
	// printed: a report
	// <nil>
}

// A set that outlives the function that acquired it is released by hand.
func ExampleClient_Acquire() {
	ctx := context.Background()
	locks, err := lockset.New(exampleDB(ctx), lockset.Config{Table: "locks"})
	if err != nil {
		log.Fatal(err)
	}
	set, err := locks.Acquire(ctx, []ordering.Key{
		ordering.Join("printer:3"),
		ordering.Join("report:2026", "month:07"),
		ordering.Join("report:2026", "month:06"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("held:", set.Context().Err() == nil, "with a token:", set.Token().Valid())
	fmt.Println(set.Release(ctx))
	// Output:
	// held: true with a token: true
	// <nil>
}

// Who waits no longer than a while is told who is in the way.
func ExampleHeldError() {
	ctx := context.Background()
	db := exampleDB(ctx)
	one, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "host 1"})
	if err != nil {
		log.Fatal(err)
	}
	two, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "host 2"})
	if err != nil {
		log.Fatal(err)
	}
	set, err := one.Acquire(ctx, []ordering.Key{"customer:42/address:7"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = set.Release(ctx) }()

	soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = two.Acquire(soon, []ordering.Key{"customer:42"}) // covers the address
	var held *lockset.HeldError
	if errors.As(err, &held) {
		fmt.Println(held.Key, "is held by", held.Owner)
	}
	// Output:
	// customer:42/address:7 is held by host 1
}

// exampleDB is a DynamoDB in memory, with a lock table.
func exampleDB(ctx context.Context) *memdynamo.DB {
	db := memdynamo.New(memdynamo.Config{})
	if err := lockset.CreateTable(ctx, db, lockset.Config{Table: "locks"}); err != nil {
		log.Fatal(err)
	}
	return db
}

// The README's example is the one above, letter for letter.
func TestREADMEShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(example), "// Print prints while")
	code, _, _ = strings.Cut(code, "\n// Printer rejects")
	require.Contains(t, string(readme), "```go\n// Print prints while"+code+"```\n")
}
