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
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// A call that ends before its next run keeps nobody from what it had.
func TestWhatIsKeptForACallThatEnds(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		b.hold(other, 100*time.Millisecond, transferKeys...)
		ctx, end := context.WithCancel(t.Context())
		require.ErrorIs(t, c.freely(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(50)(ctx, u)
			end()
			return err
		}), context.Canceled)
		after, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, c.freely(after, unitofwork.Work{}, transfer(1)))
	})
}

// A leader that only reads, and loses its locks meanwhile, may not have seen one state: it is
// not committed, although it has nothing to write.
func TestALeaderThatOnlyReadsAndHasLostItsLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		var once sync.Once
		var sum int64
		reads := func(ctx context.Context, u *unitofwork.Unit) error {
			from, to := accounts.Ref("1", "a"), accounts.Ref("2", "a")
			if err := u.Get(ctx, from); err != nil {
				return err
			}
			if u.Locked() {
				once.Do(func() {
					b.bury(accountKey("1", "a"))
					b.bury(accountKey("2", "a"))
					require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(50)))
				})
			}
			if err := u.Get(ctx, to); err != nil {
				return err
			}
			sum = from.T.Balance + to.T.Balance
			return nil
		}
		lead := come{unitofwork.Work{Keys: transferKeys}, reads}
		errs := b.behind(other, c, lead, come{fn: transfer(1)}, come{fn: transfer(1)})
		noErrors(t, errs[1:])
		require.True(t, errs[0] != nil || sum == 200, sum)
	})
}

// A leader whose function has failed is told that, also when nothing is heard of what its
// followers wrote; its locks may stay until others take over, which the log says.
func TestALeaderThatFailsLeavesLocksInDoubt(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		log := &logbook{}
		other := b.client("other", nil)
		c := b.client("c", cutFrom(isCommit, 1, faults.LoseRequest(faults.Hang)), func(l *lockset.Config, _ *unitofwork.Config) {
			l.Logger = log.logger()
		})
		mine := errors.New("no")
		fails := func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
				return err
			}
			if !u.Locked() {
				return nil
			}
			return mine
		}
		errs := b.behind(other, c, come{unitofwork.Work{Keys: transferKeys}, fails}, come{fn: transfer(1)})
		require.Equal(t, mine, errs[0])
		require.ErrorIs(t, errs[1], unitofwork.ErrInDoubt)
		require.Contains(t, log.text(), "the locks of a group are in doubt")
	})
}

// A hook that panics is its own unit's: nobody else waits for ever, or hears of it.
func TestAHookOfAMemberThatPanics(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
				if e.ID == "bad" {
					panic("hook")
				}
			})
		})
		caught := make([]any, 4)
		var done sync.WaitGroup
		b.hold(c, 10*time.Millisecond, transferKeys...)
		for i := range caught {
			time.Sleep(100 * time.Microsecond)
			done.Go(func() {
				defer func() { caught[i] = recover() }()
				work := unitofwork.Work{}
				if i == 1 {
					work.ID = "bad"
				}
				require.NoError(t, c.freely(t.Context(), work, transfer(1)))
			})
		}
		done.Wait()
		require.Equal(t, []any{nil, "hook", nil, nil}, caught)
		require.Equal(t, [2]int64{96, 104}, b.balances())
	})
}

// Whoever waits no longer at the very moment at which it is taken along is told so, and nobody
// waits for it.
func TestWhoGoesAsItIsTakenAlong(t *testing.T) {
	for round := range 100 {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			b.hold(c, 10*time.Millisecond, transferKeys...)
			end := time.Now().Add(10*time.Millisecond + rtt)
			var done sync.WaitGroup
			for i := range 25 {
				done.Go(func() {
					time.Sleep(time.Duration(i) * time.Microsecond)
					ctx, work := t.Context(), unitofwork.Work{}
					switch {
					case i == 0:
					case round%2 == 0:
						var cancel context.CancelFunc
						ctx, cancel = context.WithDeadline(ctx, end)
						defer cancel()
					default:
						work.Wait = lockset.For(time.Until(end))
					}
					_ = c.freely(ctx, work, transfer(1))
				})
			}
			done.Wait()
		})
	}
}

// What a member that is not in the transaction has staged is not in it either: neither its
// writes nor the rows of their guards.
func TestTheRowsOfOneThatIsLeftOut(t *testing.T) {
	mine := errors.New("mine")
	for name, failed := range map[string]error{"fails": mine, "is too large": nil} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c, r := b.traced("c", nil)
			greedy := func(ctx context.Context, u *unitofwork.Unit) error {
				if err := transfer(1)(ctx, u); err != nil {
					return err
				}
				for i := range 120 {
					if err := u.Insert(accounts.Of(account{Customer: fmt.Sprint(3 + i), ID: "a"})); err != nil {
						return err
					}
				}
				return failed
			}
			errs := b.crowd(c, come{fn: transfer(1)}, come{fn: greedy})
			require.NoError(t, errs[0])
			require.ErrorIs(t, errs[1], failed)
			ends := slices.DeleteFunc(r.ends, func(e trace.Event) bool { return e.Outcome != hooks.Committed })
			for _, e := range ends[:2] { // the one before, and the leader
				require.Equal(t, 4, e.Rows)
			}
		})
	}
}

// A function that panics while a goroutine of its own still reads for all.
func TestALeaderThatPanicsWhileItReads(t *testing.T) {
	for _, wait := range []time.Duration{10 * time.Millisecond, 10*time.Millisecond + rtt} {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			b.hold(c, 10*time.Millisecond, transferKeys...)
			var done sync.WaitGroup
			done.Go(func() {
				defer func() { require.Equal(t, "bad", recover()) }()
				_ = c.freely(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
					go func() { _ = u.Get(ctx, accounts.Ref("1", "a"), accounts.Ref("2", "a")) }()
					time.Sleep(wait)
					panic("bad")
				})
			})
			for range 4 {
				time.Sleep(100 * time.Microsecond)
				done.Go(func() { require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1))) })
			}
			done.Wait()
			require.Equal(t, [2]int64{96, 104}, b.balances())
		})
	}
}

// A leader that fails, and is too large for one transaction, commits nothing: no journal either.
func TestALeaderThatFailsAndIsTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 5 }), b.client("other", nil)
		b.hold(other, 50*time.Millisecond, transferKeys...)
		mine := errors.New("mine")
		keys := append([]ordering.Key{"x", "y", "z"}, transferKeys...)
		var done sync.WaitGroup
		done.Go(func() {
			require.ErrorIs(t, c.freely(t.Context(), unitofwork.Work{Keys: keys}, failing(7, mine)), mine)
		})
		for range 3 {
			time.Sleep(100 * time.Microsecond)
			done.Go(func() { require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1))) })
		}
		done.Wait()
		require.Equal(t, [2]int64{97, 103}, b.balances())
	})
}

// Who wants two keys that others of its process have, now this one and now that, has them in the end,
// also if it looks at neither.
func TestWhoWantsTwoHotKeysIsNotOvertakenForEver(t *testing.T) {
	for name, fn := range map[string]func(context.Context, *unitofwork.Unit) error{
		"reads":       transfer(1),
		"only writes": replaces(accounts.Of(account{Customer: "1", ID: "a"}), accounts.Of(account{Customer: "2", ID: "a"})),
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c, other := b.client("c", nil), b.client("other", nil)
			ctx, cancel := context.WithCancel(t.Context())
			var done sync.WaitGroup
			for i := range 16 {
				busy, hot := []*client{c, other}[i%2], change(accounts.Ref(fmt.Sprint(1+i/2%2), "a"), func(*account) {})
				done.Go(func() {
					for ctx.Err() == nil {
						_ = busy.freely(ctx, unitofwork.Work{}, hot)
					}
				})
			}
			time.Sleep(time.Second)
			start := time.Now()
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, fn))
			require.Less(t, time.Since(start), 10*time.Second)
			cancel()
			done.Wait()
		})
	}
}

// A program without locks changes a record after a member of a group has read it: the member is not
// committed on what it has read. The leader reads what the member's first Get names; what a later
// Get names is read for the member alone.
func TestAVersionThatAUnitOfAGroupHasRead(t *testing.T) {
	for name, reads := range map[string]func(context.Context, *unitofwork.Unit, ...unitofwork.Record) error{
		"in one Get": func(ctx context.Context, u *unitofwork.Unit, all ...unitofwork.Record) error {
			return u.Get(ctx, all...)
		},
		"in two": func(ctx context.Context, u *unitofwork.Unit, all ...unitofwork.Record) error {
			if err := u.Get(ctx, all[0]); err != nil {
				return err
			}
			return u.Get(ctx, all[1])
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTallies(t, func(t *testing.T, b *bed) {
				c, r := b.traced("c", nil)
				calls := 0
				member := func(ctx context.Context, u *unitofwork.Unit) error {
					one, a := accounts.Ref("1", "a"), tallies.Ref("a")
					if err := reads(ctx, u, one, a); err != nil {
						return err
					}
					if calls++; calls == 1 {
						require.NoError(t, b.addOld("a", 1))
					}
					one.T.Balance = a.T.N
					return u.Put(one)
				}
				keys := append([]ordering.Key{tallyKey("a")}, transferKeys...)
				noErrors(t, b.crowd(c, come{unitofwork.Work{Keys: keys}, transfer(1)}, come{fn: member}))
				require.EqualValues(t, 11, b.account("1").Balance, "the sum as it is at the commit")
				require.Equal(t, 1, r.together(hooks.FellBack), "it came along with the leader first")
			})
		})
	}
}

// together counts the runs with this outcome of units that came along with a leader.
func (r *runs) together(outcome string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.ends {
		if e.Leader != "" && e.Outcome == outcome {
			n++
		}
	}
	return n
}

// A holder that has lost its lock writes a record late, after the leader of a group has read it
// and before a member reads it and writes it: the leader is not committed on what it has read.
func TestALateWriteBetweenTheReadsOfALeaderAndAMember(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		late, c := b.client("late", nil), b.client("c", nil, r.traced)
		set := late.passes(t, accountKey("1", "a"))
		copies := func(ctx context.Context, u *unitofwork.Unit) error {
			one, two := accounts.Ref("1", "a"), accounts.Ref("2", "a")
			if err := u.Get(ctx, two); err != nil {
				return err
			}
			if err := u.Get(ctx, one); err != nil {
				return err
			}
			two.T.Balance = one.T.Balance
			return u.Put(two)
		}
		calls := 0
		adds := func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, accounts.Ref("2", "a")); err != nil {
				return err
			}
			if calls++; calls == 1 {
				b.writeLate(set, "1", "a", 500)
			}
			return payIn("1")(ctx, u)
		}
		noErrors(t, b.crowdAfter(c, payIn("2"), come{fn: copies}, come{fn: adds}))
		require.Equal(t, 1, r.together(hooks.FellBack), "the member came along with the leader first")
		require.EqualValues(t, 501, b.account("1").Balance)
		require.Contains(t, []int64{500, 501}, b.account("2").Balance, "what account 1 had at a commit")
	})
}

// deed is a record that the account of its owner guards.
type deed struct{ ID, Owner string }

var deeds = unitofwork.Table[deed]{
	Name: "deeds", PartitionKey: "ID", GuardByContent: true,
	Guard: func(d *deed) ordering.Key { return accountKey(d.Owner, "a") },
}

// readsOf is a script that is told how often a table was read before, with each read of it.
func readsOf(table string, before func(n int)) faults.Script {
	n := 0
	return func(call faults.Call) faults.Fault {
		if in, ok := call.Input.(*dynamodb.TransactGetItemsInput); ok {
			for _, get := range in.TransactItems {
				if *get.Get.TableName == table {
					before(n)
					n++
					break
				}
			}
		}
		return faults.Pass()
	}
}

// A leader learns of a guard by reading, and reads again: what its followers are shown is as of
// then, too.
func TestALeaderThatIsMistakenAboutAGuard(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("deeds", "ID")
		b.put("deeds", deed{"x", "3"})
		other := b.client("other", nil)
		c, r := b.traced("c", readsOf("deeds", func(n int) {
			if n == 1 {
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(70)))
			}
		}))
		copies := func(ctx context.Context, u *unitofwork.Unit) error {
			ref := accounts.Ref("1", "a")
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			return u.Replace(customers.Of(customer{ID: "copy", Name: fmt.Sprint(ref.T.Balance)}))
		}
		noErrors(t, b.behind(c, c, come{unitofwork.Work{Keys: transferKeys}, readOnly(deeds.Ref("x"))}, come{fn: copies}))
		require.Len(t, r.leaders(), 2, "it has led")
		require.EqualValues(t, 30, b.account("1").Balance)
		require.Equal(t, "30", b.customer("copy").Name)
	})
}

// A leader's function has its time for itself: what a read takes, of two requests or of one, does
// not count.
func TestALeaderThatReadsForLong(t *testing.T) {
	for name, reads := range map[string]func(context.Context, *unitofwork.Unit) error{
		"once, but is mistaken": readOnly(deeds.Ref("x")),
		"twice":                 after(readOnly(accounts.Ref("1", "a")), readOnly(deeds.Ref("x"))),
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.createTable("deeds", "ID")
			b.put("deeds", deed{"x", "3"})
			c, r := b.traced("c", readsOf("deeds", func(int) { time.Sleep(5 * 20 * time.Millisecond) }))
			lead := come{unitofwork.Work{Keys: transferKeys}, reads}
			noErrors(t, b.behind(c, c, lead, come{fn: transfer(1)}, come{fn: transfer(1)}))
			require.Equal(t, 1, r.leaders()[""], "it has led the others")
		})
	}
}

// Who came along with one that goes on under locks does not wait for those that it does not need.
func TestFollowersDoNotWaitForLocksThatTheyDoNotNeed(t *testing.T) {
	large := func(ctx context.Context, u *unitofwork.Unit) error {
		if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil {
			return err
		}
		return each(60, func(i int) error {
			return u.Insert(accounts.Of(account{Customer: fmt.Sprint("0", i), ID: "a"}))
		})
	}
	for name, c := range map[string]struct {
		lead func(context.Context, *unitofwork.Unit) error
		held ordering.Key // one of the locks that it needs, by somebody else
	}{
		"somebody is in its way": {readOnly(deeds.Of(deed{"x", "1"})), accountKey("2", "a")}, // whose the deed is
		"it is too large":        {large, customerKey("01")},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.createTable("deeds", "ID")
			b.put("deeds", deed{"x", "2"})
			cl := b.client("c", readsOf("deeds", func(int) { time.Sleep(300 * time.Millisecond) })) // too long to be tried again
			b.hold(b.client("other", nil), 5*time.Second, c.held)
			b.hold(cl, 100*time.Millisecond, accountKey("1", "a"))
			var done sync.WaitGroup
			done.Go(func() { require.NoError(t, cl.freely(t.Context(), unitofwork.Work{}, c.lead)) })
			time.Sleep(time.Millisecond)
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := cl.freely(soon, unitofwork.Work{}, payIn("1"))
			done.Wait()
			require.NoError(t, err)
		})
	}
}

// A leader under locks finds a key that it does not hold, and runs again. Those who came along
// are served before who came after them.
func TestALeaderThatFindsAKeyKeepsTheOrder(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		var order []string
		lead := come{fn: func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(1)(ctx, u)
			if err == nil && u.Locked() {
				err = u.Get(ctx, customers.Ref("3"))
			}
			return err
		}}
		first, second := inOrder(&order, "first", unitofwork.Work{}), inOrder(&order, "second", unitofwork.Work{Alone: true})
		noErrors(t, b.behind(other, c, lead, first, second))
		require.Equal(t, []string{"first", "second"}, order)
		require.Equal(t, [2]int64{97, 103}, b.balances())
	})
}

// inOrder is a transfer that notes its name, whenever it has read what it needs.
func inOrder(order *[]string, name string, work unitofwork.Work) come {
	return come{work, after(transfer(1), func(context.Context, *unitofwork.Unit) error {
		*order = append(*order, name)
		return nil
	})}
}
