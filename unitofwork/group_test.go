package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// come is a unit that comes to a crowd.
type come struct {
	unitofwork.Work
	fn func(context.Context, *unitofwork.Unit) error
}

// crowd has units come, a millisecond apart, while another has the accounts of transfer: when it
// has ended, the first leads the others. It returns what each was told.
func (b *bed) crowd(c *client, all ...come) []error {
	b.t.Helper()
	return b.crowdAfter(c, transfer(0), all...)
}

// crowdAfter is crowd after a unit with this function.
func (b *bed) crowdAfter(c *client, first func(context.Context, *unitofwork.Unit) error, all ...come) []error {
	b.t.Helper()
	var done sync.WaitGroup
	done.Go(func() {
		err := c.freely(b.t.Context(), unitofwork.Work{Alone: true}, first)
		if err != nil {
			b.t.Error(err)
		}
	})
	errs := make([]error, len(all))
	for i, one := range all {
		time.Sleep(100 * time.Microsecond)
		done.Go(func() { errs[i] = c.freely(b.t.Context(), one.Work, one.fn) })
	}
	done.Wait()
	return errs
}

// failing is a transfer that fails with an error of its own.
func failing(amount int64, mine error) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		return errors.Join(transfer(amount)(ctx, u), mine)
	}
}

// times is one thing that comes so many times.
func times(n int, one come) []come { return slices.Repeat([]come{one}, n) }

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	require.Equal(t, make([]error, len(errs)), errs)
}

// sums notes what the function reads of account 1, each time that it is called.
type sums struct {
	mu   sync.Mutex
	seen []int64
}

func (s *sums) transfer(amount int64) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		from, to := accounts.Ref("1", "a"), accounts.Ref("2", "a")
		if err := u.Get(ctx, from, to); err != nil {
			return err
		}
		s.mu.Lock()
		s.seen = append(s.seen, from.T.Balance)
		s.mu.Unlock()
		from.T.Balance -= amount
		to.T.Balance += amount
		return u.Put(from, to)
	}
}

// Units that wait for the same keys are committed together, each on what those before it have
// left, with one read and one write for all.
func TestWhoWaitsForTheSameIsCommittedTogether(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var s sums
		c, r := b.traced("c", nil)
		noErrors(t, b.crowd(c, times(10, come{fn: s.transfer(1)})...))
		require.Equal(t, [2]int64{90, 110}, b.balances())
		require.Equal(t, map[string]int{"TransactGetItems": 2, "TransactWriteItems": 2}, c.requests())
		require.Equal(t, []int64{100, 99, 98, 97, 96, 95, 94, 93, 92, 91}, s.seen, "as they arrived")
		require.Len(t, r.ends, 11)
		leaders := r.leaders()
		require.Len(t, leaders, 2)
		require.Equal(t, 2, leaders[""], "who had the rows first, and who led the others")
		b.allFree()
	})
}

// What a member fails with is its own, and its writes are not there. A leader that fails has read for
// those who came along all the same; but one that may be told of its ID leads nobody then, and who came
// along waits as before.
func TestAMemberThatFails(t *testing.T) {
	mine := errors.New("no")
	for name, c := range map[string]struct {
		at    int // of four
		id    string
		reads int
	}{
		"a member": {1, "", 2}, "the leader": {0, "", 2}, "a leader with an ID": {0, "x", 3},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("c", nil)
			var s sums
			all := times(4, come{fn: s.transfer(1)})
			all[c.at] = come{unitofwork.Work{ID: c.id}, failing(50, mine)}
			errs := b.crowd(cl, all...)
			require.ErrorIs(t, errs[c.at], mine)
			noErrors(t, slices.Delete(errs, c.at, c.at+1))
			require.Equal(t, [2]int64{97, 103}, b.balances())
			require.Equal(t, []int64{100, 99, 98}, s.seen)
			require.Equal(t, map[string]int{"TransactGetItems": c.reads, "TransactWriteItems": 2}, cl.requests())
		})
	}
}

// An error of a member that has seen what was never written is not told: its function is called
// again.
func TestAnErrorAboutWhatNeverWasIsNotTold(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		var last sync.Once
		var seen []int64
		poor := func(ctx context.Context, u *unitofwork.Unit) error {
			ref := accounts.Ref("1", "a")
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			seen = append(seen, ref.T.Balance)
			last.Do(func() { // somebody else comes before the group commits
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(-100)))
			})
			if ref.T.Balance < 50 {
				return errors.New("too little")
			}
			return nil
		}
		errs := b.crowd(c, come{fn: transfer(80)}, come{fn: poor})
		noErrors(t, errs)
		require.Equal(t, int64(20), seen[0])
		require.Greater(t, len(seen), 1)
		require.NotEqual(t, int64(20), seen[len(seen)-1])
		require.Equal(t, [2]int64{120, 80}, b.balances())
	})
}

// A member whose function blocks keeps the others for a moment only, and runs again.
func TestAMemberThatBlocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", nil)
		calls, began := 0, time.Now()
		var s sums
		took := time.Duration(0)
		blocks := func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(10)(ctx, u)
			if calls++; calls == 1 {
				time.Sleep(time.Minute)
				require.Error(t, u.Get(ctx, accounts.Ref("1", "a")), "it was left out")
				_ = u.Put(accounts.Of(account{Customer: "1", ID: "b", Balance: 7}))
			}
			return err
		}
		ends := func(ctx context.Context, u *unitofwork.Unit) error {
			took = time.Since(began)
			return s.transfer(1)(ctx, u)
		}
		noErrors(t, b.crowd(c, come{fn: s.transfer(1)}, come{fn: blocks}, come{fn: ends}))
		require.Less(t, took, 100*time.Millisecond)
		for _, e := range r.ends {
			require.True(t, e.Outcome != hooks.Committed || e.Took < 100*time.Millisecond, "%+v", e)
		}
		require.Equal(t, 2, calls)
		require.Equal(t, [2]int64{88, 112}, b.balances())
	})
}

// A leader that takes its time has nobody wait for it.
func TestALeaderThatBlocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var s sums
		began, calls := time.Now(), 0
		var took time.Duration
		blocks := func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(10)(ctx, u)
			if calls++; calls == 1 {
				time.Sleep(time.Minute)
			}
			return err
		}
		after := func(ctx context.Context, u *unitofwork.Unit) error {
			err := s.transfer(1)(ctx, u)
			took = time.Since(began)
			return err
		}
		noErrors(t, b.crowd(c, come{fn: blocks}, come{fn: after}, come{fn: after}))
		require.Less(t, took, 200*time.Millisecond)
		require.Equal(t, [2]int64{88, 112}, b.balances())
	})
}

// Functions that wait for each other do not wait for ever.
func TestMembersThatDependOnEachOther(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		second := make(chan struct{})
		waits := func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(1)(ctx, u)
			<-second
			return err
		}
		var once sync.Once
		comes := func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(1)(ctx, u)
			if err == nil {
				once.Do(func() { close(second) })
			}
			return err
		}
		noErrors(t, b.crowd(c, come{fn: transfer(1)}, come{fn: waits}, come{fn: comes}))
		require.Equal(t, [2]int64{97, 103}, b.balances())
	})
}

func TestAMemberThatPanics(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		caught := false
		panics := func(ctx context.Context, u *unitofwork.Unit) error {
			require.NoError(t, transfer(50)(ctx, u))
			panic("oh")
		}
		var done sync.WaitGroup
		done.Go(func() {
			time.Sleep(time.Millisecond)
			defer func() { caught = recover() == "oh" }()
			_ = c.freely(t.Context(), unitofwork.Work{}, panics)
		})
		noErrors(t, b.crowd(c, times(20, come{fn: transfer(1)})...))
		done.Wait()
		require.True(t, caught)
		require.Equal(t, [2]int64{80, 120}, b.balances())
		require.Equal(t, map[string]int{"TransactGetItems": 2, "TransactWriteItems": 2}, c.requests())
		require.NoError(t, c.Close(t.Context()))
	})
}

// What a member updates by an expression the next one cannot see, nor is it shown: it comes later.
func TestAnUpdateIsNotMerged(t *testing.T) {
	reads := func(customer string) func(context.Context, *unitofwork.Unit) error {
		return func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, accounts.Ref(customer, "a")) }
	}
	for name, c := range map[string]struct {
		update func(context.Context, *unitofwork.Unit) error
		seen   int64 // by one that reads it
	}{
		"read":                {after(reads("1"), addBlindly(5)), 120},
		"blind":               {addBlindly(5), 105},
		"beside what is read": {after(reads("2"), addBlindly(5)), 105},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			var s sums
			noErrors(t, b.crowd(b.client("c", nil), append(times(4, come{fn: c.update}), come{fn: s.transfer(1)})...))
			require.Equal(t, []int64{c.seen}, s.seen)
			require.Equal(t, [2]int64{119, 101}, b.balances())
		})
	}
}

// A member that needs what its group has not, or under locks what is not held, runs by itself; what the
// others write under locks has the token of these.
func TestAMemberThatNeedsMore(t *testing.T) {
	for name, c := range map[string]struct {
		more    func(context.Context, *unitofwork.Unit) error
		inserts bool
	}{
		"reads and writes": {after(readOnly(accounts.Ref("3", "a")), insertAccount(account{Customer: "3", ID: "a"})), true},
		"reads":            {readOnly(customers.Ref("3")), false},
		"reads one above":  {readOnly(customers.Ref("1")), false},
		"writes":           {insertAccount(account{Customer: "3", ID: "a"}), true},
	} {
		for _, locks := range []bool{false, true} {
			runInBed(t, fmt.Sprint(name, ", under locks: ", locks), func(t *testing.T, b *bed) {
				cl, r := b.traced("c", nil)
				all := []come{
					{unitofwork.Work{ID: "lead"}, transfer(1)},
					{unitofwork.Work{ID: "needs"}, after(transfer(1), c.more)},
					{unitofwork.Work{ID: "last"}, transfer(1)},
				}
				if locks {
					noErrors(t, b.behind(b.client("other", nil), cl, all...))
				} else {
					noErrors(t, b.crowd(cl, all...))
				}
				alone := map[string]bool{}
				for _, e := range r.ends {
					if e.Outcome == hooks.Committed && e.ID != "" {
						alone[e.ID] = e.Leader == ""
					}
				}
				want := map[string]bool{"lead": true, "needs": true, "last": false}
				if name == "writes" && !locks { // whose key it need not have looked at: it may come along
					want["needs"] = alone["needs"]
				}
				require.Equal(t, want, alone)
				require.EqualValues(t, 97, b.account("1").Balance)
				require.Equal(t, c.inserts, len(b.db.Items("accounts")) == 3)
				require.NotZero(t, b.account("1").Fence)
			})
		}
	}
}

// Members see what those before them delete and put.
func TestMembersSeeWhatIsDeletedAndPut(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var found []bool
		looks := func(then func(u *unitofwork.Unit, ref *unitofwork.Ref[account]) error) come {
			return come{fn: func(ctx context.Context, u *unitofwork.Unit) error {
				ref := accounts.Ref("1", "a")
				if err := u.Get(ctx, ref); err != nil {
					return err
				}
				found = append(found, ref.Found)
				return then(u, ref)
			}}
		}
		remove := looks(func(u *unitofwork.Unit, ref *unitofwork.Ref[account]) error { return u.Delete(ref) })
		put := looks(func(u *unitofwork.Unit, ref *unitofwork.Ref[account]) error {
			ref.T.Balance = 7
			return u.Put(ref)
		})
		noErrors(t, b.crowd(c, remove, put, remove, put))
		require.Equal(t, []bool{true, false, true, false}, found)
		require.EqualValues(t, 7, b.account("1").Balance)
		require.Equal(t, 2, c.requests()["TransactWriteItems"])
	})
}

// A condition of one member refuses the commit of all: each is told its own.
func TestAConditionOfAMember(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		inserts := after(transfer(1), inserts(customers.Of(customer{ID: "1"})))
		work := unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}
		errs := b.crowd(b.client("c", nil), come{work, transfer(1)}, come{work, inserts}, come{work, transfer(1)})
		require.ErrorIs(t, errs[1], unitofwork.ErrExists)
		noErrors(t, slices.Delete(errs, 1, 2))
		require.Equal(t, [2]int64{98, 102}, b.balances())
	})
}

func TestUnitsThatAreToBeAlone(t *testing.T) {
	for name, work := range map[string]unitofwork.Work{
		"alone":            {Alone: true},
		"locks first":      {Lock: true, Keys: transferKeys},
		"waits for nobody": {Wait: lockset.For(0)},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c, r := b.traced("c", nil)
			_ = b.crowd(c, times(4, come{work, transfer(1)})...)
			for _, e := range r.ends {
				require.Empty(t, e.Leader)
			}
		})
	}
}

// Who waits in line, or for its turn, and whose context ends, is told so.
func TestAFollowerWhoseContextEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		slow := func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(1)(ctx, u)
			time.Sleep(15 * time.Millisecond)
			return err
		}
		var done sync.WaitGroup
		for ms := range 40 {
			done.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond+50*time.Microsecond)
				defer cancel()
				time.Sleep(time.Millisecond)
				if err := c.freely(ctx, unitofwork.Work{}, transfer(0)); err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		}
		noErrors(t, b.crowd(c, come{fn: slow}, come{fn: slow}))
		done.Wait()
		require.Equal(t, [2]int64{98, 102}, b.balances())
		require.NoError(t, c.Close(t.Context()))
	})
}

// Members with IDs are committed once each, and those of an ID that was committed are told so.
func TestMembersWithIDs(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{ID: "before"}, transfer(1)))
		c.requests()
		all := []come{
			{unitofwork.Work{ID: "x"}, transfer(1)}, {unitofwork.Work{ID: "x"}, transfer(1)},
			{unitofwork.Work{ID: "before"}, transfer(1)}, {unitofwork.Work{ID: "y"}, transfer(1)}, {fn: transfer(1)},
		}
		noErrors(t, b.crowd(c, all...))
		sent := map[string]int{"TransactGetItems": 5, "TransactWriteItems": 3}
		require.Equal(t, sent, c.requests(), "the second x comes when the first is committed")
		require.Equal(t, [2]int64{96, 104}, b.balances())
		for _, id := range []string{"x", "y"} {
			require.Equal(t, unitofwork.Committed, c.outcomeOf(t, id))
		}
		errs := b.crowd(c, come{unitofwork.Work{}, transfer(0)}, come{unitofwork.Work{ID: "x", Payload: []byte("other")}, transfer(1)})
		require.NoError(t, errs[0])
		require.ErrorAs(t, errs[1], new(*unitofwork.IDError))
	})
}

// Nothing is heard of a group's commit: who wrote is in doubt, and can ask; who failed had
// nothing to do with it.
func TestAGroupInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		commit faults.Fault
		want   unitofwork.Outcome
	}{
		"done":     {faults.LoseAnswer(faults.Hang), unitofwork.Committed},
		"not done": {faults.LoseRequest(faults.Hang), unitofwork.Undecided},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			fails := come{fn: failing(5, errors.New("no"))}
			cl := b.client("c", cutFrom(isCommit, 2, c.commit))
			errs := b.crowd(cl, come{fn: transfer(1)}, come{unitofwork.Work{ID: "x"}, transfer(1)}, fails)
			require.NotErrorIs(t, errs[2], unitofwork.ErrInDoubt, "it has written nothing")
			other := b.client("other", nil)
			for i, id := range []string{"", "x"} {
				doubt := errorAs[*unitofwork.InDoubtError](t, errs[i])
				require.Equal(t, id, doubt.ID)
				require.Equal(t, c.want, other.outcomeOf(t, doubt.Ref))
			}
		})
	}
}

// Where another process is in the way, those who wait are committed together under one set of locks,
// whose token is on what they write: nobody takes its locks by itself, if others of its process want
// them, too.
func TestAGroupUnderLocks(t *testing.T) {
	for name, c := range map[string]struct {
		work  unitofwork.Work
		apart time.Duration
		own   bool // their own process has the keys before the other, and until that waits for them
	}{
		"one after another": {apart: 100 * time.Microsecond}, "while others wait": {apart: 2 * time.Millisecond},
		"keys are named": {work: unitofwork.Work{Keys: transferKeys}, apart: 2 * time.Millisecond}, "behind their own process": {own: true},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, r := b.traced("c", nil)
			other := b.client("other", nil)
			var done sync.WaitGroup
			if c.own {
				b.hold(cl, 301*time.Millisecond, transferKeys...)
				done.Go(func() { b.hold(other, 301*time.Millisecond, transferKeys...) })
				time.Sleep(51 * time.Millisecond) // it waits for them, too
			} else {
				b.hold(other, 300*time.Millisecond, transferKeys...)
			}
			cl.requests()
			for i := range 10 {
				done.Go(func() {
					time.Sleep(time.Duration(i) * c.apart)
					require.NoError(t, cl.freely(t.Context(), c.work, transfer(1)))
				})
			}
			done.Wait()
			require.Equal(t, [2]int64{90, 110}, b.balances())
			require.Equal(t, 1, r.leaders()[""], "who led the others: %v", r.leaders())
			require.Equal(t, freeRuns+1, cl.requests()["TransactGetItems"], "all looks but one were in vain")
			require.NotZero(t, b.account("1").Fence)
			b.allFree()
		})
	}
}

// A unit that falls back keeps its place: who came after it in its process does not overtake it.
func TestWhoFallsBackKeepsItsPlace(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		b.hold(other, 100*time.Millisecond, transferKeys...)
		var mu sync.Mutex
		var order []int
		var done sync.WaitGroup
		for i := range 5 {
			done.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{Alone: true}, transfer(1)))
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
		}
		done.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	})
}

// What is looked at, or written, once for several counts once.
func TestGroupsAreAsLargeAsCanBe(t *testing.T) {
	whole := []ordering.Key{customerKey("1"), customerKey("2")}
	for name, c := range map[string]struct {
		units, most int
		fn          func(i int) func(context.Context, *unitofwork.Unit) error
		keys        []ordering.Key // of the leader
	}{
		"rows below a key of the leader": {units: 31, keys: whole, fn: func(i int) func(context.Context, *unitofwork.Unit) error {
			return readOnly(accounts.Ref("1", fmt.Sprint("a", i)), accounts.Ref("1", fmt.Sprint("b", i)))
		}},
		"writes of one record": {units: 5, most: 7, keys: transferKeys, fn: func(int) func(context.Context, *unitofwork.Unit) error { return transfer(1) }},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, r := b.traced("c", nil, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = c.most })
			all := []come{{unitofwork.Work{Keys: c.keys}, transfer(1)}}
			for i := range c.units {
				all = append(all, come{fn: c.fn(i)})
			}
			noErrors(t, b.behind(cl, cl, all...))
			require.Equal(t, 1, r.leaders()[""], "one leads all others: %v", r.leaders())
		})
	}
}

// noneLarger is a script that wants no transaction of writes to have more than so many actions.
func noneLarger(t *testing.T, most int) faults.Script {
	return func(call faults.Call) faults.Fault {
		if in, ok := call.Input.(*dynamodb.TransactWriteItemsInput); ok {
			assert.LessOrEqual(t, len(in.TransactItems), most)
		}
		return faults.Pass()
	}
}

// The record of the leader's ID takes a place in the transaction of its group: with it, a member
// that would just have had room has none.
func TestAGroupHasRoomForTheIDOfItsLeader(t *testing.T) {
	const most = 5 // two rows, two accounts, and one more that the member inserts
	for id, leaders := range map[string]int{"": 2, "x": 3} {
		runInBed(t, fmt.Sprintf("ID %q", id), func(t *testing.T, b *bed) {
			cl, r := b.traced("c", noneLarger(t, most), func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = most })
			member := after(transfer(1), insertAccount(account{Customer: "1", ID: "b"}))
			work := unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}
			lead := work
			lead.ID = id
			noErrors(t, b.crowd(cl, come{lead, transfer(1)}, come{work, member}))
			require.Equal(t, leaders, r.leaders()[""])
		})
	}
}
