package unitofwork_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func TestOpenMakesItsOwnLocks(t *testing.T) {
	db := memdynamo.New(memdynamo.Config{})
	cfg := unitofwork.Config{Locks: lockset.Config{Table: "locks", Owner: "me"}, Table: "units"}
	require.NoError(t, lockset.CreateTable(t.Context(), db, cfg.Locks))
	require.NoError(t, unitofwork.CreateTable(t.Context(), db, cfg))
	units, err := unitofwork.Open(db, cfg)
	require.NoError(t, err)
	require.Equal(t, "me", units.Locks().Config().Owner)
	require.NoError(t, units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"a"}}, func(context.Context, *unitofwork.Unit) error {
		_, err := units.Locks().TryAcquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*lockset.HeldError), "they are the unit's")
		return nil
	}))

	for field, open := range map[string]func() error{
		"db":    func() error { _, err := unitofwork.Open(nil, cfg); return err },
		"Lease": func() error { c := cfg; c.Locks.Lease = 1; _, err := unitofwork.Open(db, c); return err },
		"Table": func() error { c := cfg; c.Table = "locks"; _, err := unitofwork.Open(db, c); return err },
		"Locks": func() error { _, err := unitofwork.New(units.Locks(), cfg); return err },
	} {
		var wrong *locks.ConfigError
		require.ErrorAs(t, open(), &wrong)
		require.Equal(t, field, wrong.Field)
	}
}
