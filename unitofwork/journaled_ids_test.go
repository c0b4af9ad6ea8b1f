package unitofwork_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// IDs and outcomes of units with a journal.

func payment(keys []ordering.Key, payload string) unitofwork.Work {
	return unitofwork.Work{Keys: keys, ID: "payment", Payload: []byte(payload)}
}

func TestAnIDOfALargeUnitCommitsOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil, inSmallTransactions)
		_, stage, all := fewAccounts()
		require.NoError(t, c.Do(t.Context(), payment(keysOfFew(), "x"), stage))
		require.True(t, b.allOrNothing(all))
		before := b.tables()
		for _, repeats := range []*client{c, b.client("other", nil, inSmallTransactions), b.client("large", nil)} {
			require.NoError(t, repeats.Do(t.Context(), payment(keysOfFew(), "x"), func(context.Context, *unitofwork.Unit) error {
				t.Error("what is done is not done again")
				return nil
			}))
		}
		for name, again := range map[string]func() error{
			"another payload": func() error {
				return c.Do(t.Context(), payment(keysOfFew(), "y"), stage)
			},
			"other keys": func() error {
				return c.Do(t.Context(), payment(append(keysOfFew(), "z"), "x"), stage)
			},
		} {
			err := again()
			other := errorAs[*unitofwork.IDError](t, err, name)
			require.Equal(t, "payment", other.ID)
		}
		require.Equal(t, before["accounts"], b.db.Items("accounts"))
		require.Equal(t, before["units"], b.db.Items("units"))
		b.allFree()
		require.Equal(t, unitofwork.Committed, c.outcomeOf(t, "payment"))
	})
}

// Two units with the same ID, both with a journal and both about to decide: one is
// committed, and of the other there is no trace.
func TestTwoLargeUnitsDecideUnderTheSameID(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, stage, all := fewAccounts()
		b.put("accounts", account{Customer: "2", ID: "a", Balance: 100})
		done := make(chan error, 1)
		loser := b.client("loser", upon(decides.is, func() {
			done <- b.client("winner", nil, inSmallTransactions).Do(t.Context(), payment(keysOfFew(), "x"), stage)
		}), inSmallTransactions)
		var others []ordering.Key
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			others = append(others, accountKey("2", id))
		}
		before := b.account("2")
		err := loser.Do(t.Context(), payment(others, "x"), func(_ context.Context, u *unitofwork.Unit) error {
			for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
				if err := u.Replace(accounts.Of(account{Customer: "2", ID: id, Balance: 1})); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, <-done)
		require.ErrorAs(t, err, new(*unitofwork.IDError), "other keys, and so another unit")
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.True(t, b.allOrNothing(all))
		require.Equal(t, before, b.account("2"))
		require.Equal(t, map[string]int{"not": 1}, loser.outcomes())
		b.allFree()
		b.nothingLeft()
	})
}

// An owner that loses the net when it decides does not know what it did; the
// journal does.
func TestALargeUnitInDoubt(t *testing.T) {
	for name, executed := range map[string]bool{"committed": true, "not committed": false} {
		for _, id := range []string{"", "payment"} {
			runInBed(t, name+" "+id, func(t *testing.T, b *bed) {
				decision := faults.LoseRequest(faults.Hang)
				if executed {
					decision = faults.LoseAnswer(faults.Hang)
				}
				c := b.client("A", cutFrom(decides.is, 1, decision), inSmallTransactions)
				_, stage, all := fewAccounts()
				err := c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew(), ID: id}, stage)
				doubt := errorAs[*unitofwork.InDoubtError](t, err)
				require.Equal(t, id, doubt.ID)
				require.Equal(t, lockset.AskLater, lockset.NextOf(err))
				require.Equal(t, map[string]int{"in doubt": 1}, c.outcomes())

				heir := b.client("next", nil, inSmallTransactions)
				outcome := func(idOrRef string) unitofwork.Outcome {
					o, err := heir.Outcome(t.Context(), idOrRef)
					require.NoError(t, err)
					return o
				}
				unless := func(then unitofwork.Outcome) unitofwork.Outcome {
					if executed {
						return unitofwork.Committed
					}
					return then
				}
				require.Equal(t, unless(unitofwork.Undecided), outcome(doubt.Ref), "its locks are kept")
				if id != "" {
					require.Equal(t, unless(unitofwork.Undecided), outcome(id))
				}
				heir.recovers(t)
				require.Equal(t, executed, b.allOrNothing(all))
				require.Equal(t, unless(unitofwork.NotCommitted), outcome(doubt.Ref))
				if id != "" {
					require.Equal(t, unless(unitofwork.Undecided), outcome(id), "another may, under the same ID")
					require.NoError(t, heir.Do(t.Context(), unitofwork.Work{Keys: keysOfFew(), ID: id}, stage))
					require.True(t, b.allOrNothing(all))
					require.Equal(t, unless(unitofwork.NotCommitted), outcome(doubt.Ref), "that was another unit")
				}
				b.allFreeOnceAskedFor(keysOfFew()...)
				b.nothingLeft()
				require.NoError(t, heir.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, func(context.Context, *unitofwork.Unit) error { return nil }))
				require.Equal(t, unless(unitofwork.NotCommitted), outcome(doubt.Ref), "whatever its rows say since")

				time.Sleep(100 * 24 * time.Hour)
				b.db.Expire(time.Now())
				require.Equal(t, unitofwork.Forgotten, outcome(doubt.Ref), "records have an end")
			})
		}
	}
}

// What stands as a decision and cannot be read is no answer.
func TestAnOutcomeThatCannotBeRead(t *testing.T) {
	for name, harm := range map[string]string{
		"its state is no text": "SET #state = :bytes", "its state is another": "SET #state = :empty",
		"its digest is short": "SET #digest = :bytes", "its journal has no rows": "REMOVE #rows",
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("A", cutFrom(decides.is, 1, faults.LoseAnswer(faults.Hang)), inSmallTransactions)
			_, stage, _ := fewAccounts()
			unit := ""
			doubt := errorAs[*unitofwork.InDoubtError](t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, func(ctx context.Context, u *unitofwork.Unit) error {
				unit = u.Nonce()
				return stage(ctx, u)
			}))
			b.change("units", map[string]string{"unit": unit, "part": "record"}, harm)
			_, err := b.client("heir", nil).Outcome(t.Context(), doubt.Ref)
			require.ErrorAs(t, err, new(*unitofwork.IDError))
		})
	}
}

// A decision that lands when its sender has given up is none: the abort that
// the sender made sure of came first.
func TestADecisionThatComesTooLate(t *testing.T) {
	for name, work := range map[string]unitofwork.Work{"with an id": payment(keysOfFew(), "x"), "without": {Keys: keysOfFew()}} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.tables()
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("the caller is gone")
			c := b.client("A", func(c faults.Call) faults.Fault {
				if phaseOf(c) == decides {
					cancel(gone)
					return faults.DeliverLate(lease, faults.Hang)
				}
				return faults.Pass()
			}, inSmallTransactions)
			_, stage, _ := fewAccounts()
			err := c.Do(ctx, work, stage)
			require.ErrorIs(t, err, gone)
			require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
			time.Sleep(2 * lease)
			c.net.Wait()
			b.nothingWritten(before)
			require.Equal(t, unitofwork.Undecided, c.outcomeOf(t, "payment"))
		})
	}
}

// A unit that was aborted while it lived, by another's clock, has not committed,
// whatever its own locks look like.
func TestALargeUnitThatWasAbortedDecidesNothing(t *testing.T) {
	for name, another := range map[string]bool{"the ID is free": false, "another has committed under the ID since": true} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.tables()
			var c *client
			unit := ""
			c = b.client("A", upon(decides.is, func() {
				b.putItem("units", map[string]types.AttributeValue{
					"unit": text(unit), "part": text("record"), "state": text("aborted"), "at": number("1"), "expiresAt": number("1"),
				})
				if another {
					b.putItem("units", map[string]types.AttributeValue{
						"unit": text("id:payment"), "part": text("record"), "committedBy": text("another"),
						"digest": &types.AttributeValueMemberB{Value: make([]byte, 32)}, "expiresAt": number("1"),
					})
				}
			}), inSmallTransactions)
			_, stage, _ := fewAccounts()
			once := payment(keysOfFew(), "x")
			once.Attempts = 1
			err := c.Do(t.Context(), once, func(ctx context.Context, u *unitofwork.Unit) error {
				unit = u.Nonce()
				return stage(ctx, u)
			})
			require.ErrorIs(t, err, lockset.ErrLost, "the loss is told first, as of a small unit")
			require.Equal(t, lockset.StartOver, lockset.NextOf(err))
			b.nothingWritten(before)
			require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		})
	}
}
