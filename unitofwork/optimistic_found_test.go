package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// link is a record that names another, and whose guard is made of more than its key.
type link struct {
	ID, Owner, Next string
}

var links = unitofwork.Table[link]{
	Name: "links", PartitionKey: "ID", GuardByContent: true,
	Guard: func(l *link) ordering.Key { return ordering.Join("owner:"+l.Owner, "link:"+l.ID) },
}

func inLinks(t *testing.T, test func(*testing.T, *bed)) {
	t.Helper()
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("links", "ID")
		for i := range 12 {
			b.put("links", link{ID: fmt.Sprint(i), Owner: fmt.Sprint(i % 3), Next: fmt.Sprint(i + 1)})
		}
		test(t, b)
	})
}

// follow goes from link to link, and writes the last one.
func follow(from string, steps int) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		at := links.Ref(from)
		if err := u.Get(ctx, at); err != nil {
			return err
		}
		for range steps {
			at = links.Ref(at.T.Next)
			if err := u.Get(ctx, at); err != nil {
				return err
			}
		}
		at.T.Next = "end"
		return u.Put(at)
	}
}

// A guard that is made of a record's content is known once it was read: it is read once more,
// with its lock row.
func TestKeysThatAreFoundByReading(t *testing.T) {
	inLinks(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, follow("0", 2)))
		require.Equal(t, map[string]int{"TransactGetItems": 6, "TransactWriteItems": 1}, c.requests())
		require.Equal(t, []string{"free committed"}, r.texts())
		require.Equal(t, 6, r.last().Rows)
	})
}

// Under locks a key that is not held is found, too: then the unit starts over with it, and
// with what it held before.
func TestKeysThatAreFoundUnderLocks(t *testing.T) {
	inLinks(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, "owner:0/link:0")
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, follow("0", 2)))
		require.Equal(t, inVain("locked fell back", "locked fell back", "locked committed"), r.texts())
		b.allFree()
		item := b.db.Items("links")
		require.NotEmpty(t, item)
	})
}

// A unit that is under locks because somebody has what it reads also finds keys by what it stages. A
// write whose key is not held tells its function nothing: the function goes on, and what else it
// needs is found by the same run.
func TestKeysThatAreFoundByWriting(t *testing.T) {
	const lines = 12
	line := func(i int) unitofwork.Record {
		return accounts.Of(account{Customer: fmt.Sprint("line", i), ID: "a"})
	}
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		stage   func(*unitofwork.Unit) error
		always  bool // also when its read has failed
		fails   error
		runs    []string // under locks
		records int
	}{
		"one": {stage: func(u *unitofwork.Unit) error { return u.Replace(line(0)) }, runs: []string{"locked fell back", "locked committed"}, records: 1},
		"many, in one call": {stage: func(u *unitofwork.Unit) error {
			var all []unitofwork.Record
			for i := range lines {
				all = append(all, line(i))
			}
			return u.Replace(all...)
		}, runs: []string{"locked fell back", "locked committed"}, records: lines},
		"many, in many": {stage: func(u *unitofwork.Unit) error {
			return each(lines, func(i int) error { return u.Replace(line(i)) })
		}, runs: []string{"locked fell back", "locked committed"}, records: lines},
		"by a run that is void": { // so that the next one has it
			stage: func(u *unitofwork.Unit) error { return u.Replace(line(0)) }, always: true, runs: []string{"locked committed"}, records: 1,
		},
		"by a function that fails": { // it was told nothing untrue, and nothing is written anyway
			stage: func(u *unitofwork.Unit) error { return errors.Join(u.Replace(line(0)), failed) }, fails: failed, runs: []string{"locked not committed"},
		},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, r := b.traced("c", nil)
			b.hold(b.client("holder", nil), time.Second, accountKey("1", "a"))
			require.ErrorIs(t, cl.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				err := u.Get(ctx, accounts.Ref("1", "a"))
				if err == nil || c.always {
					err = errors.Join(err, c.stage(u))
				}
				return err
			}), c.fails)
			require.Equal(t, inVain(c.runs...), r.texts())
			require.Len(t, b.db.Items("accounts"), 2+c.records)
			b.allFree()
		})
	}
}

// A function that needs other keys each time is told so in the end.
func TestAFunctionThatNeverHasItsKeys(t *testing.T) {
	inLinks(t, func(t *testing.T, b *bed) {
		var r runs
		c, holder := b.client("c", nil, r.traced), b.client("holder", nil)
		b.hold(holder, time.Second, "owner:0/link:0")
		n := 0
		err := c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			if u.Locked() {
				n++
			}
			return u.Get(ctx, links.Ref(fmt.Sprint(n)))
		})
		moving := errorAs[*unitofwork.KeysError](t, err)
		require.Len(t, moving.Keys, 10)
		require.Equal(t, lockset.TryLater, lockset.NextOf(err))
		require.Equal(t, 9, n, "under locks")
		b.allFree()
	})
}

// What is read of a coarser key later covers what was read of finer ones before.
func TestACoarserKeyIsFoundLater(t *testing.T) {
	people := unitofwork.Table[customer]{Name: "customers", PartitionKey: "ID", Guard: func(c *customer) ordering.Key { return customerKey(c.ID) }}
	for name, overtake := range map[string]func(context.Context, *client) error{
		"nobody": func(context.Context, *client) error { return nil },
		"fine":   func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, transfer(1)) },
		"coarse": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{}, replaces(people.Of(customer{ID: "1", Name: "new"})))
		},
	} {
		for _, when := range []int{1, 2} {
			runInBed(t, fmt.Sprint(name, " after ", when), func(t *testing.T, b *bed) {
				var r runs
				c, other := b.client("c", nil, r.traced), b.client("other", nil)
				calls := 0
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					calls++
					fine, coarse := accounts.Ref("1", "a"), people.Ref("1")
					if err := u.Get(ctx, fine); err != nil {
						return err
					}
					if calls == 1 && when == 1 {
						require.NoError(t, overtake(t.Context(), other))
					}
					if err := u.Get(ctx, coarse); err != nil {
						return err
					}
					if calls == 1 && when == 2 {
						require.NoError(t, overtake(t.Context(), other))
					}
					coarse.T.Name = fmt.Sprint(fine.T.Balance) // which is read, and not written
					return u.Put(coarse)
				}))
				want := []string{"free committed"}
				if name != "nobody" {
					want = []string{"free fell back", "free committed"}
				}
				require.Equal(t, want, r.texts())
				was := people.Ref("1")
				require.NoError(t, other.Read(t.Context(), was))
				require.Equal(t, map[string]string{"nobody": "100", "fine": "99", "coarse": "100"}[name], was.T.Name)
			})
		}
	}
}

// A write under a coarser key that was not looked at does not stand for what was read below
// it.
func TestACoarserKeyThatIsOnlyWritten(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, other := b.client("c", nil, r.traced), b.client("other", nil)
		calls := 0
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			one := accounts.Ref("1", "a")
			if err := u.Get(ctx, one); err != nil {
				return err
			}
			if calls++; calls == 1 {
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, transfer(1)))
			}
			return u.Replace(customers.Of(customer{ID: "1", Name: fmt.Sprint(one.T.Balance)}))
		}))
		require.Equal(t, []string{"free fell back", "free committed"}, r.texts())
		require.Equal(t, "99", fmt.Sprint(b.account("1").Balance))
	})
}

// A holder that has lost its lock may write late, with its own fence. What was read before
// that is not committed on, nor is the function told that and what is there now.
func TestALateWriteBetweenTheLookAndTheCommit(t *testing.T) {
	for name, c := range map[string]struct {
		id      string
		stamped bool // before
		again   bool // it reads the record once more
	}{
		"not stamped before":    {"a", false, false},
		"stamped before":        {"a", true, false},
		"of what was not there": {"b", false, false},
		"between two reads":     {"a", false, true},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, r := b.traced("c", nil)
			if c.stamped {
				require.NoError(t, b.client("before", nil).freely(t.Context(), unitofwork.Work{}, transfer(0)))
			}
			set := b.client("late", nil).passes(t, accountKey("1", c.id))
			calls := 0
			require.NoError(t, cl.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				one := accounts.Ref("1", c.id)
				if err := u.Get(ctx, one); err != nil {
					return err
				}
				if calls++; calls == 1 {
					require.Equal(t, c.id == "a", one.Found)
					b.writeLate(set, "1", c.id, 500)
				}
				if again := accounts.Ref("1", c.id); c.again {
					if err := u.Get(ctx, again); err != nil {
						return err
					}
					require.Equal(t, one.T.Balance, again.T.Balance)
				}
				one.T.Balance++
				return u.Put(one)
			}))
			require.Equal(t, 2, calls)
			require.Equal(t, number("501"), b.item("accounts", "1", c.id)["Balance"])
			last := "free committed"
			if c.again {
				last = "locked committed"
			}
			require.Equal(t, []string{"free fell back", last}, r.texts())
		})
	}
}

// What does not fit into one transaction is done under locks, by a journal. The unit has met nobody:
// it is not tried again without, and keeps nobody after it from that.
func TestAUnitWithoutLocksThatIsTooLarge(t *testing.T) {
	write := func(n int) func(context.Context, *unitofwork.Unit) error {
		return after(readOnly(accounts.Ref("1", "a")), func(_ context.Context, u *unitofwork.Unit) error {
			return each(n, func(i int) error { return u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint(i)})) })
		})
	}
	inBed(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, write(150)))
		require.Len(t, b.db.Items("accounts"), 152)
		b.allFree()
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1)))
		require.Equal(t, []string{"free fell back", "locked committed", "free committed"}, r.texts())

		plain := b.client("plain", nil, withoutUnitTable)
		large := errorAs[*unitofwork.TooLargeError](t, plain.freely(t.Context(), unitofwork.Work{}, write(80)))
		require.Equal(t, 82, large.Rows)
	})
}

// Many keys are looked at as far as there is room. If those that are named are too many, they are
// locked at once.
func TestAUnitWithoutLocksOfManyKeys(t *testing.T) {
	for rows, fits := range map[int]bool{50: true, 51: false} {
		var read []unitofwork.Record
		var named []ordering.Key
		for i := range rows - 1 {
			read = append(read, accounts.Ref("9", fmt.Sprint(i))) // with the row above them one more
			named = append(named, ordering.Join(fmt.Sprint("k", i)))
		}
		runInBed(t, fmt.Sprint(rows, " are found"), func(t *testing.T, b *bed) {
			c, r := b.traced("c", nil)
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, readOnly(read...)))
			require.Equal(t, map[bool][]string{true: {"free committed"}, false: {"free fell back", "locked committed"}}[fits], r.texts())
		})
		runInBed(t, fmt.Sprint(rows, " are named"), func(t *testing.T, b *bed) {
			c, r := b.traced("c", nil)
			named[0] = accountKey("1", "a") // two rows
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: named}, readOnly(accounts.Ref("1", "a"))))
			require.Equal(t, map[bool][]string{true: {"free committed"}, false: {"locked committed"}}[fits], r.texts())
		})
	}
}

// Close ends what is under way, also without locks.
func TestCloseOfAUnitWithoutLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		read, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				err := transfer(1)(ctx, u)
				close(read)
				<-ctx.Done()
				return err
			})
		}()
		<-read
		closing, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Close(closing), context.DeadlineExceeded)
		require.ErrorIs(t, <-done, lockset.ErrClosed)
		require.Equal(t, [2]int64{100, 100}, b.balances())
		require.ErrorIs(t, c.freely(t.Context(), unitofwork.Work{}, transfer(1)), lockset.ErrClosed)
	})
}

// A commit was refused as too large, and its unit goes on under locks. The network has a copy
// of it, which comes when the records are smaller, and before the locks are taken.
func TestACopyOfACommitWithoutLocksThatWasTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putLarge()
		c, r := b.traced("c", copied(2*time.Second), inOneTransaction, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
				if e.Outcome == hooks.FellBack {
					b.shrink()
					time.Sleep(3 * time.Second)
				}
			}))
		})
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count))
		c.net.Wait()
		require.Equal(t, 1, c.net.Counts()[faults.Duplicated])
		require.Equal(t, []string{"free fell back", "locked committed"}, r.texts())
		require.Equal(t, once, b.seen())
		b.allFree()
	})
}

// What was looked at is good for a lease: then others may have come and gone without leaving
// a row.
func TestWhatWasLookedAtALeaseAgo(t *testing.T) {
	for name, late := range map[string]func(context.Context, *unitofwork.Unit) error{
		"a read":   func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, accounts.Ref("2", "a")) },
		"a commit": func(context.Context, *unitofwork.Unit) error { return nil },
	} {
		for _, after := range []time.Duration{lease - 100*time.Millisecond, lease + 100*time.Millisecond} {
			runInBed(t, name+" "+after.String(), func(t *testing.T, b *bed) {
				c, r := b.traced("c", nil)
				require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					one := accounts.Ref("1", "a")
					if err := u.Get(ctx, one); err != nil {
						return err
					}
					if !u.Locked() {
						time.Sleep(after)
					}
					one.T.Balance++
					err := late(ctx, u)
					if !u.Locked() && name == "a read" {
						require.Equal(t, after > lease, err != nil, "%v", err)
					}
					return errors.Join(err, u.Put(one))
				}))
				want := []string{"free committed"}
				if after > lease {
					want = []string{"free fell back", "locked committed"}
				}
				require.Equal(t, want, r.texts())
				require.EqualValues(t, 101, b.account("1").Balance)
			})
		}
	}
}

// A function that was overtaken by somebody of its process keeps nobody else of it waiting:
// neither with what it had read by then, nor with what it reads, or writes, later.
func TestAFunctionThatTakesItsTimeTwice(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		write := func(customer string) {
			start := time.Now()
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, replaces(accounts.Of(account{Customer: customer, ID: "a", Balance: 5}))))
			require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, readOnly(accounts.Ref(customer, "a"))))
			require.Less(t, time.Since(start), 100*time.Millisecond, "customer %s", customer)
		}
		read, again, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			_ = c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				if u.Locked() {
					return errors.New("enough")
				}
				err := u.Get(ctx, accounts.Ref("3", "a"))
				close(read)
				time.Sleep(time.Second)
				err = errors.Join(err, u.Get(ctx, accounts.Ref("4", "a")))
				close(again)
				time.Sleep(time.Second)
				return errors.Join(err, u.Replace(accounts.Of(account{Customer: "5", ID: "a"})))
			})
		}()
		<-read
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, readOnly(accounts.Ref("3", "a"))), "it has to wait, and overtakes")
		<-again
		write("4")
		<-done
	})
}

// A Get that its function did not wait for ends with the unit, and the unit with it.
func TestAGetThatItsFunctionDidNotWaitFor(t *testing.T) {
	failed := errors.New("failed")
	for name, result := range map[string]error{"committed": nil, "failed": failed} {
		for _, pause := range []time.Duration{0, time.Second} {
			for _, id := range []string{"", "p1"} {
				runInBed(t, fmt.Sprint(name, pause, id), func(t *testing.T, b *bed) {
					c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
						u.Trace = trace.Join(u.Trace, hooks.OnStart(trace.Read, func(ctx context.Context, _ trace.Event) context.Context {
							time.Sleep(pause)
							return ctx
						}))
					})
					const gets = 3
					ended := make(chan error, gets)
					err := c.freely(t.Context(), unitofwork.Work{ID: id}, func(_ context.Context, u *unitofwork.Unit) error {
						for i := range gets {
							go func() { ended <- u.Get(t.Context(), accounts.Ref("1", fmt.Sprint(i))) }()
						}
						time.Sleep(rtt / 2)
						return result
					})
					require.ErrorIs(t, err, result)
					for range gets {
						if err := <-ended; err != nil {
							require.ErrorIs(t, err, unitofwork.ErrEnded)
						}
					}
				})
			}
		}
	}
}

// A function fails with its own error, and what became of its ID cannot be asked: both are told.
func TestAFunctionThatFailsBeforeItsIDIsKnown(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		failed := errors.New("not enough money")
		c := b.client("c", nil)
		ctx, cancel := context.WithCancel(t.Context())
		err := c.freely(ctx, unitofwork.Work{ID: "p"}, func(context.Context, *unitofwork.Unit) error { cancel(); return failed })
		require.ErrorIs(t, err, failed)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A unit whose clock is behind is outrun by others again and again. It raises its token once,
// then its run is void.
func TestATokenIsRaisedOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ahead := b.client("ahead", nil, clockOff(time.Minute))
		outrun := 0
		behind, r := b.traced("behind", upon(func(call faults.Call) bool { return isCommit(call) && outrun < 2 }, func() {
			outrun++
			require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, setTo(5)))
		}))
		require.NoError(t, behind.freely(t.Context(), unitofwork.Work{}, setTo(5)))
		require.Equal(t, []string{"free fell back", "free committed"}, r.texts())
		require.Equal(t, 2, outrun)
	})
}

// While a commit is on its way, however long, its neighbours wait.
func TestRequestsThatTakeTheirTime(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", atCommits(1, 4, faults.Throttle(faults.InReasons, 1)))
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, transfer(30))) })
		}
		all.Wait()
		require.Equal(t, []string{"free committed", "free committed"}, r.texts())
		require.Equal(t, [2]int64{40, 160}, b.balances())
	})
}

// What a run without locks has waited for its neighbours is not waited for once more.
func TestTheRecordWaitSpansAllRuns(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c, next := b.client("c", nil, r.traced), b.client("next", nil)
		own := c.has(t, transferKeys...)
		time.AfterFunc(600*time.Millisecond, func() { _ = own.Release(context.WithoutCancel(t.Context())) })
		var has sync.WaitGroup
		has.Go(func() { _ = next.has(t, transferKeys...) })
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		err := c.freely(t.Context(), unitofwork.Work{Wait: lockset.For(time.Second)}, transfer(1))
		require.ErrorAs(t, err, new(*lockset.HeldError))
		require.InDelta(t, time.Second, time.Since(start), float64(200*time.Millisecond))
		require.Equal(t, inVain("locked not committed"), r.texts())
		has.Wait()
	})
}
