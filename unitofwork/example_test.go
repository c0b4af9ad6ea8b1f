package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	gotypes "go/types"
	"log"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Account is a record, as the table has it.
type Account struct {
	Customer, ID string
	Balance      int64
}

// Accounts says, once, where accounts live and which key guards each of them.
var Accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
	Guard: func(a *Account) ordering.Key { return ordering.Join("customer:"+a.Customer, "account:"+a.ID) },
}

var ErrFunds = errors.New("not enough money")

// Open returns a client for units of work. db is a *dynamodb.Client.
func Open(db lockset.DynamoDB) (*unitofwork.Client, error) {
	return unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
}

// Transfer moves money between two accounts once, however often it is called
// with the same payment; or it changes nothing, and says why.
func Transfer(ctx context.Context, units *unitofwork.Client, payment string, from, to Account, amount int64) error {
	what := fmt.Appendf(nil, "%d from %s to %s", amount, Accounts.Guard(&from), Accounts.Guard(&to))
	work := unitofwork.Work{ID: payment, Payload: what} // the same ID for anything else is refused
	return units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
		a, b := Accounts.Ref(from.Customer, from.ID), Accounts.Ref(to.Customer, to.ID)
		if err := u.Get(ctx, a, b); err != nil { // both, as of one moment, and unchanged until Do commits
			return err
		}
		if !a.Found || !b.Found || a.T.Balance < amount {
			return ErrFunds // nothing is written
		}
		a.T.Balance -= amount
		b.T.Balance += amount
		return u.Put(a, b) // staged: written when Do commits
	})
}

// A transfer between the accounts of two customers, done twice under one ID.
func Example() {
	ctx := context.Background()
	db := exampleDB(ctx)
	units, err := Open(db)
	if err != nil {
		log.Fatal(err)
	}
	alice, bob := Account{Customer: "alice", ID: "1"}, Account{Customer: "bob", ID: "7"}
	for range 2 {
		if err := Transfer(ctx, units, "payment-7781", alice, bob, 30); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("the same again, but more:", Transfer(ctx, units, "payment-7781", alice, bob, 40))
	fmt.Println("too much:", Transfer(ctx, units, "payment-7782", alice, bob, 1000))
	printAccounts(db)
	// Output:
	// the same again, but more: id "payment-7781": was committed before with other keys or another payload
	// too much: not enough money
	// alice/1: 70
	// bob/7: 130
}

// Whatever the SDK can say can be staged, under the key that guards the record.
func ExampleUnit_Stage() {
	ctx := context.Background()
	db := exampleDB(ctx)
	units, err := Open(db)
	if err != nil {
		log.Fatal(err)
	}
	alice := ordering.Join("customer:alice") // coarse: covers all accounts of alice
	err = units.Do(ctx, unitofwork.Work{Keys: []ordering.Key{alice}}, func(_ context.Context, u *unitofwork.Unit) error {
		return u.Stage(alice, types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String("accounts"),
			Key: map[string]types.AttributeValue{
				"Customer": &types.AttributeValueMemberS{Value: "alice"},
				"ID":       &types.AttributeValueMemberS{Value: "1"},
			},
			UpdateExpression:          aws.String("ADD Balance :interest"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":interest": &types.AttributeValueMemberN{Value: "2"}},
		}})
	})
	if err != nil {
		log.Fatal(err)
	}
	printAccounts(db)
	// Output:
	// alice/1: 102
	// bob/7: 100
}

// Expressions change some attributes of a record, or only look at it.
func ExampleUnit_Update() {
	ctx := context.Background()
	db := exampleDB(ctx)
	units, err := Open(db)
	if err != nil {
		log.Fatal(err)
	}
	alice, bob := Accounts.Of(Account{Customer: "alice", ID: "1"}), Accounts.Of(Account{Customer: "bob", ID: "7"})
	for _, least := range []int{50, 500} {
		err = units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(
				u.Check(bob, unitofwork.Expression{
					Condition: "Balance >= :least", Values: map[string]any{":least": least},
				}),
				u.Update(alice, unitofwork.Expression{
					Update: "ADD Balance :bonus", Values: map[string]any{":bonus": 1},
				}),
			)
		})
		fmt.Println("at least", least, "→", err)
	}
	printAccounts(db)
	// Output:
	// at least 50 → <nil>
	// at least 500 → not committed: table "accounts", record Customer="bob" ID="7": a staged condition did not hold
	// alice/1: 101
	// bob/7: 100
}

// With an ID, a unit is committed once; whoever asks later is told.
func ExampleClient_Outcome() {
	ctx := context.Background()
	db := exampleDB(ctx)
	units, err := Open(db)
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := units.Outcome(ctx, "payment-7781")
	fmt.Println(outcome, err)
	if err := Transfer(ctx, units, "payment-7781", Account{Customer: "alice", ID: "1"}, Account{Customer: "bob", ID: "7"}, 30); err != nil {
		log.Fatal(err)
	}
	outcome, err = units.Outcome(ctx, "payment-7781")
	fmt.Println(outcome, err)
	// Output:
	// undecided <nil>
	// committed <nil>
}

// What a caller may do next is a property of the error.
func ExampleNextOf() {
	ctx := context.Background()
	units, err := Open(exampleDB(ctx))
	if err != nil {
		log.Fatal(err)
	}
	alice, bob := Account{Customer: "alice", ID: "1"}, Account{Customer: "bob", ID: "7"}
	err = units.Do(ctx, unitofwork.Work{Lock: true, Keys: []ordering.Key{Accounts.Guard(&alice)}}, func(_ context.Context, u *unitofwork.Unit) error {
		return u.Replace(Accounts.Of(bob)) // not guarded by what is locked
	})
	fmt.Println(lockset.NextOf(err))
	fmt.Println(lockset.NextOf(Transfer(ctx, units, "payment-1", alice, bob, 1000)))
	// Output:
	// fix the call
	// decide
}

// exampleDB is a DynamoDB in memory, with the tables that the examples use.
func exampleDB(ctx context.Context) *memdynamo.DB {
	db := memdynamo.New(memdynamo.Config{})
	err := errors.Join(
		lockset.CreateTable(ctx, db, lockset.Config{Table: "locks"}),
		unitofwork.CreateTable(ctx, db, unitofwork.Config{Table: "units"}),
		createTable(ctx, db, "accounts", "Customer", "ID"),
	)
	for _, a := range []Account{{"alice", "1", 100}, {"bob", "7", 100}} {
		item, _ := attributevalue.MarshalMap(a)
		_, put := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("accounts"), Item: item})
		err = errors.Join(err, put)
	}
	if err != nil {
		log.Fatal(err)
	}
	return db
}

func createTable(ctx context.Context, db lockset.Tables, name string, keys ...string) error {
	_, err := db.CreateTable(ctx, newtable.Input(name, keys...))
	return err
}

func printAccounts(db *memdynamo.DB) {
	for _, item := range db.Items("accounts") {
		var a Account
		if err := attributevalue.UnmarshalMap(item, &a); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s/%s: %d\n", a.Customer, a.ID, a.Balance)
	}
}

// The README's example is the one above, letter for letter.
func TestREADMEShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(example), "// Account is a record")
	code, _, _ = strings.Cut(code, "\n// A transfer between")
	_, shown, _ := strings.Cut(string(readme), "```go\n")
	shown, _, _ = strings.Cut(shown, "```\n")
	require.True(t, strings.HasSuffix(shown, "\n)\n\n// Account is a record"+code), "%s", shown)

	// It imports what it uses, and nothing else.
	file, err := parser.ParseFile(token.NewFileSet(), "", "package readme\n"+shown, 0)
	require.NoError(t, err)
	imported, used := map[string]bool{}, map[string]bool{}
	for _, i := range file.Imports {
		imported[path.Base(strings.Trim(i.Path.Value, `"`))] = true
		require.Contains(t, string(example), i.Path.Value)
	}
	for _, id := range file.Unresolved {
		if gotypes.Universe.Lookup(id.Name) == nil {
			used[id.Name] = true
		}
	}
	require.Equal(t, used, imported)
}
