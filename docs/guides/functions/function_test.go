package functions

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

const (
	lease   = 5 * time.Second
	timeout = 15 * time.Second // of the function
)

// Whatever goes wrong at whichever request, also if its locks are lost without its clock having
// told it: a payment that was answered is made, and none is made twice.
func TestTheFunctionUnderFaults(t *testing.T) {
	ours, theirs := Payment{"p1", "alice", "bob", 1}, Payment{"p2", "bob", "alice", 2}
	for _, lock := range []bool{false, true} {
		send := func(p Payment) func(context.Context, *holdalltest.Process) error {
			return func(ctx context.Context, process *holdalltest.Process) error {
				f, err := New(process, lease)
				if err != nil {
					return err
				}
				f.lock = lock
				ctx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				return handled(ctx, f, p)
			}
		}
		t.Run(fmt.Sprintf("lock=%v", lock), func(t *testing.T) {
			check := holdalltest.Check{
				Setup: func(ctx context.Context, db *holdalltest.DB) error {
					if err := db.CreateTable(ctx, Accounts.Name, "ID", ""); err != nil {
						return err
					}
					return setUp(ctx, db.Client(), "alice", "bob")
				},
				Work: send(ours), Again: true, Rival: send(theirs), Locks: lockset.Config{Table: "locks", Lease: lease},
				Holds: func(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
					if wrong := holds(ctx, p, told.OK(), told.Rivalled && told.Rival == nil); wrong != nil {
						return wrong
					}
					f, err := New(p, lease)
					if err != nil {
						return err
					}
					f.lock = lock                                         // the same ID with other keys is refused
					if err := handled(ctx, f, ours, theirs); err != nil { // delivered again, together
						return err
					}
					return holds(ctx, p, true, true)
				},
			}
			if testing.Short() {
				check.Faults = []holdalltest.Fault{"crash-after", "in-doubt", "in-doubt-after", "paused"}
			}
			check.Run(t)
		})
	}
}

// holds compares the accounts with what was answered: the bits of their difference are the payments.
func holds(ctx context.Context, p *holdalltest.Process, ours, theirs bool) error {
	f, err := New(p, lease)
	if err != nil {
		return err
	}
	all, err := balances(ctx, f, "alice", "bob")
	if err != nil {
		return err
	}
	paid := 1000 - all[0] // 1 of ours, less 2 of theirs
	switch {
	case all[0]+all[1] != 2000 || paid < -2 || paid > 1:
		return fmt.Errorf("the accounts have %v", all)
	case ours && paid != 1 && paid != -1, theirs && paid > -1:
		return fmt.Errorf("a payment that was answered is not made, or twice: the accounts have %v", all)
	}
	return nil
}

// What is done, or refused for good, is not delivered again; everything else is.
func TestWhatIsDeliveredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory(t, "alice", "bob")
		f, err := New(db.Client(), lease)
		require.NoError(t, err)
		require.NoError(t, handled(t.Context(), f, Payment{"p1", "alice", "bob", 5000}))
		require.NoError(t, handled(t.Context(), f, Payment{"p2", "alice", "bob", 1}))

		twice, changed := messageOf(Payment{"p2", "alice", "bob", 1}), messageOf(Payment{"p2", "alice", "bob", 2})
		twice.MessageID = "sent twice"
		broken := Message{MessageID: "broken", Body: "{"}
		response, err := f.Handle(t.Context(), Event{Records: []Message{twice, changed, broken}})
		require.NoError(t, err)
		text, err := json.Marshal(response)
		require.NoError(t, err)
		require.JSONEq(t, `{"batchItemFailures":[{"itemIdentifier":"message-p2"},{"itemIdentifier":"broken"}]}`, string(text))

		all, err := balances(t.Context(), f, "alice", "bob")
		require.NoError(t, err)
		require.Equal(t, []int64{999, 1001}, all)
	})
}

// A refusal does not use up the ID: what is delivered again may be paid. A record of the refusal,
// under the same ID, does.
func TestWhatWasRefusedIsDeliveredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory(t, "alice", "bob")
		f, err := New(db.Client(), lease)
		require.NoError(t, err)
		dear := Payment{"p1", "alice", "bob", 1500}
		pays := func() int64 {
			require.NoError(t, handled(t.Context(), f, dear))
			all, err := balances(t.Context(), f, "alice", "bob")
			require.NoError(t, err)
			return all[1] - 1000
		}
		require.Zero(t, pays(), "refused")
		require.NoError(t, f.units.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(Accounts.Of(Account{"alice", 5000}))
		}))
		require.EqualValues(t, 1500, pays(), "paid")

		dear = Payment{"p2", "alice", "bob", 9000}
		require.NoError(t, f.units.Do(t.Context(), f.work(t.Context(), dear), func(_ context.Context, u *unitofwork.Unit) error {
			return u.Insert(Accounts.Of(Account{ID: "refused p2"})) // stands for a record of another table
		}))
		require.NoError(t, f.units.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(Accounts.Of(Account{"alice", 50000}))
		}))
		require.EqualValues(t, 1500, pays(), "nothing more is paid")
	})
}

// Nobody is paid by a negative amount.
func TestAmounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory(t, "alice", "bob")
		f, err := New(db.Client(), lease)
		require.NoError(t, err)
		for _, amount := range []int64{0, -1} {
			require.ErrorContains(t, handled(t.Context(), f, Payment{"p1", "alice", "bob", amount}), "message-p1")
		}
		all, err := balances(t.Context(), f, "alice", "bob")
		require.NoError(t, err)
		require.Equal(t, []int64{1000, 1000}, all)
	})
}

// With less time left than the room, nothing is sent, and the error says why.
func TestTooLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory(t, "alice", "bob")
		p := db.Process("instance")
		f, err := New(p, lease)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), lease)
		defer cancel()
		require.ErrorContains(t, handled(ctx, f, Payment{"p1", "alice", "bob", 1}), "timeout")
		require.ErrorContains(t, f.Tidy(ctx), "timeout")
		require.Empty(t, p.Requests())
	})
}

// Who has a key, and lives, costs half of the time that is left, not all of it.
func TestAWaitEndsBeforeTheTimeDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory(t, "alice", "bob")
		other, err := New(db.Client(), lease)
		require.NoError(t, err)
		set, err := other.units.Locks().Acquire(t.Context(), []ordering.Key{Accounts.Guard(&Account{ID: "alice"})})
		require.NoError(t, err)

		f, err := New(db.Client(), lease)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		began := time.Now()
		require.ErrorContains(t, handled(ctx, f, Payment{"p1", "alice", "bob", 1}), "message-p1")
		left := timeout - f.room
		require.GreaterOrEqual(t, time.Since(began), left/2)
		require.Less(t, time.Since(began), left*6/10)
		require.NoError(t, set.Release(t.Context()))
	})
}

// Messages of one event are committed together where they want the same account.
func TestAnEventIsCommittedTogether(t *testing.T) {
	for _, together := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := memory(t, "alice", "bob")
			db.SetLatency(5 * time.Millisecond)
			p := db.Process("instance")
			f, err := New(p, lease)
			require.NoError(t, err)
			var ten []Payment
			for i := range 10 {
				ten = append(ten, Payment{fmt.Sprint(i), "alice", "bob", 1})
			}
			began := time.Now()
			if together {
				require.NoError(t, handled(t.Context(), f, ten...))
			} else {
				for _, payment := range ten {
					require.NoError(t, handled(t.Context(), f, payment))
				}
			}
			require.Contains(t, page(t), fmt.Sprintf("| %d | %v |", len(p.Requests()), time.Since(began)))
			all, err := balances(t.Context(), f, "alice", "bob")
			require.NoError(t, err)
			require.Equal(t, []int64{990, 1010}, all)
		})
	}
}

// Instances that live shorter than a lease finish together what one has left that was killed.
func TestTidyInShortInvocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string // with their lock rows more than one transaction
		for i := range 60 {
			ids = append(ids, fmt.Sprintf("a%02d", i))
		}
		db := memory(t, ids...)
		killed := db.Process("killed")
		journal := 0
		killed.Next(func(r holdalltest.Request) bool {
			if slices.Equal(r.Writes, []string{"units"}) {
				journal++
			}
			return journal == 2 // the second decides, and nothing is carried out yet
		}, "crash-after")
		f, err := New(killed, lease)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_ = f.units.Do(ctx, unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error { // the dead are told nothing
			for _, id := range ids {
				if err := u.Replace(Accounts.Of(Account{id, 7})); err != nil {
					return err
				}
			}
			return nil
		})
		const short = 9 * time.Second // of which it watches for 3.5 s
		for invocations := 1; ; invocations++ {
			time.Sleep(time.Minute)
			f, err := New(db.Process("scheduled"), lease)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), short)
			err = f.Tidy(ctx)
			cancel()
			require.Less(t, invocations, 10, err)
			if err != nil {
				continue
			}
			all, err := balances(t.Context(), f, "a00", "a59")
			require.NoError(t, err)
			require.Equal(t, []int64{7, 7}, all)
			require.Contains(t, page(t), fmt.Sprintf("the %s finishes it", ordinal[invocations]))
			return
		}
	})
}

var ordinal = []string{"", "first", "second", "third", "fourth", "fifth"}

// page is the guide.
func page(t *testing.T) string {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}
