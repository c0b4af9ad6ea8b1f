package lockset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// The dead owner of a large set costs its heir a lease and a half, not a lease for
// every chunk, and fewer requests than there are keys.
func TestTheHeirOfALargeSet(t *testing.T) {
	const n = 300
	var flat, fine, coarse []ordering.Key
	for i := range n {
		flat = append(flat, ordering.Key(fmt.Sprintf("k%03d", i)))
		fine = append(fine, ordering.Key(fmt.Sprintf("c%03d/a", i)))
		coarse = append(coarse, ordering.Key(fmt.Sprintf("c%03d", i)))
	}
	for name, c := range map[string]struct {
		held, wanted []ordering.Key
		perKey       int
	}{
		"the same keys":     {flat, flat, 1},
		"under the same":    {fine, fine, 1},
		"coarse over fine":  {fine[:100], coarse[:100], 9}, // witness by witness
		"fine under coarse": {coarse, fine, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.crashed(c.held...)
				o := b.owner("o", nil)
				start := time.Now()
				set := b.take(o, c.wanted...)
				waited := time.Since(start)
				require.GreaterOrEqual(t, waited, lease)
				require.Less(t, waited, 2*lease)
				sent := 0
				for op, some := range o.requests() {
					if op != "BatchExecuteStatement" {
						sent += some
					}
				}
				require.Less(t, sent, c.perKey*len(c.held)+16+40, "a few note for how long the holder has been silent, and when it was alive")
				require.Len(t, o.buried, len(c.held))
				b.free(set)
				b.allFreeOnceAskedFor(coarse...)
			})
		})
	}
}

// Only who has been silent for long is looked past: waiting for the living costs
// no more than before.
func TestNobodyLooksPastTheLiving(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		set := b.take(b.owner("living", nil), pairs(60)...)
		o := b.owner("o", nil)
		b.refused(o, 5*lease, pairs(60)...)
		require.Equal(t, 1, o.requests()["TransactGetItems"], "when it gave up")
		b.free(set)
		b.allFree()
	})
}

// Rows of the dead that are buried together are buried all or none; who finds one
// of them in other hands gets the rest one by one.
func TestOneOfThoseBuriedTogetherIsInOtherHands(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("a", "b", "c", "d")
		thief := b.owner("thief", nil)
		var seized *lockset.Set
		o := b.owner("o", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && seized == nil && strings.Contains(aws.ToString(in.TransactItems[0].Update.ConditionExpression), ":rvn") {
				require.Greater(t, len(in.TransactItems), 1)
				seized = b.seize("c", thief)
			}
			return faults.Pass()
		})
		held := b.refused(o, 2*lease, "a", "b", "c", "d")
		require.Equal(t, ordering.Key("c"), held.Key)
		require.Equal(t, "thief", held.Owner)
		require.NoError(t, seized.Context().Err())
		b.free(seized)
		b.free(b.take(o, "a", "b", "c", "d"))
		b.allFree()
	})
}

// Nobody is dead: X had c and let it go, F has an intent there, C is the head, and W
// waits behind it. W is told of those who are in its way now, and looks past nobody.
func TestWhoWaitsBehindAHeadIsNotToldOfWhoHasLeft(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		x := b.take(b.owner("X", nil), "c")
		f := b.ask(t.Context(), b.owner("F", nil), []ordering.Key{"c/1"})
		c := b.ask(t.Context(), b.owner("C", nil), []ordering.Key{"c"})
		ahead := 0
		o := b.owner("W", func(c faults.Call) faults.Fault {
			if in, ok := c.Input.(*dynamodb.TransactGetItemsInput); ok && len(in.TransactItems) > 30 {
				ahead++
			}
			return faults.Pass()
		})
		w := b.ask(t.Context(), o, append(pairs(60), "c/9"), func(o *lockset.Options) { o.Wait = lockset.For(5 * lease) })
		time.Sleep(lease)
		b.free(x)
		f.got()
		err := w.failed()
		require.Zero(t, ahead)
		var held *lockset.HeldError
		require.ErrorAs(t, err, &held)
		require.NotEqual(t, "X", held.Owner)
		f.leave()
		c.leave()
	})
}
