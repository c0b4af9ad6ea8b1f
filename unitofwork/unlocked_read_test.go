package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// holding is a record guarded by what it says itself: not by its key.
type holding struct {
	ID       string
	Customer string
	Balance  int64
	Fence    int64 `dynamodbav:"_fence,omitempty"`
}

var holdings = unitofwork.Table[holding]{
	Name: "holdings", PartitionKey: "ID",
	Guard: func(h *holding) ordering.Key { return accountKey(h.Customer, h.ID) }, GuardByContent: true,
}

// A unit with a journal is applied slowly, step by step. Who reads the tables sees it by half; who
// reads with Read sees none of it, or all, whatever keys the unit has. More records than one request
// can have are read in parts: all the same of one moment, between which no unit comes.
func TestAReaderWithoutLocksSeesAllOrNothing(t *testing.T) {
	for n, parts := range map[int]string{30: "at once", 150: "in parts"} {
		fine, _ := largeKeys(n)
		coarse := families(fine)
		for held, keys := range map[string][]ordering.Key{
			"fine": fine, "coarse": coarse, "some of both": slices.Concat(coarse[:len(coarse)/2], fine[n/2:]),
		} {
			runInBed(t, parts+", "+held, func(t *testing.T, b *bed) {
				_, refs := largeKeys(n)
				seenByHalf(t, b, keys, deposit(refs, 7), "accounts", n, 7, func(reader *client) (sum int64) {
					_, read := largeKeys(n)
					require.NoError(t, reader.Read(t.Context(), asRecords(read)...))
					for _, r := range read {
						sum += r.T.Balance
					}
					return sum
				})
			})
		}
	}
}

// Small units come all the time, each over two records that are read in different
// requests: a reader never sees one of the two without the other.
func TestAReaderInPartsBesideSmallUnits(t *testing.T) {
	lasts := time.Minute
	if testing.Short() {
		lasts /= 2
	}
	inBed(t, func(t *testing.T, b *bed) {
		const n = 130
		keys, _ := largeKeys(n)
		writer := b.client("writer", nil)
		reader := b.client("reader", upon(func(c faults.Call) bool { return c.Op == "TransactGetItems" }, func() {
			// slow enough that units begin and end between two parts
			time.Sleep(50 * time.Millisecond)
		}))
		begun := time.Now()
		over := make(chan error, 1)
		go func() {
			for n := 0; ; n++ {
				ends := []*unitofwork.Ref[account]{accounts.Ref("c000", "a0"), accounts.Ref("c042", "a2")}
				if err := writer.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{keys[0], keys[128]}}, deposit(ends, 1)); err != nil || time.Since(begun) > lasts {
					over <- err
					return
				}
				time.Sleep(time.Duration(n%40) * 10 * time.Millisecond)
			}
		}()
		different := map[int64]bool{}
		for len(over) == 0 {
			_, read := largeKeys(n)
			require.NoError(t, reader.Read(t.Context(), asRecords(read)...))
			require.Equal(t, read[0].T.Balance, read[128].T.Balance)
			different[read[0].T.Balance] = true
		}
		require.NoError(t, <-over)
		require.Greater(t, len(different), 5)
	})
}

// Records that are too large for one request are read in parts, too.
func TestAReaderOfLargeRecords(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		name := strings.Repeat("x", 390_000)
		var read []*unitofwork.Ref[customer]
		for i := range 25 {
			id := fmt.Sprint("large", i)
			b.put("customers", customer{ID: id, Name: name})
			read = append(read, customers.Ref(id))
		}
		require.NoError(t, b.client("reader", nil).Read(t.Context(), asRecords(read)...))
		for _, r := range read {
			require.Len(t, r.T.Name, len(name))
		}
	})
}

// The guard of a record may be known only when it is read: then it is read once more,
// with the lock rows of that guard.
func TestAReaderOfRecordsGuardedByContent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("holdings", "ID")
		const n = 12
		var keys []ordering.Key
		refs := func() (refs []*unitofwork.Ref[holding]) {
			for i := range n {
				refs = append(refs, holdings.Ref(fmt.Sprint("h", i)))
			}
			return refs
		}
		for i := range n {
			h := holding{ID: fmt.Sprint("h", i), Customer: fmt.Sprint(i % 4)}
			b.put("holdings", h)
			keys = append(keys, holdings.Guard(&h))
		}
		work := func(ctx context.Context, u *unitofwork.Unit) error {
			all := refs()
			if err := u.Get(ctx, asRecords(all)...); err != nil {
				return err
			}
			for _, r := range all {
				r.T.Balance += 7
			}
			return u.Put(asRecords(all)...)
		}
		seenByHalf(t, b, keys, work, "holdings", n, 7, func(reader *client) (sum int64) {
			read := refs()
			require.NoError(t, reader.Read(t.Context(), asRecords(read)...))
			for _, r := range read {
				sum += r.T.Balance
			}
			return sum
		})
	})
}

// seenByHalf has a unit with a journal applied slowly, while one reads again and again,
// and fails if a reader sees another sum than before the unit and after it. What is in
// the tables meanwhile must be by half, or nothing is proven.
func seenByHalf(t *testing.T, b *bed, keys []ordering.Key, work func(context.Context, *unitofwork.Unit) error,
	table string, records int, each int64, read func(*client) int64) {
	t.Helper()
	var torn atomic.Bool
	slow := b.client("A", upon(applies.is, func() {
		time.Sleep(300 * time.Millisecond)
		written := 0
		for _, item := range b.db.Items(table) {
			if n, ok := item["Balance"].(*types.AttributeValueMemberN); ok && n.Value == fmt.Sprint(each) {
				written++
			}
		}
		if written > 0 && written < records {
			torn.Store(true)
		}
	}), func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 4 })
	done := make(chan error, 1)
	go func() { done <- slow.Do(t.Context(), unitofwork.Work{Keys: keys}, work) }()
	reader := b.client("reader", nil)
	all := int64(records) * each
	seen := map[int64]int{}
	for over := false; !over; {
		seen[read(reader)]++
		time.Sleep(10 * time.Millisecond)
		select {
		case err := <-done:
			require.NoError(t, err)
			over = seen[all] > 0
			done <- nil
		default:
		}
	}
	require.True(t, torn.Load(), "the tables had half of it")
	require.NotZero(t, seen[0])
	require.NotZero(t, seen[all])
	require.Len(t, seen, 2, "%v", seen)
	b.nothingLeft()
}

func asRecords[T any](refs []*unitofwork.Ref[T]) []unitofwork.Record {
	records := make([]unitofwork.Record, len(refs))
	for i, r := range refs {
		records[i] = r
	}
	return records
}

// families are the first segments of keys, each once.
func families(keys []ordering.Key) []ordering.Key {
	var all []ordering.Key
	for _, k := range keys {
		all = append(all, k.Root())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestAReaderWithoutLocksWaitsForTheDeadUntilItsContextEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesDecided(fewKeys, inSmallTransactions)
		reader := b.client("reader", nil)
		ref := accounts.Ref("c000", "a0")
		ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
		defer cancel()
		require.ErrorIs(t, reader.Read(ctx, ref), context.DeadlineExceeded)
		b.client("heir", nil, inSmallTransactions).recovers(t)
		require.NoError(t, reader.Read(t.Context(), ref))
		require.Equal(t, int64(7), ref.T.Balance)
	})
}

func TestWhatReadRefuses(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("holdings", "ID")
		b.put("holdings", holding{ID: "theirs", Customer: "3"})
		c := b.client("A", nil)
		one := accounts.Ref("1", "a")
		require.ErrorContains(t, c.Read(t.Context(), one, one), "named twice")

		for _, odd := range []unitofwork.Record{nil, accounts.Ref()} {
			require.ErrorContains(t, c.Read(t.Context(), odd), "record (unknown)")
		}
		// Nobody can tell which rows guard what is not there, if the key does not say it.
		err := c.Read(t.Context(), one, holdings.Ref("nobody"))
		require.ErrorAs(t, err, new(*unitofwork.StageError))
		refused := errorAs[*unitofwork.GuardError](t, err)
		require.True(t, refused.Absent)
		require.ErrorContains(t, err, "make the reference with Of")
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.False(t, one.Found, "nothing is shown")
		theirs := holdings.Ref("theirs")
		require.NoError(t, c.Read(t.Context(), theirs), "known when it is read")
		require.Equal(t, "3", theirs.T.Customer)

		none := accounts.Ref("1", "none")
		require.NoError(t, c.Read(t.Context(), one, none, customers.Ref("1")))
		require.True(t, one.Found)
		require.False(t, none.Found)
		absent := holdings.Of(holding{ID: "new", Customer: "1"})
		require.NoError(t, c.Read(t.Context(), absent))
		require.False(t, absent.Found)
	})
}

// Records that no key guards are read as they are, with no lock row and at any time, by units and without.
func TestATableWithoutAGuard(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		free := unitofwork.Table[customer]{Name: "customers", PartitionKey: "ID"}
		c, r := b.traced("A", nil)
		ref := free.Ref("1")
		require.NoError(t, c.Read(t.Context(), ref))
		require.Equal(t, "name 1", ref.T.Name)
		ref = free.Ref("1")
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := u.Get(ctx, ref)
			time.Sleep(2 * lease)
			return errors.Join(err, u.Get(ctx, free.Ref("2")))
		}))
		require.Equal(t, "name 1", ref.T.Name)
		require.Equal(t, []string{"free committed"}, r.texts())
		require.Equal(t, map[string]int{"TransactGetItems": 3}, c.requests())
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			ref := free.Ref("2")
			require.NoError(t, u.Get(ctx, ref))
			require.Equal(t, "name 2", ref.T.Name)
			return u.Put(ref)
		})
		require.ErrorAs(t, err, new(*unitofwork.StageError))
		require.ErrorContains(t, err, "its Table has no Guard")
	})
}

// A guard that needs more than the key must say so: nobody could tell beforehand which
// lock rows go with the record.
func TestAGuardThatIsMadeOfMoreThanItsTableSays(t *testing.T) {
	undeclared := holdings
	undeclared.GuardByContent = false
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("holdings", "ID")
		b.put("holdings", holding{ID: "h", Customer: "1"})
		c := b.client("A", nil)
		inUnit := func(f func(context.Context, *unitofwork.Unit) error) error {
			return c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("")}}, f)
		}
		var refused *unitofwork.StageError
		fresh := undeclared.Of(holding{ID: "new", Customer: "1"})
		for name, err := range map[string]error{
			"Read":    c.Read(t.Context(), undeclared.Ref("h")),
			"Get":     inUnit(func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, undeclared.Ref("h")) }),
			"Replace": inUnit(func(_ context.Context, u *unitofwork.Unit) error { return u.Replace(fresh) }),
			"Insert":  inUnit(func(_ context.Context, u *unitofwork.Unit) error { return u.Insert(fresh) }),
			"Delete":  inUnit(func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(fresh) }),
		} {
			require.ErrorAs(t, err, &refused, name)
			require.ErrorContains(t, err, "GuardByContent", name)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), name)
		}
		require.Len(t, b.db.Items("holdings"), 1)
	})
}

// What a unit reads must be guarded by its keys, like what it writes.
func TestAUnitReadsOnlyWhatItsKeysGuard(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("holdings", "ID")
		b.put("holdings", holding{ID: "theirs", Customer: "3", Balance: 5})
		b.put("holdings", holding{ID: "ours", Customer: "1", Balance: 5})
		for name, c := range map[string]struct {
			record unitofwork.Record
			guard  ordering.Key
		}{
			"another's":           {accounts.Ref("3", "a"), accountKey("3", "a")},
			"above":               {customers.Ref("1"), customerKey("1")},
			"by content":          {holdings.Ref("theirs"), accountKey("3", "theirs")},
			"absent, by content":  {holdings.Ref("new"), ""},
			"absent, as is known": {holdings.Of(holding{ID: "new", Customer: "3"}), accountKey("3", "new")},
		} {
			client := b.client(name, nil)
			before := b.balances()
			ours := accounts.Ref("1", "a")
			err := client.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
				err := u.Get(ctx, ours, c.record)
				refused := errorAs[*unitofwork.GuardError](t, err, name)
				require.Equal(t, c.guard, refused.Guard, name)
				require.False(t, ours.Found, "nothing is shown")
				return transfer(5)(ctx, u) // whatever it was told
			})
			require.ErrorAs(t, err, new(*unitofwork.GuardError), "%s: the commit says it, too", name)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), name)
			require.Equal(t, before, b.balances(), name)
		}
		client := b.client("A", nil)
		require.NoError(t, client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(ctx context.Context, u *unitofwork.Unit) error {
			ours, fresh := holdings.Ref("ours"), holdings.Of(holding{ID: "fresh", Customer: "1"})
			require.NoError(t, u.Get(ctx, ours, fresh, customers.Ref("1"), accounts.Ref("1", "none")))
			require.Equal(t, int64(5), ours.T.Balance)
			require.False(t, fresh.Found)
			return nil
		}))
		b.allFree()
	})
}

// However many records have guards that are known only when they are read: all of them
// are read twice, once to know and once with the rows.
func TestAReaderOfManyRecordsGuardedByContent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("holdings", "ID")
		const n = 400
		var refs []*unitofwork.Ref[holding]
		for i := range n {
			b.put("holdings", holding{ID: fmt.Sprint("h", i), Customer: "1"})
			refs = append(refs, holdings.Ref(fmt.Sprint("h", i)))
		}
		c := b.client("reader", nil)
		require.NoError(t, c.Read(t.Context(), asRecords(refs)...))
		for _, r := range refs {
			require.True(t, r.Found)
		}
		require.Equal(t, 4+5+9, c.requests()["TransactGetItems"], "the records; their rows, and the records with them")
	})
}

// What Read makes of rows and answers that tell it nothing, and how often it asks.

// A record whose guard is known only when it is read is seen by half as little as those
// beside it, whichever is named first.
func TestAReaderOfRecordsGuardedByContentBesideOthers(t *testing.T) {
	for name, order := range map[string][]int{"it is the first": {0, 1}, "it is the last": {1, 0}} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.createTable("holdings", "ID")
			b.put("holdings", holding{ID: "h", Customer: "1"})
			held := accountKey("1", "h")
			dead := b.client("dead", nil)
			set := dead.has(t, held)
			marked, err := (*locks.Set)(set).Prepare(t.Context(), "units", func(int) {})
			require.NoError(t, err)
			marked.Done(false)

			reader := b.client("reader", nil)
			both := []unitofwork.Record{holdings.Ref("h"), accounts.Ref("2", "a")}
			ctx, cancel := context.WithTimeout(t.Context(), lease/2)
			defer cancel()
			err = reader.Read(ctx, both[order[0]], both[order[1]])
			require.ErrorIs(t, err, context.DeadlineExceeded, "its unit may have written half")
		})
	}
}

// Parts that are read without a look at all rows before them may be of two moments: a
// look without an answer is an error.
func TestALookAtTheRowsWithoutAnAnswer(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		end := time.Now().Add(lease)
		reader := b.client("reader", when(func(c faults.Call) bool { return time.Now().Before(end) }, faults.LoseRequest(faults.Hang)))
		_, refs := largeKeys(120)
		err := reader.Read(t.Context(), asRecords(refs)...)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.NoError(t, reader.Read(t.Context(), asRecords(refs)...))
	})
}

// A lock row that is none says nothing of what it guards.
func TestAReaderOfARowThatIsNone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("locks", map[string]types.AttributeValue{"key": text(string(customerKey("1"))), "colour": text("red")})
		c := b.client("reader", nil)
		one := accounts.Ref("1", "a")
		err := c.Read(t.Context(), one, accounts.Ref("2", "a"))
		foreign := errorAs[*lockrow.RowError](t, err)
		require.Equal(t, customerKey("1"), foreign.Key)
		require.Equal(t, "locks", foreign.Table)
		require.False(t, one.Found, "nothing is shown")
		require.NoError(t, c.Read(t.Context(), accounts.Ref("2", "a")))
	})
}

// Whoever may not read a table is told which those of the request are: the lock table
// is one of them where a record has a guard.
func TestTheTablesOfARead(t *testing.T) {
	free := unitofwork.Table[account]{Name: "accounts", PartitionKey: "Customer", SortKey: "ID"}
	for name, c := range map[string]struct {
		record unitofwork.Record
		tables []string
	}{
		"guarded":         {accounts.Ref("1", "a"), []string{"accounts", "locks"}},
		"without a guard": {free.Ref("1", "a"), []string{"accounts"}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			err := b.client("reader", denies("accounts")).Read(t.Context(), c.record)
			refused := errorAs[*lockset.TableError](t, err)
			require.Equal(t, c.tables, refused.Tables)
			require.Equal(t, "TransactGetItems", refused.Op)
		})
	}
}

// As many records as fit into one request with their rows are one request; the records of one more are
// two, after a look at all rows. None has more than a hundred items, however they come together.
func TestHowManyRequestsARead(t *testing.T) {
	one := unitofwork.Table[account]{Name: "accounts", PartitionKey: "Customer", SortKey: "ID", Guard: func(*account) ordering.Key { return "one" }}
	for n, want := range map[int]int{1: 1, 33: 1, 34: 1, 49: 1, 50: 1, 51: 1, 99: 1, 100: 3, 101: 3, 200: 4} {
		runInBed(t, fmt.Sprint(n), func(t *testing.T, b *bed) {
			reader := b.client("reader", func(c faults.Call) faults.Fault {
				if in, ok := c.Input.(*dynamodb.TransactGetItemsInput); ok {
					require.LessOrEqual(t, len(in.TransactItems), requests.MaxActions)
				}
				return faults.Pass()
			})
			var refs []unitofwork.Record
			for i := range n {
				refs = append(refs, one.Ref("3", strconv.Itoa(i)))
			}
			require.NoError(t, reader.Read(t.Context(), refs...))
			require.Equal(t, map[string]int{"TransactGetItems": want}, reader.requests(), "with one row")
			_, each := largeKeys(n)
			require.NoError(t, reader.Read(t.Context(), asRecords(each)...), "with a row each")
		})
	}
}

// However few records DynamoDB takes at once, so many are asked for, and one that it does
// not take alone ends the read.
func TestARequestOfAReadIsHalvedUntilItFits(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		for most := range n + 1 {
			runInBed(t, fmt.Sprint(n, " records, ", most, " at once"), func(t *testing.T, b *bed) {
				reader := b.client("reader", func(c faults.Call) faults.Fault {
					records := 0
					for _, table := range tablesOf(c) {
						if table == "accounts" {
							records++
						}
					}
					if records > most {
						return faults.RefuseAsTooLarge()
					}
					return faults.Pass()
				})
				ctx, cancel := context.WithTimeout(t.Context(), lease)
				defer cancel()
				_, refs := largeKeys(n)
				err := reader.Read(ctx, asRecords(refs)...)
				if most > 0 {
					require.NoError(t, err)
				} else {
					require.ErrorAs(t, err, new(*lockset.TableError))
				}
			})
		}
	}
}

// The pause before a reader looks again doubles, up to the poll of those who wait for
// locks, and is cut by as much as half, by chance.
func TestThePauseBeforeAReaderLooksAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesDecided(fewKeys, inSmallTransactions)
		const poll = 300 * time.Millisecond
		var sent []time.Time
		reader := b.client("reader", func(faults.Call) faults.Fault {
			sent = append(sent, time.Now())
			return faults.Pass()
		}, func(l *lockset.Config, _ *unitofwork.Config) { l.Poll = poll })
		_, refs := largeKeys(1)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.ErrorIs(t, reader.Read(ctx, refs[0]), context.DeadlineExceeded)
		require.Greater(t, len(sent), 12)
		var pauses []time.Duration
		for i := range len(sent) - 1 {
			pauses = append(pauses, sent[i+1].Sub(sent[i])-rtt)
		}
		doubling(t, pauses, 10*time.Millisecond, poll)
	})
}
