package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A condition of the caller's counts beside the fence, not in its stead.
func TestAConditionDoesNotReplaceTheFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		err := b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: int64(tokenOf(u)) + 1})
			return u.Update(accounts.Of(account{Customer: "1", ID: "a"}), unitofwork.Expression{
				Update: "SET Balance = :six", Condition: "Balance = :five", Values: map[string]any{":five": 5, ":six": 6},
			})
		})
		require.ErrorIs(t, err, fencing.ErrStale)
		require.Equal(t, int64(5), b.account("1").Balance)
	})
}

// A record that has the unit's own token was written by another unit, which held
// another guard: it is as stale as any.
func TestARecordWithTheUnitsOwnToken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		err := b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: int64(tokenOf(u))})
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 6}))
		})
		require.ErrorIs(t, err, fencing.ErrStale)
		require.NotErrorIs(t, err, unitofwork.ErrCondition)
		require.Equal(t, lockset.StartOver, lockset.NextOf(err))
		require.Equal(t, int64(5), b.account("1").Balance)
	})
}

// A unit that has read a fence beyond its token cannot write there; the next one
// can.
func TestAFenceThatWasReadIsNotProposedAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		fence := time.Now().Add(time.Hour).UnixMicro()
		b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: fence})
		c := b.client("c", nil)
		enough := errors.New("enough")
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			require.Less(t, int64(tokenOf(u)), fence)
			return errors.Join(enough, u.Get(ctx, accounts.Ref("1", "a")))
		})
		require.ErrorIs(t, err, enough)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, transfer(1)))
		require.Greater(t, b.account("1").Fence, fence)
	})
}

// Without a unit table, keys that leave no room for a write in the same
// transaction are refused before anything is sent.
func TestAUnitWithTooManyKeysLocksNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil, withoutUnitTable)
		var keys []ordering.Key
		for i := range 51 {
			keys = append(keys, ordering.Join(fmt.Sprint("c", i), "x"))
		}
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(context.Context, *unitofwork.Unit) error { return nil })
		require.ErrorAs(t, err, new(*unitofwork.TooLargeError))
		require.Empty(t, c.requests())
		require.Empty(t, b.db.Items("locks"))
	})
}

// As many keys as fill a transaction can be held, and committed if nothing is staged.
func TestAUnitWithAsManyKeysAsFit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil, withoutUnitTable)
		var keys []ordering.Key
		for i := range 50 {
			keys = append(keys, ordering.Join(fmt.Sprint("c", i), "x"))
		}
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(context.Context, *unitofwork.Unit) error { return nil }))
		b.allFree()
	})
}

// Whoever writes to a record with a newer token, the unit does not any more, nor
// does it rely on what it looked at.
func TestANewerFenceRefusesEveryKindOfWrite(t *testing.T) {
	one := accounts.Of(account{Customer: "1", ID: "a"})
	for name, stage := range map[string]func(*unitofwork.Unit) error{
		"replace": func(u *unitofwork.Unit) error { return u.Replace(one) },
		"delete":  func(u *unitofwork.Unit) error { return u.Delete(one) },
		"update": func(u *unitofwork.Unit) error {
			return u.Update(one, unitofwork.Expression{Update: "REMOVE Balance"})
		},
		"check": func(u *unitofwork.Unit) error {
			return u.Check(one, unitofwork.Expression{Condition: "attribute_exists(ID)"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				err := b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
					b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: int64(tokenOf(u)) + 1})
					return errors.Join(stage(u), u.Replace(accounts.Of(account{Customer: "2", ID: "a", Balance: 6})))
				})
				require.ErrorIs(t, err, fencing.ErrStale)
				require.Equal(t, [2]int64{5, 100}, b.balances(), "nothing is written beside it, either")
				b.allFree()
			})
		})
	}
}

// What was done under an ID is not done again as long as the ID is remembered.
func TestAnIDIsRememberedForItsRetention(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		pay := func() {
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p"}, transfer(30)))
		}
		pay()
		record := b.db.Items("units")[0]
		var at, expires int64
		require.NoError(t, attributevalue.Unmarshal(record["committedAt"], &at))
		require.NoError(t, attributevalue.Unmarshal(record["expiresAt"], &expires))
		require.Equal(t, at/1000+30*24*60*60, expires)
		time.Sleep(29 * 24 * time.Hour)
		b.db.Expire(time.Now())
		pay()
		require.Equal(t, [2]int64{70, 130}, b.balances())
		time.Sleep(2 * 24 * time.Hour)
		b.db.Expire(time.Now())
		pay()
		require.Equal(t, [2]int64{40, 160}, b.balances())
	})
}

func TestAUnitThatWasDoneBeforeKeepsNoLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil, func(lc *lockset.Config, _ *unitofwork.Config) { lc.MaxAge = 2 * lease })
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p"}, transfer(30)))
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p"}, transfer(30)))
		require.Equal(t, map[string]int{"committed": 1, "already": 1}, c.outcomes())
		b.allFree()
	})
}

func TestIDsOutliveWrongClocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const day = 24 * time.Hour // the locks' retention is 14 days
		shared := b.client("c", nil).locks
		_, err := unitofwork.New(shared, unitofwork.Config{Table: "units", IDRetention: 27 * day})
		var configErr *locks.ConfigError
		require.ErrorAs(t, err, &configErr)
		require.Equal(t, "IDRetention", configErr.Field)
		_, err = unitofwork.New(shared, unitofwork.Config{Table: "units", IDRetention: 28 * day})
		require.NoError(t, err)
	})
}

// The answer to a repetition is that: what it was refused for need not be what
// became of the first sending, and the caller is not told so.
func TestARefusalOfARepetitionSaysNothingOfTheFirst(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", atCommits(1, 1, faults.LoseRequest(faults.Reset)))
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(
				u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})),
				u.Check(accounts.Of(account{Customer: "2", ID: "a"}), unitofwork.Expression{
					Condition: "Balance > :most", Values: map[string]any{":most": 1000},
				}),
			)
		})
		require.ErrorIs(t, err, unitofwork.ErrSuperseded)
		require.Equal(t, lockset.StartOver, lockset.NextOf(err))
		require.Equal(t, [2]int64{100, 100}, b.balances())
		b.allFree()
	})
}
