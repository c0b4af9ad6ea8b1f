package protocol

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// silent is an engine that does not say how a table is made.
type silent struct{ lockset.DynamoDB }

// checkers are processes that use these tables: one whose engine says how they are made,
// and one whose engine does not.
func (b *bed) checkers(locks, units string, now func() time.Time) []*unitofwork.Client {
	b.t.Helper()
	var clients []*unitofwork.Client
	for _, db := range []lockset.DynamoDB{b.db, silent{b.db}} {
		c, err := unitofwork.Open(db, unitofwork.Config{Locks: lockset.Config{Table: locks, Lease: b.lease, Now: now}, Table: units})
		require.NoError(b.t, err)
		clients = append(clients, c)
	}
	return clients
}

// findings are those of a check that had some.
func (b *bed) findings(c *unitofwork.Client) []requests.Finding {
	b.t.Helper()
	var check *requests.CheckError
	require.ErrorAs(b.t, c.Check(b.t.Context()), &check)
	return check.Findings
}

// all has every item of the tables.
func (b *bed) all() []map[string]types.AttributeValue {
	b.t.Helper()
	return slices.Concat(b.items(b.locks), b.items(b.units), b.items(b.data))
}

// Tables as CreateTable makes them pass, also while they are in use, and nothing is
// written.
func TestHealthyTablesPassTheCheck(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		clients := b.checkers(b.locks, b.units, nil)
		for _, c := range clients {
			require.NoError(t, c.Check(t.Context()))
		}
		require.Empty(t, b.all())

		require.NoError(t, clients[0].Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"a"}, ID: "1"}, b.add(1, "a")))
		before := b.all()
		require.NotEmpty(t, before)
		for _, c := range clients {
			require.NoError(t, c.Check(t.Context()))
		}
		require.ElementsMatch(t, before, b.all())

		b.take(b.owner("other", nil), "b", "c/d")
		for _, c := range clients {
			require.NoError(t, c.Check(t.Context()))
		}
	})
}

// What is wrong with a table is found in the engine's own answers.
func TestUnfitTablesAreFound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, c := range []struct {
			locks, units string
			problems     []string
		}{
			{b.locks + "-no", b.units + "-no", []string{"does not exist", "does not exist"}},
			{b.data, b.units, []string{"its keys are"}},
			{b.units, b.locks, []string{"its keys are", "its keys are"}},
		} {
			for _, client := range b.checkers(c.locks, c.units, nil) {
				found := b.findings(client)
				require.Len(t, found, len(c.problems), "%v", found)
				for i, f := range found {
					require.Equal(t, []string{c.locks, c.units}[i], f.Table)
					require.Contains(t, f.Problem, c.problems[i])
				}
			}
		}

		lasting := b.locks + "-lasting"
		require.NoError(t, newtable.Create(t.Context(), b.db, newtable.Input(lasting, "key")))
		clients := b.checkers(lasting, b.units, nil)
		found := b.findings(clients[0])
		require.Len(t, found, 1)
		require.Contains(t, found[0].Problem, "TTL is off")
		require.NoError(t, clients[1].Check(t.Context()), "nobody says so")
	})
}

// Every answer of every engine has a Date header.
func TestAWrongClockIsFound(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, off := range []time.Duration{-time.Hour, time.Hour} {
			for _, c := range b.checkers(b.locks, b.units, func() time.Time { return time.Now().Add(off) }) {
				found := b.findings(c)
				require.Len(t, found, 1)
				require.Empty(t, found[0].Table)
				require.Regexp(t, map[bool]string{true: "(1h0m[0-9]s|59m5[0-9]s) ahead of", false: "(1h0m[0-9]s|59m5[0-9]s) behind"}[off > 0], found[0].Problem)
			}
		}
	})
}
