package unitofwork_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Of many writes that look alike one can never be carried out: it is named before
// anything is decided, in a unit with a journal as in a small one.
func TestEveryWriteIsTriedBeforeTheDecision(t *testing.T) {
	type stage = func(u *unitofwork.Unit, id string) error
	update := func(e unitofwork.Expression) stage {
		return func(u *unitofwork.Unit, id string) error { return u.Update(accounts.Ref("1", id), e) }
	}
	set := func(values map[string]any) stage {
		return update(unitofwork.Expression{Update: "SET Balance = :n", Values: values})
	}
	put := func(more map[string]types.AttributeValue) stage {
		return func(u *unitofwork.Unit, id string) error {
			item := map[string]types.AttributeValue{"Customer": text("1"), "ID": text(id)}
			for name, v := range more {
				item[name] = v
			}
			return u.Stage(customerKey("1"), types.TransactWriteItem{Put: &types.Put{TableName: ptr("accounts"), Item: item}})
		}
	}
	number := func(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }
	for name, c := range map[string]struct{ good, bad stage }{
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
		"the key is of another type": {put(nil), put(map[string]types.AttributeValue{"ID": number("7")})},
		"a number is none":           {put(map[string]types.AttributeValue{"N": number("7")}), put(map[string]types.AttributeValue{"N": number("seven")})},
		"a set is empty": {
			put(map[string]types.AttributeValue{"S": &types.AttributeValueMemberSS{Value: []string{"a"}}}),
			put(map[string]types.AttributeValue{"S": &types.AttributeValueMemberSS{}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 110} {
				inBed(t, func(t *testing.T, b *bed) {
					client := b.client("A", nil)
					for i := range 5 { // update needs a record that has what it copies
						b.put("accounts", account{Customer: "1", ID: fmt.Sprint("good", i)})
					}
					before := b.db.Items("accounts")
					err := client.Do(t.Context(), []ordering.Key{customerKey("1")}, func(ctx context.Context, u *unitofwork.Unit) error {
						if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil { // the key of the table is known
							return err
						}
						for i := range n {
							if err := c.good(u, fmt.Sprint("good", i%5, strings.Repeat("+", i/5))); err != nil {
								return err
							}
						}
						return c.bad(u, "bad")
					})
					require.Error(t, err)
					require.Equal(t, unitofwork.FixCall, unitofwork.NextOf(err), "%d: %v", n, err)
					require.Equal(t, before, b.db.Items("accounts"))
					b.allFree()
					require.Empty(t, b.db.Items("units"))
				})
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }
