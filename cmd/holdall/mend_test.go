package main

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// stuckBed has units that are committed and not applied.
type stuckBed struct {
	*bed
	records string
}

func newStuckBed(t *testing.T, e *engines.Engine) *stuckBed {
	b := newBed(t, e)
	return &stuckBed{bed: b, records: b.recordsTable(t)}
}

// decided is a unit that wants to write the records of its keys, and whose process is gone.
func (b *stuckBed) decided(t *testing.T, role string, keys ...string) (unit string) {
	t.Helper()
	a := b.actor(t, role, "decided", keys...).ready(t)
	a.Kill()
	return a.nonce
}

// write has somebody write a record without its lock.
func (b *stuckBed) write(t *testing.T, record map[string]any) {
	t.Helper()
	b.put(t, b.records, record)
}

func (b *stuckBed) read(t *testing.T, key string) map[string]any {
	t.Helper()
	out, err := b.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.records, Key: keyItem(key), ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	var record map[string]any
	require.NoError(t, attributevalue.UnmarshalMap(out.Item, &record))
	return record
}

// mended runs mend on a unit, and returns what it says.
func (b *stuckBed) mended(t *testing.T, code int, unit string, args ...string) mendedJSON {
	t.Helper()
	var said mendedJSON
	b.mend(t, unit, append(args, "-o", "json")...).json(t, code, &said)
	return said
}

// mend runs mend on a unit, whose nonce may begin with a dash.
func (b *stuckBed) mend(t *testing.T, unit string, args ...string) ran {
	t.Helper()
	return b.run(t, append(append([]string{"mend"}, args...), "--", unit)...)
}

// laterFence is later than any token of the tests.
const laterFence = 4_000_000_000_000_000

// Each obstacle, and each choice about it, as scripts make it.
func TestMendByFlags(t *testing.T) {
	t.Parallel()
	record := []string{"apply", "keep"}
	type mending struct {
		role    string
		harm    func(*testing.T, *stuckBed)
		choices []string
		choose  string
		balance any // N of the record then; nil if it has none
	}
	cases := map[string]mending{
		"newer fence, apply":     {"decides", newerFence, record, "apply", nil},
		"newer fence, keep":      {"decides", newerFence, record, "keep", 5.0},
		"update, apply":          {decidesUpdates, newerFence, record, "apply", 12.0},
		"update, keep":           {decidesUpdates, newerFence, record, "keep", 5.0},
		"no fence, apply":        {decidesUpdates, noFence, record, "apply", 12.0},
		"no fence, keep":         {decidesUpdates, noFence, record, "keep", 5.0},
		"update that cannot be":  {decidesUpdates, notToBeAdded, []string{"keep"}, "keep", "much"},
		"row gone, written":      {decidesUpdates, rowGone, []string{"written", "not-written"}, "written", 5.0},
		"row gone, not written":  {decidesUpdates, rowGone, []string{"written", "not-written"}, "not-written", 12.0},
		"row gone, put, written": {"decides", rowGone, []string{"written", "not-written"}, "written", 5.0},
	}
	eachCase(t, cases, func(t *testing.T, e *engines.Engine, _ string, c mending) {
		b := newStuckBed(t, e)
		unit := b.decided(t, c.role, "a/1", "b", "c")
		c.harm(t, b)
		found := b.read(t, "a/1")

		said := b.mended(t, exitFound, unit)
		require.False(t, said.Done)
		require.Len(t, said.Obstacles, 1)
		o := said.Obstacles[0]
		require.Equal(t, c.choices, o.Choices)
		require.Equal(t, "a/1", o.Key)
		require.Equal(t, b.records, o.Writes[0].Table)
		require.Equal(t, `key="a/1"`, o.Writes[0].Record)
		require.NotEmpty(t, o.Reason)
		require.Equal(t, found, b.read(t, "a/1"))
		require.NotNil(t, b.read(t, "b"), "other families are done")

		b.mend(t, unit, "--"+c.choose, o.State).oneError(t, exitUsage, "--yes")
		for _, other := range []string{"apply", "keep", "written", "not-written"} {
			if !slices.Contains(c.choices, other) {
				r := b.mend(t, unit, "--"+other, o.State, "--yes")
				require.Equal(t, exitUsage, r.code, r)
			}
		}
		require.Equal(t, found, b.read(t, "a/1"))

		said = b.mended(t, exitDone, unit, "--"+c.choose, o.State, "--yes")
		require.Equal(t, mendedJSON{Unit: unit, Done: true, Chosen: []chosenJSON{{o.State, c.choose}}, Obstacles: []obstacleJSON{}}, said)
		is := b.read(t, "a/1")
		require.Equal(t, c.balance, is["N"])
		require.Equal(t, ran{0, "no unit is stuck\n", ""}, b.run(t, "mend"))
		again := b.mend(t, unit, "--"+c.choose, o.State, "--yes")
		again.has(t, "done, nothing is left to mend\n")
		require.Equal(t, "holdall: --"+c.choose+" "+o.State+": nothing has this state, or not any more\n", again.stderr)
		require.Equal(t, is, b.read(t, "a/1"))
	})
}

func newerFence(t *testing.T, b *stuckBed) {
	b.write(t, map[string]any{"key": "a/1", "N": 5, "_fence": laterFence, "tags": map[string]any{"x": []any{"y", nil, true}}})
}

func noFence(t *testing.T, b *stuckBed) {
	b.write(t, map[string]any{"key": "a/1", "N": 5, "_fence": "x"})
}

func notToBeAdded(t *testing.T, b *stuckBed) {
	b.write(t, map[string]any{"key": "a/1", "N": "much"})
}

func rowGone(t *testing.T, b *stuckBed) {
	b.write(t, map[string]any{"key": "a/1", "N": 5})
	b.delete(t, b.locks, keyItem("a/1"))
}

// What has changed since it was shown is refused, and shown anew, with another state.
func TestMendRefusesWhatHasChanged(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, e *engines.Engine) {
		b := newStuckBed(t, e)
		unit := b.decided(t, "decides", "a/1", "b", "c")
		newerFence(t, b)
		before := b.mended(t, exitFound, unit).Obstacles[0]
		changed := map[string]any{"key": "a/1", "N": 6, "_fence": laterFence}
		b.write(t, changed)
		r := b.mend(t, unit, "--apply", before.State, "--yes")
		require.Equal(t, exitFound, r.code, r)
		require.Contains(t, r.stdout, `N {"N":"6"}`)
		require.Contains(t, r.stderr, "--apply "+before.State+": nothing has this state")
		require.Equal(t, 6.0, b.read(t, "a/1")["N"])
		require.NotEqual(t, before.State, b.mended(t, exitFound, unit).Obstacles[0].State)
	})
}

func TestMendListsWhatIsStuck(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, e *engines.Engine) {
		b := newStuckBed(t, e)
		stuck := b.decided(t, "decides", "a/1", "b", "c")
		newerFence(t, b)
		damaged := b.decided(t, "decides", "d", "e", "f")
		b.truncate(t, damaged)
		fine := b.decided(t, "decides", "g", "h", "i")
		r := b.run(t, "mend")
		require.Equal(t, exitFound, r.code, r)
		for _, text := range []string{
			"unit " + stuck + " is stuck\n", "unit " + damaged + " is stuck\n", "unit " + fine + ": committed, and all of it is done now",
			"token is stale", "a row of it is missing", "holdall mend -- UNIT",
		} {
			require.Contains(t, r.stdout, text)
		}
		var said stuckJSON
		b.run(t, "mend", "-o", "json").json(t, exitFound, &said)
		require.Len(t, said.Stuck, 2)
		require.Empty(t, said.Errors)

		r = b.mend(t, damaged)
		require.Equal(t, exitFound, r.code, r)
		require.Contains(t, r.stdout, "There is no choice here. Restore the rows")
		require.NotEmpty(t, b.mended(t, exitFound, damaged).Problem)
	})
}

// A unit that is not committed is not touched: its process may be at work.
func TestMendLeavesAloneWhatIsNotCommitted(t *testing.T) {
	t.Parallel()
	b := newStuckBed(t, engines.Dynoxide(t))
	unit := b.actor(t, "prepares", "prepared", "a", "b", "c").ready(t)
	b.mend(t, unit.nonce).oneError(t, exitError, "the unit is not committed by a journal")
	require.True(t, unit.Alive())
	out, err := b.client(t).JournalOf(t.Context(), unit.nonce)
	require.NoError(t, err)
	require.True(t, out.Open)
	require.Zero(t, out.DecidedAt)
}
