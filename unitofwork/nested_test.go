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
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// byContent are accounts whose guard is known once they were read.
var byContent = unitofwork.Table[account]{
	Name: "accounts", PartitionKey: "Customer", SortKey: "ID", Guard: accounts.Guard, GuardByContent: true,
}

// elsewhere are accounts that other keys guard.
var elsewhere = unitofwork.Table[account]{
	Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
	Guard: func(a *account) ordering.Key { return ordering.Join("z2", a.Customer, a.ID) },
}

func reads(records ...unitofwork.Record) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		for _, r := range records {
			if err := u.Get(ctx, r); err != nil {
				return err
			}
		}
		return nil
	}
}

// mustNotRun is for units that need what their caller holds before their function is called.
func mustNotRun(context.Context, *unitofwork.Unit) error { return errors.New("it was called") }

// ofMany are so many keys that a unit takes locks first, and may find others.
func ofMany() (keys []ordering.Key) {
	for i := range 51 {
		keys = append(keys, ordering.Key(fmt.Sprintf("many:%d", i)))
	}
	return keys
}

// begun begins a unit, has a function called with it, and commits.
func (c *client) begun(ctx context.Context, work unitofwork.Work, fn func(context.Context, *unitofwork.Unit) error) error {
	u, err := c.Begin(ctx, work)
	if err != nil {
		return err
	}
	defer func() { _ = u.Rollback(context.WithoutCancel(ctx)) }()
	if err := fn(u.Context(), u); err != nil {
		return err
	}
	return u.Commit(ctx)
}

// unitsThatNeed are units that need the account of a customer, however they come to know that.
func unitsThatNeed(customer string) map[string]func(ctx context.Context, c *client) error {
	key := []ordering.Key{accountKey(customer, "a")}
	ref, other := accounts.Ref(customer, "a"), accounts.Ref("2", "a")
	writes := replaces(accounts.Of(account{Customer: customer, ID: "a"}))
	return map[string]func(ctx context.Context, c *client) error{
		"named": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{Keys: key}, mustNotRun)
		},
		"named, the customer as a whole": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey(customer)}}, mustNotRun)
		},
		"locked first": func(ctx context.Context, c *client) error {
			return c.Do(ctx, unitofwork.Work{Keys: key}, mustNotRun)
		},
		"begun": func(ctx context.Context, c *client) error {
			return c.begun(ctx, unitofwork.Work{Keys: key}, mustNotRun)
		},
		"read":       func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, reads(ref)) },
		"read later": func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, reads(other, ref)) },
		"read by content": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{}, reads(byContent.Ref(customer, "a")))
		},
		"read under locks": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{Keys: ofMany()}, reads(other, ref))
		},
		"read under locks that are named": func(ctx context.Context, c *client) error {
			return c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{accountKey("2", "a")}}, reads(other, ref))
		},
		"written": func(ctx context.Context, c *client) error { return c.freely(ctx, unitofwork.Work{}, writes) },
		"written under locks": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{Keys: ofMany()}, writes)
		},
		"read, and the error ignored": func(ctx context.Context, c *client) error {
			return c.freely(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				_ = u.Get(ctx, other)
				_ = u.Get(ctx, ref)
				return u.Put(other)
			})
		},
	}
}

// A unit that needs a key of the set under whose context it runs is refused at once, whether the
// two share a client or not: it would wait for its own caller.
func TestAUnitUnderASetThatHoldsItsKeyIsRefused(t *testing.T) {
	for held, key := range map[string]ordering.Key{"the key": accountKey("1", "a"), "one above": customerKey("1"), "one below": accountKey("1", "a") + "/below"} {
		for name, unit := range unitsThatNeed("1") {
			runInBed(t, held+"/"+name, func(t *testing.T, b *bed) {
				c, other := b.client("c", nil), b.client("other", nil)
				err := c.locks.With(t.Context(), []ordering.Key{key}, func(ctx context.Context, _ fencing.Token) error {
					ctx, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					for _, of := range []*client{c, other} {
						began := time.Now()
						err := unit(ctx, of)
						require.ErrorIs(t, err, lockset.ErrNested)
						require.ErrorIs(t, err, lockset.ErrNested)
						require.Equal(t, lockset.FixCall, lockset.NextOf(err))
						require.ErrorContains(t, err, "Work.Lock")
						require.ErrorContains(t, err, fmt.Sprintf("has key %q", string(key)))
						require.Less(t, time.Since(began), 20*rtt)
					}
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, [2]int64{100, 100}, b.balances())
				b.allFree()
			})
		}
	}
}

// A job that holds a lock runs units of all kinds under its context, wherever their keys are in the
// order, as long as they are others.
func TestUnitsUnderALockOfAnotherKey(t *testing.T) {
	for _, job := range []ordering.Key{"a job", "job", customerKey("0"), customerKey("9")} {
		for name, unit := range unitsThatNeed("1") {
			runInBed(t, string(job)+"/"+name, func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				require.NoError(t, c.locks.With(t.Context(), []ordering.Key{job}, func(ctx context.Context, _ fencing.Token) error {
					for range 3 {
						if err := unit(ctx, c); err != nil {
							require.NotErrorIs(t, err, lockset.ErrNested)
						}
					}
					return c.freely(ctx, unitofwork.Work{}, reads(accounts.Ref("1", "a")))
				}))
				b.allFree()
			})
		}
	}
}

// What a unit has, no set that its function takes may have as well, with locks or without: the
// unit would be in its way for ever, or it in the unit's.
func TestASetUnderAUnitThatHasItsKeyIsRefused(t *testing.T) {
	run := map[string]func(c *client, ctx context.Context, fn func(context.Context, *unitofwork.Unit) error) error{
		"without locks": func(c *client, ctx context.Context, fn func(context.Context, *unitofwork.Unit) error) error {
			return c.freely(ctx, unitofwork.Work{Keys: []ordering.Key{"named"}}, fn)
		},
		"under locks": func(c *client, ctx context.Context, fn func(context.Context, *unitofwork.Unit) error) error {
			return c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{"named", accountKey("1", "a")}}, fn)
		},
		"begun": func(c *client, ctx context.Context, fn func(context.Context, *unitofwork.Unit) error) error {
			return c.begun(ctx, unitofwork.Work{Keys: []ordering.Key{"named", accountKey("1", "a")}}, fn)
		},
	}
	for name, run := range run {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c, other := b.client("c", nil), b.client("other", nil)
			took := 0
			take := func(ctx context.Context, key ordering.Key) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return other.locks.With(ctx, []ordering.Key{key}, func(context.Context, fencing.Token) error { took++; return nil })
			}
			require.NoError(t, run(c, t.Context(), func(ctx context.Context, u *unitofwork.Unit) error {
				a := accounts.Ref("1", "a")
				require.NoError(t, u.Get(ctx, a))
				for _, key := range []ordering.Key{"named", "named/below", accountKey("1", "a"), customerKey("1")} {
					err := take(ctx, key)
					require.ErrorIs(t, err, lockset.ErrNested, "%s", key)
					require.ErrorContains(t, err, "without a set")
				}
				require.ErrorIs(t, take(ctx, "a"), lockset.ErrNested, "it comes before what the unit has")
				require.NoError(t, take(ctx, "z"))
				_, err := other.locks.TryAcquire(ctx, []ordering.Key{"named"})
				require.ErrorIs(t, err, lockset.ErrNested)
				a.T.Balance++
				return u.Put(a)
			}))
			require.Equal(t, 1, took)
			require.EqualValues(t, 101, b.account("1").Balance)
			b.allFree()
		})
	}
}

// A unit without locks refuses a record that comes after a set of its function: under locks it would
// have the record first, and refuse the set. So what is wrong is told at the first run, not only
// where others are in the way.
func TestAUnitThatComesToAKeyAfterASetOfItsFunction(t *testing.T) {
	for key, allowed := range map[ordering.Key]bool{"a-printer": false, "z-printer": true} {
		inBed(t, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			err := c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				return c.locks.With(ctx, []ordering.Key{key}, func(ctx context.Context, _ fencing.Token) error {
					return u.Get(ctx, accounts.Ref("1", "a"))
				})
			})
			if allowed {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, lockset.ErrNested)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		})
	}
}

// The same for a set that the function has taken before it came to the record.
func TestAUnitThatComesToAKeyOfASetOfItsFunction(t *testing.T) {
	for name, locked := range map[string][]ordering.Key{"without locks": nil, "under locks": ofMany()} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			err := c.freely(t.Context(), unitofwork.Work{Keys: locked}, func(ctx context.Context, u *unitofwork.Unit) error {
				return c.locks.With(ctx, []ordering.Key{"z"}, func(ctx context.Context, _ fencing.Token) error {
					if err := u.Get(ctx, accounts.Ref("2", "a")); err != nil {
						return err
					}
					return c.locks.With(ctx, []ordering.Key{"z2"}, func(ctx context.Context, _ fencing.Token) error {
						return u.Get(ctx, elsewhere.Ref("1", "a"))
					})
				})
			})
			require.ErrorIs(t, err, lockset.ErrNested)
			b.allFree()
		})
	}
}

// It may as well have given its own context to the read: the set is its function's.
func TestAUnitThatNeedsAKeyOfASetOfItsFunction(t *testing.T) {
	a := accounts.Ref("1", "a")
	for name, need := range map[string]func(context.Context, *unitofwork.Unit) error{
		"to read":  reads(a),
		"to write": func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(a) },
	} {
		for locks, work := range map[string]unitofwork.Work{"without locks": {}, "under locks": {Keys: ofMany()}} {
			runInBed(t, name+" "+locks, func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				require.ErrorIs(t, c.freely(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					set, err := c.locks.TryAcquire(ctx, []ordering.Key{customerKey("1")})
					require.NoError(t, err)
					_ = need(ctx, u) // the commit says so as well
					return set.Release(ctx)
				}), lockset.ErrNested)
				b.allFree()
			})
		}
	}
}

func TestAUnitThatNeedsAKeyOfASetThatItsFunctionHasReleased(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			for range 3 {
				set, err := c.locks.TryAcquire(ctx, []ordering.Key{customerKey("1")})
				require.NoError(t, err)
				require.NoError(t, set.Release(ctx))
			}
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a"}))
		}))
		b.allFree()
	})
}

// A unit that comes along with others of its process is refused like any other.
func TestAMemberOfAGroupThatNeedsAKeyOfItsCaller(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		first, second := make(chan error, 1), make(chan error, 1)
		require.NoError(t, c.locks.With(t.Context(), []ordering.Key{"job", customerKey("1")}, func(ctx context.Context, _ fencing.Token) error {
			go func() { first <- c.freely(t.Context(), unitofwork.Work{}, reads(accounts.Ref("2", "a"))) }()
			time.Sleep(time.Millisecond)
			go func() {
				second <- c.freely(ctx, unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
					own := accounts.Ref("2", "a")
					if err := u.Get(ctx, own); err != nil {
						return err
					}
					if err := u.Put(own); err != nil {
						return err
					}
					return u.Get(ctx, accounts.Ref("1", "a"))
				})
			}()
			require.NoError(t, <-first)
			require.ErrorIs(t, <-second, lockset.ErrNested)
			return nil
		}))
		b.allFree()
	})
}

// What has ended is in nobody's way, though a context still names it.
func TestAUnitUnderTheContextOfOneThatHasEnded(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		var late context.Context
		keep := func(ctx context.Context, _ *unitofwork.Unit) error { late = context.WithoutCancel(ctx); return nil }
		for name, end := range map[string]func() error{
			"a unit":             func() error { return c.freely(t.Context(), unitofwork.Work{Keys: transferKeys}, keep) },
			"a unit under locks": func() error { return c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, keep) },
			"one that was begun": func() error { return c.begun(t.Context(), unitofwork.Work{Keys: transferKeys}, keep) },
			"one that rolled back": func() error {
				_ = c.begun(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error { _ = keep(ctx, u); return errors.New("no") })
				return nil
			},
			"a set": func() error {
				return c.locks.With(t.Context(), transferKeys, func(ctx context.Context, _ fencing.Token) error { return keep(ctx, nil) })
			},
		} {
			require.NoError(t, end(), name)
			require.NoError(t, c.freely(late, unitofwork.Work{}, transfer(1)), name)
			require.NoError(t, c.Do(late, unitofwork.Work{Keys: transferKeys}, transfer(1)), name)
		}
		b.allFree()
	})
}

// Under its caller's context a unit cannot be told from any other that is in the way: the wait ends,
// and says that this process has the key, since when and what for.
func TestAUnitThatWaitsForAUnitOfItsCaller(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		log := &logbook{}
		c := b.client("c", nil, func(l *lockset.Config, _ *unitofwork.Config) { l.Logger = log.logger() })
		u := c.begins(t, unitofwork.Work{Keys: transferKeys, Purpose: "payments"})
		taken := time.Now()
		for name, run := range map[string]func(context.Context, unitofwork.Work, func(context.Context, *unitofwork.Unit) error) error{"without locks": c.freely, "under locks": c.Do} {
			err := run(t.Context(), unitofwork.Work{Keys: transferKeys, Wait: lockset.For(2 * lease)}, reads(accounts.Ref("1", "a")))
			held := errorAs[*lockset.HeldError](t, err, name)
			require.Equal(t, taken, held.Since, name)
			require.ErrorContains(t, err, `is held by this process, by unit `+u.Nonce()+` for "payments", since `, name)
		}
		require.Equal(t, 2, strings.Count(log.text(), "waits for a key that this process holds"), log.text())
		require.NoError(t, u.Rollback(t.Context()))
		b.allFree()
	})
}
