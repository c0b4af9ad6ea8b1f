package unitofwork_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

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
	return func(faults.Call) faults.Fault {
		if sent.Add(1) == n {
			return f
		}
		return faults.Pass()
	}, sent
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
					t.Run(fmt.Sprintf("request %d, %t", n, executed), func(t *testing.T) {
						inBed(t, func(t *testing.T, b *bed) { b.diesAt(n, executed, heirs) })
					})
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
		_, err := heir.Recover(t.Context())
		require.NoError(t, err)
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
	_, err = heir.Recover(t.Context())
	require.NoError(t, err)
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
				t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						script, sent := atRequest(n, fault)
						b.goesAstray(b.client("astray", script, smallTransactions))
						more = sent.Load() >= n
					})
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
	_, err = last.Recover(t.Context())
	require.NoError(t, err)
	b.nothingLeft()
}

// A process is suspended at each request of a large unit, for longer than its
// lease, and goes on when others have finished it.
func TestAnOwnerOfALargeUnitIsSuspendedAtEveryRequest(t *testing.T) {
	more := true
	for n := int64(1); more; n++ {
		t.Run(fmt.Sprint("request ", n), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
				_, err := b.client("heir", nil, smallTransactions).Recover(t.Context())
				require.NoError(t, err)
				set, err := b.client("taker", nil, smallTransactions).locks.Acquire(t.Context(), l.keys)
				require.NoError(t, err)
				happened := l.happened()
				time.Sleep(lease)
				require.NoError(t, set.Release(t.Context()))
				c.net.Resume()
				err = <-told // it may have had no lock yet, and gone on
				require.Equal(t, err == nil, l.happened(), "%v", err)
				if happened {
					require.NoError(t, err)
				}
				time.Sleep(3 * lease)
				require.Equal(t, err == nil, l.happened(), "something came late")
				b.allFreeOnceAskedFor(l.families()...)
			})
		})
	}
}
