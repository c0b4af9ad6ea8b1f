package unitofwork_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// The hook says that nothing of a unit is held any more: when it is known.
func TestReleasedIsSaidOfWhatIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		script faults.Script
		want   int32
	}{
		"a commit":                        {nil, 1},
		"a commit without an answer":      {loseAnswersOfCommits, 1},
		"cut off before the commit lands": {cutAfterCommit(false), 0},
		"cut off after it":                {cutAfterCommit(true), 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var released atomic.Int32
				cl := b.client("c", c.script, func(l *lockset.Config, _ *unitofwork.Config) {
					l.Trace = trace.Join(l.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { released.Add(1) }))
				})
				err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(30))
				require.Equal(t, c.want == 1, err == nil, "%v", err)
				require.Equal(t, c.want, released.Load())
			})
		})
	}
}

// loseAnswersOfCommits carries them out, and nobody hears of it.
func loseAnswersOfCommits(c faults.Call) faults.Fault {
	if isCommit(c) {
		return faults.LoseAnswer(faults.Reset)
	}
	return faults.Pass()
}

// Cut off in its commit, and overtaken: what the unit left above its key goes
// when it comes back, though nobody can say what became of the commit.
func TestAnOvertakenCommitLeavesNoIntent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		key := []ordering.Key{ordering.Join("c", "x")}
		cl, other := b.client("c", nil), b.client("other", nil)
		taken := make(chan *lockset.Set)
		err := cl.Do(t.Context(), unitofwork.Work{Keys: key}, func(context.Context, *unitofwork.Unit) error {
			cl.net.Partition(true)
			time.AfterFunc(lease+lease/2, func() { cl.net.Partition(false) })
			go func() {
				set, err := other.locks.Acquire(context.Background(), key)
				assert.NoError(t, err)
				taken <- set
			}()
			return nil
		})
		require.ErrorIs(t, err, unitofwork.ErrInDoubt)
		require.NoError(t, (<-taken).Release(t.Context()))
		for _, row := range b.db.Items("locks") {
			require.NotContains(t, row, "below", "%v", row["key"])
		}
	})
}

// A row that a commit frees says since when it is free this time, as one that is released does: who
// looks at it once goes past those who wait by that.
func TestACommitSaysSinceWhenItsRowsAreFree(t *testing.T) {
	inBedDated(t, time.Now, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for range 2 { // the first has seen no date when it begins
			time.Sleep(time.Hour)
			began := time.Now()
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Lock: true, Keys: transferKeys}, transfer(1)))
			for _, k := range []ordering.Key{transferKeys[0], transferKeys[0].Root()} {
				require.Contains(t, b.row(k), "turnAt")
				at, err := strconv.ParseInt(b.row(k)["turnAt"].(*types.AttributeValueMemberN).Value, 10, 64)
				require.NoError(t, err)
				require.GreaterOrEqual(t, at, began.UnixNano(), "%s", k)
			}
		}
	})
}
