package unitofwork_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/unitofwork"
)

// A phase in which DynamoDB is busy for longer than a unit waits: it is not
// committed, may be tried later, and nobody is told that the call is wrong.
func TestALargeUnitThatMeetsConflictsForTooLong(t *testing.T) {
	for _, at := range []phase{asks, rehearses, journals, marks, decides} {
		t.Run(string(at), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := b.tables()
				c := b.client("A", func(c faults.Call) faults.Fault {
					if phaseOf(c) == at && c.Actions > 0 {
						return faults.Conflict()
					}
					return faults.Pass()
				}, inSmallTransactions)
				_, stage, _ := fewAccounts()
				err := c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage)
				require.Error(t, err)
				require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
				if at == decides || errors.As(err, new(*lockset.NoAnswerError)) {
					require.Equal(t, lockset.TryLater, lockset.NextOf(err), "%v", err)
				} else {
					require.Equal(t, lockset.StartOver, lockset.NextOf(err), "%v", err)
				}
				b.nothingWritten(before)
				require.Equal(t, map[string]int{"not": 1}, c.outcomes())
			})
		})
	}
}

// mixed answers rehearsals as DynamoDB may while a record is busy: it says so of
// that record, and nothing of what is to be done to it.
type mixed struct {
	*memdynamo.DB
	busy  int // so many more times
	asked int
	at    []time.Time // of those that were busy
	fifth func()      // called at the fifth; nil: nothing
}

func (m *mixed) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	rehearsal := in.TransactItems[0].ConditionCheck != nil && *in.TransactItems[0].ConditionCheck.TableName == "units"
	if !rehearsal {
		return m.DB.TransactWriteItems(ctx, in, options...)
	}
	m.asked++
	if m.busy--; m.busy < 0 {
		return m.DB.TransactWriteItems(ctx, in, options...)
	}
	m.at = append(m.at, time.Now())
	if m.asked == 5 && m.fifth != nil {
		m.fifth()
	}
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	reasons[0].Code = ptr("ConditionalCheckFailed")
	for i := range reasons[1:] {
		reasons[1+i].Code = ptr("TransactionConflict")
	}
	return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
}

func TestABusyRecordIsRehearsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		busy int
		next lockset.Next
	}{"for a while": {3, lockset.FixCall}, "for long": {1000, lockset.TryLater}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := b.tables()
				db := &mixed{DB: b.db, busy: c.busy}
				locks, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "A", Lease: lease})
				require.NoError(t, err)
				client, err := unitofwork.New(locks, unitofwork.Config{Table: "units", TransactionSize: 8})
				require.NoError(t, err)
				keys, refs := largeKeys(fewKeys)
				err = client.Do(t.Context(), unitofwork.Work{Keys: append(keys, accountKey("c001", "other"))}, onlyOneFails(refs, func(u *unitofwork.Unit) error {
					return u.Update(accounts.Ref("c001", "other"), unitofwork.Expression{Update: "SET Balance = Nothing"})
				}))
				require.Equal(t, c.next, lockset.NextOf(err), "%v", err)
				require.Greater(t, db.asked, 3)
				require.Less(t, db.asked, 100)
				for i := range db.at[1:] {
					require.Equal(t, time.Duration(i+1)*10*time.Millisecond, db.at[i+1].Sub(db.at[i]), "ever longer")
				}
				b.nothingWritten(before)
			})
		})
	}
}

// The caller goes away while its unit waits for a record that is busy: that is all that
// is said, at once, and nothing is journaled.
func TestACallersEndBetweenRehearsals(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before := b.tables()
		ctx, cancel := context.WithCancel(t.Context())
		db := &mixed{DB: b.db, busy: 1000, fifth: func() { time.AfterFunc(4*rtt, cancel) }}
		locks, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "A", Lease: lease})
		require.NoError(t, err)
		client, err := unitofwork.New(locks, unitofwork.Config{Table: "units", TransactionSize: 8})
		require.NoError(t, err)
		_, stage, _ := fewAccounts()
		err = client.Do(ctx, unitofwork.Work{Keys: keysOfFew()}, stage)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorAs(t, err, new(*lockset.NoAnswerError), "nothing was asked that had no answer")
		require.Equal(t, 5, db.asked)
		b.nothingWritten(before)
		require.Empty(t, b.db.Items("units"))
	})
}
