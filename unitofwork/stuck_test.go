package unitofwork_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What of a committed unit cannot be finished is for people to decide: it is told and
// kept, and the rest is done.

// A committed unit whose journal is not what was decided is nobody's to guess at:
// all of it is kept, and whoever meets it is told.
func TestAJournalThatIsMissingOrCorrupt(t *testing.T) {
	ofJournal := func(unit string) map[string]string { return map[string]string{"unit": unit, "part": "journal/000000"} }
	ofRecord := func(unit string) map[string]string { return map[string]string{"unit": unit, "part": "record"} }
	for name, harm := range map[string]func(b *bed, unit string){
		"the row is gone":    func(b *bed, unit string) { b.delete("units", ofJournal(unit)) },
		"the row is empty":   func(b *bed, unit string) { b.change("units", ofJournal(unit), "REMOVE #body") },
		"it is not the last": func(b *bed, unit string) { b.change("units", ofJournal(unit), "REMOVE #last") },
		"it says that it is not the last": func(b *bed, unit string) {
			for _, item := range b.db.Items("units") {
				if valueOf(item["part"]) == "journal/000000" {
					item["last"] = &types.AttributeValueMemberBOOL{}
					b.putItem("units", item)
				}
			}
		},
		"its text is another": func(b *bed, unit string) {
			for _, item := range b.db.Items("units") {
				if valueOf(item["part"]) == "journal/000000" {
					body := item["body"].(*types.AttributeValueMemberB).Value
					item["body"] = &types.AttributeValueMemberB{Value: append([]byte(" "), body...)} // as good to a reader of JSON
					b.putItem("units", item)
				}
			}
		},
		"the record has no digest":     func(b *bed, unit string) { b.change("units", ofRecord(unit), "REMOVE #digest") },
		"the record has another state": func(b *bed, unit string) { b.change("units", ofRecord(unit), "REMOVE #state") },
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				_, _, all := fewAccounts()
				unit := b.dies(decides, 1, true)
				good := b.db.Items("units")
				harm(b, unit)
				before := b.tables()
				heir := b.client("heir", nil)
				for range 2 {
					_, err := heir.Recover(t.Context())
					var broken *unitofwork.JournalError
					require.ErrorAs(t, err, &broken)
					require.Equal(t, unit, broken.Unit)
					require.Equal(t, "units", broken.Table)
					b.kept(before)
				}
				for _, k := range keysOfFew() {
					_, err := heir.locks.Acquire(t.Context(), []ordering.Key{k})
					require.ErrorAs(t, err, new(*unitofwork.JournalError), "%v", k)
				}
				b.kept(before)

				for _, item := range good { // mended
					b.putItem("units", item)
				}
				found, err := heir.Recover(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{unit}, found.Committed)
				require.True(t, b.allOrNothing(all))
				b.nothingLeft()
				b.allFreeOnceAskedFor(keysOfFew()...)
			})
		})
	}
}

func (b *bed) delete(table string, key map[string]string) {
	b.t.Helper()
	_, err := b.db.DeleteItem(b.t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: updateOf(table, types.Update{}, key).Update.Key})
	require.NoError(b.t, err)
}

// A record with a later stamp was written by somebody without its lock. What a
// committed unit was to write there is for people to decide; the rest is done.
func TestARecordThatSomebodyWroteWithoutItsLock(t *testing.T) {
	stamped := map[string]string{"Customer": "c001", "ID": "a1"}
	for name, c := range map[string]struct {
		fence types.AttributeValue
		is    error
	}{
		"a later stamp":           {number("990000000000000"), fencing.ErrStale},
		"a stamp that is not one": {text("x"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				_, _, all := fewAccounts()
				unit := b.dies(decides, 1, true)
				b.putItem("accounts", map[string]types.AttributeValue{
					"Customer": text("c001"), "ID": text("a1"), "Balance": number("0"), "_fence": c.fence,
				})
				heir := b.client("heir", nil)
				stuck := func(err error) {
					t.Helper()
					var unapplied *unitofwork.UnappliedError
					require.ErrorAs(t, err, &unapplied)
					require.Equal(t, unit, unapplied.Unit)
					require.Equal(t, "accounts", unapplied.Table)
					require.Equal(t, `Customer="c001" ID="a1"`, unapplied.Record)
					require.Equal(t, accountKey("c001", "a1"), unapplied.Key)
					if c.is != nil {
						require.ErrorIs(t, err, c.is)
					} else {
						require.ErrorAs(t, err, new(*unitofwork.FenceError))
					}
					require.Equal(t, text("committed"), b.decided(unit)["state"])
					require.Equal(t, text(unit), b.row(accountKey("c001", "a1"))["unit"])
					require.Contains(t, b.row(accountKey("c001", "a1")), "pending")
				}
				_, err := heir.Recover(t.Context())
				stuck(err)
				_, err = heir.locks.Acquire(t.Context(), keysOfFew()[4:5])
				stuck(err)
				_, err = b.client("another", nil).locks.Acquire(t.Context(), keysOfFew())
				stuck(err)
				require.Equal(t, c.fence, b.item("accounts", "c001", "a1")["_fence"], "it is not written over")

				b.change("accounts", stamped, "REMOVE #_fence")
				found, err := heir.Recover(t.Context())
				require.NoError(t, err)
				require.Equal(t, []string{unit}, found.Committed)
				require.True(t, b.allOrNothing(all))
				b.nothingLeft()
				b.allFree()
			})
		})
	}
}

func (b *bed) item(table, customer, id string) map[string]types.AttributeValue {
	for _, item := range b.db.Items(table) {
		if valueOf(item["Customer"]) == customer && valueOf(item["ID"]) == id {
			return item
		}
	}
	return nil
}

// The owner itself has committed, whatever keeps it from finishing, and its operator
// is told.
func TestAnOwnerThatCannotFinishHasCommitted(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, stage, all := fewAccounts()
		var unfinished []error
		var log logbook
		released := 0
		c := b.client("A", func(c faults.Call) faults.Fault {
			if phaseOf(c) == decides {
				b.putItem("accounts", map[string]types.AttributeValue{
					"Customer": text("c001"), "ID": text("a1"), "Balance": number("0"), "_fence": number("990000000000000"),
				})
			}
			return faults.Pass()
		}, inSmallTransactions, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace.Unfinished = func(_ string, err error) { unfinished = append(unfinished, err) }
		}, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Logger, l.Trace.Released = log.logger(), func(string) { released++ }
		})
		unit := ""
		require.NoError(t, c.Do(t.Context(), keysOfFew(), func(ctx context.Context, u *unitofwork.Unit) error {
			unit = u.Nonce()
			return stage(ctx, u)
		}))
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
		require.Len(t, unfinished, 1)
		require.ErrorAs(t, unfinished[0], new(*unitofwork.UnappliedError))
		require.ErrorContains(t, unfinished[0], `table "accounts", record Customer="c001" ID="a1"`)
		require.Contains(t, log.text(), "a committed unit is not applied to its end")
		require.Contains(t, log.text(), unit)
		require.Zero(t, released, "its keys are not free")
		b.change("accounts", map[string]string{"Customer": "c001", "ID": "a1"}, "REMOVE #_fence")
		found, err := b.client("heir", nil).Recover(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{unit}, found.Committed)
		require.True(t, b.allOrNothing(all))
		b.allFree()
	})
}

// One broken unit does not keep the others from being finished.
func TestRecoverGoesOnAfterABrokenUnit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, _, all := fewAccounts()
		unit := b.dies(decides, 1, true)
		broken := "anotherUnitAltogether_"
		b.putItem("units", map[string]types.AttributeValue{"unit": text("open"), "part": text(broken), "key": text("nowhere"), "locks": text("locks"), "at": number("1")})
		b.putItem("units", map[string]types.AttributeValue{"unit": text(broken), "part": text("record"), "state": text("odd")})
		found, err := b.client("heir", nil).Recover(t.Context())
		var journal *unitofwork.JournalError
		require.ErrorAs(t, err, &journal)
		require.Equal(t, broken, journal.Unit)
		require.Equal(t, []string{unit}, found.Committed)
		require.True(t, b.allOrNothing(all))
	})
}

// What holdall leaves to others it logs; a unit that left nothing is not heard of.
func TestWhatIsLeftToOthersIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		script func(*bed) faults.Script
		says   string
	}{
		"nothing": {func(*bed) faults.Script { return nil }, ""},
		"a journal that was not removed": {func(*bed) faults.Script {
			return atPhase(removes, 1, faults.Deny())
		}, "a journal was not removed"},
		"an intent that is gone": {func(b *bed) faults.Script {
			return func(c faults.Call) faults.Fault {
				if phaseOf(c) == decides {
					b.change("locks", map[string]string{"key": string(customerKey("c001"))}, "REMOVE #below")
				}
				return faults.Pass()
			}
		}, "an intent of a committed unit is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var log logbook
				client := b.client("A", c.script(b), inSmallTransactions, func(l *lockset.Config, _ *unitofwork.Config) { l.Logger = log.logger() })
				_, stage, _ := fewAccounts()
				require.NoError(t, client.Do(t.Context(), keysOfFew(), stage))
				if c.says == "" {
					require.Empty(t, log.text())
				} else {
					require.Contains(t, log.text(), c.says)
				}
			})
		})
	}
}
