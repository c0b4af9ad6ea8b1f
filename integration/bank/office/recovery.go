package office

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// recovery is what to run as a scheduled job, in a bank that is not a demo: it
// finishes what dead owners left, in tables that somebody else made.
type recovery struct{ Options }

// NewRecovery is the command that recovers.
func NewRecovery() Command { return &recovery{} }

func (r *recovery) Flags(fs *flag.FlagSet) {
	r.PlaceFlags(fs)
	r.PrefixFlag(fs)
}

func (r *recovery) Check(Given) []Check {
	return append(r.CheckPlace(),
		Check{r.Where.Embedded(), "endpoint", "or -aws is required: what was in memory is gone"},
		Check{r.Prefix == "", "prefix", "is required: that of the tables"})
}

func (r *recovery) Do(ctx context.Context, stdout, stderr io.Writer) (sound bool, err error) {
	of, err := Join(ctx, &r.Options, stderr)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, of.Leave()) }()
	found, err := of.recover(ctx)
	if err == nil || foundAny(found) { // what was done is said beside an error, too
		reportRecovery(stdout, found)
	}
	return true, err
}

// Recover finishes large units that dead owners left, and says so if there were any,
// or if it is to say so always.
func (of *Office) Recover(ctx context.Context, stdout io.Writer, always bool) error {
	found, err := of.recover(context.WithoutCancel(ctx))
	if foundAny(found) || always && err == nil {
		Say(stdout, "\n")
		reportRecovery(stdout, found)
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}

func (of *Office) recover(ctx context.Context) (unitofwork.Recovery, error) {
	_, units, err := of.auditor()
	if err != nil {
		return unitofwork.Recovery{}, err
	}
	return units.Recover(ctx)
}

func foundAny(r unitofwork.Recovery) bool {
	return len(r.Committed)+len(r.Aborted)+len(r.Alive) > 0
}

func reportRecovery(w io.Writer, found unitofwork.Recovery) {
	Say(w, "recovery of large units: %d had committed, and are done now; %d had not, and never will; %d are alive\n",
		len(found.Committed), len(found.Aborted), len(found.Alive))
	for _, list := range []struct {
		fate  string
		units []string
	}{{"committed", found.Committed}, {"aborted", found.Aborted}, {"alive", found.Alive}} {
		for _, unit := range list.units {
			Say(w, "  %-9s %s\n", list.fate, unit)
		}
	}
}

// auditor is an owner without tellers. It decides about units of dead owners that
// it meets, because it has a client of units, too.
func (of *Office) auditor() (*lockset.Client, *unitofwork.Client, error) {
	cfg := of.Tables.Locks
	cfg.Owner, cfg.ChunkSize = "auditor", lockset.MaxChunkSize
	if of.recording != nil {
		cfg.Trace = of.recording.Trace(cfg.Owner)
	}
	locks, err := lockset.New(of.db, cfg)
	if err != nil {
		return nil, nil, err
	}
	units, err := unitofwork.New(locks, of.Tables.Units)
	return locks, units, err
}
