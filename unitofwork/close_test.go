package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// inFunction runs a unit in the background whose function has staged a transfer when it
// calls f; f's error is the function's. It returns once the function runs.
func inFunction(t *testing.T, c *client, f func(context.Context) error) (ended <-chan error) {
	running, over := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		over <- c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := transfer(30)(ctx, u); err != nil {
				return err
			}
			running <- struct{}{}
			return f(ctx)
		})
	}()
	<-running
	return over
}

// A process that is about to end lets its units end, and begins none.
func TestCloseWaitsForUnits(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		ended := inFunction(t, c, func(context.Context) error { time.Sleep(3 * lease); return nil })
		begun := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- c.Close(t.Context()) }()
		time.Sleep(lease)
		_ = c.requests()
		for name, call := range map[string]func() error{
			"Do":      func() error { return c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)) },
			"Begin":   func() error { _, err := c.Begin(t.Context(), unitofwork.Work{Keys: transferKeys}); return err },
			"Recover": func() error { _, err := c.Recover(t.Context()); return err },
			"StuckOf": func() error { _, err := c.StuckOf(t.Context(), "anotherUnitAltogether_"); return err },
		} {
			require.ErrorIs(t, call(), lockset.ErrClosed, name)
			require.Equal(t, lockset.TryLater, lockset.NextOf(call()), name)
		}
		require.Empty(t, c.requests(), "nothing is asked for")
		require.NoError(t, c.Read(t.Context(), accounts.Ref("1", "a")))
		require.NoError(t, <-ended)
		require.NoError(t, <-closed)
		require.GreaterOrEqual(t, time.Since(begun), 3*lease)
		require.Equal(t, [2]int64{70, 130}, b.balances())
		require.NoError(t, c.Close(t.Context()), "it is closed")
	})
}

// Close waits for nobody who waits for Close.
func TestCloseUnderAUnitOrASetIsRefused(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		refused := func(close func(context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error {
				err := close(ctx)
				require.ErrorIs(t, err, lockset.ErrNested)
				require.ErrorContains(t, err, "of its own caller")
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				return nil
			}
		}
		opened, err := unitofwork.Open(b.db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
		require.NoError(t, err)
		other := b.client("other", nil)
		for _, work := range []unitofwork.Work{{}, {Lock: true, Keys: transferKeys}} {
			require.NoError(t, opened.Do(t.Context(), work, func(ctx context.Context, _ *unitofwork.Unit) error {
				require.NoError(t, refused(opened.Locks().Close)(ctx))
				return refused(opened.Close)(ctx)
			}))
		}
		require.NoError(t, opened.Locks().With(t.Context(), transferKeys, func(ctx context.Context, _ fencing.Token) error {
			require.NoError(t, other.Close(ctx), "that of others")
			require.NoError(t, refused(opened.Locks().Close)(ctx))
			return refused(opened.Close)(ctx)
		}))
		require.NoError(t, opened.Do(t.Context(), unitofwork.Work{}, transfer(1)), "it is not closed")
		require.NoError(t, opened.Close(t.Context()))
	})
}

// Whoever does not end in time gives up its locks, whether it looks at its context or not:
// others have them at once, and nothing of it is written.
func TestCloseGivesUpTheLocksOfUnits(t *testing.T) {
	for name, f := range map[string]func(context.Context) error{
		"a function that looks at its context": func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"a function that does not":             func(context.Context) error { time.Sleep(5 * lease); return nil },
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			ended := inFunction(t, c, f)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			closed := make(chan error, 1)
			go func() { closed <- c.Close(ctx) }()
			time.Sleep(2 * time.Second)
			begun := time.Now()
			require.NoError(t, b.client("next", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys, Wait: lockset.For(0)}, transfer(1)))
			require.Less(t, time.Since(begun), lease, "nobody waits for a lease")
			err := <-ended
			require.ErrorIs(t, err, lockset.ErrClosed)
			require.ErrorIs(t, <-closed, context.DeadlineExceeded)
			require.Equal(t, [2]int64{99, 101}, b.balances())
			b.allFree()
		})
	}
}

// Units that are begun by hand are under way until they are ended by hand.
func TestCloseWaitsForUnitsThatWereBegun(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		u := c.begins(t, unitofwork.Work{Keys: transferKeys})
		time.AfterFunc(lease, func() { _ = u.Commit(context.Background()) })
		require.NoError(t, c.Close(t.Context()))
	})
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		u := c.begins(t, unitofwork.Work{Keys: transferKeys})
		require.NoError(t, transfer(30)(t.Context(), u))
		ended := endedContext(t.Context())
		require.ErrorIs(t, c.Close(ended), context.Canceled)
		require.ErrorIs(t, context.Cause(u.Context()), lockset.ErrClosed)
		require.ErrorIs(t, u.Commit(t.Context()), lockset.ErrClosed)
		require.Equal(t, [2]int64{100, 100}, b.balances())
		b.allFree()
	})
}

// A commit that is on its way is neither cut short nor taken back.
func TestCloseDuringACommit(t *testing.T) {
	for name, change := range sized {
		runInBed(t, name, func(t *testing.T, b *bed) {
			sent, ctx := make(chan struct{}), t.Context()
			ctx, cancel := context.WithCancel(ctx)
			once := false
			c := b.client("c", upon(func(c faults.Call) bool { return !once && (isCommit(c) || phaseOf(c) == decides) }, func() {
				once = true
				close(sent)
				cancel()
				time.Sleep(lease / 10)
			}), change)
			keys, refs := largeKeys(fewKeys)
			ended := make(chan error, 1)
			go func() {
				ended <- c.Do(t.Context(), unitofwork.Work{Keys: append([]ordering.Key{}, keys...)}, deposit(refs, 7))
			}()
			<-sent
			require.ErrorIs(t, c.Close(ctx), context.Canceled)
			require.NoError(t, <-ended)
			sum, _ := b.total()
			require.Equal(t, int64(fewKeys*7), sum)
			b.nothingLeft()
		})
	}
}

// What Open has made, Close closes; a lockset client that others share is theirs.
func TestCloseOfWhoseLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		require.NoError(t, c.Close(t.Context()))
		c.passes(t, transferKeys...)

		own, err := unitofwork.Open(b.db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"})
		require.NoError(t, err)
		set, err := own.Locks().Acquire(t.Context(), transferKeys)
		require.NoError(t, err)
		ended := endedContext(t.Context())
		err = own.Close(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "\n")
		require.ErrorIs(t, context.Cause(set.Context()), lockset.ErrClosed)
		b.allFree()
	})
}

// Close gives up a unit that was started over like any other: here it waits for its locks,
// when its first attempt has ended.
func TestCloseAfterAnAttempt(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var holder *unitofwork.Unit
		c, other := b.client("c", nil), b.client("other", nil)
		calls, ended := 0, make(chan error, 1)
		go func() {
			ended <- c.Do(t.Context(), unitofwork.Work{Keys: transferKeys[:1]}, func(ctx context.Context, _ *unitofwork.Unit) error {
				calls++
				b.bury(transferKeys[0])
				var err error
				holder, err = other.Begin(t.Context(), unitofwork.Work{Keys: transferKeys[:1]})
				require.NoError(t, err)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		time.Sleep(lease)
		require.Equal(t, map[string]int{"not": 1, "over": 1}, c.outcomes())
		ctx := endedContext(t.Context())
		begun := time.Now()
		require.Equal(t, context.Canceled, c.Close(ctx))
		require.Less(t, time.Since(begun), lease/2)
		require.ErrorIs(t, <-ended, lockset.ErrClosed)
		require.Equal(t, 1, calls, "nothing begins any more")
		require.NoError(t, holder.Rollback(t.Context()))
		b.allFree()
	})
}

// Locks that come just when their unit is given up are given up, too.
func TestCloseWhileLocksAreTaken(t *testing.T) {
	for name, begin := range map[string]func(*client) error{
		"Do": func(c *client) error {
			return c.Do(context.Background(), unitofwork.Work{Keys: transferKeys}, func(context.Context, *unitofwork.Unit) error {
				time.Sleep(5 * lease)
				return nil
			})
		},
		"Begin": func(c *client) error {
			_, err := c.Begin(context.Background(), unitofwork.Work{Keys: transferKeys})
			return err
		},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			taken := make(chan struct{})
			c := b.client("c", nil, func(l *lockset.Config, _ *unitofwork.Config) {
				l.Trace = trace.Join(l.Trace, hooks.On(trace.Acquire, func(context.Context, trace.Event) { close(taken); time.Sleep(time.Second) }))
			})
			ended := make(chan error, 1)
			go func() { ended <- begin(c) }()
			<-taken
			ctx := endedContext(t.Context())
			begun := time.Now()
			require.Equal(t, context.Canceled, c.Close(ctx))
			require.NoError(t, b.client("next", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
			require.Less(t, time.Since(begun), lease/2, "nobody waits for a lease")
			require.ErrorIs(t, <-ended, lockset.ErrClosed)
		})
	}
}

// A unit that has lost its locks has nothing to give up, and one that was begun need not
// be ended for Close.
func TestCloseOfAUnitThatHasLostItsLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		u := c.begins(t, unitofwork.Work{Keys: transferKeys})
		c.net.Partition(true)
		<-u.Context().Done()
		begun := time.Now()
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, time.Since(begun))
	})
}

// What a function has to say of itself is not Close's.
func TestCloseAndAnErrorOfTheFunctionsOwn(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		own := errors.New("not enough money")
		c := b.client("c", nil)
		ended := inFunction(t, c, func(ctx context.Context) error { <-ctx.Done(); return own })
		ctx := endedContext(t.Context())
		require.Equal(t, context.Canceled, c.Close(ctx))
		err := <-ended
		require.ErrorIs(t, err, own)
		require.Equal(t, lockset.Decide, lockset.NextOf(err))
		b.allFree()
	})
}

// Close returns when the last hook was called: a program exports its spans then.
func TestCloseWaitsForTheHooks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		told := false
		c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Commit, func(context.Context, trace.Event) { time.Sleep(time.Second) }))
			u.Trace = trace.Join(u.Trace, hooks.On(trace.Unit, func(context.Context, trace.Event) { told = true }))
		})
		u := c.begins(t, unitofwork.Work{Keys: transferKeys})
		go func() { _ = u.Commit(context.Background()) }()
		require.NoError(t, c.Close(t.Context()))
		require.True(t, told)
	})
}

// A hook that panics takes its unit down, and leaves nothing that others wait for.
func TestAPanicOfAHook(t *testing.T) {
	hook := errors.New("a hook")
	starts := func(k trace.Kind) func(func()) *trace.Trace {
		return func(p func()) *trace.Trace {
			return hooks.OnStart(k, func(ctx context.Context, _ trace.Event) context.Context { p(); return ctx })
		}
	}
	ends := func(k trace.Kind) func(func()) *trace.Trace {
		return func(p func()) *trace.Trace { return hooks.On(k, func(context.Context, trace.Event) { p() }) }
	}
	for name, panics := range map[string]func(func()) *trace.Trace{
		"a unit starts": starts(trace.Unit), "an acquisition starts": starts(trace.Acquire), "an acquisition ends": ends(trace.Acquire),
		"a function starts": starts(trace.Function), "a function ends": ends(trace.Function),
		"a request for the ID ends": func(p func()) *trace.Trace {
			return hooks.On(trace.Request, func(_ context.Context, e trace.Event) {
				if e.Op == "TransactGetItems" {
					p()
				}
			})
		},
		"a commit starts": starts(trace.Commit), "a commit ends": ends(trace.Commit), "a unit ends": ends(trace.Unit),
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			work := unitofwork.Work{Keys: transferKeys, ID: "p"}
			for what, do := range map[string]func(*client){
				"Do": func(c *client) { _ = c.Do(t.Context(), work, transfer(1)) },
				"Begin": func(c *client) {
					u := c.begins(t, work)
					defer func() {
						require.Error(t, u.Context().Err())
						require.ErrorIs(t, u.Commit(t.Context()), unitofwork.ErrEnded)
					}()
					_ = u.Commit(t.Context())
				},
			} {
				if what == "Begin" && strings.HasPrefix(name, "a function") { // it calls none
					continue
				}
				c := b.client(what, nil, func(l *lockset.Config, u *unitofwork.Config) {
					once := true
					l.Trace, u.Trace = panics(func() {
						if once {
							once = false
							panic(hook)
						}
					}), nil
				})
				require.PanicsWithValue(t, hook, func() { do(c) }, what)
				begun := time.Now()
				require.NoError(t, c.Close(t.Context()), what)
				require.NoError(t, c.locks.Close(t.Context()), what)
				require.Zero(t, time.Since(begun), what)
				b.allFree()
				work.ID += "x"
			}
		})
	}
}

// Whoever waits when the client is closed has lost nothing, and may be tried in another process.
func TestWhoWaitsWhenItsClientIsClosedIsToldSo(t *testing.T) {
	key := customerKey("2")
	get := func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, accounts.Ref("2", "a")) }
	for name, wait := range map[string]func(context.Context, *client) error{
		"Do": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{Wait: lockset.Forever()}, get)
		},
		"Do, locking first": func(ctx context.Context, c *client) error {
			return c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{key}, Wait: lockset.Forever()}, get)
		},
		"Do, behind another of the process": func(ctx context.Context, c *client) error {
			go func() { _, _ = c.locks.Acquire(ctx, []ordering.Key{key}) }()
			time.Sleep(time.Second)
			return c.freely(ctx, unitofwork.Work{Wait: lockset.Forever()}, get)
		},
		"Begin": func(ctx context.Context, c *client) error {
			_, err := c.Begin(ctx, unitofwork.Work{Keys: []ordering.Key{key}})
			return err
		},
		"Acquire": func(ctx context.Context, c *client) error {
			_, err := c.locks.Acquire(ctx, []ordering.Key{key})
			return err
		},
	} {
		for _, silent := range []bool{false, true} {
			runInBed(t, fmt.Sprintf("%s, silent %t", name, silent), func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				b.hold(b.client("other", nil), time.Hour, key)
				var closed time.Time
				time.AfterFunc(2*time.Second, func() {
					c.net.Partition(silent)
					closed = time.Now()
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					_ = c.Client.Close(ctx)
					_ = c.locks.Close(ctx)
				})
				err := wait(context.WithoutCancel(t.Context()), c)
				require.ErrorIs(t, err, lockset.ErrClosed)
				require.NotErrorIs(t, err, lockset.ErrLost)
				require.Equal(t, lockset.TryLater, lockset.NextOf(err), "%v", err)
				require.LessOrEqual(t, time.Since(closed), time.Second+3*attempt)
				c.net.Partition(false)
				time.Sleep(3 * lease)
			})
		}
	}
}
