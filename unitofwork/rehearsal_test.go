package unitofwork_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// staging stages a write of a record of customer 1's.
type staging = func(u *unitofwork.Unit, id string) error

func stagedPut(more map[string]types.AttributeValue) staging {
	return func(u *unitofwork.Unit, id string) error {
		item := map[string]types.AttributeValue{"Customer": text("1"), "ID": text(id)}
		maps.Copy(item, more)
		return u.Stage(customerKey("1"), types.TransactWriteItem{Put: &types.Put{TableName: ptr("accounts"), Item: item}})
	}
}

// Of many writes that look alike one can never be carried out: it is named before
// anything is decided, in a unit with a journal as in a small one.
func TestEveryWriteIsTriedBeforeTheDecision(t *testing.T) {
	update := func(e unitofwork.Expression) staging {
		return func(u *unitofwork.Unit, id string) error { return u.Update(accounts.Ref("1", id), e) }
	}
	set := func(values map[string]any) staging {
		return update(unitofwork.Expression{Update: "SET Balance = :n", Values: values})
	}
	for name, c := range map[string]struct{ good, bad staging }{
		"a value is missing": {set(map[string]any{":n": 1}), set(map[string]any{":m": 1})},
		"a value is of another type": {
			update(unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": 1}}),
			update(unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": "x"}}),
		},
		"an attribute is not there": {
			set(map[string]any{":n": 1}),
			update(unitofwork.Expression{Update: "SET Balance = #x", Names: map[string]string{"#x": "absent"}}),
		},
		"the record grows too large": {
			set(map[string]any{":n": 1}),
			set(map[string]any{":n": strings.Repeat("x", 400<<10)}),
		},
		"the key is of another type": {
			stagedPut(nil),
			stagedPut(map[string]types.AttributeValue{"ID": &types.AttributeValueMemberN{Value: "7"}}),
		},
	} {
		t.Run(name, func(t *testing.T) { isTried(t, c.good, c.bad) })
	}
}

func TestEveryValueIsTriedBeforeTheDecision(t *testing.T) {
	number := func(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }
	numbers := func(all ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: all} }
	texts := func(all ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }
	bytes := func(all ...[]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: all} }
	list := func(all ...types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: all}
	}
	record := func(all map[string]types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: all}
	}
	nested := func(levels int) (v types.AttributeValue) {
		v = text("x")
		for range levels {
			v = list(v)
		}
		return v
	}
	for name, c := range map[string]struct{ good, bad types.AttributeValue }{
		"a number is none":               {number("7"), number("seven")},
		"a number is too large":          {number("7"), number("1E+126")},
		"a number is too small":          {number("7"), number("1E-131")},
		"a number has too many digits":   {number("7"), number(strings.Repeat("7", 39))},
		"a set is empty":                 {texts("a"), texts()},
		"a set has a text twice":         {texts("a", "b"), texts("a", "a")},
		"a set has a number twice":       {numbers("1", "2"), numbers("1", "1.0")},
		"a set has bytes twice":          {bytes([]byte{1}, []byte{2}), bytes([]byte{1}, []byte{1})},
		"bytes are none":                 {bytes([]byte{1}), &types.AttributeValueMemberB{}},
		"bytes in a list are none":       {list(&types.AttributeValueMemberB{Value: []byte{1}}), list(&types.AttributeValueMemberB{})},
		"bytes in a set are none":        {bytes([]byte{1}), bytes([]byte{2}, nil)},
		"null is not":                    {&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberNULL{}},
		"a value is nested too deep":     {nested(2), nested(32)},
		"a set in a record has it twice": {record(nil), record(map[string]types.AttributeValue{"s": numbers("1", "1")})},
		"the item is too large":          {list(slices.Repeat([]types.AttributeValue{number("777")}, 1000)...), list(slices.Repeat([]types.AttributeValue{number("777")}, 110_000)...)},
	} {
		t.Run(name, func(t *testing.T) {
			isTried(t, stagedPut(map[string]types.AttributeValue{"V": c.good}), stagedPut(map[string]types.AttributeValue{"V": c.bad}))
		})
	}
}

// isTried asserts that one bad write behind good ones is found when nothing is
// decided.
func isTried(t *testing.T, good, bad staging) {
	t.Helper()
	for _, n := range []int{1, 110} {
		inBed(t, func(t *testing.T, b *bed) {
			client := b.client("A", nil)
			for i := range 5 { // update needs a record that has what it copies
				b.put("accounts", account{Customer: "1", ID: fmt.Sprint("good", i)})
			}
			before := b.db.Items("accounts")
			err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil { // the key of the table is known
					return err
				}
				for i := range n {
					if err := good(u, fmt.Sprint("good", i%5, strings.Repeat("+", i/5))); err != nil {
						return err
					}
				}
				return bad(u, "bad")
			})
			require.Error(t, err)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%d: %v", n, err)
			require.Equal(t, before, b.db.Items("accounts"))
			b.allFree()
			require.Empty(t, b.db.Items("units"))
		})
	}
}

func ptr[T any](v T) *T { return &v }

// A Table names a sort key that its table does not have: two records of its are one
// to DynamoDB, and the second put would meet the stamp of the first.
func TestATableWithAnotherKey(t *testing.T) {
	wrong := unitofwork.Table[customer]{
		Name: "customers", PartitionKey: "ID", SortKey: "Name",
		Guard: func(*customer) ordering.Key { return customerKey("1") },
	}
	for _, n := range []int{0, 150} {
		inBed(t, func(t *testing.T, b *bed) {
			before := b.db.Items("customers")
			err := b.client("A", nil).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
				for i := range n {
					if err := u.Replace(wrong.Of(customer{ID: fmt.Sprint("x", i), Name: "x"})); err != nil {
						return err
					}
				}
				return u.Replace(wrong.Of(customer{ID: "7", Name: "first"}), wrong.Of(customer{ID: "7", Name: "second"}))
			})
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%d: %v", n, err)
			require.Equal(t, before, b.db.Items("customers"))
			b.allFree()
		})
	}
}

// What is rehearsed is never done, not even by a copy that arrives when the unit has
// written its journal: it may yet not commit.
func TestALateCopyOfARehearsalDoesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const late = time.Second
		before := b.tables()
		c := b.client("A", func(c faults.Call) faults.Fault {
			switch phaseOf(c) {
			case rehearses:
				return faults.Duplicate(late)
			case marks:
				time.Sleep(2 * late)
				return faults.Deny()
			}
			return faults.Pass()
		}, inSmallTransactions)
		_, stage, _ := fewAccounts()
		require.Error(t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage))
		c.net.Wait()
		require.Positive(t, c.net.Counts()[faults.Duplicated])
		b.nothingWritten(before)
	})
}
