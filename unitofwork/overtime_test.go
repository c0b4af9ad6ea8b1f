package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
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
				t.Run(fmt.Sprintf("%s, %s from %d on are lost", name, what, n), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
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
						_, err = heir.Recover(t.Context())
						require.NoError(t, err)
						set, err := heir.locks.Acquire(t.Context(), []ordering.Key{customerKey("1"), customerKey("2")})
						require.NoError(t, err)
						require.NoError(t, set.Release(t.Context()))
						b.allFree()
					})
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
			t.Run(fmt.Sprint(name, ", for ever: ", forever), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
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
			})
		}
	}
	inBed(t, func(t *testing.T, b *bed) { // Begin, too; and a set waits as long as its context lives
		c, holder := b.client("c", nil), b.client("holder", nil)
		b.hold(holder, 5*lease, accountKey("1", "a"))
		_, err := c.Begin(t.Context(), unitofwork.Work{Keys: []ordering.Key{accountKey("1", "a")}})
		require.ErrorIs(t, err, lockset.ErrWaited)
		set, err := c.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
		require.NoError(t, err)
		require.NoError(t, set.Release(t.Context()))
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

// A context that ended before the decision was sent leaves nothing to find out.
func TestADecisionThatWasNotSentIsNotAskedAbout(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var c *client
		var ended time.Time
		c = b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
			u.TransactionSize = 2
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Progress, func(_ context.Context, p trace.Event) {
				if p.Phase == hooks.Preparing && p.Done == p.Of {
					c.net.Partition(true)
					ended = time.Now()
					cancel()
				}
			}))
		})
		err := c.Client.Do(ctx, unitofwork.Work{Keys: transferKeys, Lock: true}, transfer(1))
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
		require.LessOrEqual(t, time.Since(ended), attempt)
		c.net.Partition(false)
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, 0, len(b.db.Items("units")), "the journal is removed, too")
		b.allFree()
	})
}

// So does one that ended before the commit was sent: the locks are released in the background.
func TestACommitThatWasNotSentIsReleasedInTheBackground(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := b.client("c", nil)
		var ended time.Time
		err := c.Client.Do(ctx, unitofwork.Work{Keys: transferKeys, Lock: true}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(1)(ctx, u)
			c.net.Partition(true)
			ended = time.Now()
			cancel()
			return err
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
		require.LessOrEqual(t, time.Since(ended), attempt)
		c.net.Partition(false)
		require.NoError(t, c.Close(t.Context()))
		b.allFree()
	})
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
			t.Run(fmt.Sprintf("%s, ID %q", name, id), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					client := b.client("c", func(faults.Call) faults.Fault { return faults.LoseRequest(faults.Hang) })
					began := time.Now()
					err := client.freely(t.Context(), unitofwork.Work{ID: id, Wait: c.wait}, transfer(1))
					require.ErrorAs(t, err, new(*lockset.NoAnswerError))
					require.Equal(t, lockset.TryLater, lockset.NextOf(err))
					require.LessOrEqual(t, time.Since(began), c.most)
				})
			})
		}
	}
}
