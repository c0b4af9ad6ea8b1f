package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

const attempt = lease / 10 // the default AttemptTimeout

// A unit whose context ends while nothing answers returns within one AttemptTimeout, whatever it was
// doing, and cleans up in the background; but for a commit that was sent: what became of that is
// found out, for at most a lease.
func TestAUnitReturnsInTimeWheneverItsContextEnds(t *testing.T) {
	for name, c := range map[string]struct {
		work   unitofwork.Work
		writes int
	}{
		"without locks": {unitofwork.Work{}, 1},
		"under locks":   {unitofwork.Work{Keys: transferKeys, Lock: true}, 1},
		"by a journal":  {unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Lock: true}, 101},
	} {
		for what, fault := range map[string]faults.Fault{"requests": faults.LoseRequest(faults.Hang), "answers": faults.LoseAnswer(faults.Hang)} {
			for n, all := int64(1), false; !all; n++ {
				require.Less(t, n, int64(100))
				runInBed(t, fmt.Sprintf("%s, %s from %d on are lost", name, what, n), func(t *testing.T, b *bed) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var sent atomic.Int64
					var over atomic.Bool
					var ended time.Time
					client := b.client("c", func(faults.Call) faults.Fault {
						k := sent.Add(1)
						if k < n || over.Load() {
							return faults.Pass()
						}
						if k == n {
							time.AfterFunc(attempt/3, func() { ended = time.Now(); cancel() })
						}
						return fault
					})
					err := client.Client.Do(ctx, c.work, func(ctx context.Context, u *unitofwork.Unit) error {
						from := accounts.Ref("1", "a")
						if err := u.Get(ctx, from); err != nil {
							return err
						}
						from.T.Balance--
						err := u.Put(from)
						for i := 1; i < c.writes; i++ {
							err = errors.Join(err, u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint("new", i)})))
						}
						return err
					})
					if all = sent.Load() < n; all {
						require.NoError(t, err)
						return
					}
					took := time.Since(ended)
					if err == nil || errors.Is(err, unitofwork.ErrInDoubt) { // its commit was sent
						require.LessOrEqual(t, took, 2*lease+attempt)
					} else {
						require.LessOrEqual(t, took, attempt, "%v", err)
					}
					over.Store(true)
					closed := time.Now()
					require.NoError(t, client.Close(t.Context()))
					require.NoError(t, client.locks.Close(t.Context()))
					require.LessOrEqual(t, time.Since(closed), lease)
					time.Sleep(2 * lease)
					heir := b.client("heir", nil)
					heir.recovers(t)
					heir.passes(t, customerKey("1"), customerKey("2"))
					b.allFree()
				})
			}
		}
	}
}

// The context of a request that a server serves has no end: a unit does not wait for ever all the same.
func TestAUnitWaitsForTwoLeasesByDefault(t *testing.T) {
	for name, work := range map[string]unitofwork.Work{
		"under locks": {Keys: []ordering.Key{accountKey("1", "a")}, Lock: true}, "without": {},
	} {
		for _, forever := range []bool{false, true} {
			runInBed(t, fmt.Sprint(name, ", for ever: ", forever), func(t *testing.T, b *bed) {
				b.hold(b.client("holder", nil), 5*lease, accountKey("1", "a"))
				if forever {
					work.Wait = lockset.Forever()
				}
				began := time.Now()
				err := b.client("c", nil).Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					from := accounts.Ref("1", "a")
					if err := u.Get(ctx, from); err != nil {
						return err
					}
					return u.Put(from)
				})
				if forever {
					require.NoError(t, err)
					return
				}
				require.ErrorAs(t, err, new(*lockset.HeldError))
				require.ErrorIs(t, err, lockset.ErrWaited)
				require.InDelta(t, 2*lease, time.Since(began), float64(attempt))
				time.Sleep(5 * lease)
			})
		}
	}
	inBed(t, func(t *testing.T, b *bed) { // Begin, too; and a set waits as long as its context lives
		c, holder := b.client("c", nil), b.client("holder", nil)
		b.hold(holder, 5*lease, accountKey("1", "a"))
		_, err := c.Begin(t.Context(), unitofwork.Work{Keys: []ordering.Key{accountKey("1", "a")}})
		require.ErrorIs(t, err, lockset.ErrWaited)
		c.passes(t, accountKey("1", "a"))
	})
}

// What a function takes under its locks is no part of the wait: a unit that lost them, however late,
// waits for them again.
func TestTheTimeOfAFunctionIsNoPartOfTheWait(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, operator, n := b.client("c", nil), b.client("operator", nil), 0
		key := accountKey("1", "a")
		err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{key}, Lock: true}, func(ctx context.Context, u *unitofwork.Unit) error {
			if n++; n == 1 {
				time.Sleep(10 * lease)
				require.NoError(t, b.take(key, u.Nonce(), false))
				b.hold(operator, lease/2, key)
			}
			from := accounts.Ref("1", "a")
			if err := u.Get(ctx, from); err != nil {
				return err
			}
			return u.Put(from)
		})
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
}

// Twelve records of 390 KB over a link of a megabyte a second.
func TestLargeRecordsOverASlowLink(t *testing.T) {
	const link = 1 << 20
	inBed(t, func(t *testing.T, b *bed) {
		type blob struct {
			ID   string
			Body []byte
		}
		blobs := unitofwork.Table[blob]{Name: "blobs", PartitionKey: "ID", Guard: func(x *blob) ordering.Key { return ordering.Join("blobs", x.ID) }}
		b.createTable("blobs", "ID")
		c := b.client("c", func(call faults.Call) faults.Fault {
			bytes := 0
			if in, is := call.Input.(*dynamodb.TransactWriteItemsInput); is {
				for _, action := range in.TransactItems {
					bytes += requests.SizeOf(action).Sent
				}
			}
			return faults.Slow(time.Duration(bytes) * time.Second / link)
		})
		n := 12
		if testing.Short() {
			n = 4 // they take longer than an AttemptTimeout as well
		}
		require.NoError(t, c.Client.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			var err error
			for i := range n {
				err = errors.Join(err, u.Replace(blobs.Of(blob{fmt.Sprint(i), make([]byte, 390<<10)})))
			}
			return err
		}))
		require.Len(t, b.db.Items("blobs"), n)
		b.allFree()
	})
}

// A context that ended before the commit, or the decision, was sent leaves nothing to find out: its unit
// is not in doubt, even if its locks cannot be released yet. They are, in the background.
func TestACommitThatWasNotSentIsReleasedInTheBackground(t *testing.T) {
	for _, journal := range []bool{false, true} {
		runInBed(t, fmt.Sprint("by a journal: ", journal), func(t *testing.T, b *bed) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var c *client
			var over time.Time
			ends := func() {
				c.net.Partition(true)
				over = time.Now()
				cancel()
			}
			c = b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
				u.TransactionSize = map[bool]int{true: 2}[journal]
				u.Trace = trace.Join(u.Trace, hooks.On(trace.Progress, func(_ context.Context, p trace.Event) {
					if p.Phase == hooks.Preparing && p.Done == p.Of {
						ends()
					}
				}))
			})
			err := c.Client.Do(ctx, unitofwork.Work{Keys: transferKeys, Lock: true}, func(ctx context.Context, u *unitofwork.Unit) error {
				err := transfer(1)(ctx, u)
				if !journal {
					ends()
				}
				return err
			})
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
			require.Equal(t, map[string]int{"not": 1}, c.outcomes())
			require.LessOrEqual(t, time.Since(over), attempt)
			c.net.Partition(false)
			require.NoError(t, c.Close(t.Context()))
			require.Empty(t, b.db.Items("units"), "the journal is removed, too")
			require.Equal(t, [2]int64{100, 100}, b.balances())
			b.allFree()
		})
	}
}

// A unit without locks that names its wait reads for no longer, and does not look for its ID where
// DynamoDB did not answer its function.
func TestAUnitReadsForNoLongerThanItWaits(t *testing.T) {
	for name, c := range map[string]struct {
		wait lockset.Wait
		most time.Duration
	}{
		"for nobody": {lockset.For(0), 3 * attempt}, "for 3 s": {lockset.For(3 * time.Second), 3*time.Second + 2*attempt}, "by default": {lockset.Wait{}, lease + 2*attempt},
	} {
		for _, id := range []string{"", "p"} {
			runInBed(t, fmt.Sprintf("%s, ID %q", name, id), func(t *testing.T, b *bed) {
				client := b.client("c", func(faults.Call) faults.Fault { return faults.LoseRequest(faults.Hang) })
				began := time.Now()
				err := client.freely(t.Context(), unitofwork.Work{ID: id, Wait: c.wait}, transfer(1))
				require.ErrorAs(t, err, new(*lockset.NoAnswerError))
				require.Equal(t, lockset.TryLater, lockset.NextOf(err))
				require.LessOrEqual(t, time.Since(began), c.most)
			})
		}
	}
}

// waysToCommit are the works of units that commit in different ways.
var waysToCommit = map[string]unitofwork.Work{
	"without locks": {},
	"under locks":   {Lock: true, Keys: []ordering.Key{customerKey("1"), customerKey("9")}},
}

// An error of Get that a function ignores fails the commit, as one of Put does: a check for a
// record that could not be read has not been made.
func TestAnIgnoredErrorOfGetFailsTheCommit(t *testing.T) {
	over := endedContext(context.Background())
	denied := &types.ResourceNotFoundException{}
	for way, work := range waysToCommit {
		for name, ignored := range map[string]struct {
			get func(context.Context, *unitofwork.Unit) error
			is  error
		}{
			"a refusal": {readOnly(absent.Ref("1")), denied},
			"a context that has ended": {func(_ context.Context, u *unitofwork.Unit) error {
				return u.Get(over, customers.Ref("1"))
			}, context.Canceled},
			"a record that is named twice": {readOnly(customers.Ref("1"), customers.Ref("1")), nil},
		} {
			runInBed(t, way+", "+name, func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				err := c.Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					failed := ignored.get(ctx, u)
					require.Error(t, failed)
					require.NoError(t, u.Get(ctx, customers.Ref("9")), "a later one succeeds")
					return u.Insert(customers.Of(customer{ID: "9", Name: "twice"}))
				})
				switch {
				case ignored.is == nil:
					require.ErrorAs(t, err, new(*unitofwork.StageError))
				case errors.As(ignored.is, new(*types.ResourceNotFoundException)):
					require.ErrorAs(t, err, &denied)
				default:
					require.ErrorIs(t, err, ignored.is)
				}
				require.Empty(t, b.customer("9"))

				if work.Lock {
					u := c.begins(t, unitofwork.Work{Keys: work.Keys})
					require.Error(t, ignored.get(t.Context(), u))
					require.NoError(t, u.Insert(customers.Of(customer{ID: "9", Name: "twice"})))
					require.Error(t, u.Commit(t.Context()))
					require.Empty(t, b.customer("9"))
				}
			})
		}
	}
}

// A panic in a call that the function recovers fails the commit, as an error of the call would: what
// it was to read or stage is missing.
func TestARecoveredPanicFailsTheCommit(t *testing.T) {
	panics := customers
	panics.Guard = func(c *customer) ordering.Key {
		if c.Name != "" { // as it is read, or made
			panic("of a guard")
		}
		return customerKey(c.ID)
	}
	for way, work := range waysToCommit {
		for name, call := range map[string]func(context.Context, *unitofwork.Unit) error{
			"Get": func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, panics.Ref("1")) },
			"Replace": func(_ context.Context, u *unitofwork.Unit) error {
				two := panics.Of(customer{ID: "2"})
				two.T.Name = "changed"
				return u.Replace(customers.Of(customer{ID: "1"}), two)
			},
			"Update": func(_ context.Context, u *unitofwork.Unit) error {
				return u.Update(customers.Ref("1"), unitofwork.Expression{Update: "SET N = :n", Values: map[string]any{":n": panicking{}}})
			},
		} {
			runInBed(t, way+", "+name, func(t *testing.T, b *bed) {
				err := b.client("c", nil).Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					require.Panics(t, func() { _ = call(ctx, u) })
					return u.Insert(customers.Of(customer{ID: "9", Name: "half"}))
				})
				require.ErrorContains(t, err, "panicked")
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				require.Empty(t, b.customer("9"))
			})
		}
	}
}

// panicking cannot be encoded.
type panicking struct{}

func (panicking) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	panic("of a method")
}

// absent has its records in a table that is not there.
var absent = unitofwork.Table[customer]{
	Name: "others", PartitionKey: "ID",
	Guard: func(c *customer) ordering.Key { return customerKey(c.ID) },
}

// The same of a member of a group.
func TestAnIgnoredErrorOfGetInAGroup(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		bad := come{fn: func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(100)(ctx, u)
			ref := accounts.Ref("1", "a")
			_ = u.Get(ctx, ref, ref)
			return err
		}}
		errs := b.crowd(b.client("c", nil), come{fn: transfer(1)}, bad, come{fn: transfer(1)})
		require.NoError(t, errs[0])
		require.ErrorAs(t, errs[1], new(*unitofwork.StageError))
		require.NoError(t, errs[2])
		require.Equal(t, [2]int64{98, 102}, b.balances())
	})
}

// The context of a function ends with its unit, however that ends: what the function started under
// it does not go on.
func TestAFunctionsContextEndsWithItsUnit(t *testing.T) {
	for way, work := range waysToCommit {
		for how, result := range map[string]error{"committed": nil, "not committed": errors.New("no")} {
			runInBed(t, way+", "+how, func(t *testing.T, b *bed) {
				var within context.Context
				err := b.client("c", nil).Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					within = ctx
					return errors.Join(u.Insert(customers.Of(customer{ID: "9"})), result)
				})
				require.ErrorIs(t, err, result)
				require.ErrorIs(t, context.Cause(within), unitofwork.ErrEnded)
			})
		}
	}
}

// The commit does not wait for a read that the function has left under way: the read ends with the
// function.
func TestAReadThatAFunctionLeavesUnderWayEnds(t *testing.T) {
	for way, work := range waysToCommit {
		runInBed(t, way, func(t *testing.T, b *bed) {
			var hangs atomic.Bool
			reads := func(call faults.Call) bool { return hangs.Load() && call.Op == "TransactGetItems" }
			c := b.client("c", when(reads, faults.LoseAnswer(faults.Hang)))
			read := make(chan error, 1)
			var returned time.Time
			require.NoError(t, c.Client.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
				hangs.Store(true)
				go func() { read <- u.Get(ctx, customers.Ref("1")) }()
				time.Sleep(rtt)
				hangs.Store(false)
				returned = time.Now()
				return u.Insert(customers.Of(customer{ID: "9"}))
			}))
			require.ErrorIs(t, <-read, unitofwork.ErrEnded)
			require.Less(t, time.Since(returned), 10*rtt)
		})
	}
}

// The keys that a caller names are those that it named when it called.
func TestNamedKeysMayBeChangedAfterTheCall(t *testing.T) {
	for _, lock := range []bool{true, false} {
		runInBed(t, fmt.Sprintf("lock %t", lock), func(t *testing.T, b *bed) {
			keys := []ordering.Key{customerKey("1"), customerKey("2")}
			work := unitofwork.Work{Keys: keys, Lock: lock}
			require.NoError(t, b.client("c", nil).freely(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error {
				keys[1] = "x"
				return u.Replace(customers.Of(customer{ID: "1", Name: "n"}))
			}))
			var rows []string
			for _, item := range b.db.Items("locks") {
				rows = append(rows, lockrow.TextOf(item["key"]))
			}
			require.ElementsMatch(t, []string{"customer:1", "customer:2"}, rows)
		})
	}
}
