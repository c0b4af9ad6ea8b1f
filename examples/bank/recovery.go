package main

import (
	"context"
	"io"

	"github.com/holdall/holdall/examples/bank/internal/store"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// recovery is what to run as a scheduled job, in a bank that is not a demo: it
// finishes what dead owners left, in tables that somebody else made.
func recovery(ctx context.Context, o *options, stdout, stderr io.Writer) (sound bool, err error) {
	db, err := store.Open(ctx, o.where)
	if err != nil {
		return false, err
	}
	tables := store.Under(db, o.prefix)
	tables.Locks.Lease = o.lease
	tables.Locks.Logger = o.logger(stderr)
	found, err := recoverOnce(ctx, db, tables)
	if err == nil || foundAny(found) { // what was done is said beside an error, too
		reportRecovery(stdout, found)
	}
	return true, err
}

func recoverOnce(ctx context.Context, db store.DB, tables *store.Tables) (unitofwork.Recovery, error) {
	_, units, err := auditor(db, tables)
	if err != nil {
		return unitofwork.Recovery{}, err
	}
	return units.Recover(ctx)
}

func foundAny(r unitofwork.Recovery) bool {
	return len(r.Committed)+len(r.Aborted)+len(r.Alive) > 0
}

func reportRecovery(w io.Writer, found unitofwork.Recovery) {
	say(w, "recovery of large units: %d had committed, and are done now; %d had not, and never will; %d are alive\n",
		len(found.Committed), len(found.Aborted), len(found.Alive))
	for _, list := range []struct {
		fate  string
		units []string
	}{{"committed", found.Committed}, {"aborted", found.Aborted}, {"alive", found.Alive}} {
		for _, unit := range list.units {
			say(w, "  %-9s %s\n", list.fate, unit)
		}
	}
}

// auditor is an owner without tellers. It decides about units of dead owners that
// it meets, because it has a client of units, too.
func auditor(db store.DB, tables *store.Tables) (*lockset.Client, *unitofwork.Client, error) {
	cfg := tables.Locks
	cfg.Owner, cfg.ChunkSize = "auditor", lockset.MaxChunkSize
	locks, err := lockset.New(db, cfg)
	if err != nil {
		return nil, nil, err
	}
	units, err := unitofwork.New(locks, tables.Units)
	return locks, units, err
}
