package unitofwork_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

func TestWhatTheUnitTableSaysOfAUnit(t *testing.T) {
	for name, c := range map[string]struct {
		at       phase
		n        int
		executed bool
		want     unitofwork.JournalState // but for times and sizes
	}{
		"before its journal":   {journals, 1, false, unitofwork.JournalState{Outcome: unitofwork.Forgotten}},
		"with its journal":     {marks, 1, false, unitofwork.JournalState{Outcome: unitofwork.Undecided, Open: true}},
		"before the decision":  {decides, 1, false, unitofwork.JournalState{Outcome: unitofwork.Undecided, Open: true}},
		"after the decision":   {decides, 1, true, unitofwork.JournalState{Outcome: unitofwork.Committed, Open: true}},
		"half applied":         {applies, 2, true, unitofwork.JournalState{Outcome: unitofwork.Committed, Open: true}},
		"applied, not removed": {concludes, 1, true, unitofwork.JournalState{Outcome: unitofwork.Committed, Done: true, Open: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				unit := b.dies(c.at, c.n, c.executed)
				time.Sleep(time.Second) // what was under way beside that request has landed
				before := b.tables()
				client := b.client("operator", nil)
				state, err := client.JournalOf(t.Context(), unit)
				require.NoError(t, err)
				require.Equal(t, before, b.tables(), "it writes nothing")

				require.Equal(t, c.want.Open, !state.Began.IsZero())
				require.Equal(t, c.want.Outcome == unitofwork.Committed, !state.DecidedAt.IsZero())
				if c.want.Open {
					require.Positive(t, state.Rows)
					require.Equal(t, "locks", state.Locks)
					require.Equal(t, len(keysOfFew()), state.Steps)
					require.GreaterOrEqual(t, state.Writes, fewKeys)
				}
				if c.want.Outcome == unitofwork.Committed && !c.want.Done {
					require.Equal(t, state.Rows, state.Decided)
				}
				require.False(t, state.Stuck())
				state.Began, state.DecidedAt = c.want.Began, c.want.DecidedAt
				state.Rows, state.Decided, state.Locks, state.Steps, state.Writes = 0, 0, "", 0, 0
				require.Equal(t, c.want, state)

				_, err = client.Recover(t.Context())
				require.NoError(t, err)
				state, err = client.JournalOf(t.Context(), unit)
				require.NoError(t, err)
				require.False(t, state.Open)
				require.Zero(t, state.Rows)
				switch c.want.Outcome {
				case unitofwork.Committed:
					require.True(t, state.Outcome == unitofwork.Committed && state.Done)
				case unitofwork.Undecided:
					require.Equal(t, unitofwork.NotCommitted, state.Outcome)
				default: // no entry: nobody looks for it
					require.Equal(t, unitofwork.Forgotten, state.Outcome)
				}
			})
		})
	}
}

func TestAJournalThatIsDamagedShows(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit := b.dies(decides, 1, true)
		client := b.client("operator", nil)
		whole, err := client.JournalOf(t.Context(), unit)
		require.NoError(t, err)

		row := b.journal(unit)[0]
		for name, c := range map[string]struct {
			body    types.AttributeValue
			problem string
		}{
			"no row":          {text("gone"), "is none"},
			"another's":       {&types.AttributeValueMemberB{Value: []byte(`{"version":1,"unit":"x"}`)}, `unit "x"`},
			"a later version": {&types.AttributeValueMemberB{Value: []byte(`{"version":9,"unit":"` + unit + `"}`)}, "version 9"},
			"no journal":      {&types.AttributeValueMemberB{Value: []byte("?")}, "cannot be read"},
		} {
			changed := map[string]types.AttributeValue{}
			for k, v := range row {
				changed[k] = v
			}
			changed["body"] = c.body
			b.putItem("units", changed)
			state, err := client.JournalOf(t.Context(), unit)
			require.NoError(t, err, name)
			require.Contains(t, state.Problem, c.problem, name)
			require.True(t, state.Stuck(), name)
		}

		b.delete("units", map[string]string{"unit": unit, "part": valueOf(row["part"])})
		state, err := client.JournalOf(t.Context(), unit)
		require.NoError(t, err)
		require.Equal(t, whole.Rows-1, state.Rows)
		require.True(t, state.Stuck())

		b.change("units", map[string]string{"unit": unit, "part": "record"}, "REMOVE #state")
		state, err = client.JournalOf(t.Context(), unit)
		require.NoError(t, err)
		require.Equal(t, unitofwork.Undecided, state.Outcome)
		require.Contains(t, state.Problem, "state")
	})
}

func TestAJournalNeedsAUnitTable(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, err := unitofwork.Open(b.db, unitofwork.Config{Locks: lockset.Config{Table: "locks"}})
		require.NoError(t, err)
		_, err = c.JournalOf(t.Context(), "u")
		require.ErrorAs(t, err, new(*locks.ConfigError))
	})
}
