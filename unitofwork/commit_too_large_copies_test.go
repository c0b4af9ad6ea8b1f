package unitofwork_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// One transaction was refused as too large, and its unit goes on with a journal. The
// network has a copy of that transaction; it comes when the records are smaller.

const largeRecords = 11 // of 390 KB: more than 4 MB

func (b *bed) putLarge() {
	for i := range largeRecords {
		b.putItem("accounts", map[string]types.AttributeValue{
			"Customer": text("1"), "ID": text(fmt.Sprint(i)), "Text": &types.AttributeValueMemberB{Value: make([]byte, 390<<10)},
		})
	}
}

// shrink deletes one of the large records, as the table's time to live may.
func (b *bed) shrink() {
	_, err := b.db.DeleteItem(context.Background(), &dynamodb.DeleteItemInput{
		TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"Customer": text("1"), "ID": text("0")},
	})
	require.NoError(b.t, err)
}

// count writes once to each of the large records.
func count(_ context.Context, u *unitofwork.Unit) error {
	for i := range largeRecords {
		one := types.Update{
			UpdateExpression:          aws.String("ADD Seen :one"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": number("1")},
		}
		if err := u.Stage(customerKey("1"), updateOf("accounts", one, map[string]string{"Customer": "1", "ID": fmt.Sprint(i)})); err != nil {
			return err
		}
	}
	return nil
}

func inOneTransaction(_ *lockset.Config, u *unitofwork.Config) {
	u.TransactionSize = requests.MaxActions
}

// seen is how often each of the large records was written.
func (b *bed) seen() (times []string) {
	for _, item := range b.db.Items("accounts") {
		if n, ok := item["Seen"].(*types.AttributeValueMemberN); ok {
			times = append(times, n.Value)
		}
	}
	return times
}

// copied has the network deliver a copy of the one transaction, late.
func copied(late time.Duration) faults.Script {
	done := false
	return func(c faults.Call) faults.Fault {
		if c.Op == "TransactWriteItems" && c.Actions == largeRecords+1 && !done { // the row and the writes
			done = true
			return faults.Duplicate(late)
		}
		return faults.Pass()
	}
}

var once = func() (times []string) {
	for range largeRecords {
		times = append(times, "1")
	}
	return times
}()

// The copy is carried out before the rows are marked: then it has committed the unit.
func TestACopyOfACommitThatWasTooLarge(t *testing.T) {
	for name, attempts := range map[string]int{"told": 1, "not done again": 2} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.putLarge()
				c := b.client("A", copied(2*time.Second), atProgress(hooks.Journaling, func() {
					b.shrink()
					time.Sleep(3 * time.Second)
				}), inOneTransaction)
				err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: attempts}, count)
				c.net.Wait()
				require.NoError(t, err)
				require.Equal(t, 1, c.net.Counts()[faults.Duplicated])
				require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
				require.Equal(t, once, b.seen())
				b.nothingLeft()
			})
		})
	}
}

// Who does not come as far as the mark is told so only when no copy can be carried
// out any more.
func TestACopyOfACommitThatWasTooLargeAfterItsUnitGaveUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putLarge()
		ctx, cancel := context.WithCancel(t.Context())
		c := b.client("A", copied(2*time.Second), atProgress(hooks.Journaling, cancel), inOneTransaction)
		require.Error(t, c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count))
		b.shrink()
		c.net.Wait()
		require.Equal(t, 1, c.net.Counts()[faults.Duplicated])
		require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		require.Empty(t, b.seen())
		b.nothingLeft()
	})
}

// The copy finds the rows marked: the journal decides, and nothing else.
func TestACopyOfACommitThatWasTooLargeAfterTheMark(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const late = 30 * time.Second
		b.putLarge()
		duplicate, dies := copied(late), atPhase(decides, 1, faults.CrashHere(false))
		dead := b.client("dead", func(c faults.Call) faults.Fault {
			if f := duplicate(c); f.Kind != faults.Pass().Kind {
				return f
			}
			return dies(c)
		})
		began := time.Now()
		require.Error(t, dead.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count))
		require.Contains(t, b.row(customerKey("1")), "pending")
		b.shrink()
		aborted := false
		heir := b.client("heir", func(c faults.Call) faults.Fault {
			if aborted { // it is held up before it frees what it has aborted
				time.Sleep(time.Until(began.Add(late + time.Second)))
			}
			aborted = aborted || phaseOf(c) == aborts
			return faults.Pass()
		}, func(l *lockset.Config, _ *unitofwork.Config) { l.Lease = 4 * lease })
		found, err := heir.Recover(t.Context())
		require.NoError(t, err)
		dead.net.Wait()
		require.Len(t, found.Aborted, 1)
		require.Empty(t, b.seen())
	})
}

// Whether the copy was carried out cannot be asked any more: the unit says that it does
// not know, and leaves the journal to Recover.
func TestACopyOfACommitThatWasTooLargeAfterTheNetworkFailed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putLarge()
		ctx, cancel := context.WithCancel(t.Context())
		var c *client
		c = b.client("A", nil, atProgress(hooks.Journaling, func() {
			c.net.Partition(true)
			cancel()
		}), inOneTransaction)
		err := c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count)
		require.ErrorIs(t, err, unitofwork.ErrInDoubt)
		require.ErrorIs(t, err, context.Canceled, "which is why it went no further")
		require.Equal(t, map[string]int{"in doubt": 1}, c.outcomes())
		c.net.Partition(false)
		c.net.Wait()
		_, err = b.client("heir", nil).Recover(t.Context())
		require.NoError(t, err)
		require.Empty(t, b.seen())
		b.nothingLeft()
	})
}
