package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
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
			runInBed(t, fmt.Sprint(died, executed), func(t *testing.T, b *bed) {
				dead := b.client("dead", atPhase(applies, died, faults.CrashHere(executed)), inSmallTransactions)
				dead.diesIn(t, unitofwork.Work{Keys: ofDeposits}, deposits(20))
				if died < 3 {
					sum, _ := b.total()
					require.Less(t, sum, int64(20), "the test is about one that has not done all")
					require.Contains(t, b.row(ofDeposits[0]), "unit")
				}
				b.client("heir", nil).recovers(t)
				sum, n := b.total()
				require.Equal(t, int64(20), sum)
				require.Equal(t, 20, n)
				b.allFree()
				b.nothingLeft()
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
			runInBed(t, fmt.Sprint(since, n), func(t *testing.T, b *bed) {
				c := b.client("A", atPhase(applies, n, faults.Duplicate(2*lease)), inSmallTransactions)
				require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: ofDeposits}, deposits(20)))
				later := b.client("later", nil, inSmallTransactions)
				u := later.begins(t, unitofwork.Work{Keys: ofDeposits})
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
		}
	}
}

// Two do the same; the one that is late meets locks that are free or another's,
// and leaves alone what was under them.
func TestAHeirThatIsLateWritesNothing(t *testing.T) {
	for n := 1; n <= 3; n++ {
		runInBed(t, fmt.Sprint(n), func(t *testing.T, b *bed) {
			dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inSmallTransactions)
			dead.diesIn(t, unitofwork.Work{Keys: ofDeposits}, deposits(20))
			quick := b.client("quick", nil, inSmallTransactions)
			_, err := quick.locks.TryAcquire(t.Context(), ofDeposits) // its watch begins
			require.ErrorAs(t, err, new(*lockset.HeldError))
			var slow *client
			stopped := make(chan struct{})
			late := atPhase(applies, n, faults.DeliverLate(0, faults.Reset))
			slow = b.client("slow", upon(func(c faults.Call) bool { return late(c).Kind == faults.DeliveredLate }, func() {
				slow.net.Pause()
				close(stopped)
			}), inSmallTransactions)
			done := make(chan error)
			go func() {
				_, err := slow.Recover(t.Context())
				done <- err
			}()
			<-stopped
			require.NoError(t, quick.Do(t.Context(), unitofwork.Work{Keys: ofDeposits}, func(_ context.Context, u *unitofwork.Unit) error {
				return each(20, func(i int) error {
					return u.Delete(accounts.Ref("c000", fmt.Sprint(i)))
				})
			}))
			_, left := b.total()
			require.Zero(t, left)
			slow.net.Resume()
			require.NoError(t, <-done)
			_, left = b.total()
			require.Zero(t, left, "it wrote what was deleted since")
			b.allFree()
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
		b.client("heir", nil).recovers(t)
		sum, _ = b.total()
		require.Equal(t, int64(20), sum)
		b.allFree()
		b.nothingLeft()
	})
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
				runInBed(t, fmt.Sprint(at, n, executed), func(t *testing.T, b *bed) {
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
					b.client("other", nil).recovers(t)
					b.nothingLeft()
					<-over
					b.allFreeOnceAskedFor(ofDeposits...)
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
		runInBed(t, name, func(t *testing.T, b *bed) {
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
				b.client("other", nil).recovers(t)
			}
			b.nothingWritten(before)
			b.nothingLeft()
		})
	}
}

// ledger is a large unit that puts, updates, deletes and checks records of
// families of three, and can tell whether none or all of it happened, once.
type ledger struct {
	b    *bed
	keys []ordering.Key
	refs []*unitofwork.Ref[account]
}

const (
	largeUnit = 15
	opening   = 100
)

func (b *bed) ledger() *ledger {
	b.t.Helper()
	l := &ledger{b: b}
	l.keys, l.refs = largeKeys(largeUnit)
	for i := range l.refs {
		if i%5 != 4 {
			b.put("accounts", account{Customer: customerOf(i), ID: fmt.Sprintf("a%d", i%3), Balance: opening})
		}
	}
	return l
}

// families are the customers whose accounts these are: coarse keys, whose taker
// cleans what the dead left there.
func (l *ledger) families() (coarse []ordering.Key) {
	for i := 0; i < len(l.keys); i += 3 {
		coarse = append(coarse, l.keys[i].Root())
	}
	return coarse
}

func customerOf(i int) string { return fmt.Sprintf("c%03d", i/3) }

// stage stages the unit's writes, by the number of the record.
func (l *ledger) stage(_ context.Context, u *unitofwork.Unit) error {
	for i, ref := range l.refs {
		var err error
		switch i % 5 {
		case 0:
			ref.T.Balance = opening + 7
			err = u.Replace(ref)
		case 1:
			err = u.Update(ref, unitofwork.Expression{
				Update: "SET Balance = Balance + :n", Condition: "Balance = :before",
				Values: map[string]any{":n": 7, ":before": opening},
			})
		case 2:
			err = u.Delete(ref)
		case 3:
			err = u.Check(ref, unitofwork.Expression{Condition: "Balance = :before", Values: map[string]any{":before": opening}})
		default:
			ref.T.Balance = 7
			err = u.Replace(ref)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// happened returns whether all of the unit happened, once; it fails the test if
// only some did, or something twice.
func (l *ledger) happened() bool {
	l.b.t.Helper()
	found := map[string]int64{}
	for _, item := range l.b.db.Items("accounts") {
		var a account
		require.NoError(l.b.t, attributevalue.UnmarshalMap(item, &a))
		found[a.Customer+a.ID] = a.Balance
	}
	after := 0
	for i := range l.refs {
		balance, there := found[customerOf(i)+"a"+strconv.Itoa(i%3)]
		before := [...]bool{balance == opening, balance == opening, balance == opening, true, !there}[i%5]
		now := [...]bool{balance == opening+7, balance == opening+7, !there, balance == opening, balance == 7}[i%5]
		require.True(l.b.t, before || now, "record %d has %d", i, balance)
		if i%5 != 3 && now {
			after++
		}
	}
	all := largeUnit - largeUnit/5
	require.Contains(l.b.t, []int{0, all}, after, "so many of the writes happened")
	return after > 0
}

// atRequest gives one fault to the n-th request, of whatever kind. It counts.
func atRequest(n int64, f faults.Fault) (script faults.Script, sent *atomic.Int64) {
	sent = new(atomic.Int64)
	return when(func(faults.Call) bool { return sent.Add(1) == n }, f), sent
}

// smallTransactions make a unit large that is not, and a test fast.
func smallTransactions(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 8 }

// A process dies before or after each of the requests that a large unit sends;
// whoever comes by finishes what it decided, and undoes what it had not.
func TestAnOwnerOfALargeUnitDiesAtEveryRequest(t *testing.T) {
	requests := int64(0)
	inBed(t, func(t *testing.T, b *bed) {
		script, sent := atRequest(0, faults.Pass())
		l := b.ledger()
		require.NoError(t, b.client("dead", script, smallTransactions).Do(t.Context(), unitofwork.Work{Keys: l.keys, ID: "payment"}, l.stage))
		require.True(t, l.happened())
		requests = sent.Load()
	})
	t.Logf("%d requests", requests)
	taker := func(c *client, l *ledger) error {
		set, err := c.locks.Acquire(l.b.t.Context(), l.keys)
		if err != nil {
			return err
		}
		return set.Release(l.b.t.Context())
	}
	recovers := func(c *client, l *ledger) error { _, err := c.Recover(l.b.t.Context()); return err }
	for name, heirs := range map[string][]func(*client, *ledger) error{
		"a taker": {taker}, "Recover": {recovers}, "both at once": {taker, recovers, taker, recovers},
	} {
		if testing.Short() && len(heirs) == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for n := int64(1); n <= requests; n++ {
				for _, executed := range []bool{false, true} {
					runInBed(t, fmt.Sprintf("request %d, %t", n, executed), func(t *testing.T, b *bed) { b.diesAt(n, executed, heirs) })
				}
			}
		})
	}
}

func (b *bed) diesAt(n int64, executed bool, heirs []func(*client, *ledger) error) {
	t := b.t
	l := b.ledger()
	script, _ := atRequest(n, faults.CrashHere(executed))
	dead := b.client("dead", script, smallTransactions)
	told := make(chan error, 1)
	go func() {
		told <- dead.Do(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: l.keys, ID: "payment"}, l.stage)
	}()
	<-dead.net.Dead()
	done := make(chan error, len(heirs))
	for i, heir := range heirs {
		c := b.client(fmt.Sprint("heir", i), nil, smallTransactions)
		go func() { done <- heir(c, l) }()
	}
	for range heirs {
		require.NoError(t, <-done)
	}
	happened := l.happened()
	heir := b.client("last", nil, smallTransactions)
	if len(heirs) == 1 { // a taker leaves what no lock is marked for
		heir.recovers(t)
		require.Equal(t, happened, l.happened())
	}
	outcome, err := heir.Outcome(t.Context(), "payment")
	require.NoError(t, err)
	require.Equal(t, happened, outcome == unitofwork.Committed, "%v", outcome)
	<-told
	time.Sleep(3 * lease)
	require.Equal(t, happened, l.happened(), "what the dead said last changed something")

	require.NoError(t, heir.Do(t.Context(), unitofwork.Work{Keys: l.keys, ID: "payment"}, l.stage), "the honest retry")
	require.True(t, l.happened())
	b.allFreeOnceAskedFor(l.families()...)
	heir.recovers(t)
	b.nothingLeft()
}

// Each request of a large unit is lost, or its answer, or arrives much too late,
// or twice: what its caller is told is true, and nothing changes later.
func TestALargeUnitWhoseRequestsGoAstray(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"answer lost":            faults.LoseAnswer(faults.Reset),
		"request lost":           faults.LoseRequest(faults.Reset),
		"answer never comes":     faults.LoseAnswer(faults.Hang),
		"server error, executed": faults.ServerError(true),
		"late":                   faults.DeliverLate(2*lease, faults.Reset),
		"twice":                  faults.Duplicate(2 * lease),
	} {
		t.Run(name, func(t *testing.T) {
			more := true
			for n := int64(1); more; n++ {
				runInBed(t, fmt.Sprint("request ", n), func(t *testing.T, b *bed) {
					script, sent := atRequest(n, fault)
					b.goesAstray(b.client("astray", script, smallTransactions))
					more = sent.Load() >= n
				})
			}
		})
	}
}

// goesAstray has a client do a large unit, and holds what it was told against what
// happened.
func (b *bed) goesAstray(c *client) {
	t := b.t
	l := b.ledger()
	err := c.Do(t.Context(), unitofwork.Work{Keys: l.keys, ID: "payment"}, l.stage)
	if err != nil {
		require.NotErrorIs(t, err, unitofwork.ErrInDoubt, "there was time enough to find out")
	}
	happened := l.happened()
	require.Equal(t, err == nil, happened, "%v", err)
	time.Sleep(3 * lease)
	require.Equal(t, happened, l.happened(), "something came late")
	last := b.client("last", nil, smallTransactions)
	require.NoError(t, last.Do(t.Context(), unitofwork.Work{Keys: l.keys, ID: "payment"}, l.stage), "the honest retry")
	require.True(t, l.happened())
	b.allFreeOnceAskedFor(l.families()...)
	last.recovers(t)
	b.nothingLeft()
}

// A process is suspended at each request of a large unit, for longer than its
// lease, and goes on when others have finished it.
func TestAnOwnerOfALargeUnitIsSuspendedAtEveryRequest(t *testing.T) {
	more := true
	for n := int64(1); more; n++ {
		runInBed(t, fmt.Sprint("request ", n), func(t *testing.T, b *bed) {
			l := b.ledger()
			var c *client
			sent := new(atomic.Int64)
			stopped := make(chan struct{})
			c = b.client("zombie", func(faults.Call) faults.Fault {
				if sent.Add(1) == n {
					c.net.Pause()
					close(stopped)
				}
				return faults.Pass()
			}, smallTransactions)
			told := make(chan error, 1)
			go func() {
				told <- c.Do(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: l.keys, ID: "payment"}, l.stage)
			}()
			select {
			case <-stopped:
			case err := <-told:
				require.NoError(t, err)
				more = false
				return
			}
			b.client("heir", nil, smallTransactions).recovers(t)
			set := b.client("taker", nil, smallTransactions).has(t, l.keys...)
			happened := l.happened()
			time.Sleep(lease)
			require.NoError(t, set.Release(t.Context()))
			c.net.Resume()
			err := <-told // it may have had no lock yet, and gone on
			require.Equal(t, err == nil, l.happened(), "%v", err)
			if happened {
				require.NoError(t, err)
			}
			time.Sleep(3 * lease)
			require.Equal(t, err == nil, l.happened(), "something came late")
			b.allFreeOnceAskedFor(l.families()...)
		})
	}
}
