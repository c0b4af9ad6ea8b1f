package adopting

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/unitofwork"
)

// Records that nobody has counted yet are written, too, by both programs in turn.
func TestRecordsWithoutAVersion(t *testing.T) {
	inMemory(t, func(t *testing.T, db *holdalltest.DB) {
		p := open(t, db.Client(), "")
		_, err := p.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &Accounts.Name, Item: map[string]types.AttributeValue{
			"ID": &types.AttributeValueMemberS{Value: "old"}, "Balance": &types.AttributeValueMemberN{Value: "5"},
		}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, DepositBefore(ctx, p.db, "old", 1))
		require.NoError(t, Deposit(ctx, p.units, "old", 1))
		require.NoError(t, DepositBefore(ctx, p.db, "old", 1))
		a, err := read(t.Context(), p.db, "old")
		require.NoError(t, err)
		require.Equal(t, Account{ID: "old", Balance: 8, Version: 3}, a)
	})
}

// removing is a table whose record is removed just before it is written.
type removing struct{ DB }

func (r removing) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	_, err := r.DB.(*dynamodb.Client).DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: in.TableName, Key: map[string]types.AttributeValue{"ID": in.Item["ID"]},
	})
	if err != nil {
		return nil, err
	}
	return r.DB.PutItem(ctx, in, o...)
}

// No program makes an account of a deposit: not where there is none, and not of one that was removed.
func TestAccountsThatAreNotThere(t *testing.T) {
	inMemory(t, func(t *testing.T, db *holdalltest.DB) {
		p := open(t, db.Client(), "")
		require.ErrorIs(t, DepositBefore(t.Context(), p.db, "none", 1), ErrNoAccount)
		require.ErrorIs(t, Deposit(t.Context(), p.units, "none", 1), ErrNoAccount)
		require.ErrorIs(t, DepositPorted(t.Context(), p.db, p.locks, "none", 1), ErrNoAccount)
		put, err := putOf(Account{ID: "uncounted"})
		require.NoError(t, err)
		_, err = p.db.PutItem(t.Context(), put)
		require.NoError(t, err)
		for _, id := range []string{"a", "uncounted"} {
			require.ErrorIs(t, DepositBefore(t.Context(), removing{p.db}, id, 1), ErrNoAccount)
		}
	})
}

// A write that meets a unit's transaction is refused in a way of its own, and repeated.
func TestTheOldProgramMeetsATransaction(t *testing.T) {
	inMemory(t, func(t *testing.T, db *holdalltest.DB) {
		p, old := open(t, db.Client(), ""), db.Process("old")
		old.Next(holdalltest.Op("PutItem"), "conflict")
		require.NoError(t, DepositBefore(t.Context(), old.Client(), "a", 1))
		a, err := read(t.Context(), p.db, "a")
		require.NoError(t, err)
		require.Equal(t, Account{ID: "a", Balance: 1, Version: 2}, a)
	})
}

// Large units have to be finished before old writers come back: they write without a version.
func TestGoingBackFromLargeUnits(t *testing.T) {
	for recovers, balance := range map[bool]int64{true: 101, false: 100} {
		inMemory(t, func(t *testing.T, db *holdalltest.DB) {
			p, dies := open(t, db.Client(), ""), db.Process("new")
			var ids []string // with as many lock rows more than one transaction
			for n := range 60 {
				ids = append(ids, fmt.Sprint(n))
				put, err := putOf(Account{ID: ids[n], Version: 1})
				require.NoError(t, err)
				_, err = p.db.PutItem(t.Context(), put)
				require.NoError(t, err)
			}
			dies.Next(func(r holdalltest.Request) bool { // the first that applies what is decided
				return slices.Contains(r.Writes, Accounts.Name) && slices.Contains(r.Writes, "locks")
			}, "crash")
			units, err := Open(dies)
			require.NoError(t, err)
			_ = units.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { // the dead are told nothing
				for _, id := range ids {
					if err := u.Replace(unversioned().Of(Account{ID: id, Balance: 100, Version: 1})); err != nil {
						return err
					}
				}
				return nil
			})
			late := slices.IndexFunc(ids, func(id string) bool { // one that is not written yet
				a, err := read(t.Context(), p.db, id)
				require.NoError(t, err)
				return a.Balance == 0
			})
			require.GreaterOrEqual(t, late, 0)
			if recovers {
				_, err = p.units.Recover(t.Context())
				require.NoError(t, err)
			}
			require.NoError(t, DepositBefore(t.Context(), p.db, ids[late], 1))
			_, err = p.units.Recover(t.Context())
			require.NoError(t, err)
			a, err := read(t.Context(), p.db, ids[late])
			require.NoError(t, err)
			require.Equal(t, balance, a.Balance, "recovers first: %v", recovers)
		})
	}
}
