package protocol

import (
	"context"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Two processes read the same two records and each writes the other one of them. What was only
// read has no condition of its own: its lock row has to say that it is another's by now.
func TestTwoProcessesThatWriteWhatTheOtherHasRead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 4
		type variant struct {
			keys  [2]ordering.Key
			named [2]ordering.Key // by the first and the second; none if empty
			there bool            // the rows and records are there before
		}
		for name, one := range some(b, map[string]variant{
			"fine":                  {[2]ordering.Key{"s/1", "s/2"}, [2]ordering.Key{}, true},
			"fine, nothing there":   {[2]ordering.Key{"t/1", "t/2"}, [2]ordering.Key{}, false},
			"families":              {[2]ordering.Key{"u/1", "v/1"}, [2]ordering.Key{}, true},
			"one coarse":            {[2]ordering.Key{"w/1", "w/2"}, [2]ordering.Key{"w", ""}, true},
			"one coarse, no rows":   {[2]ordering.Key{"x/1", "x/2"}, [2]ordering.Key{"x", ""}, false},
			"both coarse":           {[2]ordering.Key{"y/1", "y/2"}, [2]ordering.Key{"y", "y"}, true},
			"both coarse, no rows":  {[2]ordering.Key{"z/1", "z/2"}, [2]ordering.Key{"z", "z"}, false},
			"coarse, once fine ran": {[2]ordering.Key{"a/1", "a/2"}, [2]ordering.Key{"", "a"}, true},
		}) {
			if one.there {
				require.NoError(t, b.owner("founder", nil).units.Do(t.Context(), unitofwork.Work{}, b.add(0, one.keys[:]...)))
			}
			var read sync.WaitGroup
			read.Add(2)
			var group errgroup.Group
			for i := range one.keys {
				work := unitofwork.Work{}
				if one.named[i] != "" {
					work.Keys = one.named[i : i+1]
				}
				o, first := b.owner("o", nil), true
				group.Go(func() error {
					return o.units.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
						mine, theirs := b.counters().Ref(string(one.keys[i])), b.counters().Ref(string(one.keys[1-i]))
						err := u.Get(ctx, mine, theirs)
						if first {
							first = false
							read.Done()
							read.Wait()
						}
						if err != nil || mine.T.N+theirs.T.N > 0 { // only one of them may
							return err
						}
						mine.T.N++
						return u.Put(mine)
					})
				})
			}
			require.NoError(t, group.Wait(), name)
			require.EqualValues(t, 1, b.count(one.keys[0])+b.count(one.keys[1]), name)
		}
		b.allFree()
	})
}

// Somebody who has lost a lock writes late, with the token of it, between a unit's look and
// its commit. No lock row shows that; the record does, to whoever commits.
func TestALateWriteBetweenLookAndCommit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 4
		for name, write := range some(b, map[string]func(*unitofwork.Unit, *unitofwork.Ref[counter]) error{
			"put":    func(u *unitofwork.Unit, r *unitofwork.Ref[counter]) error { r.T.N++; return u.Put(r) },
			"delete": func(u *unitofwork.Unit, r *unitofwork.Ref[counter]) error { return u.Delete(r) },
			"update": func(u *unitofwork.Unit, r *unitofwork.Ref[counter]) error {
				return u.Update(r, unitofwork.Expression{Update: "SET N = :n", Values: map[string]any{":n": r.T.N + 1}})
			},
			"check": func(u *unitofwork.Unit, r *unitofwork.Ref[counter]) error {
				return u.Check(r, unitofwork.Expression{Condition: "attribute_exists(id)"})
			},
		}) {
			key := ordering.Join("late", name)
			var w ways
			late, o := b.owner("late", nil), b.owner("o", nil, w.traced)
			require.NoError(t, late.units.Do(t.Context(), unitofwork.Work{}, b.add(1, key)), name)
			set := b.take(late, key)
			b.free(set)
			calls, seen := 0, int64(0)
			require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				r := b.counters().Ref(string(key))
				if err := u.Get(ctx, r); err != nil {
					return err
				}
				if calls++; calls == 1 {
					in := &dynamodb.UpdateItemInput{
						TableName: aws.String(b.data), Key: map[string]types.AttributeValue{"id": text(string(key))},
						UpdateExpression:          aws.String("ADD N :n"),
						ExpressionAttributeValues: map[string]types.AttributeValue{":n": number("10")},
					}
					require.NoError(t, fencing.Fence{Token: set.Token()}.Update(in))
					_, err := b.db.UpdateItem(ctx, in)
					require.NoError(t, err)
				}
				seen = r.T.N
				return write(u, r)
			}), name)
			require.Equal(t, 2, calls, name)
			require.EqualValues(t, 11, seen, name)
			ends, _ := w.took()
			overtakenOnce(t, ends, name)
			require.EqualValues(t, map[string]int64{"put": 12, "update": 12, "check": 11, "delete": 0}[name], b.count(key), name)
		}
		b.allFree()
	})
}
