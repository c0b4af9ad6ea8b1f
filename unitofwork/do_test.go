package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func TestAUnitIsTwoRequestsAndThreeWithARead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(30)))
		require.Equal(t, 3*rtt, time.Since(start))
		require.Equal(t, map[string]int{"TransactWriteItems": 2, "TransactGetItems": 1}, c.requests())
		require.Equal(t, [2]int64{70, 130}, b.balances())
		b.allFree()

		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, setTo(1)))
		require.Equal(t, map[string]int{"TransactWriteItems": 2}, c.requests())
		require.Equal(t, [2]int64{1, 130}, b.balances())

		var token int64
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p"}, func(ctx context.Context, u *unitofwork.Unit) error {
			token = int64(tokenOf(u))
			return transfer(1)(ctx, u)
		}))
		require.Equal(t, map[string]int{"TransactWriteItems": 2, "TransactGetItems": 2}, c.requests(), "an ID is looked up")
		require.Equal(t, token, b.account("1").Fence, "what is written has the unit's token")
	})
}

func TestWhatFnDoesNotFinishIsNotWritten(t *testing.T) {
	funds := errors.New("not enough funds")
	for name, end := range map[string]func() error{
		"an error": func() error { return funds },
		"a panic":  func() error { panic(funds) },
		"an exit":  func() error { runtime.Goexit(); return nil },
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			ended := make(chan any, 1)
			go func() {
				returned := false
				defer func() {
					if p := recover(); p != nil || !returned {
						ended <- p
					}
				}()
				err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
					if err := transfer(30)(ctx, u); err != nil {
						return err
					}
					return end()
				})
				returned = true
				ended <- err
			}()
			switch got := <-ended; name {
			case "an exit":
				require.Nil(t, got)
			default:
				require.Equal(t, any(funds), got, "as it was")
			}
			require.Equal(t, [2]int64{100, 100}, b.balances())
			b.allFree()
			require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		})
	}
}

func TestAUnitInsideAnotherIsRefused(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			_, err := c.Begin(ctx, unitofwork.Work{Keys: []ordering.Key{"other"}})
			require.ErrorIs(t, err, lockset.ErrNested)
			return c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{"other"}}, transfer(1))
		})
		require.ErrorIs(t, err, lockset.ErrNested)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		b.allFree()
	})
}

func TestALostUnitIsToldAndWritesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		seen := make(chan error, 1)
		done := make(chan error)
		go func() {
			done <- c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := transfer(30)(ctx, u); err != nil {
					return err
				}
				c.net.Partition(true)
				<-ctx.Done()
				seen <- context.Cause(ctx)
				return ctx.Err()
			})
		}()
		require.ErrorIs(t, <-seen, lockset.ErrLost)
		err := <-done
		require.ErrorIs(t, err, lockset.ErrLost)
		require.ErrorIs(t, err, context.Canceled, "which is what the function returned")
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, 1, strings.Count(err.Error(), lockset.ErrLost.Error()), "%v", err)
		require.Equal(t, lockset.StartOver, lockset.NextOf(err))
		require.Equal(t, [2]int64{100, 100}, b.balances())
		require.NoError(t, b.client("next", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, transfer(1)))
	})
}

// A commit that is held up beyond the lease, and sent when others have been
// there, changes nothing. With no ID there is no telling that from here: the
// rows say nothing of the unit any more.
func TestACommitHeldUpBeyondTheLeaseChangesNothing(t *testing.T) {
	for id, next := range map[string]lockset.Next{"": lockset.AskLater, "p1": lockset.StartOver} {
		inBed(t, func(t *testing.T, b *bed) {
			c, other := b.client("c", nil), b.client("other", nil)
			u := c.begins(t, unitofwork.Work{Keys: transferKeys, ID: id})
			require.NoError(t, transfer(30)(t.Context(), u))
			c.net.Pause() // from here on it sends nothing, its commit included
			committed := make(chan error)
			go func() { committed <- u.Commit(t.Context()) }()
			require.NoError(t, other.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
			c.net.Resume()
			err := <-committed
			require.Error(t, err)
			require.Equal(t, next, lockset.NextOf(err), "%v", err)
			time.Sleep(3 * lease)
			require.Equal(t, [2]int64{99, 101}, b.balances())
			b.allFreeOnceAskedFor(customerKey("1"), customerKey("2"))
		})
	}
}

// A holder that does not know that it was taken over is refused by the table.
func TestAnOvertakenHoldersCommitIsRefused(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		u := c.begins(t, unitofwork.Work{Keys: transferKeys})
		require.NoError(t, transfer(30)(t.Context(), u))
		b.bury(transferKeys[0])
		require.NoError(t, other.Do(t.Context(), unitofwork.Work{Keys: transferKeys[:1]}, func(ctx context.Context, u *unitofwork.Unit) error {
			r := accounts.Ref("2", "a")
			require.NoError(t, u.Get(ctx, r))
			r.T.Balance += 5
			return u.Put(r)
		}))
		err := u.Commit(t.Context())
		commit := errorAs[*unitofwork.CommitError](t, err)
		require.ErrorIs(t, err, lockset.ErrLost)
		require.Equal(t, transferKeys[0], commit.Key)
		require.Equal(t, lockset.StartOver, commit.Next)
		require.Equal(t, [2]int64{100, 105}, b.balances())
		b.allFree()
	})
}

// An operator who deletes an ancestor's row lets a coarse lock in beside a fine
// one. Whoever of the two finds its intent gone commits nothing.
func TestACommitNeedsItsIntents(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		fine, coarse := b.client("fine", nil), b.client("coarse", nil)
		u := fine.begins(t, unitofwork.Work{Keys: transferKeys})
		require.NoError(t, transfer(30)(t.Context(), u))
		b.deleteRow(customerKey("1"))
		require.NoError(t, coarse.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, setTo(7)))
		err := u.Commit(t.Context())
		require.ErrorIs(t, err, lockset.ErrLost)
		require.Equal(t, [2]int64{7, 100}, b.balances())
	})
}

func TestStartingOverIsBoundedAndHasAFreshToken(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var tokens []int64
		ahead := time.Now().Add(time.Minute).UnixMicro()
		stale := func(_ context.Context, u *unitofwork.Unit) error {
			tokens = append(tokens, int64(tokenOf(u)))
			b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: ahead})
			ahead += int64(time.Minute / time.Microsecond)
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 6}))
		}
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 3}, stale)
		require.ErrorIs(t, err, fencing.ErrStale)
		commit := errorAs[*unitofwork.CommitError](t, err)
		require.Equal(t, "accounts", commit.Table)
		require.Equal(t, `Customer="1" ID="a"`, commit.Record)
		require.Len(t, tokens, 3)
		require.Less(t, tokens[0], tokens[1])
		require.Less(t, tokens[1], tokens[2])
		require.Equal(t, int64(5), b.account("1").Balance)
		require.Equal(t, map[string]int{"not": 3, "over": 2}, c.outcomes())

		// What it saw it remembers: the next token is high enough.
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, transfer(1)))
	})
}

// Who says nothing of attempts gets as many as outlast bad luck, and no more.
func TestHowOftenDoTries(t *testing.T) {
	for said, want := range map[int]int{0: 10, 1: 1, 2: 2, 12: 12} {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			calls := 0
			err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: said}, func(ctx context.Context, u *unitofwork.Unit) error {
				calls++
				c.net.Partition(true)
				<-ctx.Done()
				c.net.Partition(false)
				return ctx.Err()
			})
			require.ErrorIs(t, err, lockset.ErrLost)
			require.Equal(t, want, calls)
		})
	}
}

// A function that fails because its locks are lost has not decided anything: the unit
// is started over like one whose commit was refused.
func TestAFunctionThatFailsWithItsLocksIsStartedOver(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		calls := 0
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 2}, func(ctx context.Context, u *unitofwork.Unit) error {
			if calls++; calls == 1 {
				c.net.Partition(true)
				<-ctx.Done()
				c.net.Partition(false)
				return errors.New("something else was in its way")
			}
			return transfer(30)(ctx, u)
		}))
		require.Equal(t, 2, calls)
		require.Equal(t, map[string]int{"not": 1, "over": 1, "committed": 1}, c.outcomes())
		require.Equal(t, [2]int64{70, 130}, b.balances())
	})
}

// Work that cannot be is refused before anything is sent, by Do and by Begin.
func TestWorkThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		work  unitofwork.Work
		table bool
		is    any
		says  string
	}{
		"less than none":            {unitofwork.Work{Attempts: -1}, true, new(*locks.ConfigError), "Attempts"},
		"a payload without an ID":   {unitofwork.Work{Payload: []byte("x")}, true, new(*unitofwork.IDError), "payload"},
		"an empty payload, no ID":   {unitofwork.Work{Payload: []byte{}}, true, new(*unitofwork.IDError), "payload"},
		"an ID without a table":     {unitofwork.Work{ID: "p"}, false, new(*unitofwork.IDError), "Config.Table"},
		"an ID that is too long":    {unitofwork.Work{ID: strings.Repeat("x", 1025)}, true, new(*unitofwork.IDError), "1025 bytes"},
		"an ID that is not text":    {unitofwork.Work{ID: "\xff"}, true, new(*unitofwork.IDError), "UTF-8"},
		"an ID that a Ref could be": {unitofwork.Work{ID: "unit:x"}, true, new(*unitofwork.IDError), "begins with"},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("c", nil)
			if !c.table {
				cl = b.client("c", nil, withoutUnitTable)
			}
			c.work.Keys = transferKeys
			u, err := cl.Begin(t.Context(), c.work)
			if err == nil {
				_ = u.Rollback(t.Context())
			}
			for _, err := range []error{err, cl.Do(t.Context(), c.work, transfer(1))} {
				require.ErrorAs(t, err, c.is)
				require.ErrorContains(t, err, c.says)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			}
			require.Empty(t, cl.requests())
		})
	}
	inBed(t, func(t *testing.T, b *bed) {
		longest := unitofwork.Work{Keys: transferKeys, ID: strings.Repeat("x", 1024), Payload: []byte("x")}
		require.NoError(t, b.client("c", nil).Do(t.Context(), longest, transfer(1)))
	})
}

// However a unit ends, its context does, too.
func TestAUnitsContextEndsWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		script faults.Script
		end    func(*testing.T, *bed, *unitofwork.Unit) error
		cause  error
		want   string
	}{
		"committed": {nil, func(_ *testing.T, _ *bed, u *unitofwork.Unit) error {
			return u.Commit(u.Context())
		}, unitofwork.ErrEnded, "committed"},
		"refused": {nil, func(t *testing.T, _ *bed, u *unitofwork.Unit) error {
			require.NoError(t, u.Check(accounts.Ref("1", "a"), unitofwork.Expression{Condition: "attribute_not_exists(ID)"}))
			return u.Commit(t.Context())
		}, unitofwork.ErrEnded, "not"},
		"rolled back": {nil, func(t *testing.T, _ *bed, u *unitofwork.Unit) error {
			return u.Rollback(t.Context())
		}, heartbeat.ErrReleased, "not"},
		"in doubt": {cutAfterCommit(true), func(t *testing.T, _ *bed, u *unitofwork.Unit) error {
			require.NoError(t, u.Replace(accounts.Of(account{Customer: "1", ID: "a"})))
			return u.Commit(t.Context())
		}, unitofwork.ErrEnded, "in doubt"},
		"done by another": {nil, func(t *testing.T, b *bed, u *unitofwork.Unit) error {
			other := b.client("other", nil, onOtherLocks)
			require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks2"}))
			require.NoError(t, other.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "payment"}, transfer(1)))
			return u.Commit(t.Context())
		}, unitofwork.ErrEnded, "already"},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("c", c.script)
			u := cl.begins(t, unitofwork.Work{Keys: transferKeys, ID: "payment"})
			require.NoError(t, u.Context().Err())
			_ = c.end(t, b, u)
			require.ErrorIs(t, context.Cause(u.Context()), c.cause)
			require.Equal(t, map[string]int{c.want: 1}, cl.outcomes())
		})
	}
}

func TestWithoutAUnitTableALargeUnitIsRefusedBeforeItLocksOrWrites(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil, withoutUnitTable)
		var keys []ordering.Key
		for i := range 51 {
			keys = append(keys, ordering.Join(fmt.Sprint("c", i), "x"))
		}
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(context.Context, *unitofwork.Unit) error { panic("not reached") })
		large := errorAs[*unitofwork.TooLargeError](t, err)
		require.Equal(t, 102, large.Rows)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.Empty(t, c.requests())
		require.Empty(t, b.db.Items("locks"))

		err = c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
			return each(100, func(i int) error {
				return u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint("n", i)}))
			})
		})
		require.ErrorAs(t, err, &large)
		require.Equal(t, unitofwork.TooLargeError{Rows: 1, Writes: 100, Most: 100}, *large)
		require.Len(t, b.db.Items("accounts"), 2)
		b.allFree()
	})
}

func TestTheLargestUnitIsTwoRequests(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var keys []ordering.Key
		for i := range 12 {
			keys = append(keys, accountKey(fmt.Sprint("c", i), "x"))
		}
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
			for i := range 76 {
				at := account{Customer: fmt.Sprint("c", i%12), ID: "x"}
				if i >= 12 {
					at.ID = fmt.Sprint("x", i)
					guard := accountKey(at.Customer, "x")
					if err := u.Stage(guard, putOf("accounts", map[string]string{"Customer": at.Customer, "ID": at.ID})); err != nil {
						return err
					}
				} else if err := u.Replace(accounts.Of(at)); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"TransactWriteItems": 2}, c.requests())
		require.Len(t, b.db.Items("accounts"), 2+76)
	})
}

func TestRollbackAndEnd(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		u := c.begins(t, unitofwork.Work{Keys: transferKeys})
		require.NoError(t, transfer(1)(u.Context(), u))
		ctx := endedContext(t.Context())
		require.NoError(t, u.Rollback(ctx), "a caller that has gone still frees its locks")
		require.NoError(t, u.Rollback(t.Context()))
		require.ErrorIs(t, u.Commit(t.Context()), unitofwork.ErrEnded)
		require.ErrorIs(t, u.Replace(accounts.Of(account{Customer: "1", ID: "a"})), unitofwork.ErrEnded)
		require.ErrorIs(t, u.Get(t.Context(), accounts.Ref("1", "a")), unitofwork.ErrEnded)
		require.ErrorIs(t, context.Cause(u.Context()), heartbeat.ErrReleased)
		require.Equal(t, [2]int64{100, 100}, b.balances())
		b.allFree()

		u, err := c.Begin(t.Context(), unitofwork.Work{Keys: transferKeys})
		require.NoError(t, err)
		require.NoError(t, u.Commit(t.Context()), "nothing staged: the locks are checked and freed")
		require.NoError(t, u.Rollback(t.Context()))
		b.allFree()
	})
}

func TestACallersEndReleasesWithoutWriting(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Do(ctx, unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := transfer(1)(ctx, u); err != nil {
				return err
			}
			cancel()
			<-ctx.Done()
			return nil // it does not look
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, lockset.Decide, lockset.NextOf(err), "nothing was sent")
		require.Equal(t, [2]int64{100, 100}, b.balances())
		b.allFree()

		err = c.Do(ctx, unitofwork.Work{Keys: transferKeys}, transfer(1))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, lockset.Decide, lockset.NextOf(err))
		ctx, cancel = context.WithCancel(t.Context())
		err = c.Do(ctx, unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			cancel()
			return transfer(1)(ctx, u)
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, lockset.Decide, lockset.NextOf(err))
	})
}

// Do ends the unit: a function that does is told, and nothing is written,
// whatever it makes of that.
func TestAFunctionThatEndsItsUnit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for _, end := range []func(*unitofwork.Unit) error{
			func(u *unitofwork.Unit) error { return u.Commit(t.Context()) },
			func(u *unitofwork.Unit) error { return u.Rollback(t.Context()) },
		} {
			err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
				require.NoError(t, transfer(30)(ctx, u))
				require.ErrorIs(t, end(u), unitofwork.ErrManaged)
				return nil
			})
			require.ErrorIs(t, err, unitofwork.ErrManaged)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		}
		require.Equal(t, [2]int64{100, 100}, b.balances())
		require.Equal(t, map[string]int{"not": 2}, c.outcomes())
		b.allFree()
	})
}

// What fn returns is fn's: another unit's doubt or commit error in it does not
// pass for this unit's.
func TestFnsErrorIsNotTheUnits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for _, foreign := range []error{
			&unitofwork.InDoubtError{ID: "another"}, unitofwork.ErrAlreadyCommitted,
			&unitofwork.CommitError{Next: lockset.StartOver, Err: fencing.ErrStale},
			&fencing.StaleError{Token: 1, Found: 2}, unitofwork.ErrSuperseded, // another store's word, another set's loss
			&heartbeat.LostError{Reason: heartbeat.ErrReleased},
		} {
			calls := 0
			err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 3}, func(context.Context, *unitofwork.Unit) error {
				calls++
				return foreign
			})
			require.Equal(t, foreign, err)
			require.Equal(t, 1, calls)
		}
		require.Equal(t, map[string]int{"not": 6}, c.outcomes())
		b.allFree()
	})
}

// A fence that no unit wrote is named; starting over would not help.
func TestAFenceThatIsNoTokenIsNamed(t *testing.T) {
	for _, fence := range []types.AttributeValue{
		text("soon"), number("9007199254740993"), number("1e30"),
		number("9007199254740991"), // a token, but of the year 2255
	} {
		inBed(t, func(t *testing.T, b *bed) {
			b.putItem("accounts", map[string]types.AttributeValue{"Customer": text("1"), "ID": text("odd"), "_fence": fence})
			c := b.client("c", nil)
			odd := unitofwork.Table[struct{ Customer, ID string }]{Name: "accounts", PartitionKey: "Customer", SortKey: "ID"}
			err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"customer:1"}, Attempts: 3}, func(ctx context.Context, u *unitofwork.Unit) error {
				require.NoError(t, u.Get(ctx, odd.Ref("1", "odd")))
				return u.Stage("customer:1", updateOf("accounts", types.Update{}, map[string]string{"Customer": "1", "ID": "odd"}))
			})
			require.ErrorAs(t, err, new(*unitofwork.FenceError))
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.ErrorContains(t, err, `ID="odd"`)
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)), "others are not poisoned by it")
			b.allFree()
		})
	}
}

// A caller that goes away while the commit meets nothing but conflicts.
func TestACommitThatWasBusyAllAlong(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", atCommits(1, always, faults.Conflict(1)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Do(ctx, unitofwork.Work{Keys: transferKeys}, transfer(30))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, lockset.TryLater, lockset.NextOf(err))
		b.allFree()
	})
}

// It compares the deadline with the clock, as heartbeat's tests show of that kind.
func TestTheContextOfAUnitUnderLocksIsLikeThatOfASet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		set, err := c.locks.TryAcquire(t.Context(), []ordering.Key{"a"})
		require.NoError(t, err)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			require.IsType(t, set.Context(), ctx)
			require.Equal(t, ctx, u.Context())
			return nil
		}))
		require.NoError(t, set.Release(t.Context()))
	})
}
