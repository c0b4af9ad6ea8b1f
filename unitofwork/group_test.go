package unitofwork_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

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
		var r runs
		var s sums
		c := b.client("c", nil, r.traced)
		noErrors(t, b.crowd(c, times(10, come{fn: s.transfer(1)})...))
		require.Equal(t, [2]int64{90, 110}, b.balances())
		require.Equal(t, map[string]int{"TransactGetItems": 2, "TransactWriteItems": 2}, c.requests())
		require.Equal(t, []int64{100, 99, 98, 97, 96, 95, 94, 93, 92, 91}, s.seen, "as they arrived")
		leaders := map[string]int{}
		for _, e := range r.ends {
			require.Equal(t, hooks.Committed, e.Outcome)
			leaders[e.Leader]++
		}
		require.Len(t, leaders, 2)
		require.Equal(t, 2, leaders[""], "who had the rows first, and who led the others")
		b.allFree()
	})
}

// What a member fails with is its own, and its writes are not there.
func TestAMemberThatFails(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		mine := errors.New("no")
		fails := failing(50, mine)
		var s sums
		errs := b.crowd(c, come{fn: s.transfer(1)}, come{fn: fails}, come{fn: s.transfer(1)})
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], mine)
		require.NoError(t, errs[2])
		require.Equal(t, [2]int64{98, 102}, b.balances())
		require.Equal(t, []int64{100, 99}, s.seen)
		require.Equal(t, map[string]int{"TransactGetItems": 2, "TransactWriteItems": 2}, c.requests())
	})
}

// A leader that fails has read for those who came along all the same.
func TestALeaderThatFails(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		mine := errors.New("no")
		fails := failing(50, mine)
		var s sums
		errs := b.crowd(c, append([]come{{fn: fails}}, times(3, come{fn: s.transfer(1)})...)...)
		require.ErrorIs(t, errs[0], mine)
		noErrors(t, errs[1:])
		require.Equal(t, []int64{100, 99, 98}, s.seen)
		require.Equal(t, map[string]int{"TransactGetItems": 2, "TransactWriteItems": 2}, c.requests())
	})
}

// One that may be told of its ID leads nobody when it has failed: who came along waits as before.
func TestALeaderWithAnIDThatFails(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		mine := errors.New("no")
		fails := failing(50, mine)
		var s sums
		errs := b.crowd(c, append([]come{{unitofwork.Work{ID: "x"}, fails}}, times(3, come{fn: s.transfer(1)})...)...)
		require.ErrorIs(t, errs[0], mine)
		noErrors(t, errs[1:])
		require.Equal(t, []int64{100, 99, 98}, s.seen)
		require.Equal(t, map[string]int{"TransactGetItems": 3, "TransactWriteItems": 2}, c.requests())
	})
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
		var r runs
		c := b.client("c", nil, r.traced)
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

// What a member updates by an expression the next one cannot see: it comes later.
func TestAnUpdateIsNotMerged(t *testing.T) {
	for name, update := range map[string]func(context.Context, *unitofwork.Unit) error{
		"read": func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
				return err
			}
			return addBlindly(1)(ctx, u)
		},
		"blind": addBlindly(1),
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				noErrors(t, b.crowd(c, times(5, come{fn: update})...))
				require.EqualValues(t, 105, b.account("1").Balance)
			})
		})
	}
}

// A member that needs what its group has not runs by itself.
func TestAMemberThatNeedsMore(t *testing.T) {
	for name, more := range map[string]func(context.Context, *unitofwork.Unit) error{
		"reads": func(ctx context.Context, u *unitofwork.Unit) error {
			other := accounts.Ref("3", "a")
			if err := u.Get(ctx, other); err != nil {
				return err
			}
			other.T.Balance++
			return u.Put(other)
		},
		"reads one above": func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, customers.Ref("1")) },
		"writes": func(_ context.Context, u *unitofwork.Unit) error {
			return u.Insert(accounts.Of(account{Customer: "3", ID: "a", Balance: 1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				needs := func(ctx context.Context, u *unitofwork.Unit) error {
					if err := transfer(1)(ctx, u); err != nil {
						return err
					}
					return more(ctx, u)
				}
				noErrors(t, b.crowd(c, come{fn: transfer(1)}, come{fn: needs}, come{fn: transfer(1)}))
				found := b.db.Items("accounts")
				require.Equal(t, int64(97), b.account("1").Balance)
				require.Equal(t, name != "reads one above", len(found) == 3)
			})
		})
	}
}

// Members see what those before them delete and put.
func TestMembersSeeWhatIsDeletedAndPut(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var found []bool
		look := func(ctx context.Context, u *unitofwork.Unit) (*unitofwork.Ref[account], error) {
			ref := accounts.Ref("1", "a")
			err := u.Get(ctx, ref)
			if err == nil {
				found = append(found, ref.Found)
			}
			return ref, err
		}
		remove := func(ctx context.Context, u *unitofwork.Unit) error {
			ref, err := look(ctx, u)
			if err != nil {
				return err
			}
			return u.Delete(ref)
		}
		put := func(ctx context.Context, u *unitofwork.Unit) error {
			ref, err := look(ctx, u)
			if err != nil {
				return err
			}
			ref.T.Balance = 7
			return u.Put(ref)
		}
		noErrors(t, b.crowd(c, come{fn: remove}, come{fn: put}, come{fn: remove}, come{fn: put}))
		require.Equal(t, []bool{true, false, true, false}, found)
		require.EqualValues(t, 7, b.account("1").Balance)
		require.Equal(t, 2, c.requests()["TransactWriteItems"])
	})
}

// A condition of one member refuses the commit of all: each is told its own.
func TestAConditionOfAMember(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		inserts := func(ctx context.Context, u *unitofwork.Unit) error {
			if err := transfer(1)(ctx, u); err != nil {
				return err
			}
			return u.Insert(customers.Of(customer{ID: "1"}))
		}
		work := unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}
		errs := b.crowd(c, come{work, transfer(1)}, come{work, inserts}, come{work, transfer(1)})
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], unitofwork.ErrExists)
		require.NoError(t, errs[2])
		require.Equal(t, [2]int64{98, 102}, b.balances())
	})
}

func TestUnitsThatAreToBeAlone(t *testing.T) {
	for name, work := range map[string]unitofwork.Work{
		"alone":            {Alone: true},
		"locks first":      {Lock: true, Keys: transferKeys},
		"waits for nobody": {Wait: lockset.For(0)},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				c := b.client("c", nil, r.traced)
				_ = b.crowd(c, times(4, come{work, transfer(1)})...)
				for _, e := range r.ends {
					require.Empty(t, e.Leader)
				}
			})
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
		require.Equal(t, [2]int64{96, 104}, b.balances())
		for _, id := range []string{"x", "y"} {
			outcome, err := c.Outcome(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, unitofwork.Committed, outcome)
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var mu sync.Mutex // its runs send beside each other
				silent, commits := false, 0
				cl := b.client("c", func(call faults.Call) faults.Fault {
					mu.Lock()
					defer mu.Unlock()
					if isCommit(call) {
						commits++
					}
					switch {
					case isCommit(call) && commits > 1 && !silent:
						silent = true
						return c.commit
					case silent:
						return faults.LoseRequest(faults.Hang)
					}
					return faults.Pass()
				})
				mine := errors.New("no")
				fails := failing(5, mine)
				errs := b.crowd(cl, come{fn: transfer(1)}, come{unitofwork.Work{ID: "x"}, transfer(1)}, come{fn: fails})
				require.NotErrorIs(t, errs[2], unitofwork.ErrInDoubt, "it has written nothing")
				other := b.client("other", nil)
				for _, err := range errs[:2] {
					var doubt *unitofwork.InDoubtError
					require.ErrorAs(t, err, &doubt)
					outcome, err := other.Outcome(t.Context(), doubt.Ref)
					require.NoError(t, err)
					require.Equal(t, c.want, outcome)
				}
				require.Equal(t, "x", func() string { var d *unitofwork.InDoubtError; errors.As(errs[1], &d); return d.ID }())
			})
		})
	}
}

// Where another process is in the way, those who wait are committed together under one set of
// locks.
func TestAGroupUnderLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		b.hold(other, 300*time.Millisecond, transferKeys...)
		var s sums
		var done sync.WaitGroup
		for i := range 10 {
			done.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, s.transfer(1)))
			})
		}
		done.Wait()
		require.Equal(t, [2]int64{90, 110}, b.balances())
		committed := map[string]int{}
		for _, e := range r.ends {
			if e.Outcome == hooks.Committed {
				committed[e.Leader]++
			}
		}
		require.Equal(t, 1, committed[""], "%v", committed)
		require.Equal(t, freeRuns+1, c.requests()["TransactGetItems"], "all looks but one were in vain")
		b.allFree()
	})
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

// What does not fit into one transaction with the others comes later.
func TestAGroupIsOneTransaction(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 8 })
		inserts := func(id string) come {
			return come{unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := transfer(1)(ctx, u); err != nil {
					return err
				}
				return u.Insert(accounts.Of(account{Customer: "1", ID: id}))
			}}
		}
		var all []come
		for _, id := range []string{"b", "c", "d", "e", "f", "g", "h", "i", "j"} {
			all = append(all, inserts(id))
		}
		noErrors(t, b.crowd(c, all...))
		require.Len(t, b.db.Items("accounts"), 2+len(all))
	})
}
