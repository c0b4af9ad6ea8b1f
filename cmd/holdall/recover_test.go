package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// note is a record that the units of these tests write.
type note struct{ ID, Text string }

// died has a process die while it commits a unit with a journal, when it is at a phase
// for the first time, and returns the unit's nonce.
func (b *bed) died(t *testing.T, phase string) (unit string) {
	t.Helper()
	records := unitofwork.Table[note]{
		Name: b.CreateTable(t, "records", "ID", ""), PartitionKey: "ID",
		Guard: func(r *note) ordering.Key { return ordering.Join(r.ID) },
	}
	net := faults.Wrap(b.Client, faults.Config{})
	hooks := hooks.On(trace.Progress, func(_ context.Context, p trace.Event) {
		if p.Phase == phase {
			net.Crash()
		}
	})
	c, err := unitofwork.Open(net, unitofwork.Config{
		Locks: mortal(b.locks, "the dead", b.lease), Table: b.units, TransactionSize: 4, Trace: hooks,
	})
	require.NoError(t, err)
	var over sync.WaitGroup
	t.Cleanup(over.Wait)
	units := make(chan string, 1)
	over.Go(func() {
		u, err := c.Begin(context.WithoutCancel(t.Context()), unitofwork.Work{Keys: []ordering.Key{"a", "b", "c", "d"}})
		if err != nil {
			close(units)
			return
		}
		units <- u.Nonce()
		for _, id := range []string{"a", "b", "c", "d"} {
			err = errors.Join(err, u.Replace(records.Of(note{id, "of " + id})))
		}
		_ = u.Commit(context.WithoutCancel(t.Context()))
	})
	unit = <-units
	require.NotEmpty(t, unit)
	<-net.Dead()
	return unit
}

func TestRecoverAbortsWhatWasNotDecided(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	unit := b.died(t, hooks.Preparing)
	var found recovered
	b.run(t, "recover", "-o", "json").json(t, exitDone, &found)
	require.Equal(t, recovered{Committed: []string{}, Aborted: []string{unit}, Alive: []string{}, Errors: []string{}}, found)
}

// A unit whose table is gone cannot be finished, which is said in one line, and by the code.
func TestRecoverSaysWhatItCannotFinish(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	unit := b.died(t, hooks.Applying)
	table := b.Table("records")
	_, err := b.Client.DeleteTable(t.Context(), deleteTable(table))
	require.NoError(t, err)
	t.Cleanup(func() { // for the engine drops it once more
		_, err := b.Client.CreateTable(context.WithoutCancel(t.Context()), newtable.Input(table, "ID"))
		require.NoError(t, err)
	})
	b.run(t, "recover").oneError(t, exitError, unit)
	var found recovered
	b.run(t, "recover", "-o", "json").json(t, exitError, &found)
	require.NotEmpty(t, found.Errors)
	for _, text := range found.Errors {
		require.Contains(t, text, `unit "`+unit+`" is committed, and cannot be applied: table "`+table+`"`)
	}
}

// With --watch it goes on until it is stopped.
func TestRecoverWatches(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	recovers := b.begin(t, "recover", "--watch", "--every", "10ms", "-o", "json")
	require.Contains(t, next(t, recovers.lines), `"committed":[]`)
	unit := b.died(t, hooks.Applying)
	for !strings.Contains(next(t, recovers.lines), `"committed":["`+unit+`"]`) {
	}
	recovers.interrupted(t, syscall.SIGTERM)
}

// What nothing but another call can help is not tried again.
func TestServicesNeedTheirTables(t *testing.T) {
	e := engines.Dynoxide(t)
	runWith(t, environ(e.Endpoint), "recover", "--table", e.Table("no"), "--units", e.Table("none"), "--watch").oneError(t, exitError, e.Table("none"))
	runWith(t, environ(e.Endpoint), "sweep", "--table", e.Table("no"), "--every", "1s").oneError(t, exitError, e.Table("no"))
}
