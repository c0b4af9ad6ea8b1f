package adopting

import (
	"context"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// DepositPorted is the old program with a lock around it: no versions, and nothing of what it does
// has changed but the line that fences its write.
func DepositPorted(ctx context.Context, db DB, locks *lockset.Client, id string, amount int64) error {
	key := Accounts.Guard(&Account{ID: id})
	return locks.With(ctx, []ordering.Key{key}, func(ctx context.Context, token fencing.Token) error {
		a, err := read(ctx, db, id)
		if err != nil {
			return err
		}
		a.Balance += amount
		put, err := putOf(a)
		if err != nil {
			return err
		}
		fence := fencing.Fence{Token: token}
		if err := fence.Put(put); err != nil {
			return err
		}
		_, err = db.PutItem(ctx, put)
		return fence.Stale(err)
	})
}
