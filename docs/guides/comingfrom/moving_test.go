package comingfrom

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
)

// oldProgram writes as one does that excludes others by a lock which holdall knows nothing of: it
// reads, computes, and writes what it has computed.
type oldProgram struct {
	db   *dynamodb.Client
	lock sync.Mutex // the old lock, for all accounts
}

func (o *oldProgram) transfer(ctx context.Context, from, to string, amount int64) error {
	o.lock.Lock()
	defer o.lock.Unlock()
	var had [2]Account
	for i, account := range []string{from, to} {
		out, err := o.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("accounts"), Key: id(account), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return err
		}
		if err := attributevalue.UnmarshalMap(out.Item, &had[i]); err != nil {
			return err
		}
	}
	_, err := o.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		unlessMoved(had[0].Balance-amount, from), unlessMoved(had[1].Balance+amount, to),
	}})
	return err
}

// drawPairs draws who pays whom, for the old program and for units. Accounts that pay each other move together.
func drawPairs(draw *rand.Rand, accounts, rounds int) [][2][2]int {
	pairs := make([][2][2]int, rounds)
	for i := range pairs {
		for n := range pairs[i] {
			pair, side := 2*draw.IntN(accounts/2), draw.IntN(2)
			pairs[i][n] = [2]int{pair + side, pair + 1 - side}
		}
	}
	return pairs
}

// While an old program and units write to the same accounts, and these move in between, every payment
// that was answered counts, and no other.
func TestMovingWhileBothRun(t *testing.T) {
	const accounts, rounds = 4, 40
	draw := drawn(t)
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		var names []string
		for i := range accounts {
			names = append(names, name(i))
		}
		require.NoError(t, tables(names...)(t.Context(), db))
		db.SetLatency(5 * time.Millisecond)
		var counting sync.Mutex
		want := []int64{100, 100, 100, 100}
		count := func(from, to int, err error) {
			counting.Lock()
			defer counting.Unlock()
			if err == nil {
				want[from]--
				want[to]++
			}
		}
		pairs := drawPairs(draw, accounts, rounds)
		moves := []time.Duration{time.Duration(draw.Int64N(int64(400 * time.Millisecond))), time.Duration(draw.Int64N(int64(400 * time.Millisecond)))}
		old, units := &oldProgram{db: db.Client()}, opened(t, db.Process("new"))
		require.ErrorIs(t, TransferMoved(t.Context(), units, name(0), name(1), 1), ErrNotMoved)
		count(0, 1, old.transfer(t.Context(), name(0), name(1), 1))
		var wait sync.WaitGroup
		wait.Go(func() {
			for _, p := range pairs {
				err := old.transfer(t.Context(), name(p[0][0]), name(p[0][1]), 1)
				if err != nil && !errors.As(err, new(*types.TransactionCanceledException)) {
					t.Error(err)
				}
				count(p[0][0], p[0][1], err)
			}
		})
		wait.Go(func() {
			for _, p := range pairs {
				err := TransferMoved(t.Context(), units, name(p[1][0]), name(p[1][1]), 1)
				if err != nil && !errors.Is(err, ErrNotMoved) {
					t.Error(err)
				}
				count(p[1][0], p[1][1], err)
				time.Sleep(5 * time.Millisecond)
			}
		})
		for i, after := range moves {
			wait.Go(func() {
				time.Sleep(after)
				if err := Move(t.Context(), opened(t, db.Process("mover")), name(2*i), name(2*i+1)); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		all, _, err := balances(t.Context(), units, names...)
		require.NoError(t, err)
		require.Equal(t, want, all)

		require.NoError(t, TransferMoved(t.Context(), units, name(0), name(1), 1))
		err = old.transfer(t.Context(), name(0), name(1), 1)
		require.ErrorAs(t, err, new(*types.TransactionCanceledException))
	})
}

// A commit of the new program that comes late, when it is gone and the old one goes on, changes
// nothing if a unit has taken the mark; it undoes what the old one wrote if a plain write has.
func TestGoingBackByAUnit(t *testing.T) {
	for byUnit, paid := range map[bool]int64{true: 7, false: 1} {
		synctest.Test(t, func(t *testing.T) {
			db := holdalltest.DynamoDB()
			require.NoError(t, tables(name(0), name(1))(t.Context(), db))
			require.NoError(t, Move(t.Context(), opened(t, db.Process("mover")), name(0), name(1)))
			gone := db.Process("new")
			gone.Next(holdalltest.Writes("accounts"), "late")
			gone.Next(holdalltest.Writes("accounts"), "crash") // when it sends it again
			units := opened(t, gone)
			go func() { _ = TransferMoved(t.Context(), units, name(0), name(1), 1) }() // the dead are told nothing
			<-gone.Dead()
			if byUnit {
				require.NoError(t, MoveBack(t.Context(), opened(t, db.Process("mover")), name(0), name(1)))
			} else {
				for n := range 2 {
					_, err := db.Client().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
						TableName: aws.String("accounts"), Key: id(name(n)), UpdateExpression: aws.String("REMOVE Moved"),
					})
					require.NoError(t, err)
				}
			}
			require.NoError(t, (&oldProgram{db: db.Client()}).transfer(t.Context(), name(0), name(1), 7))
			time.Sleep(time.Minute)
			all, _, err := balances(t.Context(), opened(t, db.Process("audit")), name(0), name(1))
			require.NoError(t, err)
			require.Equal(t, []int64{100 - paid, 100 + paid}, all, "by a unit: %v", byUnit)
		})
	}
}
