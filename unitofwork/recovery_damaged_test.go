package unitofwork_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
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
	dead.diesIn(b.t, unitofwork.Work{Keys: keys}, deposit(refs, 7))
	return keys
}

func onOtherLocks(l *lockset.Config, _ *unitofwork.Config) { l.Table = "locks2" }

func TestRecoverWithAnotherLockTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks2"}))
		b.diesDecided(fewKeys, inSmallTransactions)
		before := b.tables()
		found, err := b.client("other", nil, inSmallTransactions, onOtherLocks).Recover(t.Context())
		require.ErrorAs(t, err, new(*locks.ConfigError))
		require.ErrorContains(t, err, `has its locks in "locks"`)
		require.Empty(t, found)
		require.Equal(t, before, b.tables())
		b.client("heir", nil, inSmallTransactions).recovers(t)
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
		runInBed(t, name, func(t *testing.T, b *bed) {
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
			b.client("heir", nil).recovers(t)
			require.Equal(t, executed, b.allOrNothing(all))
			b.allFree()
			b.nothingLeft()
		})
	}
}

// A row that the unit marked is not there any more: whether what is under it was
// written cannot be told, unless the records have the unit's stamp.
func TestAMarkedRowThatIsGone(t *testing.T) {
	for name, written := range map[string]bool{"before it was applied": false, "after": true} {
		runInBed(t, name, func(t *testing.T, b *bed) {
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
			unapplied := errorAs[*unitofwork.UnappliedError](t, err)
			require.Equal(t, keys[4], unapplied.Key)
			require.NotEmpty(t, b.db.Items("units"), "all is kept")
			// An operator has looked: it was not written. The row is put back.
			b.putItem("locks", row)
			b.client("heir2", nil, inSmallTransactions).recovers(t)
			sum, _ := b.total()
			require.Equal(t, int64(7*fewKeys), sum)
		})
	}
}

// One family is stuck: the others are applied and freed, and who waits for one of
// their keys has it.
func TestOneStuckFamilyKeepsNobodyElse(t *testing.T) {
	for name, size := range map[string]int{"in small transactions": 8, "in chains with others": 20, "in one with others": requests.MaxActions} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			of := func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = size }
			keys := b.diesDecided(60, of)
			b.putItem("accounts", map[string]types.AttributeValue{
				"Customer": text("c010"), "ID": text("a1"), "Balance": number("0"), "_fence": number(later),
			})
			for _, id := range []string{"c000", "c011", "c019"} {
				c := b.client("of "+id, nil, of)
				c.passes(t, accountKey(id, "a0"))
			}
			_, err := b.client("heir", nil, of).Recover(t.Context())
			unapplied := errorAs[*unitofwork.UnappliedError](t, err)
			require.Equal(t, `Customer="c010" ID="a1"`, unapplied.Record)
			for _, k := range keys {
				if k.Root() != customerKey("c010") {
					require.NotContains(t, b.row(k), "unit", "%v", k)
				}
			}
			require.Contains(t, b.row(accountKey("c010", "a1")), "unit")
		})
	}
}

// A record says that a unit is done, and a row shows it all the same: nobody can
// say what that is, but who waits for it has a wait with an end.
func TestADoneUnitThatStillHasARow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := b.diesDecided(fewKeys, inSmallTransactions)
		row := b.row(keys[0])
		b.client("heir", nil, inSmallTransactions).recovers(t)
		b.putItem("locks", row)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := b.client("waiter", upon(func(c faults.Call) bool { return c.Op == "GetItem" && c.N == 300 }, func() { // it asks without a pause
			cancel()
		}), inSmallTransactions)
		began := time.Now()
		_, err := c.locks.Acquire(ctx, []ordering.Key{keys[0]}, func(o *lockset.Options) { o.Wait = lockset.For(2 * lease) })
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
		slow := b.client("heir", upon(applies.is, func() {
			time.Sleep(900 * time.Millisecond)
		}), func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 1 })
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
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := len(b.db.Items("accounts"))
			dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(c.executed)), inSmallTransactions)
			keys, _ := largeKeys(fewKeys)
			unit := dead.diesIn(t, unitofwork.Work{Keys: append(keys, customerKey("1"))}, putBulk(c.writes, bytes))
			rows := b.rowsOf(unit)
			require.GreaterOrEqual(t, rows, c.least)
			require.LessOrEqual(t, rows, c.most)

			b.client("heir", nil).passes(t, customerKey("1"))
			require.Len(t, b.db.Items("accounts"), before+c.committed)
			b.allFree()
			b.nothingLeft()
		})
	}
}

// While a row of a journal is there, so is the entry by which Recover finds it.
func TestAJournalThatIsNotRemovedToItsEndIsFound(t *testing.T) {
	for name, fault := range map[string]faults.Fault{"not at all": faults.Deny(), "but for one row": faults.DenyStatements(1)} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			rows := func(c faults.Call) bool { return c.Op == "BatchExecuteStatement" && removes.is(c) }
			c := b.client("A", when(rows, fault), inSmallTransactions)
			unit := ""
			keys, _ := largeKeys(fewKeys)
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("1"))}, func(ctx context.Context, u *unitofwork.Unit) error {
				unit = u.Nonce()
				return putBulk(4, 50<<10)(ctx, u)
			}), "it is done")
			require.Positive(t, b.rowsOf(unit))
			require.NotNil(t, b.entry(unit))
			b.allFree()

			b.client("heir", nil).recovers(t)
			b.nothingLeft()
		})
	}
}

func TestWhatTheUnitTableSaysOfAUnit(t *testing.T) {
	for name, c := range map[string]struct {
		at       phase
		n        int
		executed bool
		want     unitofwork.JournalState // but for times and sizes
	}{
		"before its journal":   {journals, 1, false, unitofwork.JournalState{Outcome: unitofwork.Forgotten}},
		"with its journal":     {marks, 1, false, unitofwork.JournalState{Outcome: unitofwork.Undecided, Open: true}},
		"before the decision":  {decides, 1, false, unitofwork.JournalState{Outcome: unitofwork.Undecided, Open: true}},
		"after the decision":   {decides, 1, true, unitofwork.JournalState{Outcome: unitofwork.Committed, Open: true}},
		"half applied":         {applies, 2, true, unitofwork.JournalState{Outcome: unitofwork.Committed, Open: true}},
		"applied, not removed": {concludes, 1, true, unitofwork.JournalState{Outcome: unitofwork.Committed, Done: true, Open: true}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			unit := b.dies(c.at, c.n, c.executed)
			time.Sleep(time.Second) // what was under way beside that request has landed
			before := b.tables()
			client := b.client("operator", nil)
			state, err := client.JournalOf(t.Context(), unit)
			require.NoError(t, err)
			require.Equal(t, before, b.tables(), "it writes nothing")

			require.Equal(t, c.want.Open, !state.Began.IsZero())
			require.Equal(t, c.want.Outcome == unitofwork.Committed, !state.DecidedAt.IsZero())
			if c.want.Open {
				require.Positive(t, state.Rows)
				require.Equal(t, "locks", state.Locks)
				require.Equal(t, len(keysOfFew()), state.Steps)
				require.GreaterOrEqual(t, state.Writes, fewKeys)
			}
			if c.want.Outcome == unitofwork.Committed && !c.want.Done {
				require.Equal(t, state.Rows, state.Decided)
			}
			require.False(t, state.Stuck())
			state.Began, state.DecidedAt = c.want.Began, c.want.DecidedAt
			state.Rows, state.Decided, state.Locks, state.Steps, state.Writes = 0, 0, "", 0, 0
			require.Equal(t, c.want, state)

			client.recovers(t)
			state, err = client.JournalOf(t.Context(), unit)
			require.NoError(t, err)
			require.False(t, state.Open)
			require.Zero(t, state.Rows)
			switch c.want.Outcome {
			case unitofwork.Committed:
				require.True(t, state.Outcome == unitofwork.Committed && state.Done)
			case unitofwork.Undecided:
				require.Equal(t, unitofwork.NotCommitted, state.Outcome)
			default: // no entry: nobody looks for it
				require.Equal(t, unitofwork.Forgotten, state.Outcome)
			}
		})
	}
}

func TestAJournalThatIsDamagedShows(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit := b.dies(decides, 1, true)
		client := b.client("operator", nil)
		whole, err := client.JournalOf(t.Context(), unit)
		require.NoError(t, err)

		row := b.journal(unit)[0]
		for name, c := range map[string]struct {
			body    types.AttributeValue
			problem string
		}{
			"no row":          {text("gone"), "is none"},
			"another's":       {&types.AttributeValueMemberB{Value: []byte(`{"version":1,"unit":"x"}`)}, `unit "x"`},
			"a later version": {&types.AttributeValueMemberB{Value: []byte(`{"version":9,"unit":"` + unit + `"}`)}, "version 9"},
			"no journal":      {&types.AttributeValueMemberB{Value: []byte("?")}, "cannot be read"},
		} {
			changed := map[string]types.AttributeValue{}
			for k, v := range row {
				changed[k] = v
			}
			changed["body"] = c.body
			b.putItem("units", changed)
			state, err := client.JournalOf(t.Context(), unit)
			require.NoError(t, err, name)
			require.Contains(t, state.Problem, c.problem, name)
			require.True(t, state.Stuck(), name)
		}

		b.delete("units", map[string]string{"unit": unit, "part": valueOf(row["part"])})
		state, err := client.JournalOf(t.Context(), unit)
		require.NoError(t, err)
		require.Equal(t, whole.Rows-1, state.Rows)
		require.True(t, state.Stuck())

		b.change("units", map[string]string{"unit": unit, "part": "record"}, "REMOVE #state")
		state, err = client.JournalOf(t.Context(), unit)
		require.NoError(t, err)
		require.Equal(t, unitofwork.Undecided, state.Outcome)
		require.Contains(t, state.Problem, "state")
	})
}

func TestAJournalNeedsAUnitTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, err := unitofwork.Open(b.db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}})
		require.NoError(t, err)
		_, err = c.JournalOf(t.Context(), "u")
		require.ErrorAs(t, err, new(*locks.ConfigError))
	})
}

// What of a dead unit's journal is read, and what is made of answers that are short.

// gets are the rows of the unit table that a read asks for, by their range keys.
func gets(c faults.Call) (parts []string) {
	if in, ok := c.Input.(*dynamodb.TransactGetItemsInput); ok {
		for _, item := range in.TransactItems {
			if *item.Get.TableName == "units" {
				parts = append(parts, valueOf(item.Get.Key["part"]))
			}
		}
	}
	return parts
}

// A journal that is incomplete may be that of a unit that is done by now: its record is
// read once more, and if that has no answer, nothing is known, and all is kept.
func TestAnIncompleteJournalWhoseRecordCannotBeRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, _, all := fewAccounts()
		unit := b.dies(decides, 1, true)
		units := b.db.Items("units")
		b.delete("units", map[string]string{"unit": unit, "part": "journal/000000"})
		before := b.tables()
		found, err := b.client("heir", func(c faults.Call) faults.Fault {
			if parts := gets(c); len(parts) == 1 && parts[0] == "record" {
				return faults.Deny()
			}
			return faults.Pass()
		}).Recover(t.Context())
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.Empty(t, found)
		b.kept(before)

		for _, item := range units {
			b.putItem("units", item)
		}
		found = b.client("mended", nil).recovers(t)
		require.Equal(t, unitofwork.Recovery{Committed: []string{unit}}, found)
		require.True(t, b.allOrNothing(all))
		b.nothingLeft()
	})
}

// Of a journal as many rows are read as were decided, each once.
func TestAJournalIsReadOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inOneAction)
		dead.diesIn(t, unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, putBulk(9, 70<<10)) // six bytes each, as JSON has them
		rows := 0
		for _, item := range b.db.Items("units") {
			if strings.HasPrefix(valueOf(item["part"]), "journal/") {
				rows++
			}
		}
		require.Greater(t, rows, 10, "they are read by two requests")
		read := map[string]int{}
		b.client("heir", func(c faults.Call) faults.Fault {
			for _, part := range gets(c) {
				read[part]++
			}
			return faults.Pass()
		}, inOneAction).recovers(t)
		require.Len(t, read, rows)
		for part, times := range read {
			require.Equal(t, 1, times, part)
		}
		b.nothingLeft()
		b.allFree()
	})
}

// short leaves out the last of several answers to a transactional read.
type short struct {
	*memdynamo.DB
	on bool
}

func (s *short) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	out, err := s.DB.TransactGetItems(ctx, in, options...)
	if err == nil && s.on {
		out.Responses = out.Responses[:len(out.Responses)-1]
	}
	return out, err
}

// An answer that is not one to each question is none.
func TestAnswersThatAreShort(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ref := b.refOf("")
		db := &short{DB: b.db}
		shared, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "A", Lease: lease})
		require.NoError(t, err)
		client, err := unitofwork.New(shared, unitofwork.Config{Table: "units"})
		require.NoError(t, err)
		db.on = true
		one, two := accounts.Ref("1", "a"), accounts.Ref("2", "a")
		require.ErrorContains(t, client.Read(t.Context(), one, two), "answers to")
		_, err = client.Outcome(t.Context(), ref)
		require.ErrorContains(t, err, "1 answers to 2 gets")
		_, err = client.Outcome(t.Context(), "p")
		require.ErrorContains(t, err, "0 answers to 1 gets")
		_, _, err = (*locks.Client)(shared).Silence(t.Context(), transferKeys[0], "unit")
		require.ErrorContains(t, err, "0 answers to 1 gets")

		db.on = false
		err = client.Do(t.Context(), unitofwork.Work{Lock: true, Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			db.on = true
			defer func() { db.on = false }()
			return u.Get(ctx, one, two)
		})
		require.ErrorContains(t, err, "1 answers to 2 gets")
		require.False(t, one.Found)
		require.False(t, two.Found)
	})
}
