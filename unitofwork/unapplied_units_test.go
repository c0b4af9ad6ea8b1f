package unitofwork_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
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
		runInBed(t, name, func(t *testing.T, b *bed) {
			_, _, all := fewAccounts()
			unit := b.dies(decides, 1, true)
			good := b.db.Items("units")
			harm(b, unit)
			before := b.tables()
			heir := b.client("heir", nil)
			for range 2 {
				_, err := heir.Recover(t.Context())
				broken := errorAs[*unitofwork.JournalError](t, err)
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
			found := heir.recovers(t)
			require.Equal(t, []string{unit}, found.Committed)
			require.True(t, b.allOrNothing(all))
			b.nothingLeft()
			b.allFreeOnceAskedFor(keysOfFew()...)
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
		runInBed(t, name, func(t *testing.T, b *bed) {
			_, _, all := fewAccounts()
			unit := b.dies(decides, 1, true)
			b.putItem("accounts", map[string]types.AttributeValue{
				"Customer": text("c001"), "ID": text("a1"), "Balance": number("0"), "_fence": c.fence,
			})
			heir := b.client("heir", nil)
			stuck := func(err error) {
				t.Helper()
				unapplied := errorAs[*unitofwork.UnappliedError](t, err)
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
			found := heir.recovers(t)
			require.Equal(t, []string{unit}, found.Committed)
			require.True(t, b.allOrNothing(all))
			b.nothingLeft()
			b.allFree()
		})
	}
}

// item is the record of a table with this key.
func (b *bed) item(table, customer, id string) map[string]types.AttributeValue {
	return itemOf(b.db.Items(table), attributes{"Customer": text(customer), "ID": text(id)})
}

// The owner itself has committed, whatever keeps it from finishing, and its operator
// is told.
func TestAnOwnerThatCannotFinishHasCommitted(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, stage, all := fewAccounts()
		var unfinished []error
		var log logbook
		released := 0
		c := b.client("A", upon(decides.is, func() {
			b.putItem("accounts", map[string]types.AttributeValue{
				"Customer": text("c001"), "ID": text("a1"), "Balance": number("0"), "_fence": number("990000000000000"),
			})
		}), inSmallTransactions, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Unfinished, func(_ context.Context, u trace.Event) { unfinished = append(unfinished, u.Err) }))
		}, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Logger = log.logger()
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { released++ }))
		})
		unit := ""
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, func(ctx context.Context, u *unitofwork.Unit) error {
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
		found := b.client("heir", nil).recovers(t)
		require.Equal(t, []string{unit}, found.Committed)
		require.True(t, b.allOrNothing(all))
		b.allFree()
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
			return upon(decides.is, func() {
				b.change("locks", map[string]string{"key": string(customerKey("c001"))}, "REMOVE #below")
			})
		}, "an intent of a committed unit is gone"},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			var log logbook
			client := b.client("A", c.script(b), inSmallTransactions, func(l *lockset.Config, _ *unitofwork.Config) { l.Logger = log.logger() })
			_, stage, all := fewAccounts()
			require.NoError(t, client.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage))
			require.True(t, b.allOrNothing(all))
			b.allFree()
			require.Equal(t, map[string]int{"committed": 1}, client.outcomes())
			if c.says == "" {
				require.Empty(t, log.text())
			} else {
				require.Contains(t, log.text(), c.says)
			}
		})
	}
}

// What DynamoDB does not take of a committed unit is named: the record, or, where
// nothing is written, the key. All other families are applied, and all of it is once
// it is mended.
func TestWhatOfACommittedUnitCannotBeWritten(t *testing.T) {
	actionOn := func(match func(types.TransactWriteItem) bool) func(faults.Call) bool {
		return func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			return ok && phaseOf(c) == applies && slices.ContainsFunc(in.TransactItems, match)
		}
	}
	putsOf := func(id string) func(types.TransactWriteItem) bool {
		return func(item types.TransactWriteItem) bool {
			return item.Put != nil && valueOf(item.Put.Item["Customer"]) == "c001" && valueOf(item.Put.Item["ID"]) == id
		}
	}
	for name, c := range map[string]struct {
		denied func(faults.Call) bool
		key    ordering.Key
		record string
	}{
		"a record": {actionOn(putsOf("a1")), accountKey("c001", "a1"), `Customer="c001" ID="a1"`},
		"a key, with nothing to write": {actionOn(func(item types.TransactWriteItem) bool {
			return item.Update != nil && valueOf(item.Update.Key["key"]) == string(accountKey("c001", "none"))
		}), accountKey("c001", "none"), ""},
	} {
		for _, size := range []int{1, 2, 8, requests.MaxActions} {
			runInBed(t, fmt.Sprint(name, " ", size), func(t *testing.T, b *bed) {
				of := func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = size }
				keys, refs := largeKeys(45) // with the rows above them more than a transaction has
				keys = append(keys, accountKey("c001", "none"))
				dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), of)
				dead.diesIn(t, unitofwork.Work{Keys: keys}, deposit(refs, 7))

				_, err := b.client("heir", when(func(call faults.Call) bool { return c.denied(call) }, faults.Deny()), of).Recover(t.Context())
				unapplied := errorAs[*unitofwork.UnappliedError](t, err)
				require.ErrorAs(t, err, new(*lockset.TableError))
				require.Equal(t, c.key, unapplied.Key)
				require.Equal(t, c.record, unapplied.Record)
				require.Equal(t, c.record != "", unapplied.Table == "accounts")
				for _, k := range keys {
					if k.Root() != c.key.Root() {
						require.NotContains(t, b.row(k), "unit", "%v", k)
					}
				}
				require.Contains(t, b.row(c.key), "unit")

				found := b.client("mended", nil, of).recovers(t)
				require.Len(t, found.Committed, 1)
				sum, n := b.total()
				require.Equal(t, len(refs), n)
				require.Equal(t, int64(7*len(refs)), sum)
				b.nothingLeft()
				b.allFree()
			})
		}
	}
}

// What comes after a record that cannot be written, under the same key, is not written
// either: neither the rest nor the key, which stays as it is until it is mended.
func TestAfterWhatCannotBeWrittenNothingOfItsKeyIs(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const records = 20
		keys := []ordering.Key{customerKey("c001")}
		dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inSmallTransactions)
		dead.diesIn(t, unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
			return each(records, func(i int) error {
				return u.Replace(accounts.Of(account{Customer: "c001", ID: fmt.Sprintf("a%02d", i), Balance: 7}))
			})
		})
		_, err := b.client("heir", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && phaseOf(c) == applies && slices.ContainsFunc(in.TransactItems, func(item types.TransactWriteItem) bool {
				return item.Put != nil && valueOf(item.Put.Item["ID"]) == "a00"
			}) {
				return faults.Deny()
			}
			return faults.Pass()
		}, inSmallTransactions).Recover(t.Context())
		require.ErrorAs(t, err, new(*unitofwork.UnappliedError))
		sum, n := b.total()
		require.Zero(t, n)
		require.Zero(t, sum)
		require.Contains(t, b.row(keys[0]), "unit")

		b.client("mended", nil, inSmallTransactions).recovers(t)
		_, n = b.total()
		require.Equal(t, records, n)
		b.nothingLeft()
		b.allFree()
	})
}

// An update that could be done when it was tried, and cannot be any more, since somebody
// wrote the record without its lock.
func TestAnUpdateThatCannotBeDoneAnyMore(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesWriting(func(u *unitofwork.Unit) error {
			return u.Update(accounts.Ref("1", "a"), unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": 7}})
		})
		b.putItem("accounts", map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": text("much")})
		_, err := b.client("heir", nil).Recover(t.Context())
		unapplied := errorAs[*unitofwork.UnappliedError](t, err)
		require.Equal(t, `Customer="1" ID="a"`, unapplied.Record)
		require.Equal(t, accountKey("1", "a"), unapplied.Key)
		sum, n := b.total()
		require.Equal(t, fewKeys, n)
		require.Equal(t, int64(7*fewKeys), sum)

		b.put("accounts", account{Customer: "1", ID: "a", Balance: 100})
		b.client("mended", nil).recovers(t)
		require.Equal(t, int64(107), b.account("1").Balance)
		b.nothingLeft()
	})
}

// Of several records under one key that cannot be written the first is named.
func TestTheFirstRecordThatCannotBeWrittenIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inSmallTransactions)
		dead.diesIn(t, unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, putBulk(9, 10))
		later := time.Now().Add(time.Hour).UnixMicro()
		for _, id := range []string{"bulk2", "bulk3", "bulk4"} {
			b.putItem("accounts", map[string]types.AttributeValue{"Customer": text("1"), "ID": text(id), "_fence": number(fmt.Sprint(later))})
		}
		heir := b.client("heir", nil, inSmallTransactions)
		_, err := heir.Recover(t.Context())
		unapplied := errorAs[*unitofwork.UnappliedError](t, err)
		require.Equal(t, `Customer="1" ID="bulk2"`, unapplied.Record)
		require.NoError(t, heir.Do(t.Context(), unitofwork.Work{Keys: transferKeys[:1]}, replaces(accounts.Of(account{Customer: "2", ID: "a"}))))
		require.Greater(t, b.account("2").Fence, later, "what was met is not proposed again")
	})
}
