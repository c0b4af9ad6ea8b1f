package unitofwork_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
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

// A unit with a journal is applied slowly, step by step. Who reads the tables sees it
// by half; who reads with Read sees none of it, or all, whatever keys the unit has.
func TestAReaderWithoutLocksSeesAllOrNothing(t *testing.T) {
	const customersOf = 10 // of three accounts each
	fine, _ := largeKeys(3 * customersOf)
	var coarse []ordering.Key
	for i := range customersOf {
		coarse = append(coarse, customerKey(fmt.Sprintf("c%03d", i)))
	}
	everyOther := slices.Concat(coarse[:5], fine[15:])
	holds := map[string][]ordering.Key{"fine": fine, "coarse": coarse, "some of both": everyOther}
	for held, keys := range holds {
		t.Run(held, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				refs := func() (records []*unitofwork.Ref[account]) { _, records = largeKeys(3 * customersOf); return records }
				seenByHalf(t, b, keys, deposit(refs(), 7), "accounts", 3*customersOf, 7, func(reader *client) (sum int64) {
					read := refs()
					require.NoError(t, reader.Read(t.Context(), asRecords(read)...))
					for _, r := range read {
						sum += r.T.Balance
					}
					return sum
				})
			})
		})
	}
}

// More records than one request can have are read in parts: all the same of one moment.
// Between the parts no unit comes, in whole or by half.
func TestAReaderInParts(t *testing.T) {
	const n = 150
	for held, keysOf := range map[string]func([]ordering.Key) []ordering.Key{
		"fine":   func(fine []ordering.Key) []ordering.Key { return fine },
		"coarse": families,
	} {
		t.Run(held, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				keys, refs := largeKeys(n)
				seenByHalf(t, b, keysOf(keys), deposit(refs, 7), "accounts", n, 7, func(reader *client) (sum int64) {
					_, read := largeKeys(n)
					require.NoError(t, reader.Read(t.Context(), asRecords(read)...))
					for _, r := range read {
						sum += r.T.Balance
					}
					return sum
				})
			})
		})
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
		reader := b.client("reader", func(c faults.Call) faults.Fault {
			if c.Op == "TransactGetItems" { // slow enough that units begin and end between two parts
				time.Sleep(50 * time.Millisecond)
			}
			return faults.Pass()
		})
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
	slow := b.client("A", func(c faults.Call) faults.Fault {
		if phaseOf(c) == applies {
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
		}
		return faults.Pass()
	}, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 4 })
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
		_, err := b.client("heir", nil, inSmallTransactions).Recover(t.Context())
		require.NoError(t, err)
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
		var refused *unitofwork.GuardError
		require.ErrorAs(t, err, new(*unitofwork.StageError))
		require.ErrorAs(t, err, &refused)
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

// Records that no key guards are read as they are, by units and without.
func TestATableWithoutAGuard(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		free := unitofwork.Table[customer]{Name: "customers", PartitionKey: "ID"}
		c := b.client("A", nil)
		ref := free.Ref("1")
		require.NoError(t, c.Read(t.Context(), ref))
		require.Equal(t, "name 1", ref.T.Name)
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
				var refused *unitofwork.GuardError
				require.ErrorAs(t, err, &refused, name)
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
