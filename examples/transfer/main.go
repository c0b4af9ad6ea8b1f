// Command transfer makes payments between accounts: each once, however often it is asked for.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/holdall/holdall/examples/internal/local"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

type account struct {
	ID      string
	Balance int64
}

type payment struct {
	ID, From, To string
	Amount       int64
}

var accounts = unitofwork.Table[account]{
	Name: "accounts", PartitionKey: "ID",
	Guard: func(a *account) ordering.Key { return ordering.Join("account:" + a.ID) },
}

var errFunds = errors.New("not enough money")

// pay makes a payment, or changes nothing and says why.
func pay(ctx context.Context, units *unitofwork.Client, p payment) error {
	from, to := accounts.Ref(p.From), accounts.Ref(p.To)
	what := fmt.Appendf(nil, "%d from %q to %q", p.Amount, p.From, p.To) // the same ID for anything else is refused
	work := unitofwork.Work{ID: p.ID, Payload: what, Wait: lockset.For(5 * time.Second)}
	return units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, from, to); err != nil {
			return err
		}
		if !from.Found || !to.Found || from.T.Balance < p.Amount {
			return errFunds
		}
		from.T.Balance -= p.Amount
		to.T.Balance += p.Amount
		return u.Put(from, to)
	})
}

// answer is what a service tells the caller. A payment has an ID, so asking
// again is safe, also when nobody knows whether it was made.
func answer(err error) string {
	switch next := lockset.NextOf(err); {
	case err == nil:
		return "paid"
	case errors.Is(err, errFunds), errors.As(err, new(*unitofwork.IDError)):
		return "refused: " + err.Error()
	case next == lockset.TryLater, next == lockset.StartOver, next == lockset.AskLater:
		return "try again later, with the same ID"
	default: // the call, a table or a permission is wrong
		return "failed: " + err.Error()
	}
}

// open returns a client for units of work. db is a *dynamodb.Client: config.LoadDefaultConfig with
// config.WithHTTPClient(lockset.HTTPClient()), then dynamodb.NewFromConfig. Templates for its tables
// are in docs/operations.md.
func open(db lockset.DynamoDB) (*unitofwork.Client, error) {
	return unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
}

func main() {
	ctx := context.Background()
	db, err := local.DynamoDB(ctx, accounts.Name) // in memory, for this example
	check(err)
	units, err := open(db)
	check(err)
	alice, bob := accounts.Of(account{"alice", 100}), accounts.Of(account{"bob", 100})
	check(units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { return u.Replace(alice, bob) }))
	for _, p := range []payment{{"p1", "alice", "bob", 30}, {"p1", "alice", "bob", 30}, {"p1", "alice", "bob", 40}, {"p2", "alice", "bob", 500}} {
		fmt.Printf("%+v: %s\n", p, answer(pay(ctx, units, p)))
	}
	check(units.Read(ctx, alice, bob)) // without locks
	fmt.Println(alice.T, bob.T)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
