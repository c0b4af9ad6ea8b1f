package adopting

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

var config = unitofwork.Config{Locks: lockset.Config{Table: "locks"}, Table: "units"}

// client is what the old programs use of a process.
type client struct {
	*dynamodb.Client
	process *holdalltest.Process
}

// Whatever goes wrong at whichever request of the new program, and whichever of its requests the old
// one gets in front of: what either was told it has deposited is there, once.
func TestBesideTheOldProgramUnderFaults(t *testing.T) {
	counting := func(ctx context.Context, c client) error { return DepositBefore(ctx, c, "a", 1) }
	ported := func(ctx context.Context, c client) error {
		locks, err := lockset.New(c.process, config.Locks)
		if err != nil {
			return err
		}
		return DepositPorted(ctx, c, locks, "a", 1)
	}
	for name, c := range map[string]struct {
		old      func(context.Context, client) error
		accounts *unitofwork.Table[Account]
	}{"counting": {counting, &Accounts}, "ported": {ported, unversioned()}} {
		t.Run(name, func(t *testing.T) {
			check := holdalltest.Check{
				Setup: setUp,
				Work: func(ctx context.Context, p *holdalltest.Process) error {
					units, err := Open(p)
					if err != nil {
						return err
					}
					return units.Do(ctx, unitofwork.Work{ID: "deposit"}, func(ctx context.Context, u *unitofwork.Unit) error {
						a := c.accounts.Ref("a")
						if err := u.Get(ctx, a); err != nil {
							return err
						}
						a.T.Balance += 10
						return u.Put(a)
					})
				},
				Again: true, Locks: config.Locks,
				Rival: func(ctx context.Context, p *holdalltest.Process) error { return c.old(ctx, client{p.Client(), p}) },
				Holds: holds,
			}
			if testing.Short() {
				check.Faults = []holdalltest.Fault{"in-doubt-after", "late", "crash-after"}
			}
			check.Run(t)
		})
	}
}

func setUp(ctx context.Context, db *holdalltest.DB) error {
	put, err := putOf(Account{ID: "a", Version: 1})
	err = errors.Join(err, db.CreateTable(ctx, Accounts.Name, "ID", ""),
		lockset.CreateTable(ctx, db.Client(), config.Locks), unitofwork.CreateTable(ctx, db.Client(), config))
	if err != nil {
		return err
	}
	_, err = db.Client().PutItem(ctx, put)
	return err
}

// holds says what is wrong with the account: the new program adds ten, the old one adds one.
func holds(ctx context.Context, p *holdalltest.Process, told holdalltest.Told) error {
	a, err := read(ctx, p.Client(), "a")
	if err != nil {
		return err
	}
	ours, theirs := a.Balance/10, a.Balance%10
	if ours > 1 || theirs > 1 || told.OK() && ours != 1 || told.Rivalled && told.Rival == nil && theirs != 1 {
		return fmt.Errorf("the account has %d", a.Balance)
	}
	return nil
}
