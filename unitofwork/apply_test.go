package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What a journal says is done once, whoever does it, and however late some of them
// are.

// deposits adds one to each of many accounts of one customer, under one key: it
// takes several transactions, of which the last frees the key.
func deposits(n int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		for i := range n {
			ref := accounts.Ref("c000", fmt.Sprint(i))
			if err := u.Update(ref, unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": 1}}); err != nil {
				return err
			}
		}
		return nil
	}
}

var ofDeposits = []ordering.Key{customerKey("c000")}

// A key under which some is written already, by transactions of its own, is kept
// until the rest is: nobody writes twice what the dead has written.
func TestAStepThatWasWrittenInPart(t *testing.T) {
	for died := 1; died <= 3; died++ {
		for _, executed := range []bool{false, true} {
			t.Run(fmt.Sprint(died, executed), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					dead := b.client("dead", atPhase(applies, died, faults.CrashHere(executed)), inSmallTransactions)
					over := make(chan struct{})
					go func() {
						defer close(over)
						_ = dead.Do(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: ofDeposits}, deposits(20))
					}()
					<-dead.net.Dead()
					if died < 3 {
						sum, _ := b.total()
						require.Less(t, sum, int64(20), "the test is about one that has not done all")
						require.Contains(t, b.row(ofDeposits[0]), "unit")
					}
					_, err := b.client("heir", nil).Recover(t.Context())
					require.NoError(t, err)
					sum, n := b.total()
					require.Equal(t, int64(20), sum)
					require.Equal(t, 20, n)
					b.allFree()
					b.nothingLeft()
					<-over
				})
			})
		}
	}
}

// Whoever comes late with what is done long since finds the keys free, or
// another's, and writes nothing: not even what was deleted meanwhile, and so has no
// stamp any more.
func TestWhoComesLateToAJournalWritesNothing(t *testing.T) {
	for n := 1; n <= 3; n++ { // the last of them frees the key
		for _, since := range []string{"deleted", "written", "held by another"} {
			t.Run(fmt.Sprint(since, n), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					c := b.client("A", atPhase(applies, n, faults.Duplicate(2*lease)), inSmallTransactions)
					require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: ofDeposits}, deposits(20)))
					later := b.client("later", nil, inSmallTransactions)
					u, err := later.Begin(t.Context(), unitofwork.Work{Keys: ofDeposits})
					require.NoError(t, err)
					for i := range 20 {
						ref := accounts.Ref("c000", fmt.Sprint(i))
						if since == "written" {
							ref.T.Balance = 5
							require.NoError(t, u.Replace(ref))
						} else {
							require.NoError(t, u.Delete(ref))
						}
					}
					want := int64(0)
					if since == "held by another" {
						for i := range 20 { // as a program without locks would
							b.delete("accounts", map[string]string{"Customer": "c000", "ID": fmt.Sprint(i)})
						}
						time.Sleep(3 * lease)
					}
					require.NoError(t, u.Commit(t.Context()))
					if since == "written" {
						want = 100
					}
					time.Sleep(3 * lease)
					c.net.Wait()
					require.Equal(t, 1, c.net.Counts()[faults.Duplicated])
					sum, _ := b.total()
					require.Equal(t, want, sum)
					b.allFree()
				})
			})
		}
	}
}

// Two do the same; the one that is late meets locks that are free or another's,
// and leaves alone what was under them.
func TestAHeirThatIsLateWritesNothing(t *testing.T) {
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inSmallTransactions)
				over := make(chan struct{})
				go func() {
					defer close(over)
					_ = dead.Do(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: ofDeposits}, deposits(20))
				}()
				<-dead.net.Dead()
				quick := b.client("quick", nil, inSmallTransactions)
				_, err := quick.locks.TryAcquire(t.Context(), ofDeposits) // its watch begins
				require.ErrorAs(t, err, new(*lockset.HeldError))
				var slow *client
				stopped := make(chan struct{})
				late := atPhase(applies, n, faults.DeliverLate(0, faults.Reset))
				slow = b.client("slow", func(c faults.Call) faults.Fault {
					if late(c).Kind == faults.DeliveredLate {
						slow.net.Pause()
						close(stopped)
					}
					return faults.Pass()
				}, inSmallTransactions)
				done := make(chan error)
				go func() {
					_, err := slow.Recover(t.Context())
					done <- err
				}()
				<-stopped
				require.NoError(t, quick.Do(t.Context(), unitofwork.Work{Keys: ofDeposits}, func(_ context.Context, u *unitofwork.Unit) error {
					for i := range 20 {
						if err := u.Delete(accounts.Ref("c000", fmt.Sprint(i))); err != nil {
							return err
						}
					}
					return nil
				}))
				_, left := b.total()
				require.Zero(t, left)
				slow.net.Resume()
				require.NoError(t, <-done)
				_, left = b.total()
				require.Zero(t, left, "it wrote what was deleted since")
				b.allFree()
				<-over
			})
		})
	}
}

// The decision was carried out and its sender was not told: it asks by writing, and
// is told that it has committed.
func TestADecisionWhoseAnswerIsLost(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := b.client("A", func(c faults.Call) faults.Fault {
			if phaseOf(c) == decides {
				time.AfterFunc(lease/20, func() { cancel(errors.New("the caller is gone")) })
				return faults.LoseAnswer(faults.Hang)
			}
			return faults.Pass()
		}, inSmallTransactions)
		_, stage, all := fewAccounts()
		require.NoError(t, c.Do(ctx, unitofwork.Work{Keys: keysOfFew()}, stage))
		require.True(t, b.allOrNothing(all))
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
		b.allFree()
		b.nothingLeft()
	})
}

// The decision was carried out, and its sender hung until others had taken its unit
// for dead and finished it: it has committed, and does nothing again.
func TestAnOwnerThatHungWhileOthersFinishedItsUnit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var c *client
		var hung atomic.Bool
		stopped := make(chan struct{})
		c = b.client("A", func(call faults.Call) faults.Fault {
			if phaseOf(call) == decides && hung.CompareAndSwap(false, true) {
				time.AfterFunc(2*rtt, func() { c.net.Pause(); close(stopped) })
				return faults.LoseAnswer(faults.Hang)
			}
			return faults.Pass()
		}, inSmallTransactions)
		told := make(chan error, 1)
		_, stage, all := fewAccounts()
		calls := 0
		go func() {
			told <- c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew(), Attempts: 3}, func(ctx context.Context, u *unitofwork.Unit) error {
				calls++
				return stage(ctx, u)
			})
		}()
		<-stopped
		found, err := b.client("heir", nil).Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, found.Committed, 1)
		after := b.db.Items("accounts")
		c.net.Resume()
		require.NoError(t, <-told)
		require.Equal(t, 1, calls, "what is done is not done again")
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
		require.True(t, b.allOrNothing(all))
		require.Equal(t, after, b.db.Items("accounts"))
		b.nothingLeft()
	})
}

// A part that nobody answers ends its chain: what comes after it frees a key above it,
// or the very key whose records it was to write.
func TestAPartWithoutAnAnswerEndsItsChain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var mu sync.Mutex
		first := ""
		c := b.client("A", func(c faults.Call) faults.Fault {
			if phaseOf(c) != applies {
				return faults.Pass()
			}
			mu.Lock()
			defer mu.Unlock()
			token := *c.Input.(*dynamodb.TransactWriteItemsInput).ClientRequestToken
			if first == "" {
				first = token
			}
			if token == first {
				return faults.LoseRequest(faults.Reset)
			}
			return faults.Pass()
		}, inSmallTransactions)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: ofDeposits}, deposits(20)), "it has committed")
		sum, _ := b.total()
		require.Zero(t, sum)
		require.Contains(t, b.row(ofDeposits[0]), "unit")
		_, err := b.client("heir", nil).Recover(t.Context())
		require.NoError(t, err)
		sum, _ = b.total()
		require.Equal(t, int64(20), sum)
		b.allFree()
		b.nothingLeft()
	})
}

// Lost is lost, also if nobody has come for the locks yet.
func TestALargeUnitWhoseLeaseRanOutCommitsNothing(t *testing.T) {
	for _, phase := range phases[:3] {
		t.Run(string(phase), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := b.tables()
				var c *client
				c = b.client("A", nil, atProgress(phase, func() {
					c.net.Partition(true)
					time.Sleep(lease)
					c.net.Partition(false)
				}))
				_, stage, _ := fewAccounts()
				err := c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew(), Attempts: 1}, stage)
				require.ErrorIs(t, err, lockset.ErrLost)
				require.Equal(t, lockset.StartOver, lockset.NextOf(err))
				b.nothingWritten(before)
			})
		})
	}
}

// Whatever a unit leaves of its journal is removed, and the entry by which it is
// found last.
func TestRecoverRemovesWhatIsLeftOfAJournal(t *testing.T) {
	large := func(ctx context.Context, u *unitofwork.Unit) error {
		for i := range 3 {
			ref := putOf("accounts", map[string]string{"Customer": "c000", "ID": fmt.Sprint(i), "Text": strings.Repeat("x", 390<<10)})
			if err := u.Stage(ofDeposits[0], ref); err != nil {
				return err
			}
		}
		return errors.Join(u.Get(ctx, accounts.Ref("c000", "0")), deposits(0)(ctx, u))
	}
	small := func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 2 }
	for _, at := range []phase{journals, removes} {
		for n := 1; n <= 4; n++ {
			for _, executed := range []bool{false, true} {
				if testing.Short() && (executed == (n%2 == 0) || n == 2) {
					continue
				}
				t.Run(fmt.Sprint(at, n, executed), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						dead := b.client("dead", atPhase(at, n, faults.CrashHere(executed)), small)
						over := make(chan struct{})
						go func() {
							defer close(over)
							_ = dead.Do(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: ofDeposits}, large)
						}()
						select {
						case <-dead.net.Dead():
						case <-over: // it has no so many requests
						}
						_, err := b.client("other", nil).Recover(t.Context())
						require.NoError(t, err)
						b.nothingLeft()
						<-over
						b.allFreeOnceAskedFor(ofDeposits...)
					})
				})
			}
		}
	}
}

// The first row of a journal, and the entry by which Recover finds its unit, are
// written as one. A copy of that write arrives when the row was removed and the
// entry was not yet, or when both were: nothing stays that Recover does not find.
func TestALateCopyOfAJournalsFirstRow(t *testing.T) {
	const arrives = 3 * time.Second
	for name, removed := range map[string]time.Duration{"before the entry is removed": arrives + time.Second, "after it": 0} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before, start, written := b.tables(), time.Now(), 0
				var mu sync.Mutex
				c := b.client("A", func(c faults.Call) faults.Fault {
					mu.Lock()
					defer mu.Unlock()
					switch phaseOf(c) {
					case journals:
						if written++; written == 1 {
							return faults.DeliverLate(arrives, faults.Reset)
						}
						return faults.LoseRequest(faults.Reset)
					case removes:
						if _, entry := c.Input.(*dynamodb.TransactWriteItemsInput); entry && time.Since(start) < removed {
							return faults.LoseRequest(faults.Reset)
						}
					}
					return faults.Pass()
				}, inSmallTransactions)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, stage, _ := fewAccounts()
				require.Error(t, c.Do(ctx, unitofwork.Work{Keys: keysOfFew()}, stage))
				time.Sleep(2 * arrives)
				if removed == 0 {
					_, err := b.client("other", nil).Recover(t.Context())
					require.NoError(t, err)
				}
				b.nothingWritten(before)
				b.nothingLeft()
			})
		})
	}
}
