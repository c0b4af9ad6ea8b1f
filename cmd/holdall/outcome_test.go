package main

import (
	"context"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// doubted has a process die when it commits a unit, with the transaction carried out or
// not, and returns the Ref by which its outcome can be asked for.
func (b *bed) doubted(t *testing.T, key ordering.Key, carriedOut bool) (ref string) {
	t.Helper()
	net := faults.Wrap(b.Client, faults.Config{Script: func(c faults.Call) faults.Fault {
		in, is := c.Input.(*dynamodb.TransactWriteItemsInput)
		if is && slices.ContainsFunc(in.TransactItems, func(i types.TransactWriteItem) bool { return i.Put != nil && *i.Put.TableName == b.units }) {
			return faults.CrashHere(carriedOut)
		}
		return faults.Pass()
	}})
	c, err := unitofwork.Open(net, unitofwork.Config{Locks: mortal(b.locks, "the dead", b.lease), Table: b.units})
	require.NoError(t, err)
	u, err := c.Begin(t.Context(), unitofwork.Work{Keys: []ordering.Key{key}, ID: "id of " + string(key)})
	require.NoError(t, err)
	err = u.Commit(t.Context())
	var doubt *unitofwork.InDoubtError
	require.ErrorAs(t, err, &doubt)
	return doubt.Ref
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		yes, no := b.doubted(t, "yes", true), b.doubted(t, "no", false)

		require.Equal(t, ran{0, "committed: all its writes are done, or will be by whoever comes by\n", ""}, b.run(t, "outcome", yes))
		require.Equal(t, ran{0, "committed: all its writes are done, or will be by whoever comes by\n", ""}, b.run(t, "outcome", "--id", "id of yes"))
		require.Equal(t, ran{exitUndecided, "undecided: it may yet be committed: ask again\n", ""}, b.run(t, "outcome", no))
		require.Equal(t, ran{exitUndecided, "undecided: nothing was committed under this ID, and may yet be\n", ""}, b.run(t, "outcome", "--id", "id of no"))

		// Whoever gets the key of the other makes sure that it never commits.
		require.NoError(t, b.client(t).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"no"}, Lock: true},
			func(context.Context, *unitofwork.Unit) error { return nil }))
		var is struct{ Asked, Outcome string }
		b.run(t, "outcome", no, "-o", "json").json(t, exitFound, &is)
		require.Equal(t, no, is.Asked)
		require.Equal(t, "not committed", is.Outcome)
	})
}

func TestOutcomeIsToldByTheCode(t *testing.T) {
	for _, o := range []unitofwork.Outcome{unitofwork.Undecided, unitofwork.Committed, unitofwork.NotCommitted, unitofwork.Forgotten} {
		is, known := outcomes[o]
		require.True(t, known, o)
		require.NotEmpty(t, is.words)
	}
}
