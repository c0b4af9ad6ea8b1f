package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// insteadOfTests is what this test binary does if a test has started it.
var insteadOfTests = func() {}

func TestMain(m *testing.M) {
	insteadOfTests()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// database is what setUp needs of a DynamoDB.
type database interface {
	lockset.DynamoDB
	lockset.Tables
}

// setUp makes the tables of units, and accounts with a thousand each.
func setUp(ctx context.Context, db database, accounts ...string) error {
	f, err := New(db, time.Second)
	return errors.Join(err,
		lockset.CreateTable(ctx, db, lockset.Config{Table: "locks"}),
		unitofwork.CreateTable(ctx, db, unitofwork.Config{Table: "units"}),
		open(ctx, f, accounts...))
}

// open opens accounts.
func open(ctx context.Context, f *Function, accounts ...string) error {
	return f.units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
		for _, id := range accounts {
			if err := u.Insert(Accounts.Of(Account{id, 1000})); err != nil {
				return err
			}
		}
		return nil
	})
}

// memory is a DynamoDB in memory, with accounts.
func memory(t *testing.T, accounts ...string) *holdalltest.DB {
	db := holdalltest.DynamoDB()
	require.NoError(t, db.CreateTable(t.Context(), Accounts.Name, "ID", ""))
	require.NoError(t, setUp(t.Context(), db.Client(), accounts...))
	return db
}

func messageOf(p Payment) Message {
	body, _ := json.Marshal(p) // of texts and a number
	return Message{MessageID: "message-" + p.ID, Body: string(body)}
}

func eventOf(payments ...Payment) (e Event) {
	for _, p := range payments {
		e.Records = append(e.Records, messageOf(p))
	}
	return e
}

// handled is an error unless all payments of an event are made, or refused for good.
func handled(ctx context.Context, f *Function, payments ...Payment) error {
	response, err := f.Handle(ctx, eventOf(payments...))
	if len(response.BatchItemFailures) > 0 {
		err = errors.Join(err, fmt.Errorf("to be delivered again: %v", response.BatchItemFailures))
	}
	return err
}

// balances are those of accounts, without locks.
func balances(ctx context.Context, f *Function, accounts ...string) (all []int64, err error) {
	records := make([]unitofwork.Record, len(accounts))
	refs := make([]*unitofwork.Ref[Account], len(accounts))
	for i, id := range accounts {
		refs[i] = Accounts.Ref(id)
		records[i] = refs[i]
	}
	err = f.units.Read(ctx, records...)
	for _, ref := range refs {
		all = append(all, ref.T.Balance)
	}
	return all, err
}
