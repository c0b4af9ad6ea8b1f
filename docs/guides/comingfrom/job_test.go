package comingfrom

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/holdalltest"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

func locksOf(t *testing.T, p *holdalltest.Process) *lockset.Client {
	t.Helper()
	locks, err := lockset.New(p, config.Locks)
	require.NoError(t, err)
	return locks
}

// A job runs on one host at a time; a host that is cut off stops before another begins.
func TestAJobRunsOnOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := holdalltest.DynamoDB()
		require.NoError(t, tables()(t.Context(), db))
		var running atomic.Int32
		job := func(ctx context.Context) error {
			if running.Add(1) > 1 {
				t.Error("two hosts at work")
			}
			defer running.Add(-1)
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Hour):
				return nil
			}
		}
		one, two := db.Process("one"), db.Process("two")
		first := make(chan error, 1)
		go func() {
			_, err := Nightly(t.Context(), locksOf(t, one), job)
			first <- err
		}()
		time.Sleep(time.Minute)
		locks := locksOf(t, two)
		ran, err := Nightly(t.Context(), locks, job)
		require.NoError(t, err)
		require.False(t, ran, "the other host is at it")

		one.Partition(true)
		for !ran { // as a scheduler does that calls every ten seconds
			time.Sleep(10 * time.Second)
			ran, err = Nightly(t.Context(), locks, job)
		}
		require.NoError(t, err)
		require.ErrorIs(t, <-first, lockset.ErrLost)
	})
}

// A report of a holder that was overtaken is refused by the table.
func TestALateReportIsRefused(t *testing.T) {
	db := holdalltest.DynamoDB()
	require.NoError(t, tables()(t.Context(), db))
	late, successor := locksOf(t, db.Process("late")), locksOf(t, db.Process("successor"))
	published := func() (text string) {
		out, err := db.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("reports"), Key: id("july")})
		require.NoError(t, err)
		require.NoError(t, attributevalue.Unmarshal(out.Item["Text"], &text))
		return text
	}
	err := Publish(t.Context(), late, db.Client(), "july", func(context.Context) string {
		lost, err := db.LoseLocks(t.Context(), config.Locks, ordering.Join("report:july"))
		require.NoError(t, err)
		require.True(t, lost)
		require.NoError(t, Publish(t.Context(), successor, db.Client(), "july", func(context.Context) string { return "new" }))
		return "old"
	})
	require.ErrorIs(t, err, fencing.ErrStale)
	require.Equal(t, "new", published())
	require.NoError(t, Publish(t.Context(), late, db.Client(), "july", func(context.Context) string { return "newer" }))
	require.Equal(t, "newer", published())
}
