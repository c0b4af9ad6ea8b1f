package unitofwork_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func (b *bed) take(key ordering.Key, unit string, now bool) error {
	i, err := inspect.New(faults.Wrap(b.db, faults.Config{Who: "operator"}), lockset.Config{Table: "locks", Owner: "operator", Lease: lease})
	require.NoError(b.t, err)
	return i.Free(b.t.Context(), key, unit, inspect.Freeing{Now: now})
}

// A commit that is refused because an operator took the key is known to be refused.
func TestACommitAfterAnOperatorTookTheKey(t *testing.T) {
	for name, now := range map[string]bool{"plain": false, "now": true} {
		for _, id := range []string{"", "id"} {
			for _, keys := range [][]ordering.Key{{accountKey("1", "a")}, {accountKey("1", "a"), accountKey("2", "a")}} {
				t.Run(name+id, func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						c := b.client("c", nil)
						u, err := c.Begin(t.Context(), unitofwork.Work{Keys: keys, ID: id})
						require.NoError(t, err)
						from := accounts.Ref("1", "a")
						require.NoError(t, u.Get(t.Context(), from))
						from.T.Balance--
						require.NoError(t, u.Put(from))
						require.NoError(t, b.take(keys[0], u.Nonce(), now))
						err = u.Commit(t.Context())
						require.Error(t, err)
						if doubt := new(unitofwork.InDoubtError); errors.As(err, &doubt) {
							outcome, asked := c.Outcome(t.Context(), doubt.Ref)
							t.Log(outcome, asked)
						}
						require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
						require.ErrorIs(t, err, lockset.ErrLost)
					})
				})
			}
		}
	}
}

// The same with Do, while its function runs: it is done once.
func TestDoAfterAnOperatorTookTheKey(t *testing.T) {
	for name, now := range map[string]bool{"plain": false, "now": true} {
		for _, pause := range []time.Duration{0, lease} {
			t.Run(name, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					c := b.client("c", nil)
					n := 0
					err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{accountKey("1", "a")}, Lock: true}, func(ctx context.Context, u *unitofwork.Unit) error {
						from := accounts.Ref("1", "a")
						if err := u.Get(ctx, from); err != nil {
							return err
						}
						from.T.Balance--
						if n++; n == 1 {
							if err := b.take(accountKey("1", "a"), u.Nonce(), now); err != nil {
								return err
							}
							time.Sleep(pause)
						}
						return u.Put(from)
					})
					require.NoError(t, err)
				})
			})
		}
	}
}
