package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// parcel is a record that is looked up by an index of its state.
type parcel struct {
	ID    string `dynamodbav:"id"`
	State string
	Tries int
}

// parcels are a table with a global index.
type parcels struct {
	*bed
	unitofwork.Table[parcel]
}

func (b *bed) parcels(n int) *parcels {
	b.t.Helper()
	p := &parcels{b, unitofwork.Table[parcel]{Name: b.data + "-parcels", PartitionKey: "id",
		Guard: func(p *parcel) ordering.Key { return ordering.Join("parcel:" + p.ID) }}}
	in := newtable.Input(p.Name, "id")
	in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("State"), AttributeType: types.ScalarAttributeTypeS})
	in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{IndexName: aws.String("by-state"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		KeySchema: newtable.Keys("State")}}
	require.NoError(b.t, newtable.Create(b.t.Context(), b.db, in))
	all := b.owner("before", nil)
	for i := range n {
		require.NoError(b.t, all.units.Do(b.t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Insert(p.Of(parcel{ID: fmt.Sprint(i), State: "stored"}))
		}))
	}
	p.await("stored", n)
	return p
}

// found is what the index has of a state.
func (p *parcels) found(state string) []map[string]types.AttributeValue {
	p.t.Helper()
	out, err := p.db.Query(p.t.Context(), &dynamodb.QueryInput{TableName: &p.Name, IndexName: aws.String("by-state"), KeyConditionExpression: aws.String("#s = :s"),
		ExpressionAttributeNames: map[string]string{"#s": "State"}, ExpressionAttributeValues: map[string]types.AttributeValue{":s": text(state)}})
	require.NoError(p.t, err)
	return out.Items
}

// await waits until the index has so many of a state: it may follow some time later.
func (p *parcels) await(state string, n int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return len(p.found(state)) == n }, 30*time.Second, 20*time.Millisecond)
}

// refs are the parcels that the index has of a state.
func (p *parcels) refs(state string) (refs []*unitofwork.Ref[parcel]) {
	p.t.Helper()
	for _, row := range p.found(state) {
		refs = append(refs, p.Ref(row["id"].(*types.AttributeValueMemberS).Value))
	}
	return refs
}

// byState returns the parcels of a state that the index has, as they are when they are read.
func (p *parcels) byState(ctx context.Context, units *unitofwork.Client, state string) ([]parcel, error) {
	refs := p.refs(state)
	if err := units.Read(ctx, records(refs)...); err != nil {
		return nil, err
	}
	var out []parcel
	for _, r := range refs {
		if r.Found && r.T.State == state { // it may have another by now
			out = append(out, r.T)
		}
	}
	return out, nil
}

// send has all parcels sent.
func (p *parcels) send(n int) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		for i := range n {
			r := p.Ref(fmt.Sprint(i))
			if err := u.Get(ctx, r); err != nil {
				return err
			}
			if r.T.State, r.T.Tries = "sent", r.T.Tries+1; r.T.Tries > 1 {
				return errors.New("sent twice")
			}
			if err := u.Put(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// An index shows what records are, and their fences. Of a unit that is not committed it shows nothing.
func TestAnIndexShowsNothingUncommitted(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		p := b.parcels(3)
		o := b.owner("o", nil)
		never := errors.New("never mind")
		err := o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"parcel:0", "parcel:1", "parcel:2"}}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := p.send(3)(ctx, u); err != nil {
				return err
			}
			require.Empty(t, p.found("sent"))
			require.Len(t, p.found("stored"), 3)
			return never
		})
		require.ErrorIs(t, err, never)
		require.Empty(t, p.found("sent"))
		require.Len(t, p.found("stored"), 3)

		require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{}, p.send(3)))
		p.await("sent", 3)
		p.await("stored", 0)
		for _, row := range p.found("sent") {
			require.Contains(t, row, "_fence")
			delete(row, "_fence")
			var one parcel
			require.NoError(t, attributevalue.UnmarshalMap(row, &one))
			require.Equal(t, parcel{ID: one.ID, State: "sent", Tries: 1}, one)
			require.Len(t, row, 3, "nothing else of holdall's")
		}
	})
}

// A unit with a journal is applied in parts, and an index shows some of them. What it has found is whole once
// it is read by Read; what it has not found, nobody can tell.
func TestAnIndexShowsHalfOfAUnit(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		b.transaction = 6
		const n = 12
		p := b.parcels(n)
		looked := make(chan struct{})
		o, reader := b.owner("o", applyingOnePartUntil(looked)), b.owner("reader", nil)
		var working sync.WaitGroup
		defer working.Wait()
		goOn := sync.OnceFunc(func() { close(looked) })
		defer goOn()
		working.Go(func() { assert.NoError(t, o.units.Do(t.Context(), unitofwork.Work{}, p.send(n))) })
		sent := 0
		require.Eventually(t, func() bool { sent = len(p.found("sent")); return sent > 0 }, 30*time.Second, 20*time.Millisecond)
		require.Less(t, sent, n, "the index has half of it")

		stored := p.refs("stored")
		require.NotEmpty(t, stored)
		working.Go(func() {
			assert.NoError(t, reader.units.Read(t.Context(), records(stored)...))
			for _, r := range stored {
				assert.Equal(t, "sent", r.T.State, "the unit that was found half is read as a whole")
			}
		})
		time.Sleep(50 * time.Millisecond) // Read finds the unit under way; if it comes later, it finds it whole
		goOn()
		working.Wait()
		p.await("sent", n)
		again, err := p.byState(t.Context(), reader.units, "sent")
		require.NoError(t, err)
		require.Len(t, again, n)
		b.settled()
	})
}

// applyingOnePartUntil lets one of the transactions after a decision through, and the others once the channel is closed.
func applyingOnePartUntil(looked <-chan struct{}) faults.Script {
	var decided, first atomic.Bool
	return func(c faults.Call) faults.Fault {
		if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok {
			if decided.Load() && !first.CompareAndSwap(false, true) {
				<-looked
			}
			decided.CompareAndSwap(false, isDecision(in))
		}
		return faults.Pass()
	}
}

// What an index has found is protected once a unit has read it, and has to be looked at again then.
func TestWhatAnIndexFoundIsReadAgain(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		p := b.parcels(1)
		o, other := b.owner("o", nil), b.owner("other", nil)
		sent := 0
		err := o.units.Do(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			refs := p.refs("stored")
			require.Len(t, refs, 1)
			require.NoError(t, other.units.Do(context.WithoutCancel(t.Context()), unitofwork.Work{}, p.send(1))) // sends it meanwhile
			if err := u.Get(ctx, refs[0]); err != nil || refs[0].T.State != "stored" {
				return err
			}
			sent++
			return nil
		})
		require.NoError(t, err)
		require.Zero(t, sent)
	})
}

// A record that an index cannot have is refused before anything is written, whatever the unit's size.
func TestAnIndexKeyThatIsNone(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		b.transaction = 6
		p := b.parcels(1)
		o := b.owner("o", nil)
		for _, n := range []int{2, 12} {
			err := o.units.Do(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
				for i := range n {
					if err := u.Insert(p.Of(parcel{ID: fmt.Sprint("new", i), State: map[bool]string{false: "stored"}[i == n-1]})); err != nil {
						return err
					}
				}
				return nil
			})
			require.ErrorContains(t, err, "cannot contain an empty string value", n)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), n)
			require.Len(t, p.found("stored"), 1, n)
		}
		b.settled()
	})
}
