package otelholdall_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// dies has a process commit a unit with a journal, and die before any of it is applied.
func (b *bed) dies() {
	dying := b.open(b.net, "dying", hooks.On(trace.Progress, func(_ context.Context, p trace.Event) {
		if p.Phase == hooks.Applying {
			b.net.Crash()
		}
	}))
	require.NoError(b.t, dying.Do(b.t.Context(), unitofwork.Work{Keys: []ordering.Key{"account"}}, openMany))
	time.Sleep(2 * lease)
}

// Whoever meets a unit of a dead process that cannot be finished counts it, not only the process that
// committed it: that says nothing any more.
func TestAStuckUnitOfADeadProcess(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.dies()
		for _, item := range b.db.Items("units") {
			unit, part := item["unit"], item["part"].(*types.AttributeValueMemberS)
			if part.Value != "journal/000000" {
				continue
			}
			_, err := b.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: new("units"), Key: map[string]types.AttributeValue{"unit": unit, "part": part}})
			require.NoError(t, err)
		}
		_, err := b.open(b.db, "another", b.hooks).Recover(t.Context())
		require.ErrorAs(t, err, new(*unitofwork.UnappliedError))
		require.Equal(t, 1.0, b.value("holdall.units.stuck"))
		require.Equal(t, 1.0, b.value("holdall.units.unfinished"))
		require.Zero(t, b.value("holdall.units.recovered"))
		b.nothingHeld()
	})
}

// One who finishes a dead unit, and gives up, has no journal open any more.
func TestARecoveryThatIsGivenUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.dies()
		ctx, cancel := context.WithCancel(t.Context())
		giving := b.open(b.db, "giving up", trace.Join(b.hooks, hooks.On(trace.Progress, func(context.Context, trace.Event) { cancel() })))
		_, err := giving.Recover(ctx)
		require.ErrorIs(t, err, context.Canceled)
		b.nothingHeld()
		require.Zero(t, b.value("holdall.units.stuck"))
		_, err = b.open(b.db, "another", b.hooks).Recover(t.Context())
		require.NoError(t, err)
		require.Positive(t, b.value("holdall.units.recovered"), "twice if the first had applied all, and not noted it")
		b.nothingHeld()
	})
}
