package lockset_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Rows of the lock table count as they stand, which nobody knows who writes them: what
// is too large at once is done in parts.

// atMost refuses every transaction of more actions, as one that is too large.
func atMost(actions int) faults.Script {
	return func(c faults.Call) faults.Fault {
		if c.Op != "BatchExecuteStatement" && c.Actions > actions {
			return faults.RefuseAsTooLarge()
		}
		return faults.Pass()
	}
}

// many are keys, flat ones, and fine ones in families of two, the longest with two
// ancestors.
func many(n int) (keys []ordering.Key) {
	for i := range n {
		for _, form := range []string{"a%03d", "b%03d/x", "b%03d/y/z"} {
			keys = append(keys, ordering.Key(fmt.Sprintf(form, i)))
		}
	}
	return keys
}

func TestASetThatIsTooLargeAtOnce(t *testing.T) {
	ends := map[string]func(context.Context, *testing.T, *bed, *lockset.Set){
		"released": func(ctx context.Context, t *testing.T, _ *bed, set *lockset.Set) {
			require.NoError(t, set.Release(ctx))
		},
		"marked and released": func(ctx context.Context, t *testing.T, b *bed, set *lockset.Set) {
			var marked atomic.Int64
			p, err := set.Prepare(ctx, unitTable, func(steps int) { marked.Add(int64(steps)) })
			require.NoError(t, err)
			require.EqualValues(t, len(set.Keys()), marked.Load())
			for _, k := range set.Keys() {
				require.True(t, b.isMarked(k), "%v", k)
			}
			require.NoError(t, p.Release(ctx))
		},
		"ended, without a commit": func(ctx context.Context, t *testing.T, b *bed, set *lockset.Set) {
			e, err := set.End(ctx)
			require.NoError(t, err)
			fate, err := e.Resolve(ctx)
			require.NoError(t, err)
			require.Equal(t, lockrow.FateNever, fate)
		},
		"ended, with a commit that landed": func(ctx context.Context, t *testing.T, b *bed, set *lockset.Set) {
			e, err := set.End(ctx)
			require.NoError(t, err)
			require.NoError(t, b.transact(e.Actions()...))
			fate, err := e.Resolve(ctx)
			require.NoError(t, err)
			require.Equal(t, lockrow.FateCommitted, fate)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				set := b.take(b.owner("o", atMost(3)), many(15)...)
				for _, k := range set.Keys() {
					require.Contains(t, b.row(k), "unit", "%v", k)
				}
				ctx, cancel := context.WithTimeout(t.Context(), lease)
				defer cancel()
				end(ctx, t, b, set)
				b.allFree()
			})
		})
	}
}

// How much fits is found out once for a set, not for every chunk.
func TestChunksStaySmallOnceTheyWereTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 60 {
			keys = append(keys, ordering.Key(fmt.Sprintf("a%03d", i)))
		}
		o := b.owner("o", atMost(3))
		set := b.take(o, keys...)
		require.Equal(t, 3+20, o.requests()["TransactWriteItems"], "24, 12 and 6 are refused")
		b.free(set)
		require.Equal(t, 4+20, o.requests()["TransactWriteItems"], "60, 30, 15 and 7 are refused")
	})
}

// A row has 64 intents at most, each with a key of up to 1,024 bytes: a transaction of
// such rows has more than 4 MB.
func TestRowsThatAreFullOfIntents(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 40 {
			above := ordering.Key(fmt.Sprintf("c%02d", i))
			b.fill(above, 63)
			b.fill(above+"/d", 63)
			keys = append(keys, above+"/d/e")
		}
		o := b.owner("o", nil, func(c *lockset.Config) { c.ChunkSize = 99 })
		set := b.take(o, keys...)
		p, err := set.Prepare(t.Context(), unitTable, func(int) {})
		require.NoError(t, err)
		require.NoError(t, p.Release(t.Context()))
		for _, k := range keys {
			require.Contains(t, b.row(k), "isReleased")
			require.Len(t, b.row("c00")["below"].(*types.AttributeValueMemberSS).Value, 63)
		}
	})
}

// fill puts a row with so many intents of other units, as long as can be.
func (b *bed) fill(key ordering.Key, intents int) {
	var below []string
	for i := range intents {
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], uint64(i))
		below = append(below, base64.RawURLEncoding.EncodeToString(id[:])+" "+strings.Repeat("w", 1000))
	}
	b.putItem(map[string]types.AttributeValue{
		"key": &types.AttributeValueMemberS{Value: string(key)}, "isReleased": &types.AttributeValueMemberS{Value: "1"},
		"fence": &types.AttributeValueMemberN{Value: "1"}, "below": &types.AttributeValueMemberSS{Value: below},
	})
}

// Who waits for the dead owner of many rows sees them, however much they are at once.
func TestTheHeirOfRowsThatAreTooLargeAtOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		keys := many(30)
		b.crashed(keys...)
		start := time.Now()
		b.free(b.take(b.owner("o", atMost(24)), keys...))
		require.Less(t, time.Since(start), 2*lease)
		for i := range 30 { // whose intents a coarse lock cleans
			keys = append(keys, ordering.Key(fmt.Sprintf("b%03d/y", i)), ordering.Key(fmt.Sprintf("b%03d", i)))
		}
		b.allFreeOnceAskedFor(keys...)
	})
}

// One row that is too large by itself ends the acquisition at once.
func TestARowThatIsTooLarge(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "UpdateItem" || c.Actions > 0 {
				return faults.RefuseAsTooLarge()
			}
			return faults.Pass()
		})
		start := time.Now()
		_, err := o.Acquire(t.Context(), []ordering.Key{"a", "b", "c"})
		require.ErrorAs(t, err, new(*lockset.TableError))
		require.False(t, errors.As(err, new(*lockset.NoAnswerError)))
		require.Less(t, time.Since(start), time.Second)
	})
}
