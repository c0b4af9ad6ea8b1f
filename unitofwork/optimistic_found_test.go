package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// link is a record that names another, and whose guard is made of more than its key.
type link struct {
	ID, Owner, Next string
}

var links = unitofwork.Table[link]{
	Name: "links", PartitionKey: "ID", GuardByContent: true,
	Guard: func(l *link) ordering.Key { return ordering.Join("owner:"+l.Owner, "link:"+l.ID) },
}

func inLinks(t *testing.T, test func(*testing.T, *bed)) {
	t.Helper()
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("links", "ID")
		for i := range 12 {
			b.put("links", link{ID: fmt.Sprint(i), Owner: fmt.Sprint(i % 3), Next: fmt.Sprint(i + 1)})
		}
		test(t, b)
	})
}

// follow goes from link to link, and writes the last one.
func follow(from string, steps int) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		at := links.Ref(from)
		if err := u.Get(ctx, at); err != nil {
			return err
		}
		for range steps {
			at = links.Ref(at.T.Next)
			if err := u.Get(ctx, at); err != nil {
				return err
			}
		}
		at.T.Next = "end"
		return u.Put(at)
	}
}

// A guard that is made of a record's content is known once it was read: it is read once more,
// with its lock row.
func TestKeysThatAreFoundByReading(t *testing.T) {
	inLinks(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, follow("0", 2)))
		require.Equal(t, map[string]int{"TransactGetItems": 6, "TransactWriteItems": 1}, c.requests())
		require.Equal(t, []string{"free committed"}, r.texts())
		require.Equal(t, 6, r.last().Rows)
	})
}

// Under locks a key that is not held is found, too: then the unit starts over with it, and
// with what it held before.
func TestKeysThatAreFoundUnderLocks(t *testing.T) {
	inLinks(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, "owner:0/link:0")
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, follow("0", 2)))
		require.Equal(t, inVain("locked fell back", "locked fell back", "locked committed"), r.texts())
		b.allFree()
		item := b.db.Items("links")
		require.NotEmpty(t, item)
	})
}

// A write alone finds its key as well.
func TestKeysThatAreFoundByWriting(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, accountKey("1", "a"))
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			one := accounts.Ref("1", "a")
			if err := u.Get(ctx, one); err != nil {
				return err
			}
			return u.Replace(accounts.Of(account{Customer: "2", ID: "a", Balance: one.T.Balance}))
		}))
		require.Equal(t, inVain("locked fell back", "locked committed"), r.texts())
		require.EqualValues(t, 100, b.account("2").Balance)
	})
}

// Under locks a write whose key is not held tells its function nothing: the function goes on,
// and what else it needs is found by the same run.
func TestManyKeysThatAreFoundByWriting(t *testing.T) {
	const lines = 12
	line := func(i int) unitofwork.Record {
		return accounts.Of(account{Customer: fmt.Sprint("line", i), ID: "a"})
	}
	for name, stage := range map[string]func(*unitofwork.Unit) error{
		"in one call": func(u *unitofwork.Unit) error {
			var all []unitofwork.Record
			for i := range lines {
				all = append(all, line(i))
			}
			return u.Replace(all...)
		},
		"in many": func(u *unitofwork.Unit) error {
			for i := range lines {
				if err := u.Replace(line(i)); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
				b.hold(holder, time.Second, accountKey("1", "a"))
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
						return err
					}
					return stage(u)
				}))
				require.Equal(t, inVain("locked fell back", "locked committed"), r.texts())
				require.Len(t, b.db.Items("accounts"), 2+lines)
			})
		})
	}
}

// What a function tells that fails after it was told nothing untrue counts, also if it has staged
// a write whose key is not held: nothing is written anyway.
func TestAFunctionThatFailsAfterItHasFoundAKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, accountKey("1", "a"))
		failed := errors.New("failed")
		require.Equal(t, failed, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
				return err
			}
			require.NoError(t, u.Replace(accounts.Of(account{Customer: "3", ID: "a"})))
			return failed
		}))
		require.Equal(t, inVain("locked not committed"), r.texts())
		require.Len(t, b.db.Items("accounts"), 2)
		b.allFree()
	})
}

// What a function stages after its run was void tells of keys as well.
func TestKeysThatAreFoundAfterTheRunIsVoid(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, accountKey("1", "a"))
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := u.Get(ctx, accounts.Ref("1", "a"))
			return errors.Join(err, u.Replace(accounts.Of(account{Customer: "3", ID: "a"})))
		}))
		require.Equal(t, inVain("locked committed"), r.texts())
	})
}

// A function that needs other keys each time is told so in the end.
func TestAFunctionThatNeverHasItsKeys(t *testing.T) {
	inLinks(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, "owner:0/link:0")
		n := 0
		err := c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			if u.Locked() {
				n++
			}
			return u.Get(ctx, links.Ref(fmt.Sprint(n)))
		})
		var moving *unitofwork.KeysError
		require.ErrorAs(t, err, &moving)
		require.Len(t, moving.Keys, 10)
		require.Equal(t, lockset.TryLater, lockset.NextOf(err))
		require.Equal(t, 9, n, "under locks")
		b.allFree()
	})
}

// What is read of a coarser key later covers what was read of finer ones before.
func TestACoarserKeyIsFoundLater(t *testing.T) {
	people := unitofwork.Table[customer]{Name: "customers", PartitionKey: "ID", Guard: func(c *customer) ordering.Key { return customerKey(c.ID) }}
	for name, overtake := range map[string]func(context.Context, *client) error{
		"nobody": func(context.Context, *client) error { return nil },
		"fine":   func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, transfer(1)) },
		"coarse": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
				return u.Replace(people.Of(customer{ID: "1", Name: "new"}))
			})
		},
	} {
		for _, when := range []int{1, 2} {
			t.Run(fmt.Sprint(name, " after ", when), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					var r runs
					c, other := b.client("c", nil, r.traced), b.client("other", nil)
					calls := 0
					require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
						calls++
						fine, coarse := accounts.Ref("1", "a"), people.Ref("1")
						if err := u.Get(ctx, fine); err != nil {
							return err
						}
						if calls == 1 && when == 1 {
							require.NoError(t, overtake(t.Context(), other))
						}
						if err := u.Get(ctx, coarse); err != nil {
							return err
						}
						if calls == 1 && when == 2 {
							require.NoError(t, overtake(t.Context(), other))
						}
						coarse.T.Name = fmt.Sprint(fine.T.Balance) // which is read, and not written
						return u.Put(coarse)
					}))
					want := []string{"free committed"}
					if name != "nobody" {
						want = []string{"free fell back", "free committed"}
					}
					require.Equal(t, want, r.texts())
					was := people.Ref("1")
					require.NoError(t, other.Read(t.Context(), was))
					require.Equal(t, map[string]string{"nobody": "100", "fine": "99", "coarse": "100"}[name], was.T.Name)
				})
			})
		}
	}
}

// A write under a coarser key that was not looked at does not stand for what was read below
// it.
func TestACoarserKeyThatIsOnlyWritten(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		calls := 0
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			one := accounts.Ref("1", "a")
			if err := u.Get(ctx, one); err != nil {
				return err
			}
			if calls++; calls == 1 {
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(1)))
			}
			return u.Replace(customers.Of(customer{ID: "1", Name: fmt.Sprint(one.T.Balance)}))
		}))
		require.Equal(t, []string{"free fell back", "free committed"}, r.texts())
		require.Equal(t, "99", fmt.Sprint(b.account("1").Balance))
	})
}

// A holder that has lost its lock may write late, with its own fence. What was read before
// that is not committed on.
func TestALateWriteBetweenTheLookAndTheCommit(t *testing.T) {
	for _, stamped := range []bool{false, true} {
		t.Run(fmt.Sprint("stamped before: ", stamped), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				late, c := b.client("late", nil), b.client("c", nil)
				if stamped {
					require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(0)))
				}
				set, err := late.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
				require.NoError(t, err)
				require.NoError(t, set.Release(t.Context()))
				calls := 0
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					one := accounts.Ref("1", "a")
					if err := u.Get(ctx, one); err != nil {
						return err
					}
					if calls++; calls == 1 {
						b.writeLate(set, "1", "a", 500)
					}
					one.T.Balance++
					return u.Put(one)
				}))
				require.Equal(t, 2, calls)
				require.EqualValues(t, 501, b.account("1").Balance)
			})
		})
	}
}

// What does not fit into one transaction is done under locks, by a journal.
func TestAUnitWithoutLocksThatIsTooLarge(t *testing.T) {
	write := func(n int) func(context.Context, *unitofwork.Unit) error {
		return func(_ context.Context, u *unitofwork.Unit) error {
			for i := range n {
				if err := u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint(i)})); err != nil {
					return err
				}
			}
			return nil
		}
	}
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, write(150)))
		require.Equal(t, []string{"free fell back", "locked committed"}, r.texts())
		require.Len(t, b.db.Items("accounts"), 152)
		b.allFree()

		plain := b.client("plain", nil, withoutUnitTable)
		var large *unitofwork.TooLargeError
		require.ErrorAs(t, plain.freely(t.Context(), unitofwork.Work{}, write(80)), &large)
		require.Equal(t, 81, large.Rows)
	})
}

// Many keys are looked at as far as there is room.
func TestAUnitWithoutLocksOfManyKeys(t *testing.T) {
	for _, n := range []int{49, 50} { // with the row above them 50 and 51
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				c := b.client("c", nil, r.traced)
				refs := make([]unitofwork.Record, n)
				for i := range refs {
					refs[i] = accounts.Ref("9", fmt.Sprint(i))
				}
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					return u.Get(ctx, refs...)
				}))
				if n == 49 {
					require.Equal(t, []string{"free committed"}, r.texts())
				} else {
					require.Equal(t, []string{"free fell back", "locked committed"}, r.texts())
				}
			})
		})
	}
}

// Records that no key guards are read as they are, with no lock row.
func TestAUnitWithoutLocksReadsUnguardedRecords(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		plain := unitofwork.Table[customer]{Name: "customers", PartitionKey: "ID"}
		c := b.client("c", nil)
		name := ""
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			ref := plain.Ref("1")
			err := u.Get(ctx, ref)
			name = ref.T.Name
			return err
		}))
		require.Equal(t, "name 1", name)
		require.Equal(t, map[string]int{"TransactGetItems": 1}, c.requests())
	})
}

// Close ends what is under way, also without locks.
func TestCloseOfAUnitWithoutLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		read, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				err := transfer(1)(ctx, u)
				close(read)
				<-ctx.Done()
				return err
			})
		}()
		<-read
		closing, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Close(closing), context.DeadlineExceeded)
		require.ErrorIs(t, <-done, lockset.ErrClosed)
		require.Equal(t, [2]int64{100, 100}, b.balances())
		require.ErrorIs(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1)), lockset.ErrClosed)
	})
}
