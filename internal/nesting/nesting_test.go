package nesting_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/nesting"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/ordering"
)

// holder holds keys of one table until it ends.
type holder struct {
	kind  nesting.Kind
	nonce string
	table nesting.Table
	keys  []ordering.Key
	ended atomic.Bool
}

func (h *holder) Kind() nesting.Kind { return h.kind }
func (h *holder) Nonce() string      { return h.nonce }
func (h *holder) Holding() nesting.Holding {
	return nesting.Holding{Purpose: "the test", Table: h.table, Keys: h.keys, Ended: h.ended.Load()}
}

var locks = nesting.TableOf("locks", "eu-west-1")

func holding(kind nesting.Kind, nonce string, keys ...ordering.Key) *holder {
	return &holder{kind: kind, nonce: nonce, table: locks, keys: keys}
}

func TestWhatConflicts(t *testing.T) {
	held := []ordering.Key{"b/x", "d", "d!"} // "d!" sorts between "d" and "d/…" as text
	for needed, at := range map[ordering.Key]ordering.Key{
		"d": "d", "d/1/2": "d", "b/x": "b/x", "b/x/1": "b/x", "b": "b/x", "d!/1": "d!",
		"a": "", "b/y": "", "b/xx": "", "c": "", "dd": "", "e": "",
	} {
		for _, kind := range []nesting.Kind{nesting.Set, nesting.Unit} {
			ctx := nesting.Within(t.Context(), holding(kind, "outer", held...))
			err := nesting.Of(ctx).Refuse(nesting.Call{Kind: nesting.Unit, Table: locks}, "zz", needed)
			if at == "" {
				require.NoError(t, err, needed)
				continue
			}
			var refused *nesting.Error
			require.ErrorAs(t, err, &refused, "%q", needed)
			require.Equal(t, [2]ordering.Key{needed, at}, [2]ordering.Key{refused.Key, refused.Held})
			require.ErrorIs(t, err, nesting.ErrNested)
			require.Equal(t, next.FixCall, refused.WhatNext())
			require.ErrorContains(t, err, fmt.Sprintf(`the %s outer for "the test" of the same caller has key %q`, kind, at))
		}
	}
}

func TestACallThatWaitsIsRefusedKeysThatComeEarlier(t *testing.T) {
	level := nesting.Of(nesting.Within(t.Context(), holding(nesting.Set, "outer", "b", "d")))
	waits := nesting.Call{Kind: nesting.Set, Table: locks, Ordered: true}
	for _, keys := range [][]ordering.Key{{"a"}, {"c"}, {"f", "c/1"}} {
		err := level.Refuse(waits, keys...)
		require.ErrorIs(t, err, nesting.ErrNested, "%q", keys)
		require.ErrorContains(t, err, `comes before key "d"`)
		require.NoError(t, level.Refuse(nesting.Call{Kind: nesting.Set, Table: locks}, keys...), "it waits for nobody")
	}
	require.NoError(t, level.Refuse(waits, "f", "e"))
	below := nesting.Of(nesting.Within(t.Context(), holding(nesting.Set, "outer", "b", "d/x")))
	err := below.Refuse(waits, "d/y", "e")
	require.ErrorIs(t, err, nesting.ErrNested, "somebody may wait for d")
	require.ErrorContains(t, err, `key "d", above key "d/y", comes before key "d/x"`)
	require.NoError(t, below.Refuse(nesting.Call{Kind: nesting.Set, Table: locks}, "d/y"), "it waits for nobody")
	require.NoError(t, below.Refuse(waits, "e/y"))
	require.NoError(t, level.Refuse(waits))
	require.NoError(t, nesting.Of(nesting.Within(t.Context(), holding(nesting.Unit, "outer"))).Refuse(waits, "a"), "nothing is held")
}

func TestEveryLevelCountsUntilItEnds(t *testing.T) {
	outer, inner := holding(nesting.Set, "outer", "a"), holding(nesting.Set, "inner", "b")
	ctx := nesting.Within(nesting.Within(t.Context(), outer), inner)
	call := nesting.Call{Kind: nesting.Set, Table: locks}
	require.Error(t, nesting.Of(ctx).Refuse(call, "a"))
	require.Error(t, nesting.Of(ctx).Refuse(call, "b"))
	inner.ended.Store(true)
	require.NoError(t, nesting.Of(ctx).Refuse(call, "b"))
	require.Error(t, nesting.Of(ctx).Refuse(call, "a"))
	outer.ended.Store(true)
	require.NoError(t, nesting.Of(ctx).Refuse(call, "a"))

	outer.ended.Store(false)
	require.NoError(t, nesting.Of(nesting.Without(ctx)).Refuse(call, "a"), "as another process calls")
	require.NoError(t, nesting.Of(t.Context()).Refuse(call, "a"), "nobody holds anything")
}

func TestAHolderMayNeedWhatItHoldsItself(t *testing.T) {
	level := nesting.Of(nesting.Within(t.Context(), holding(nesting.Unit, "u", "a")))
	require.NoError(t, level.Refuse(nesting.Call{Kind: nesting.Unit, Nonce: "u", Table: locks}, "a"))
	require.Error(t, level.Refuse(nesting.Call{Kind: nesting.Unit, Nonce: "other", Table: locks}, "a"))
}

func TestNoUnitBeginsInsideAnother(t *testing.T) {
	unit := holding(nesting.Unit, "u")
	ctx := nesting.Within(nesting.Within(t.Context(), unit), holding(nesting.Set, "s", "a"))
	refused := nesting.Of(ctx).RefuseUnit()
	require.ErrorIs(t, refused, nesting.ErrNested)
	require.Equal(t, next.FixCall, next.Of(refused))
	require.ErrorContains(t, nesting.Of(ctx).RefuseUnit(), "unit u has ended")
	unit.ended.Store(true)
	require.NoError(t, nesting.Of(ctx).RefuseUnit())
	require.NoError(t, nesting.Of(nesting.Within(t.Context(), holding(nesting.Set, "s", "a"))).RefuseUnit())
}

// A unit is refused what a set holds that its function has taken, however deep, until the set ends.
func TestAUnitIsRefusedWhatItsOwnFunctionHolds(t *testing.T) {
	ctx := nesting.Within(t.Context(), holding(nesting.Unit, "u"))
	first, second := holding(nesting.Set, "first", "a"), holding(nesting.Set, "second", "b")
	nesting.Of(ctx).Began(first, false)
	nesting.Of(nesting.Within(ctx, first)).Began(second, false)
	call := nesting.Call{Kind: nesting.Unit, Nonce: "u", Table: locks}
	require.Error(t, nesting.Of(ctx).RefuseInner(call, "a/1"))
	require.Error(t, nesting.Of(ctx).RefuseInner(call, "b"))
	require.NoError(t, nesting.Of(ctx).RefuseInner(call, "c"))
	first.ended.Store(true)
	require.NoError(t, nesting.Of(ctx).RefuseInner(call, "a/1"))
	require.Error(t, nesting.Of(ctx).RefuseInner(call, "b"))
}

// A unit is refused a key that comes after those of a set for which its function has waited: it may
// have the key already when the function is called again, and asks for the set.
func TestAUnitIsRefusedWhatComesAfterASetOfItsFunction(t *testing.T) {
	ctx := nesting.Within(t.Context(), holding(nesting.Unit, "u"))
	waited, tried := holding(nesting.Set, "waited", "m"), holding(nesting.Set, "tried", "b")
	nesting.Of(ctx).Began(tried, false)
	nesting.Of(ctx).Began(waited, true)
	call := nesting.Call{Kind: nesting.Unit, Nonce: "u", Table: locks}
	require.NoError(t, nesting.Of(ctx).RefuseInner(call, "c", "l"))
	err := nesting.Of(ctx).RefuseInner(call, "z", "c")
	require.ErrorIs(t, err, nesting.ErrNested)
	require.ErrorContains(t, err, `key "z" of the unit comes after key "m"`)
	require.ErrorContains(t, err, "by Work.Keys and Work.Lock, or take the set around the unit")
	waited.ended.Store(true)
	require.NoError(t, nesting.Of(ctx).RefuseInner(call, "z"))
}

func TestTablesThatMayBeTheSame(t *testing.T) {
	arn := "arn:aws:dynamodb:eu-west-1:111122223333:table/locks"
	for _, c := range []struct {
		one, other nesting.Table
		same       bool
	}{
		{nesting.TableOf("locks", "eu-west-1"), nesting.TableOf("locks", "eu-west-1"), true},
		{nesting.TableOf("locks", "eu-west-1"), nesting.TableOf("others", "eu-west-1"), false},
		{nesting.TableOf("locks", "eu-west-1"), nesting.TableOf("locks", "us-east-1"), false},
		{nesting.TableOf("locks", ""), nesting.TableOf("locks", "us-east-1"), true}, // of which the region is not known
		{nesting.TableOf(arn, "us-east-1"), nesting.TableOf("locks", "eu-west-1"), true},
		{nesting.TableOf(arn, ""), nesting.TableOf("locks", "us-east-1"), false},
		{nesting.TableOf(arn, ""), nesting.TableOf("arn:aws:dynamodb:eu-west-1:444455556666:table/locks", ""), false},
	} {
		outer := holding(nesting.Set, "outer", "a")
		outer.table = c.one
		err := nesting.Of(nesting.Within(t.Context(), outer)).Refuse(nesting.Call{Kind: nesting.Set, Table: c.other}, "a")
		require.Equal(t, c.same, err != nil, "%+v, %+v", c.one, c.other)
	}
}

// Goroutines of one function take sets and end them while the unit asks: the unit is refused the
// key of a set from when that begins until it ends.
func TestSetsBeginAndEndAtTheSameTime(t *testing.T) {
	ctx := nesting.Within(t.Context(), holding(nesting.Unit, "u"))
	unit := nesting.Call{Kind: nesting.Unit, Nonce: "u", Table: locks}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			key := ordering.Join(fmt.Sprint("key", g))
			for i := range 100 {
				set := holding(nesting.Set, fmt.Sprint(g, "-", i), key)
				nesting.Of(ctx).Began(set, false)
				if nesting.Of(ctx).RefuseInner(unit, key) == nil {
					t.Errorf("%s is held", key)
				}
				under := nesting.Of(nesting.Within(context.WithoutCancel(ctx), set))
				if under.Refuse(nesting.Call{Kind: nesting.Set, Table: locks}, key) == nil {
					t.Errorf("%s is held by the caller", key)
				}
				set.ended.Store(true)
				if err := nesting.Of(ctx).RefuseInner(unit, key); err != nil {
					t.Errorf("%s was released: %v", key, err)
				}
			}
		})
	}
	all.Wait()
}
