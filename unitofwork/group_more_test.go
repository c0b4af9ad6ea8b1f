package unitofwork_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// behind has units come, one after another, while holder has the accounts of transfer: the first
// of them leads the others when it lets go. It returns what each was told.
func (b *bed) behind(holder, c *client, all ...come) []error {
	b.t.Helper()
	b.hold(holder, 300*time.Millisecond, transferKeys...) // until they are under locks
	var done sync.WaitGroup
	errs := make([]error, len(all))
	for i, one := range all {
		time.Sleep(100 * time.Microsecond)
		done.Go(func() { errs[i] = c.freely(b.t.Context(), one.Work, one.fn) })
	}
	done.Wait()
	return errs
}

// leaders counts the units that were committed, by who led them.
func (r *runs) leaders() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	led := map[string]int{}
	for _, e := range r.ends {
		if e.Outcome == hooks.Committed {
			led[e.Leader]++
		}
	}
	return led
}

// after runs one function after another, as one.
func after(all ...func(context.Context, *unitofwork.Unit) error) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		for _, fn := range all {
			if err := fn(ctx, u); err != nil {
				return err
			}
		}
		return nil
	}
}

// payIn adds to one account.
func payIn(customer string) func(context.Context, *unitofwork.Unit) error {
	return change(accounts.Ref(customer, "a"), func(a *account) { a.Balance++ })
}

func insertAccount(a account) func(context.Context, *unitofwork.Unit) error {
	return inserts(accounts.Of(a))
}

// Of two members that insert one record, one does.
func TestMembersThatInsertTheSame(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		one := come{fn: after(transfer(1), insertAccount(account{Customer: "1", ID: "b"}))}
		one.Keys = []ordering.Key{customerKey("1"), customerKey("2")}
		errs := b.crowd(c, come{one.Work, transfer(1)}, one, one)
		noErrors(t, errs[:2])
		require.ErrorIs(t, errs[2], unitofwork.ErrExists)
	})
}

// Nothing is left of a member that failed, nor of one that was committed before.
func TestIDsOfMembersThatWriteNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{ID: "before"}, transfer(1)))
		c.requests()
		mine := errors.New("no")
		failed := come{unitofwork.Work{ID: "failed"}, after(transfer(50), func(context.Context, *unitofwork.Unit) error { return mine })}
		errs := b.crowd(c, come{fn: transfer(1)}, failed, come{unitofwork.Work{ID: "before"}, transfer(50)}, come{fn: transfer(1)})
		require.ErrorIs(t, errs[1], mine)
		require.NoError(t, errs[2])
		require.Equal(t, map[string]int{"TransactGetItems": 2, "TransactWriteItems": 2}, c.requests())
		require.Equal(t, [2]int64{97, 103}, b.balances())
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{ID: "failed"}, transfer(1)))
		require.Equal(t, [2]int64{96, 104}, b.balances())
	})
}

// A member's ID is its own, with its own keys and payload, and tells of the group's commit.
func TestTheRecordOfAMembersID(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", cutFrom(isCommit, 1, faults.LoseAnswer(faults.Hang)))
		lead := come{unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}, transfer(1)}
		member := come{unitofwork.Work{ID: "y", Payload: []byte("y"), Keys: transferKeys}, transfer(1)}
		errs := b.behind(c, c, lead, member)
		doubt := errorAs[*unitofwork.InDoubtError](t, errs[1])
		other := b.client("other", nil)
		noErrors(t, []error{other.freely(t.Context(), lead.Work, transfer(0)), other.freely(t.Context(), lead.Work, transfer(0))})
		require.Equal(t, unitofwork.Committed, other.outcomeOf(t, doubt.Ref), "the rows do not tell any more")
		require.NoError(t, other.freely(t.Context(), member.Work, transfer(1)))
		require.Equal(t, [2]int64{98, 102}, b.balances())
	})
}

// Whose turn has not come when a group has no more time waits for the next one: its function is
// not called again.
func TestWhoseTurnDoesNotComeWaits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var mu sync.Mutex
		calls := map[string]int{}
		slow := func(name string, d time.Duration) come {
			return come{fn: func(ctx context.Context, u *unitofwork.Unit) error {
				mu.Lock()
				calls[name]++
				mu.Unlock()
				err := transfer(1)(ctx, u)
				time.Sleep(d)
				return err
			}}
		}
		noErrors(t, b.crowd(c, slow("lead", 0), slow("long", 30*time.Millisecond), slow("short", time.Millisecond)))
		require.Equal(t, map[string]int{"lead": 1, "long": 2, "short": 1}, calls)
	})
}

// A leader that writes nothing is followed by those who came along, before others.
func TestALeaderThatFailsKeepsTheOrder(t *testing.T) {
	for name, c := range map[string]struct {
		unitofwork.Work
		then func(u *unitofwork.Unit) error
	}{
		"panics":     {then: func(*unitofwork.Unit) error { panic("oh") }},
		"has an ID":  {unitofwork.Work{ID: "x"}, func(*unitofwork.Unit) error { return errors.New("no") }},
		"is refused": {then: func(u *unitofwork.Unit) error { _ = u.Put(accounts.Of(account{Customer: "1"})); return nil }},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("c", nil)
			var order []string
			lead := func(ctx context.Context, u *unitofwork.Unit) (err error) {
				if err := transfer(50)(ctx, u); err != nil {
					return err
				}
				return c.then(u)
			}
			var done sync.WaitGroup
			done.Go(func() {
				time.Sleep(50 * time.Microsecond)
				defer func() { _ = recover() }()
				require.Error(t, cl.freely(t.Context(), c.Work, lead))
			})
			noErrors(t, b.crowd(cl,
				inOrder(&order, "first", unitofwork.Work{}), inOrder(&order, "second", unitofwork.Work{}),
				inOrder(&order, "third", unitofwork.Work{Alone: true}),
			))
			done.Wait()
			require.Equal(t, []string{"first", "second", "third"}, order)
			require.Equal(t, [2]int64{97, 103}, b.balances())
		})
	}
}

// A record that only a member has read must not have been written since, however late by a
// holder that has lost its lock.
func TestALateWriteOfWhatAMemberReads(t *testing.T) {
	for name, c := range map[string]struct {
		work  unitofwork.Work
		reads [][2]unitofwork.Record
	}{
		"with the others":  {},
		"after the others": {work: unitofwork.Work{Keys: transferKeys}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, late := b.client("c", nil), b.client("late", nil)
			set := late.passes(t, accountKey("1", "a"))
			calls := 0
			member := func(ctx context.Context, u *unitofwork.Unit) error {
				from, to := accounts.Ref("1", "a"), accounts.Ref("2", "a")
				if len(c.work.Keys) > 0 {
					if err := u.Get(ctx, to); err != nil {
						return err
					}
					if err := u.Get(ctx, from); err != nil {
						return err
					}
				} else if err := u.Get(ctx, from, to); err != nil {
					return err
				}
				if calls++; calls == 1 {
					b.writeLate(set, "1", "a", 500)
				}
				from.T.Balance++
				return u.Put(from)
			}
			noErrors(t, b.behind(cl, cl, come{fn: payIn("2")}, come{c.work, member}))
			require.Equal(t, [2]int64{501, 101}, b.balances())
		})
	}
}

// What becomes of the others does not hang on the leader's caller.
func TestALeaderWhoseCallerLeaves(t *testing.T) {
	for _, way := range []string{"without locks", "under locks"} {
		runInBed(t, way, func(t *testing.T, b *bed) {
			ctx, leave := context.WithCancel(t.Context())
			commits := 0
			c := b.client("c", upon(isCommit, func() {
				commits++
				leave()
			}))
			holder, held := c, 50*time.Millisecond
			if way == "under locks" { // until nobody tries without any more
				holder, held = b.client("other", nil), time.Second
			}
			var done sync.WaitGroup
			done.Go(func() {
				time.Sleep(9 * time.Millisecond)
				_ = c.freely(ctx, unitofwork.Work{}, transfer(1))
			})
			b.hold(holder, held, transferKeys...)
			errs := make([]error, 4)
			for i := range errs {
				done.Go(func() {
					time.Sleep(10 * time.Millisecond)
					errs[i] = c.freely(t.Context(), unitofwork.Work{}, transfer(1))
				})
			}
			done.Wait()
			noErrors(t, errs)
			require.Equal(t, 1, commits)
			require.Equal(t, [2]int64{95, 105}, b.balances())
		})
	}
}

// A unit that was put back, and has gone on with another group, is that one's.
func TestAMemberThatGoesOnWithAnotherGroup(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		woke := make(chan struct{})
		c := b.client("c", upon(isCommit, func() {
			<-woke
			time.Sleep(10 * time.Millisecond)
		}))
		calls := 0
		blocks := func(ctx context.Context, u *unitofwork.Unit) error {
			err := u.Get(ctx, accounts.Ref("1", "a"), accounts.Ref("2", "a"))
			if calls++; calls == 1 {
				time.Sleep(100 * time.Millisecond)
				close(woke)
			}
			return err
		}
		var s sums
		noErrors(t, b.behind(c, c, come{fn: blocks}, come{fn: s.transfer(1)}, come{fn: s.transfer(1)}))
		require.Equal(t, []int64{100, 99}, s.seen)
		require.Equal(t, [2]int64{98, 102}, b.balances())
	})
}

// A leader is told its own keys, not those of others.
func TestALeaderKnowsItsOwnKeys(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", nil)
		var keys []ordering.Key
		lead := func(ctx context.Context, u *unitofwork.Unit) error {
			err := payIn("2")(ctx, u)
			keys = u.Keys()
			return err
		}
		noErrors(t, b.behind(c, c, come{fn: lead}, come{fn: transfer(1)}))
		require.Len(t, r.leaders(), 2, "it has led")
		require.Equal(t, []ordering.Key{accountKey("2", "a")}, keys)
	})
}

// Somebody else comes before a group commits: its members are committed together all the same,
// under locks.
func TestAGroupThatGivesWayRunsAgainTogether(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		var last sync.Once
		calls := 0
		late := func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(1)(ctx, u)
			calls++
			last.Do(func() { require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(-100))) })
			return err
		}
		noErrors(t, b.crowd(c, append(times(4, come{fn: transfer(1)}), come{fn: late})...))
		require.Equal(t, [2]int64{195, 5}, b.balances())
		led := r.leaders()
		require.Len(t, led, 2)
		require.Equal(t, 2, led[""], "who had the rows first, and who led the others")
		require.Equal(t, 2, calls)
	})
}

// A group is no larger than what one request holds, whichever way.
func TestLargeGroups(t *testing.T) {
	notes := unitofwork.Table[customer]{
		Name: "customers", PartitionKey: "ID", Guard: func(*customer) ordering.Key { return customerKey("1") },
	}
	many := func(i int) []unitofwork.Record {
		records := make([]unitofwork.Record, 20)
		for j := range records {
			records[j] = accounts.Ref("1", fmt.Sprint(i, "-", j))
		}
		return records
	}
	for name, c := range map[string]struct {
		units, most, groups int
		fn                  func(i int) func(context.Context, *unitofwork.Unit) error
	}{
		"units": {units: 40, groups: 2, fn: func(int) func(context.Context, *unitofwork.Unit) error { return transfer(0) }},
		"bytes": {units: 20, fn: func(i int) func(context.Context, *unitofwork.Unit) error {
			return after(transfer(0), inserts(notes.Of(customer{ID: fmt.Sprint("note ", i), Name: strings.Repeat("x", 300_000)})))
		}},
		"reads": {units: 8, fn: func(i int) func(context.Context, *unitofwork.Unit) error {
			return func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, many(i)...) }
		}},
		"writes": {units: 10, most: 8, fn: func(i int) func(context.Context, *unitofwork.Unit) error {
			return after(transfer(0), insertAccount(account{Customer: "1", ID: fmt.Sprint("x", i)}))
		}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			var refused atomic.Int64
			cl, r := b.traced("c", noneLarger(t, cmp.Or(c.most, requests.MaxActions)), func(l *lockset.Config, u *unitofwork.Config) {
				u.TransactionSize = c.most
				l.Trace = trace.Join(l.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
					if i.Err != nil {
						refused.Add(1)
					}
				}))
			})
			var all []come
			for i := range c.units {
				all = append(all, come{unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}, c.fn(i)})
			}
			noErrors(t, b.behind(cl, cl, all...))
			led := r.leaders()
			require.Greater(t, len(led), 1, "some are led")
			require.Zero(t, refused.Load())
			if c.groups > 0 {
				require.Equal(t, c.groups, led[""])
			}
		})
	}
}

// Who reads what DynamoDB does not take does not come along again, and nor does anybody who
// may have been the one: the others do not pay for it once more.
func TestAMemberThatReadsNonsense(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		nowhere := accounts
		nowhere.Name = "nowhere"
		nonsense := readOnly(accounts.Ref("1", "a"), nowhere.Ref("1", "b"))
		errs := b.crowd(c, come{fn: transfer(1)}, come{fn: nonsense}, come{fn: transfer(1)}, come{fn: transfer(1)})
		require.ErrorAs(t, errs[1], new(*lockset.TableError))
		noErrors(t, []error{errs[0], errs[2], errs[3]})
		require.Equal(t, [2]int64{97, 103}, b.balances())
		// The holder's, the group's, the leader's own; one alone that is refused; one for each other. And
		// of each refusal, which of three tables it was.
		require.Equal(t, map[string]int{"TransactGetItems": 6, "TransactWriteItems": 4, "GetItem": 6}, c.requests())
	})
}

// Who waits for its turn waits no longer than it said.
func TestARecordWaitInAGroup(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		reads := 0
		c := b.client("c", upon(func(call faults.Call) bool { return call.Op == "TransactGetItems" }, func() {
			if reads++; reads == 1 {
				time.Sleep(200 * time.Millisecond)
			}
		}))
		errs := b.behind(c, c, come{fn: transfer(1)}, come{unitofwork.Work{Wait: lockset.For(400 * time.Millisecond)}, transfer(50)})
		require.NoError(t, errs[0])
		require.ErrorAs(t, errs[1], new(*lockset.HeldError))
		require.Equal(t, [2]int64{99, 101}, b.balances())
	})
}

// What a member reads after the others is one state with what they have read.
func TestWhatAMemberReadsLaterIsOfTheSameState(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		var between sync.Once
		member := func(ctx context.Context, u *unitofwork.Unit) error {
			to, from := accounts.Ref("2", "a"), accounts.Ref("1", "a")
			if err := u.Get(ctx, to); err != nil {
				return err
			}
			between.Do(func() { require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(50))) })
			if err := u.Get(ctx, from); err != nil {
				return err
			}
			require.EqualValues(t, 200, from.T.Balance+to.T.Balance)
			return nil
		}
		noErrors(t, b.behind(c, c, come{fn: readOnly(accounts.Ref("2", "a"))}, come{unitofwork.Work{Keys: transferKeys}, member}))
		require.Equal(t, [2]int64{50, 150}, b.balances())
	})
}
