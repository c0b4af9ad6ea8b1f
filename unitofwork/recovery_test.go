package unitofwork_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// What is done about units whose owners are dead, by Recover and by those who want
// their locks.

// dies has an owner of a small unit with a journal die at a request, executed or
// not, and returns the unit.
func (b *bed) dies(at phase, n int, executed bool) (unit string) {
	b.t.Helper()
	c := b.client("dead", atPhase(at, n, faults.CrashHere(executed)), inSmallTransactions)
	_, stage, _ := fewAccounts()
	return c.diesIn(b.t, unitofwork.Work{Keys: keysOfFew()}, stage)
}

// decided returns the record of what was decided about a unit.
func (b *bed) decided(unit string) map[string]types.AttributeValue {
	return itemOf(b.db.Items("units"), attributes{"unit": text(unit), "part": text("record")})
}

func valueOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// kept asserts that everything of a unit is as it was but for the hands of those who
// looked at it: its journal, its locks, and what it was to write.
func (b *bed) kept(before map[string][]map[string]types.AttributeValue) {
	b.t.Helper()
	for _, table := range []string{"accounts", "customers", "units"} {
		require.Equal(b.t, before[table], b.db.Items(table), table)
	}
	for _, was := range before["locks"] {
		if is := b.row(ordering.Key(valueOf(was["key"]))); was["unit"] != nil {
			require.Equal(b.t, was["unit"], is["unit"], "%v", was["key"])
			require.Contains(b.t, is, "pending", "%v", was["key"])
			require.NotContains(b.t, is, "expiresAt", "%v", was["key"])
		}
	}
}

func TestRecoverFinishesTheDead(t *testing.T) {
	for name, c := range map[string]struct {
		at        phase
		n         int
		executed  bool
		committed bool
	}{
		"before it decided":   {decides, 1, false, false},
		"when it had decided": {decides, 1, true, true},
		"half way":            {applies, 3, true, true},
		"when it was applied": {concludes, 1, false, true},
		"before it marked":    {marks, 1, false, false},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			_, _, all := fewAccounts()
			unit := b.dies(c.at, c.n, c.executed)
			state := b.decided(unit)
			require.NotContains(t, state, "expiresAt", "while anything is left to be done, its record stays")
			told := map[string]bool{}
			heir := b.client("heir", nil, func(_ *lockset.Config, u *unitofwork.Config) {
				u.Trace = trace.Join(u.Trace, hooks.On(trace.Recovered, func(_ context.Context, r trace.Event) { told[r.Unit] = r.Outcome == hooks.Committed }))
			})
			start := time.Now()
			found := heir.recovers(t)
			require.Less(t, time.Since(start), lease+lease/5)
			state = b.decided(unit)
			require.Contains(t, state, "expiresAt")
			if c.committed {
				require.Equal(t, unitofwork.Recovery{Committed: []string{unit}}, found)
				require.Equal(t, text("done"), state["state"])
			} else {
				require.Equal(t, unitofwork.Recovery{Aborted: []string{unit}}, found)
				require.Equal(t, text("aborted"), state["state"])
			}
			require.Equal(t, map[string]bool{unit: c.committed}, told)
			require.Equal(t, c.committed, b.allOrNothing(all))
			b.nothingLeft()
			b.allFree()

			before := b.tables()
			for range 2 {
				again := heir.recovers(t)
				require.Zero(t, again)
				require.Equal(t, before, b.tables())
			}
		})
	}
}

// A unit that shows a sign of life is left alone, at whatever it is.
func TestRecoverLeavesTheLivingAlone(t *testing.T) {
	for _, phase := range phases {
		runInBed(t, phase, func(t *testing.T, b *bed) {
			var found unitofwork.Recovery
			var err error
			other := b.client("other", nil)
			c := b.client("A", nil, atProgress(phase, func() { found, err = other.Recover(t.Context()) }))
			_, stage, all := fewAccounts()
			unit := ""
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, func(ctx context.Context, u *unitofwork.Unit) error {
				unit = u.Nonce()
				return stage(ctx, u)
			}))
			require.NoError(t, err)
			require.True(t, b.allOrNothing(all))
			require.Empty(t, found.Aborted)
			if phase == hooks.Journaling || phase == hooks.Preparing {
				require.Equal(t, []string{unit}, found.Alive)
			}
			b.allFree()
			b.nothingLeft()
		})
	}
}

func TestRecoverWithoutAUnitTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, err := b.client("A", nil, withoutUnitTable).Recover(t.Context())
		require.ErrorAs(t, err, new(*locks.ConfigError))
	})
}

// The context of Recover ends while it watches: what it has found so far stands, and what it has
// seen of silence counts for those that come later.
func TestRecoverEndsWithItsContext(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.dies(decides, 1, true)
		before := b.tables()
		for _, row := range before["locks"] { // whoever has it took it before it knew the time
			delete(row, lockrow.AttrRenewed)
		}
		for n := 1; ; n++ {
			ctx, cancel := context.WithTimeout(t.Context(), lease/4)
			_, err := b.client(fmt.Sprint("heir ", n), nil).Recover(ctx)
			cancel()
			if err == nil {
				require.Equal(t, 5, n)
				return
			}
			require.ErrorIs(t, err, context.DeadlineExceeded)
			after := b.tables()
			noted := 0
			for _, row := range after["locks"] {
				if row[lockrow.AttrSilentOf] != nil {
					noted++
				}
				delete(row, lockrow.AttrSilentOf)
				delete(row, lockrow.AttrSilentFor)
				delete(row, lockrow.AttrRenewed)
			}
			require.Equal(t, 1, noted, "of the key that it watches")
			require.Equal(t, before, after)
		}
	})
}

// Wherever it is cut off, after the watch as well: the next one does not watch again.
func TestRecoverThatIsCutOffIsNotInVain(t *testing.T) {
	for d := lease; d < lease+30*rtt; d += rtt {
		inBed(t, func(t *testing.T, b *bed) {
			b.dies(decides, 1, true)
			for n := 1; ; n++ {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				_, err := b.client(fmt.Sprint("heir ", n), nil).Recover(ctx)
				cancel()
				if err == nil {
					b.nothingLeft()
					b.allFree()
					return
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Less(t, n, 3, "of %v each", d)
			}
		})
	}
}

// Whoever finds a journal gone looks whether what it said is done.
func TestAJournalThatIsRemovedWhileItIsRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, _, all := fewAccounts()
		unit := b.dies(decides, 1, true)
		var slept atomic.Bool
		slow := b.client("slow", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactGetItemsInput)
			if ok && strings.HasPrefix(valueOf(in.TransactItems[0].Get.Key["part"]), "journal/") && slept.CompareAndSwap(false, true) {
				time.Sleep(lease / 4) // the other has done it by then
			}
			return faults.Pass()
		})
		done := make(chan error)
		go func() {
			_, err := slow.Recover(t.Context())
			done <- err
		}()
		found := b.client("quick", nil).recovers(t)
		require.Equal(t, unitofwork.Recovery{Committed: []string{unit}}, found)
		require.NoError(t, <-done)
		require.True(t, slept.Load())
		require.True(t, b.allOrNothing(all))
		b.nothingLeft()
	})
}

// Who could not free what it had marked leaves the journal, by which Recover finds
// the rows: nobody else may ever want them.
func TestMarkedRowsThatCouldNotBeFreedAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		at      phase
		release faults.Fault
	}{
		"in the midst of marking":            {marks, faults.LoseRequest(faults.Reset)},
		"before the decision":                {decides, faults.LoseRequest(faults.Reset)},
		"in the midst of marking, forbidden": {marks, faults.Deny()},
		"before the decision, forbidden":     {decides, faults.Deny()},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.tables()
			var cut atomic.Bool
			at, release := c.at, c.release
			c := b.client("A", func(c faults.Call) faults.Fault {
				switch of := phaseOf(c); {
				case of == at && at == marks:
					cut.Store(true)
					return faults.LoseAnswer(faults.Reset)
				case of == at:
					cut.Store(true)
					return faults.LoseRequest(faults.Reset)
				case of == "" && cut.Load() && c.Op != "TransactGetItems": // a release
					return release
				}
				return faults.Pass()
			}, inSmallTransactions)
			_, stage, _ := fewAccounts()
			require.Error(t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage))
			require.NotEmpty(t, b.row(accountKey("c001", "a1"))["pending"], "it is still marked")
			found := b.client("heir", nil).recovers(t)
			require.Len(t, found.Aborted, 1)
			b.nothingWritten(before)
		})
	}
}

// What Recover cannot read, free or note it says, and keeps: the journal, and the
// entry by which the next run finds the unit.
func TestRecoverKeepsWhatItCannotFinish(t *testing.T) {
	reads := func(c faults.Call) bool {
		in, ok := c.Input.(*dynamodb.TransactGetItemsInput)
		return ok && strings.HasPrefix(valueOf(in.TransactItems[0].Get.Key["part"]), "journal/")
	}
	for name, c := range map[string]struct {
		committed bool
		denied    func(faults.Call) bool
	}{
		"its journal cannot be read":      {true, reads},
		"that of an aborted one neither":  {false, reads},
		"its writes cannot be done":       {true, func(c faults.Call) bool { return phaseOf(c) == applies }},
		"that it is done cannot be noted": {true, func(c faults.Call) bool { return phaseOf(c) == concludes }},
		"its rows cannot be freed": {false, func(c faults.Call) bool {
			return denies("locks", "TransactWriteItems", "UpdateItem")(c).Kind == faults.Denied
		}},
		"the open units cannot be listed": {true, func(c faults.Call) bool { return c.Op == "Query" }},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			_, _, all := fewAccounts()
			unit := b.dies(decides, 1, c.committed)
			before := b.journal(unit)
			var refused atomic.Bool
			heir := b.client("heir", func(call faults.Call) faults.Fault {
				if c.denied(call) {
					refused.Store(true)
					return faults.Deny()
				}
				return faults.Pass()
			})
			found, err := heir.Recover(t.Context())
			require.True(t, refused.Load())
			require.Error(t, err)
			require.Empty(t, found)
			require.Equal(t, before, b.journal(unit))

			found = b.client("next", nil).recovers(t)
			if c.committed {
				require.Equal(t, unitofwork.Recovery{Committed: []string{unit}}, found)
			} else {
				require.Equal(t, unitofwork.Recovery{Aborted: []string{unit}}, found)
			}
			require.Equal(t, c.committed, b.allOrNothing(all))
			b.allFreeOnceAskedFor(keysOfFew()...)
			b.nothingLeft()
		})
	}
}

// journal returns the rows of a unit's journal and the entry by which it is found.
func (b *bed) journal(unit string) (rows []map[string]types.AttributeValue) {
	for _, item := range b.db.Items("units") {
		if valueOf(item["unit"]) == "open" && valueOf(item["part"]) == unit || strings.HasPrefix(valueOf(item["part"]), "journal/") {
			rows = append(rows, item)
		}
	}
	return rows
}

// entry returns the entry by which Recover finds a unit; nil if there is none.
func (b *bed) entry(unit string) map[string]types.AttributeValue {
	for _, item := range b.journal(unit) {
		if valueOf(item["unit"]) == "open" {
			return item
		}
	}
	return nil
}

// A unit may commit that has keys and writes nothing: it is finished like any other.
func TestRecoverFinishesAUnitThatWritesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inSmallTransactions)
		dead.diesIn(t, unitofwork.Work{Keys: keysOfFew()}, func(context.Context, *unitofwork.Unit) error { return nil })
		found := b.client("heir", nil).recovers(t)
		require.Len(t, found.Committed, 1)
		b.allFree()
		b.nothingLeft()
	})
}

// almostRetention is how much later than a unit its decision is still known.
const almostRetention = 29 * 24 * time.Hour

// That a unit is done stands for its retention: who was held up before it asked does
// not take the unit for one that was never decided.
func TestALateRecoverBelievesWhatIsDone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, _, all := fewAccounts()
		b.dies(decides, 1, true)
		var held atomic.Bool
		late := b.client("late", upon(func(c faults.Call) bool { return phaseOf(c) == aborts && held.CompareAndSwap(false, true) }, func() {
			time.Sleep(2 * time.Second) // the other has done it by then
			b.db.Expire(time.Now().Add(almostRetention))
		}))
		told := make(chan error)
		var found unitofwork.Recovery
		go func() {
			var err error
			found, err = late.Recover(t.Context())
			told <- err
		}()
		quick := b.client("quick", nil).recovers(t)
		require.Len(t, quick.Committed, 1)
		require.NoError(t, <-told)
		require.True(t, held.Load())
		require.Empty(t, found.Aborted, "it has committed")
		require.True(t, b.allOrNothing(all))
	})
}

// That a unit is aborted stands for its retention: a copy of its decision, however
// late, commits nothing.
func TestALateDecisionMeetsTheAbort(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before := b.tables()
		var owner *client
		owner = b.client("A", func(c faults.Call) faults.Fault {
			if phaseOf(c) == decides {
				time.AfterFunc(2*rtt, func() { owner.net.Partition(true) })
				return faults.DeliverLate(5*lease, faults.Hang)
			}
			return faults.Pass()
		}, inSmallTransactions)
		_, stage, _ := fewAccounts()
		doubt := errorAs[*unitofwork.InDoubtError](t, owner.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage))
		heir := b.client("heir", nil)
		found := heir.recovers(t)
		require.Len(t, found.Aborted, 1)
		b.db.Expire(time.Now().Add(almostRetention))
		owner.net.Partition(false)
		owner.net.Wait()
		require.Equal(t, unitofwork.NotCommitted, heir.outcomeOf(t, doubt.Ref))
		b.allFreeOnceAskedFor(keysOfFew()...)
		b.nothingWritten(before)
	})
}

// Copies of a journal's first row arrive whenever it is removed: the entry stays, by
// which Recover comes again.
func TestRecoverKeepsTheEntryWhileCopiesArrive(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, _, all := fewAccounts()
		unit := b.dies(decides, 1, true)
		before := b.journal(unit)
		heir := b.client("heir", func(c faults.Call) faults.Fault {
			if _, entry := c.Input.(*dynamodb.TransactWriteItemsInput); entry && phaseOf(c) == removes {
				for _, row := range before {
					b.putItem("units", row)
				}
			}
			return faults.Pass()
		})
		_, err := heir.Recover(t.Context())
		require.ErrorContains(t, err, "copies")
		require.NotNil(t, b.entry(unit))
		b.client("next", nil).recovers(t)
		require.True(t, b.allOrNothing(all))
		b.nothingLeft()
	})
}
