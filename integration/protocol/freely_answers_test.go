package protocol

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What happens to commits without locks: to the first sending of each, or to all.
var commitFaults = map[string]struct {
	fault  faults.Fault
	always bool
}{
	"answer-lost":         {faults.LoseAnswer(faults.Reset), false},
	"answer-broken":       {faults.LoseAnswer(faults.Broken), false},
	"answers-lost":        {faults.LoseAnswer(faults.Reset), true},
	"answers-swallowed":   {faults.LoseAnswer(faults.Hang), true},
	"request-lost":        {faults.LoseRequest(faults.Reset), false},
	"requests-lost":       {faults.LoseRequest(faults.Reset), true},
	"late":                {faults.DeliverLate(100*time.Millisecond, faults.Reset), false},
	"all-late":            {faults.DeliverLate(100*time.Millisecond, faults.Reset), true},
	"doubled":             {faults.Duplicate(200 * time.Millisecond), false},
	"in-progress":         {faults.InProgress(100 * time.Millisecond), false},
	"conflict":            {faults.Conflict(0), false},
	"conflicts":           {faults.Conflict(1), true},
	"throttled":           {faults.Throttle(faults.InReasons, 1), false},
	"server-error":        {faults.ServerError(false), false},
	"server-error-done":   {faults.ServerError(true), false},
	"server-errors-done":  {faults.ServerError(true), true},
	"nothing-goes-amiss":  {faults.Pass(), false},
	"a-condition-refuses": {faults.LoseAnswer(faults.Reset), false},
}

// Requests and answers of commits without locks are lost, doubled, late and refused: what is
// reported is true, at once and when all has arrived, and what was not done is done under locks.
func TestLostAnswersOfCommitsWithoutLocks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease = max(b.lease/2, 3*time.Second) // which some commits last, unheard
		var met sync.Map
		var w ways
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if !isFreeCommit(c) {
				return faults.Pass()
			}
			family := strings.Split(keyOf(c), "/")[0]
			f := commitFaults[family]
			if _, again := met.LoadOrStore(family, true); again && !f.always {
				return faults.Pass()
			}
			return f.fault
		}, w.traced)
		var group errgroup.Group
		for family := range commitFaults {
			keys := []ordering.Key{ordering.Key(family + "/1"), ordering.Key(family + "/2")}
			group.Go(func() error {
				err := o.units.Do(t.Context(), unitofwork.Work{ID: family}, func(ctx context.Context, u *unitofwork.Unit) error {
					if err := b.add(1, keys...)(ctx, u); err != nil || family != "a-condition-refuses" {
						return err
					}
					return u.Check(b.counters().Ref(family), unitofwork.Expression{Condition: "attribute_exists(N)"})
				})
				if family == "a-condition-refuses" {
					if !errors.Is(err, unitofwork.ErrCondition) {
						return errors.Join(errors.New("its condition does not hold"), err)
					}
					return nil
				}
				return err
			})
		}
		require.NoError(t, group.Wait())
		for late := range 2 {
			for family := range commitFaults {
				want := int64(1)
				if family == "a-condition-refuses" {
					want = 0
				}
				require.Equal(t, want, b.count(ordering.Key(family+"/1")), "%s, %d", family, late)
				require.Equal(t, want, b.count(ordering.Key(family+"/2")), "%s, %d", family, late)
			}
			b.allFree()
			o.net.Wait()
		}
		ends, _ := w.took()
		t.Log(ends)
		require.NotContains(t, ends, "free in doubt")
		require.Contains(t, ends, "free committed")
		require.Contains(t, ends, "locked committed")
	})
}

// keyOf is the key of the first lock row that a commit passes.
func keyOf(c faults.Call) string {
	in := c.Input.(*dynamodb.TransactWriteItemsInput)
	return in.TransactItems[0].Update.Key["key"].(*types.AttributeValueMemberS).Value
}

// Nothing is heard of a commit without locks, nor of anything after it: what is said of its
// Ref is true, before a late copy of it arrives and after.
func TestACommitWithoutLocksInDoubt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		for name, c := range some(b, map[string]doubtful{
			"done":                                {true, false, "", "", unitofwork.Committed, unitofwork.Committed},
			"done, with an ID":                    {true, false, "1", "", unitofwork.Committed, unitofwork.Committed},
			"not done":                            {false, false, "", "", unitofwork.Undecided, unitofwork.Committed},
			"not done, with an ID":                {false, false, "2", "", unitofwork.Undecided, unitofwork.Committed},
			"done, others came":                   {true, true, "", "", unitofwork.Forgotten, unitofwork.Forgotten},
			"done, others came, with an ID":       {true, true, "3", "", unitofwork.Committed, unitofwork.Committed},
			"not done, others came":               {false, true, "", "", unitofwork.Forgotten, unitofwork.Forgotten},
			"not done, others came, with an ID":   {false, true, "4", "", unitofwork.NotCommitted, unitofwork.NotCommitted},
			"not done, others came under this ID": {false, true, "5", "5", unitofwork.NotCommitted, unitofwork.NotCommitted},
		}) {
			t.Log(name)
			c.try(b, ordering.Join(strings.ReplaceAll(name, " ", "-"), "1"))
		}
		b.allFree()
	})
}

// doubtful is a commit of which nothing is heard.
type doubtful struct {
	done, others bool
	id, theirs   string             // the IDs of the unit and of others
	now, later   unitofwork.Outcome // before the request arrives once more, and after
}

func (d doubtful) try(b *bed, key ordering.Key) {
	commit, ref := b.inDoubt(unitofwork.Work{ID: d.id}, key, d.done)
	asker, want := b.owner("asker", nil), int64(0)
	if d.done {
		want++
	}
	if d.others {
		require.NoError(b.t, asker.units.Do(b.t.Context(), unitofwork.Work{ID: d.theirs}, b.add(1, key)))
		want++
	}
	outcome, err := asker.units.Outcome(b.t.Context(), ref)
	require.NoError(b.t, err)
	require.Equal(b.t, d.now, outcome)
	require.Equal(b.t, want, b.count(key))

	commit.ClientRequestToken = aws.String(rand.Text()) // the first one is forgotten by now
	_, err = b.db.TransactWriteItems(b.t.Context(), commit)
	if d.done || d.others {
		require.ErrorAs(b.t, err, new(*types.TransactionCanceledException))
	} else {
		require.NoError(b.t, err)
		want++
	}
	outcome, err = asker.units.Outcome(b.t.Context(), ref)
	require.NoError(b.t, err)
	require.Equal(b.t, d.later, outcome)
	require.Equal(b.t, want, b.count(key))
}

// inDoubt adds one to a counter, and hears nothing of the commit, whether it was done or not.
// It returns what was sent, and what its outcome can be asked by.
func (b *bed) inDoubt(work unitofwork.Work, key ordering.Key, done bool) (commit *dynamodb.TransactWriteItemsInput, ref string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	var sent atomic.Pointer[dynamodb.TransactWriteItemsInput]
	o := b.owner("doubtful", func(c faults.Call) faults.Fault {
		switch {
		case sent.Load() != nil:
			cancel() // it is sent again: that is enough
			return faults.LoseRequest(faults.Hang)
		case isFreeCommit(c):
			in := *c.Input.(*dynamodb.TransactWriteItemsInput)
			sent.Store(&in)
			if done {
				return faults.LoseAnswer(faults.Reset)
			}
			return faults.LoseRequest(faults.Reset)
		}
		return faults.Pass()
	}, func(c *lockset.Config) { c.Lease = time.Second }) // as long as it tries to find out
	err := o.units.Do(ctx, work, b.add(1, key))
	var doubt *unitofwork.InDoubtError
	require.ErrorAs(b.t, err, &doubt)
	require.Equal(b.t, lockset.AskLater, lockset.NextOf(err))
	require.Equal(b.t, work.ID, doubt.ID)
	o.net.Wait()
	return sent.Load(), doubt.Ref
}
