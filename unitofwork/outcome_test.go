package unitofwork_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// What Outcome says when it cannot read what it would tell by.

// refOf leaves a small unit in doubt, under an ID if it is not empty, and returns what
// its outcome can be asked by.
func (b *bed) refOf(id string) string {
	b.t.Helper()
	err := b.client("cut off", cutAfterCommit(false)).Do(b.t.Context(), unitofwork.Work{Keys: transferKeys, ID: id}, transfer(30))
	doubt := errorAs[*unitofwork.InDoubtError](b.t, err)
	return doubt.Ref
}

// An outcome that cannot be read is an error, which names the tables that were to be.
func TestAnOutcomeWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		ask    func(*bed) string
		change func(*lockset.Config, *unitofwork.Config)
		tables []string
	}{
		"of a unit":                       {func(b *bed) string { return b.refOf("") }, nil, []string{"locks", "units"}},
		"of a unit with an ID":            {func(b *bed) string { return b.refOf("p") }, nil, []string{"locks", "units"}},
		"of a unit, without a unit table": {func(b *bed) string { return b.refOf("") }, withoutUnitTable, []string{"locks"}},
		"of an ID":                        {func(*bed) string { return "p" }, nil, []string{"units"}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			idOrRef := c.ask(b)
			if c.change == nil {
				c.change = asItIs
			}
			denied := func(call faults.Call) faults.Fault {
				require.Equal(t, "TransactGetItems", call.Op, "it is asked as of one moment")
				return faults.Deny()
			}
			outcome, err := b.client("asker", denied, c.change).Outcome(t.Context(), idOrRef)
			refused := errorAs[*lockset.TableError](t, err)
			require.Equal(t, c.tables, refused.Tables)
			require.Equal(t, unitofwork.Undecided, outcome)

			silent := func(faults.Call) faults.Fault { return faults.LoseRequest(faults.Hang) }
			outcome, err = b.client("cut off, too", silent, c.change).Outcome(t.Context(), idOrRef)
			require.ErrorAs(t, err, new(*lockset.NoAnswerError))
			require.Equal(t, unitofwork.Undecided, outcome)
		})
	}
}

// Without a unit table the lock rows tell alone.
func TestAnOutcomeWithoutAUnitTable(t *testing.T) {
	for name, c := range map[string]struct {
		executed bool
		between  func(*testing.T, *bed)
		outcome  unitofwork.Outcome
	}{
		"committed":                {true, nil, unitofwork.Committed},
		"not sent":                 {false, nil, unitofwork.Undecided},
		"not sent, taken over":     {false, lockers, unitofwork.Forgotten},
		"committed, others since":  {true, others, unitofwork.Forgotten},
		"committed, all rows gone": {true, func(_ *testing.T, b *bed) { b.deleteRow(transferKeys[0]); b.deleteRow(transferKeys[1]) }, unitofwork.Forgotten},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("c", cutAfterCommit(c.executed), withoutUnitTable)
			doubt := errorAs[*unitofwork.InDoubtError](t, cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(30)))
			if c.between != nil {
				c.between(t, b)
			}
			require.Equal(t, c.outcome, b.client("asker", nil, withoutUnitTable).outcomeOf(t, doubt.Ref))
		})
	}
}

// What is in the place of a lock row, or of an ID's record, and is none: an error, and
// not the word of the other.
func TestAnOutcomeByWhatIsNotOurs(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*bed)
		is   any
	}{
		"the lock row": {func(b *bed) {
			for _, k := range transferKeys {
				b.putItem("locks", map[string]types.AttributeValue{"key": text(string(k)), "colour": text("red")})
			}
		}, new(*lockrow.RowError)},
		"the record of the ID": {func(b *bed) {
			b.putItem("units", map[string]types.AttributeValue{"unit": text("id:p"), "part": text("record"), "colour": text("red")})
		}, new(*unitofwork.IDError)},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			ref := b.refOf("p")
			c.harm(b)
			outcome, err := b.client("asker", nil).Outcome(t.Context(), ref)
			require.ErrorAs(t, err, c.is)
			require.Equal(t, unitofwork.Undecided, outcome)
		})
	}
}

// That there is no record proves something for as long as none can have expired, by
// whatever clock: for the retention of IDs less that of the locks, to the moment.
func TestHowLongAMissingRecordTells(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ref := b.refOf("p")
		others(t, b)
		seconds, err := strconv.ParseInt(strings.Split(ref, ":")[3], 10, 64)
		require.NoError(t, err)
		last := time.Unix(seconds, 0).Add((30 - 14) * 24 * time.Hour)
		for at, want := range map[time.Time]unitofwork.Outcome{last: unitofwork.NotCommitted, last.Add(1): unitofwork.Forgotten} {
			require.Equal(t, want, b.client("asker", nil, func(l *lockset.Config, _ *unitofwork.Config) {
				l.Now = func() time.Time { return at }
			}).outcomeOf(t, ref), "%v", at.Sub(last))
		}
	})
}

// The same payment under the same keys of another lock table, while the first is at its
// function, or decides: the unit table alone tells, when it commits. It has been done, once.
func TestAUnitThatIsDoneUnderOtherLocks(t *testing.T) {
	for name, payload := range map[string]string{"the same": "x", "with another payload": "y"} {
		for size, change := range sized {
			runInBed(t, name+", "+size, func(t *testing.T, b *bed) {
				require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks2"}))
				_, stage, all := fewAccounts()
				other := b.client("other", nil, change, onOtherLocks)
				does := func() { require.NoError(t, other.Do(t.Context(), payment(keysOfFew(), payload), stage)) }
				c := b.client("A", upon(decides.is, does), change)
				calls := 0
				err := c.Do(t.Context(), payment(keysOfFew(), "x"), func(ctx context.Context, u *unitofwork.Unit) error {
					if calls++; size == "small" {
						does()
					}
					return stage(ctx, u)
				})
				if payload == "x" {
					require.NoError(t, err)
					require.Equal(t, map[string]int{"already": 1}, c.outcomes())
				} else {
					require.Equal(t, "payment", errorAs[*unitofwork.IDError](t, err).ID)
					require.Equal(t, map[string]int{"not": 1}, c.outcomes())
				}
				require.Equal(t, 1, calls)
				require.True(t, b.allOrNothing(all))
				b.allFree()
				b.nothingLeft()
			})
		}
	}
}

// What is put in the place of the ID's record while the unit is at its function, and is
// none, refuses the commit. It is not told as done.
func TestACommitThatMeetsARecordThatIsNone(t *testing.T) {
	for name, change := range map[string]func(*lockset.Config, *unitofwork.Config){
		"at once": asItIs, "with a journal": inOneAction,
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil, change)
			err := c.Do(t.Context(), payment(transferKeys, "x"), func(ctx context.Context, u *unitofwork.Unit) error {
				b.putItem("units", map[string]types.AttributeValue{"unit": text("id:payment"), "part": text("record"), "colour": text("red")})
				return transfer(30)(ctx, u)
			})
			refused := errorAs[*unitofwork.IDError](t, err)
			require.Equal(t, "payment", refused.ID)
			require.Equal(t, map[string]int{"not": 1}, c.outcomes())
			require.Equal(t, [2]int64{100, 100}, b.balances())
			b.allFree()
		})
	}
}

// An ID that cannot be looked up ends the unit before its function is called, and frees
// its locks.
func TestAnIDThatCannotBeLookedUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", denies("units", "TransactGetItems"))
		err := c.Do(t.Context(), payment(transferKeys, "x"), func(context.Context, *unitofwork.Unit) error {
			t.Error("it may have been done before")
			return nil
		})
		refused := errorAs[*lockset.TableError](t, err)
		require.Equal(t, []string{"units"}, refused.Tables)
		require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		b.allFree()
	})
}

// deadUnits are three units of different families, that die one after the other: one
// committed, one not, one marked and not decided; and the keys of a fourth.
func (b *bed) deadUnits() (committed, aborted string, rest []ordering.Key) {
	b.t.Helper()
	keys, refs := largeKeys(3 * fewKeys)
	die := func(from int, executed bool) (unit string) {
		dead := b.client("dead"+strconv.Itoa(from), atPhase(decides, 1, faults.CrashHere(executed)), inSmallTransactions)
		return dead.diesIn(b.t, unitofwork.Work{Keys: keys[from : from+fewKeys]}, deposit(refs[from:from+fewKeys], 7))
	}
	committed = die(0, true)
	time.Sleep(lease / 2)
	aborted = die(fewKeys, false)
	return committed, aborted, keys[2*fewKeys:]
}

// Of several units, each is watched for as long as it takes, and what is wrong with one keeps nothing
// of another: neither an entry that is none, nor a decision or a row that cannot be read.
func TestRecoverOfSeveralUnits(t *testing.T) {
	broken := "anotherUnitAltogether_"
	entry := func(part string) attributes {
		return attributes{"unit": text("open"), "part": text(part), "key": text("nowhere"), "locks": text("locks"), "at": number("1")}
	}
	for name, c := range map[string]struct {
		harm func(*bed)
		told func(*testing.T, error)
		mend func(*bed)
	}{
		"an entry that is none": {func(b *bed) { b.putItem("units", entry("no unit")) }, func(t *testing.T, err error) {
			foreign := errorAs[*unitofwork.EntryError](t, err)
			require.Equal(t, "units", foreign.Table)
			require.Contains(t, foreign.Entry, "no unit")
		}, func(b *bed) { b.delete("units", map[string]string{"unit": "open", "part": "no unit"}) }},
		"a decision that is none": {func(b *bed) {
			b.putItem("units", entry(broken))
			b.putItem("units", map[string]types.AttributeValue{"unit": text(broken), "part": text("record"), "state": text("odd")})
		}, func(t *testing.T, err error) {
			require.Equal(t, broken, errorAs[*unitofwork.JournalError](t, err).Unit)
		}, func(b *bed) {
			b.delete("units", map[string]string{"unit": "open", "part": broken})
			b.delete("units", map[string]string{"unit": broken, "part": "record"})
		}},
		"a row that is none": {func(b *bed) {
			b.putItem("units", entry(broken))
			b.putItem("locks", map[string]types.AttributeValue{"key": text("nowhere"), "colour": text("red")})
		}, func(t *testing.T, err error) { require.ErrorAs(t, err, new(*lockrow.RowError)) }, func(b *bed) {
			b.delete("units", map[string]string{"unit": "open", "part": broken})
			b.deleteRow("nowhere")
		}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			committed, aborted, _ := b.deadUnits()
			c.harm(b)
			start := time.Now()
			found, err := b.client("heir", nil).Recover(t.Context())
			c.told(t, err)
			require.Equal(t, unitofwork.Recovery{Committed: []string{committed}, Aborted: []string{aborted}}, found)
			require.InDelta(t, lease, time.Since(start), float64(lease/10), "it watches them at the same time")
			sum, n := b.total()
			require.Equal(t, fewKeys, n)
			require.Equal(t, int64(7*fewKeys), sum)
			c.mend(b)
			b.nothingLeft()
			b.allFree()
		})
	}
}

// Whoever cannot look at the key of one unit says so, and finishes the others.
func TestRecoverGoesOnWithoutARow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		committed, aborted, _ := b.deadUnits()
		key := valueOf(b.entry(aborted)["key"])
		row := b.row(ordering.Key(key))
		b.putItem("locks", map[string]types.AttributeValue{"key": text(key), "colour": text("red")})
		heir := b.client("heir", nil)
		found, err := heir.Recover(t.Context())
		require.ErrorAs(t, err, new(*lockrow.RowError))
		require.Equal(t, unitofwork.Recovery{Committed: []string{committed}}, found)
		require.NotEmpty(t, b.entry(aborted), "it is found again")

		b.putItem("locks", row)
		found = heir.recovers(t)
		require.Equal(t, unitofwork.Recovery{Aborted: []string{aborted}}, found)
		b.nothingLeft()
	})
}

// A context that ends when all is done has ended nothing.
func TestRecoverThatWasDoneInTime(t *testing.T) {
	recovers := func(last int) (sent int) {
		inBed(t, func(t *testing.T, b *bed) {
			unit := b.dies(decides, 1, true)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			heir := b.client("heir", nil, func(l *lockset.Config, _ *unitofwork.Config) {
				l.Trace = trace.Join(l.Trace, hooks.On(trace.Request, func(context.Context, trace.Event) {
					if sent++; sent == last {
						cancel()
					}
				}))
			})
			found, err := heir.Recover(ctx)
			require.Equal(t, last > 0, ctx.Err() != nil)
			require.NoError(t, err)
			require.Equal(t, unitofwork.Recovery{Committed: []string{unit}}, found)
		})
		return sent
	}
	all := recovers(0)
	require.Equal(t, all, recovers(all))
}

// What Recover has finished, and cannot see whether it has left anything of, it says all the same.
func TestRecoverWithoutAnAnswerToAQuery(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit := b.dies(decides, 1, true)
		query := func(call faults.Call) bool { return call.Op == "Query" }
		found, err := b.client("heir", nth(query, 2, 2, faults.Deny())).Recover(t.Context())
		require.Equal(t, []string{"units"}, errorAs[*lockset.TableError](t, err).Tables)
		require.Equal(t, unitofwork.Recovery{Committed: []string{unit}}, found)
		b.client("next", nil).recovers(t)
		b.nothingLeft()
		b.allFree()
	})
}
