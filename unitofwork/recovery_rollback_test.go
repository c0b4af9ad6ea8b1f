package unitofwork_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What becomes of the journal of a dead unit when somebody wants one of its keys, and
// nobody calls Recover.

// rowsOf counts the rows of all journals.
func (b *bed) rowsOf(unit string) int {
	rows := len(b.journal(unit))
	if b.entry(unit) != nil {
		rows--
	}
	return rows
}

// A journal is read ten rows at a time: those of a few rows, of exactly as many and of
// more are all carried out or taken back, and removed.
func TestWhoWantsTheKeysOfADeadUnitRemovesItsJournal(t *testing.T) {
	const bytes = 50 << 10 // about a row of the journal
	for name, c := range map[string]struct {
		writes    int
		executed  bool
		least     int // rows
		most      int
		committed int // writes
	}{
		"a row, aborted":           {1, false, 1, 1, 0},
		"some rows, aborted":       {4, false, 2, 9, 0},
		"more than ten, aborted":   {18, false, 11, 19, 0},
		"some rows, committed":     {4, true, 2, 9, 4},
		"more than ten, committed": {18, true, 11, 19, 18},
	} {
		if testing.Short() && c.executed != (c.least > 10) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := len(b.db.Items("accounts"))
				dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(c.executed)), inSmallTransactions)
				units, over := make(chan string, 1), make(chan struct{})
				t.Cleanup(func() { <-over })
				keys, _ := largeKeys(fewKeys)
				go func() {
					defer close(over)
					_ = dead.Do(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: append(keys, customerKey("1"))}, func(ctx context.Context, u *unitofwork.Unit) error {
						units <- u.Nonce()
						return putBulk(c.writes, bytes)(ctx, u)
					})
				}()
				<-dead.net.Dead()
				unit := <-units
				rows := b.rowsOf(unit)
				require.GreaterOrEqual(t, rows, c.least)
				require.LessOrEqual(t, rows, c.most)

				set, err := b.client("heir", nil).locks.Acquire(t.Context(), []ordering.Key{customerKey("1")})
				require.NoError(t, err)
				require.NoError(t, set.Release(t.Context()))
				require.Len(t, b.db.Items("accounts"), before+c.committed)
				b.allFree()
				b.nothingLeft()
			})
		})
	}
}

// While a row of a journal is there, so is the entry by which Recover finds it.
func TestAJournalThatIsNotRemovedToItsEndIsFound(t *testing.T) {
	for name, fault := range map[string]faults.Fault{"not at all": faults.Deny(), "but for one row": faults.DenyStatements(1)} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c := b.client("A", func(c faults.Call) faults.Fault {
					if c.Op == "BatchExecuteStatement" && phaseOf(c) == removes {
						return fault
					}
					return faults.Pass()
				}, inSmallTransactions)
				unit := ""
				keys, _ := largeKeys(fewKeys)
				require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("1"))}, func(ctx context.Context, u *unitofwork.Unit) error {
					unit = u.Nonce()
					return putBulk(4, 50<<10)(ctx, u)
				}), "it is done")
				require.Positive(t, b.rowsOf(unit))
				require.NotNil(t, b.entry(unit))
				b.allFree()

				_, err := b.client("heir", nil).Recover(t.Context())
				require.NoError(t, err)
				b.nothingLeft()
			})
		})
	}
}
