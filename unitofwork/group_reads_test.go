package unitofwork_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

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
				var r runs
				c := b.client("c", nil, r.traced)
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
		set, err := late.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
		require.NoError(t, err)
		require.NoError(t, set.Release(t.Context()))
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
