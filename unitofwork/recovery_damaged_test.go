package unitofwork_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What somebody's hand, or a client with another table, makes of a unit that is
// committed and not applied: nothing is lost in silence, and nobody suffers whose
// keys are none of those that are broken.

const later = "990000000000000"

// diesDecided has an owner decide a unit that deposits 7 in each of n accounts, three
// to a family, and die.
func (b *bed) diesDecided(n int, change ...func(*lockset.Config, *unitofwork.Config)) (keys []ordering.Key) {
	b.t.Helper()
	keys, refs := largeKeys(n)
	dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), change...)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = dead.Do(context.WithoutCancel(b.t.Context()), unitofwork.Work{Keys: keys}, deposit(refs, 7))
	}()
	<-dead.net.Dead()
	b.t.Cleanup(func() { <-over })
	return keys
}

func onOtherLocks(l *lockset.Config, _ *unitofwork.Config) { l.Table = "locks2" }

func TestRecoverWithAnotherLockTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks2"}))
		b.diesDecided(fewKeys, inSmallTransactions)
		before := b.tables()
		found, err := b.client("other", nil, inSmallTransactions, onOtherLocks).Recover(t.Context())
		var config *locks.ConfigError
		require.ErrorAs(t, err, &config)
		require.ErrorContains(t, err, `has its locks in "locks"`)
		require.Empty(t, found)
		require.Equal(t, before, b.tables())
		_, err = b.client("heir", nil, inSmallTransactions).Recover(t.Context())
		require.NoError(t, err)
		sum, _ := b.total()
		require.Equal(t, int64(7*fewKeys), sum)
		b.nothingLeft()
	})
}

func TestRecoverWithAnotherLockTableBesideALivingOwner(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks2"}))
		other := b.client("other", nil, inSmallTransactions, onOtherLocks)
		keys, refs := largeKeys(fewKeys)
		require.NoError(t, b.client("A", nil, atProgress(hooks.Preparing, func() {
			_, err := other.Recover(t.Context())
			require.Error(t, err)
		})).Do(t.Context(), unitofwork.Work{Keys: keys, Attempts: 1}, deposit(refs, 7)))
	})
}

// An entry names this client's lock table, and the journal another: whichever is right,
// the unit's rows are not freed here, so its journal is kept.
func TestAnEntryWithAnotherLockTableThanItsJournal(t *testing.T) {
	for name, executed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				unit := b.dies(decides, 1, executed)
				entry := b.entry(unit)
				wrong := maps.Clone(entry)
				wrong["locks"] = text("locks2")
				b.putItem("units", wrong)
				before := b.journal(unit)
				require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks2"}))
				found, err := b.client("other", nil, inSmallTransactions, onOtherLocks).Recover(t.Context())
				require.ErrorAs(t, err, new(*locks.ConfigError))
				require.Empty(t, found)
				require.Equal(t, before, b.journal(unit))

				b.putItem("units", entry) // mended
				_, _, all := fewAccounts()
				_, err = b.client("heir", nil).Recover(t.Context())
				require.NoError(t, err)
				require.Equal(t, executed, b.allOrNothing(all))
				b.allFree()
				b.nothingLeft()
			})
		})
	}
}

// A row that the unit marked is not there any more: whether what is under it was
// written cannot be told, unless the records have the unit's stamp.
func TestAMarkedRowThatIsGone(t *testing.T) {
	for name, written := range map[string]bool{"before it was applied": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				keys := b.diesDecided(fewKeys, inSmallTransactions)
				row := b.row(keys[4])
				b.deleteRow(keys[4])
				if written {
					b.putItem("accounts", map[string]types.AttributeValue{
						"Customer": text("c001"), "ID": text("a1"), "Balance": number("7"), "_fence": row["fence"],
					})
				}
				found, err := b.client("heir", nil, inSmallTransactions).Recover(t.Context())
				if written {
					require.NoError(t, err)
					require.Len(t, found.Committed, 1)
					b.nothingLeft()
					return
				}
				var unapplied *unitofwork.UnappliedError
				require.ErrorAs(t, err, &unapplied)
				require.Equal(t, keys[4], unapplied.Key)
				require.NotEmpty(t, b.db.Items("units"), "all is kept")
				// An operator has looked: it was not written. The row is put back.
				b.putItem("locks", row)
				_, err = b.client("heir2", nil, inSmallTransactions).Recover(t.Context())
				require.NoError(t, err)
				sum, _ := b.total()
				require.Equal(t, int64(7*fewKeys), sum)
			})
		})
	}
}

// One family is stuck: the others are applied and freed, and who waits for one of
// their keys has it.
func TestOneStuckFamilyKeepsNobodyElse(t *testing.T) {
	for name, size := range map[string]int{"in small transactions": 8, "in chains with others": 20, "in one with others": requests.MaxActions} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				of := func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = size }
				keys := b.diesDecided(60, of)
				b.putItem("accounts", map[string]types.AttributeValue{
					"Customer": text("c010"), "ID": text("a1"), "Balance": number("0"), "_fence": number(later),
				})
				for _, id := range []string{"c000", "c011", "c019"} {
					c := b.client("of "+id, nil, of)
					set, err := c.locks.Acquire(t.Context(), []ordering.Key{accountKey(id, "a0")})
					require.NoError(t, err)
					require.NoError(t, set.Release(t.Context()))
				}
				_, err := b.client("heir", nil, of).Recover(t.Context())
				var unapplied *unitofwork.UnappliedError
				require.ErrorAs(t, err, &unapplied)
				require.Equal(t, `Customer="c010" ID="a1"`, unapplied.Record)
				for _, k := range keys {
					if k.Root() != customerKey("c010") {
						require.NotContains(t, b.row(k), "unit", "%v", k)
					}
				}
				require.Contains(t, b.row(accountKey("c010", "a1")), "unit")
			})
		})
	}
}

// A record says that a unit is done, and a row shows it all the same: nobody can
// say what that is, but who waits for it has a wait with an end.
func TestADoneUnitThatStillHasARow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := b.diesDecided(fewKeys, inSmallTransactions)
		row := b.row(keys[0])
		_, err := b.client("heir", nil, inSmallTransactions).Recover(t.Context())
		require.NoError(t, err)
		b.putItem("locks", row)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := b.client("waiter", func(c faults.Call) faults.Fault {
			if c.Op == "GetItem" && c.N == 300 { // it asks without a pause
				cancel()
			}
			return faults.Pass()
		}, inSmallTransactions)
		began := time.Now()
		_, err = c.locks.Acquire(ctx, []ordering.Key{keys[0]}, func(o *lockset.Options) { o.Wait = lockset.For(2 * lease) })
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.Less(t, time.Since(began), 2*lease+lease/5)
		require.Less(t, c.requests()["GetItem"], 300)
	})
}

// Two of one process wait for the same dead unit; one settles it, which takes long.
// The wait of the other has an end.
func TestARecordWaitWhileAnotherSettles(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := b.diesDecided(60, inSmallTransactions)
		slow := b.client("heir", func(c faults.Call) faults.Fault {
			if phaseOf(c) == applies {
				time.Sleep(900 * time.Millisecond)
			}
			return faults.Pass()
		}, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 1 })
		first := make(chan error)
		go func() {
			set, err := slow.locks.Acquire(t.Context(), keys[:1])
			if err == nil {
				err = set.Release(t.Context())
			}
			first <- err
		}()
		time.Sleep(time.Millisecond)
		const wait = lease + lease/50
		began := time.Now()
		_, err := slow.locks.Acquire(t.Context(), keys[4:5], func(o *lockset.Options) { o.Wait = lockset.For(wait) })
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.Less(t, time.Since(began), wait+lease/10)
		require.NoError(t, <-first)
	})
}
