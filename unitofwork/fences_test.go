package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A fence beyond its token that a unit has read, or Read: it cannot write there, and the next one can.
func TestAFenceThatWasReadIsNotProposedAgain(t *testing.T) {
	enough := errors.New("enough")
	for name, read := range map[string]func(*testing.T, *client, int64) error{
		"by a unit": func(t *testing.T, c *client, fence int64) error {
			return c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
				require.Less(t, int64(tokenOf(u)), fence)
				return errors.Join(enough, u.Get(ctx, accounts.Ref("1", "a")))
			})
		},
		"without locks": func(t *testing.T, c *client, _ int64) error {
			return errors.Join(enough, c.Read(t.Context(), accounts.Ref("1", "a")))
		},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			fence := time.Now().Add(time.Hour).UnixMicro()
			b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: fence})
			c := b.client("c", nil)
			require.Equal(t, enough.Error(), read(t, c, fence).Error())
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, transfer(1)))
			require.Greater(t, b.account("1").Fence, fence)
		})
	}
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

// Whoever writes to a record with a newer token, the unit does not any more, nor does it rely on what it
// looked at: its own condition counts beside the fence, not in its stead. A record that has the unit's
// own token was written by another unit, which held another guard: it is as stale as any.
func TestANewerFenceRefusesEveryKindOfWrite(t *testing.T) {
	one := accounts.Of(account{Customer: "1", ID: "a"})
	for name, stage := range map[string]func(*unitofwork.Unit) error{
		"replace": func(u *unitofwork.Unit) error { return u.Replace(one) },
		"delete":  deletes(one),
		"update":  updatesOne(unitofwork.Expression{Update: "REMOVE Balance"}),
		"check":   checksOne(unitofwork.Expression{Condition: "attribute_exists(ID)"}),
		"update under a condition that holds": updatesOne(unitofwork.Expression{
			Update: "SET Balance = :six", Condition: "Balance = :five", Values: map[string]any{":five": 5, ":six": 6},
		}),
	} {
		for than, newer := range map[string]int64{"newer": 1, "the unit's own": 0} {
			runInBed(t, name+", "+than, func(t *testing.T, b *bed) {
				err := b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
					b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: int64(tokenOf(u)) + newer})
					return errors.Join(stage(u), u.Replace(accounts.Of(account{Customer: "2", ID: "a", Balance: 6})))
				})
				require.ErrorIs(t, err, fencing.ErrStale)
				require.NotErrorIs(t, err, unitofwork.ErrCondition)
				require.Equal(t, lockset.StartOver, lockset.NextOf(err))
				require.Equal(t, [2]int64{5, 100}, b.balances(), "nothing is written beside it, either")
				b.allFree()
			})
		}
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

// deleteRow deletes a lock row by hand, fence and all.
func (b *bed) deleteRow(key ordering.Key) {
	b.t.Helper()
	b.delete("locks", map[string]string{"key": string(key)})
}

func (b *bed) hasRow(key ordering.Key) bool { return b.row(key) != nil }

// afterDeletions are what may come between the deletion of a held row and the
// commit of its unit.
var afterDeletions = map[string]struct {
	do     func(*testing.T, *bed, *unitofwork.Unit)
	there  bool     // another has written the row anew
	wanted [2]int64 // balances
}{
	"at once": {
		func(*testing.T, *bed, *unitofwork.Unit) {}, false, [2]int64{100, 100},
	},
	"after the next heartbeat": {
		func(t *testing.T, _ *bed, u *unitofwork.Unit) {
			<-u.Context().Done()
			require.ErrorIs(t, context.Cause(u.Context()), lockset.ErrLost)
		}, false, [2]int64{100, 100},
	},
	"after another unit's commit": {
		func(t *testing.T, b *bed, u *unitofwork.Unit) {
			start := time.Now()
			require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys[:1]}, func(_ context.Context, other *unitofwork.Unit) error {
				require.Equal(t, rtt, time.Since(start), "the key can be had at once")
				require.Greater(t, tokenOf(other), tokenOf(u))
				return other.Replace(accounts.Of(account{Customer: "2", ID: "a", Balance: 7}))
			}))
		}, true, [2]int64{100, 7},
	},
}

// A unit one of whose rows was deleted by hand commits nothing, whether it knows
// or not, and says which key it was; the rest is released, and no row comes back.
func TestACommitWithoutItsRowIsRefused(t *testing.T) {
	gone := transferKeys[0]
	for name, c := range afterDeletions {
		for _, id := range []string{"", "p1"} {
			runInBed(t, name+" "+id, func(t *testing.T, b *bed) {
				cl := b.client("c", nil)
				u := cl.begins(t, unitofwork.Work{Keys: transferKeys, ID: id})
				require.NoError(t, transfer(30)(t.Context(), u))
				b.deleteRow(gone)
				c.do(t, b, u)

				err := u.Commit(t.Context())
				require.ErrorIs(t, err, lockset.ErrLost)
				require.Equal(t, lockset.StartOver, lockset.NextOf(err), "%v", err)
				lost := errorAs[*heartbeat.LostError](t, err)
				require.Equal(t, gone, lost.Key)
				require.Equal(t, map[string]int{"not": 1}, cl.outcomes())
				require.Equal(t, c.wanted, b.balances())
				require.Equal(t, c.there, b.hasRow(gone), "a ghost row")
				require.Empty(t, b.db.Items("units"))
				b.allFree()
				start := time.Now()
				require.NoError(t, cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
				require.Equal(t, 3*rtt, time.Since(start), "nothing is in the way")
			})
		}
	}
}

// When it was the unit's only row, no row says anything of the unit any more:
// without an ID there is no telling what became of copies of its commit.
func TestACommitWithoutItsOnlyRowIsNotTakenForDone(t *testing.T) {
	for id, next := range map[string]lockset.Next{"": lockset.AskLater, "p1": lockset.StartOver} {
		runInBed(t, id, func(t *testing.T, b *bed) {
			cl := b.client("c", nil)
			u := cl.begins(t, unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, ID: id})
			require.NoError(t, u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})))
			b.deleteRow(customerKey("1"))
			err := u.Commit(t.Context())
			require.Error(t, err)
			require.Equal(t, next, lockset.NextOf(err), "%v", err)
			require.Equal(t, [2]int64{100, 100}, b.balances())
			require.Empty(t, b.db.Items("locks"), "a ghost row")
			require.Empty(t, b.db.Items("units"))
		})
	}
}

func (b *bed) take(key ordering.Key, unit string, now bool) error {
	i, err := inspect.New(faults.Wrap(b.db, faults.Config{Who: "operator"}), lockset.Config{Table: "locks", Owner: "operator", Lease: lease})
	require.NoError(b.t, err)
	return i.Free(b.t.Context(), key, unit, inspect.Freeing{Now: now})
}

// A commit that is refused because an operator took the key is known to be refused.
func TestACommitAfterAnOperatorTookTheKey(t *testing.T) {
	for name, now := range map[string]bool{"plain": false, "now": true} {
		for _, id := range []string{"", "id"} {
			for _, keys := range [][]ordering.Key{{accountKey("1", "a")}, {accountKey("1", "a"), accountKey("2", "a")}} {
				runInBed(t, name+id, func(t *testing.T, b *bed) {
					c := b.client("c", nil)
					u := c.begins(t, unitofwork.Work{Keys: keys, ID: id})
					from := accounts.Ref("1", "a")
					require.NoError(t, u.Get(t.Context(), from))
					from.T.Balance--
					require.NoError(t, u.Put(from))
					require.NoError(t, b.take(keys[0], u.Nonce(), now))
					err := u.Commit(t.Context())
					require.Error(t, err)
					if doubt := new(unitofwork.InDoubtError); errors.As(err, &doubt) {
						outcome, asked := c.Outcome(t.Context(), doubt.Ref)
						t.Log(outcome, asked)
					}
					require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
					require.ErrorIs(t, err, lockset.ErrLost)
				})
			}
		}
	}
}

// The same with Do, while its function runs: it is done once.
func TestDoAfterAnOperatorTookTheKey(t *testing.T) {
	for name, now := range map[string]bool{"plain": false, "now": true} {
		for _, pause := range []time.Duration{0, lease} {
			runInBed(t, name, func(t *testing.T, b *bed) {
				n := 0
				work := unitofwork.Work{Keys: []ordering.Key{accountKey("1", "a")}}
				require.NoError(t, b.client("c", nil).Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					err := payIn("1")(ctx, u)
					if n++; n == 1 {
						require.NoError(t, b.take(accountKey("1", "a"), u.Nonce(), now))
						time.Sleep(pause)
					}
					return err
				}))
				require.EqualValues(t, 101, b.account("1").Balance)
			})
		}
	}
}

// waysToUseRows are all the ways in which units use lock rows and leave them.
func waysToUseRows() map[string]func(*bed) {
	many := map[bool]int{true: 150, false: 1000}[testing.Short()]
	order := func(u *unitofwork.Unit, n int) error {
		return u.Insert(accounts.Of(account{Customer: fmt.Sprint(n), ID: "1"}))
	}
	orders := func(reads bool) func(*bed) {
		return func(b *bed) {
			c := b.client("c", nil)
			for n := range many {
				require.NoError(b.t, c.Client.Do(b.t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					if reads {
						if err := u.Get(ctx, accounts.Ref(fmt.Sprint(n), "1")); err != nil {
							return err
						}
					}
					return order(u, n)
				}))
			}
		}
	}
	dead := func(at phase, n int, executed bool) func(*bed) {
		return func(b *bed) {
			b.dies(at, n, executed)
			b.client("heir", nil).recovers(b.t)
		}
	}
	return map[string]func(*bed){
		"many orders without locks":              orders(true),
		"many orders without locks, unread rows": orders(false),
		"many orders under locks": func(b *bed) {
			c := b.client("c", nil)
			for n := range many {
				work := unitofwork.Work{Lock: true, Keys: []ordering.Key{accountKey(fmt.Sprint(n), "1")}}
				require.NoError(b.t, c.Do(b.t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error { return order(u, n) }))
			}
		},
		"not committed": func(b *bed) {
			work := unitofwork.Work{Lock: true, Keys: []ordering.Key{accountKey("1", "1")}}
			err := b.client("c", nil).Do(b.t.Context(), work, func(context.Context, *unitofwork.Unit) error { return errors.New("no") })
			require.Error(b.t, err)
		},
		"many orders by a journal": func(b *bed) {
			keys, refs := largeKeys(many)
			require.NoError(b.t, b.client("c", nil).Do(b.t.Context(), unitofwork.Work{Lock: true, Keys: keys}, deposit(refs, 7)))
		},
		"a journal that is refused when it is prepared": func(b *bed) {
			keys, refs := largeKeys(200)
			c := b.client("c", upon(marks.is, func() {
				b.deleteRow(keys[199])
			}))
			require.Error(b.t, c.Do(b.t.Context(), unitofwork.Work{Lock: true, Keys: keys, Attempts: 1}, deposit(refs, 7)))
		},
		"a journal that cannot be decided": func(b *bed) {
			keys, refs := largeKeys(9)
			c := b.client("c", when(decides.is, faults.LoseRequest(faults.Reset)), inSmallTransactions)
			require.Error(b.t, c.Do(b.t.Context(), unitofwork.Work{Lock: true, Keys: keys, Attempts: 1}, deposit(refs, 7)))
		},
		"a dead journal, decided":   dead(applies, 2, true),
		"a dead journal, undecided": dead(decides, 1, false),
	}
}

// Every lock row that a unit leaves, those above its keys too, expires, whichever way the unit
// took.
func TestEveryRowExpires(t *testing.T) {
	for name, use := range waysToUseRows() {
		runInBed(t, name, func(t *testing.T, b *bed) {
			use(b)
			for _, row := range b.db.Items("locks") {
				require.IsType(t, &types.AttributeValueMemberN{}, row["expiresAt"], "%v", row)
			}
			time.Sleep(29 * 24 * time.Hour)
			b.db.Expire(time.Now())
			require.Empty(t, b.db.Items("locks"))
		})
	}
}
