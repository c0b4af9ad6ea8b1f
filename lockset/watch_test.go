package lockset_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Who watches whom, and who is told of what, when.

// A holder whose row is another's by now learns of it from its next renewal, long
// before it would from silence.
func TestAHolderIsToldByItsNextHeartbeat(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("holder", nil), "a", "b")
		seized := b.seize("b", b.owner("thief", nil))
		time.Sleep(lease/3 + 4*rtt)
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrNotOurs)
		require.NoError(t, seized.Context().Err())
		b.free(seized)
	})
}

// A unit that loses a key it has, while it waits for another, gives up: it does
// not retry into its own grave.
func TestAUnitThatLosesAKeyWhileItWaitsGivesUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		last := b.take(b.owner("last", nil), "z")
		o := b.owner("o", nil)
		ctx, cancel := context.WithTimeout(t.Context(), 5*lease)
		defer cancel()
		ended := make(chan error)
		go func() {
			_, err := o.Acquire(ctx, []ordering.Key{"a", "z"})
			ended <- err
		}()
		time.Sleep(time.Second)
		seized := b.seize("a", b.owner("thief", nil))
		start := time.Now()
		require.ErrorIs(t, <-ended, lockset.ErrLost)
		require.Less(t, time.Since(start), lease/2)
		b.free(last)
		b.free(seized)
		b.allFree()
	})
}

// A living intent is enough to keep a coarse lock out; the dead behind it are
// watched meanwhile, and keep nobody waiting once it has gone.
func TestTheDeadBehindALivingIntentAreWatchedMeanwhile(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		living := b.take(b.owner("living", nil), "c/a")
		b.crashed("c/z")
		o := b.owner("o", nil)
		taken := make(chan *lockset.Set)
		go func() {
			set, err := o.Acquire(t.Context(), []ordering.Key{"c"})
			require.NoError(t, err)
			taken <- set
		}()
		time.Sleep(3 * lease)
		b.free(living)
		start := time.Now()
		set := <-taken
		require.Less(t, time.Since(start), lease/5)
		b.free(set)
	})
}

// Nothing is decided by a read that may be behind.
func TestReadsAreStronglyConsistent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		fine, coarse := b.take(b.owner("fine", nil), "c/a"), b.take(b.owner("coarse", nil), "d")
		var reads, behind atomic.Int64
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.GetItemInput); ok {
				reads.Add(1)
				if !aws.ToBool(in.ConsistentRead) {
					behind.Add(1)
				}
			}
			return faults.Pass()
		})
		b.refused(o, lease, "c") // reads a witness
		b.refused(o, lease, "d") // reads a holder
		require.NotZero(t, reads.Load())
		require.Zero(t, behind.Load())
		b.free(fine)
		b.free(coarse)
	})
}

// A set that was released ends no second time: a commit would have no lock to
// check.
func TestASetThatWasReleasedDoesNotEndAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("o", nil), "a", "b")
		b.free(set)
		_, err := set.End(t.Context())
		require.ErrorIs(t, err, lockset.ErrLost)
		require.NoError(t, set.Release(t.Context()), "and it stays as it was")
	})
}

// A holder that misses one renewal has the time for another before it is lost.
func TestTimesThatDoNotFitAreRefused(t *testing.T) {
	for _, c := range []lockset.Config{
		{Table: table, Lease: lease, Heartbeat: lease * 8 / 10},
		{Table: table, Lease: lease, AttemptTimeout: lease / 3},
		{Table: table, Lease: lease, Margin: lease / 2},
	} {
		_, err := lockset.New(struct{ lockset.DynamoDB }{}, c)
		var configErr *locks.ConfigError
		require.ErrorAs(t, err, &configErr)
		require.Equal(t, "Lease", configErr.Field)
	}
}
