package comingfrom

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

var config = unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}

// tables makes the tables of both programs, with accounts of 100 each.
func tables(accounts ...string) func(context.Context, *holdalltest.DB) error {
	return func(ctx context.Context, db *holdalltest.DB) error {
		err := errors.Join(
			lockset.CreateTable(ctx, db.Client(), config.Locks), unitofwork.CreateTable(ctx, db.Client(), config),
			db.CreateTable(ctx, "accounts", "ID", ""), db.CreateTable(ctx, "payments", "ID", ""), db.CreateTable(ctx, "reports", "ID", ""),
		)
		for _, a := range accounts {
			item := id(a)
			item["Balance"], item["Version"] = number(100), number(1)
			_, failed := db.Client().PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("accounts"), Item: item})
			err = errors.Join(err, failed)
		}
		return err
	}
}

// balances reads accounts, each as it is.
func balances(ctx context.Context, units *unitofwork.Client, accounts ...string) (all []int64, sum int64, err error) {
	for _, a := range accounts {
		ref := Accounts.Ref(a)
		if err := units.Read(ctx, ref); err != nil {
			return nil, 0, err
		}
		all, sum = append(all, ref.T.Balance), sum+ref.T.Balance
	}
	return all, sum, nil
}

func opened(t *testing.T, db lockset.DynamoDB) *unitofwork.Client {
	t.Helper()
	units, err := Open(db)
	require.NoError(t, err)
	return units
}

// drawn is a source of random numbers that says its seed.
func drawn(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func name(n int) string { return fmt.Sprintf("a%d", n) }
