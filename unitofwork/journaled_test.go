package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Units with a journal, made small: what a transaction has at most is little.

func inSmallTransactions(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 8 }

const fewKeys = 12

// nothingWritten asserts that a unit left nothing behind, but for what was there
// before and rows that are free.
func (b *bed) nothingWritten(before map[string][]map[string]types.AttributeValue) {
	b.t.Helper()
	for _, table := range []string{"accounts", "customers"} {
		require.Equal(b.t, before[table], b.db.Items(table))
	}
	b.allFree()
	b.nothingLeft()
}

// phase is what a client is at, by what its requests are for.
type phase string

const (
	asks, rehearses, journals, marks, decides, aborts, applies, concludes, removes phase = "ask", "rehearse", "journal",
		"mark", "decide", "abort", "apply", "conclude", "remove"
)

// phaseOf tells what a request of a unit with a journal is for; empty if it is
// another's.
func phaseOf(c faults.Call) phase {
	ofUnits := func(key, values map[string]types.AttributeValue) phase {
		switch part := valueOf(key["part"]); {
		case valueOf(key["unit"]) == "open" || strings.HasPrefix(part, "journal/"):
			return journals
		case part == "record":
			return map[string]phase{"committed": decides, "aborted": aborts, "done": concludes}[valueOf(values[":state"])]
		}
		return ""
	}
	switch in := c.Input.(type) {
	case *dynamodb.UpdateItemInput:
		if *in.TableName == "units" {
			return ofUnits(in.Key, in.ExpressionAttributeValues)
		}
	case *dynamodb.BatchExecuteStatementInput:
		if strings.HasPrefix(*in.Statements[0].Statement, "DELETE") {
			return removes
		}
	case *dynamodb.TransactWriteItemsInput:
		return phaseOfTransaction(in.TransactItems, ofUnits)
	}
	return ""
}

// is reports whether a request is of this phase.
func (p phase) is(c faults.Call) bool { return phaseOf(c) == p }

func phaseOfTransaction(items []types.TransactWriteItem, ofUnits func(key, values map[string]types.AttributeValue) phase) phase {
	is := asks
	for _, item := range items {
		switch {
		case items[len(items)-1].Delete != nil && *items[len(items)-1].Delete.TableName == "units":
			return removes
		case item.ConditionCheck != nil && *item.ConditionCheck.TableName == "units":
			return rehearses
		case item.ConditionCheck != nil && strings.Contains(*item.ConditionCheck.ConditionExpression, "#pending"):
			return applies
		case item.ConditionCheck != nil:
		case item.Update != nil && *item.Update.TableName == "units":
			return ofUnits(item.Update.Key, item.Update.ExpressionAttributeValues)
		case item.Update != nil && strings.HasPrefix(aws.ToString(item.Update.UpdateExpression), "SET #pending"):
			return marks
		case item.Update != nil && strings.Contains(aws.ToString(item.Update.UpdateExpression), "#committedBy"):
			return applies
		default:
			is = ""
		}
	}
	return is
}

// atPhase gives one fault to the n-th request of a phase.
func atPhase(of phase, n int, f faults.Fault) faults.Script { return nth(of.is, n, n, f) }

// change changes an item by hand; "#name" stands for an attribute's name, ":empty" for
// an empty text and ":bytes" for three bytes.
func (b *bed) change(table string, key map[string]string, update string) {
	b.t.Helper()
	u := updateOf(table, types.Update{}, key).Update
	names := map[string]string{}
	for _, word := range strings.Fields(update) {
		if name, ok := strings.CutPrefix(word, "#"); ok {
			names[word] = name
		}
	}
	var values map[string]types.AttributeValue // an empty map is refused
	for name, v := range map[string]types.AttributeValue{":empty": text(""), ":bytes": &types.AttributeValueMemberB{Value: []byte("abc")}} {
		if strings.Contains(update, name) {
			values = map[string]types.AttributeValue{name: v}
		}
	}
	_, err := b.db.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: &update, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	})
	require.NoError(b.t, err)
}

// What is only held is freed with the rest, whether anything is written or not.
func TestManyKeysAndNothingStaged(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil)
		keys, _ := largeKeys(110)
		before := b.tables()
		var unit string
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
			unit = b.row(keys[0])["unit"].(*types.AttributeValueMemberS).Value
			return nil
		}))
		b.nothingWritten(before)
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
		require.Equal(t, text(unit), b.row(keys[0])["committedBy"])
	})
}

// row is the lock row of a key; nil if there is none.
func (b *bed) row(key ordering.Key) map[string]types.AttributeValue {
	return itemOf(b.db.Items("locks"), attributes{"key": text(string(key))})
}

// onlyOneFails stages a good unit with one more write.
func onlyOneFails(refs []*unitofwork.Ref[account], one func(*unitofwork.Unit) error) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		if err := deposit(refs[:fewKeys/2], 7)(ctx, u); err != nil {
			return err
		}
		return errors.Join(one(u), deposit(refs[fewKeys/2:], 7)(ctx, u))
	}
}

// A condition that does not hold is found while nothing is decided, and named.
func TestAConditionOfALargeUnitThatFails(t *testing.T) {
	there, absent := accounts.Ref("1", "a"), accounts.Ref("1", "z")
	fails := unitofwork.Expression{Condition: "Balance > :n", Values: map[string]any{":n": 100}}
	for name, one := range map[string]func(*unitofwork.Unit) error{
		"check":    func(u *unitofwork.Unit) error { return u.Check(there, fails) },
		"check of": func(u *unitofwork.Unit) error { return u.Check(absent, fails) },
		"update": func(u *unitofwork.Unit) error {
			e := fails
			e.Update = "SET Balance = :n"
			return u.Update(there, e)
		},
		"update of what is not there": func(u *unitofwork.Unit) error {
			return u.Update(absent, unitofwork.Expression{Update: "SET #o = :n", Condition: "attribute_exists(ID)",
				Names: map[string]string{"#o": "Other"}, Values: map[string]any{":n": 1}})
		},
		"put": func(u *unitofwork.Unit) error {
			put := putOf("accounts", ofOne)
			put.Put.ConditionExpression = aws.String("attribute_not_exists(ID)")
			return u.Stage(accountKey("1", "a"), put)
		},
		"delete": func(u *unitofwork.Unit) error {
			return u.Stage(accountKey("1", "a"), types.TransactWriteItem{Delete: &types.Delete{
				TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a")},
				ConditionExpression: aws.String("attribute_not_exists(ID)"),
			}})
		},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.tables()
			removed := false
			c := b.client("A", func(c faults.Call) faults.Fault {
				removed = removed || phaseOf(c) == removes
				return faults.Pass()
			}, inSmallTransactions)
			keys, refs := largeKeys(fewKeys)
			err := c.Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("1"))}, onlyOneFails(refs, one))
			require.ErrorIs(t, err, unitofwork.ErrCondition)
			refused := errorAs[*unitofwork.CommitError](t, err)
			require.Equal(t, "accounts", refused.Table)
			require.Contains(t, []string{`Customer="1" ID="a"`, `Customer="1" ID="z"`}, refused.Record)
			require.Equal(t, customerKey("1"), refused.Key)
			require.Equal(t, lockset.Decide, lockset.NextOf(err))
			b.nothingWritten(before)
			require.Empty(t, b.db.Items("units"), "there was nothing to decide")
			require.False(t, removed, "nor anything to remove")
			require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		})
	}
}

// Among many conditions, each is asked.
func TestEveryConditionOfALargeUnitIsChecked(t *testing.T) {
	for wrong := range 20 {
		runInBed(t, fmt.Sprint(wrong), func(t *testing.T, b *bed) {
			keys, refs := largeKeys(20)
			b.put("accounts", account{Customer: refs[wrong].T.Customer, ID: refs[wrong].T.ID})
			before := b.tables()
			err := b.client("A", nil, inSmallTransactions).Do(t.Context(), unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
				for _, ref := range refs {
					if err := u.Check(ref, unitofwork.Expression{Condition: "attribute_not_exists(ID)"}); err != nil {
						return err
					}
				}
				return nil
			})
			require.ErrorIs(t, err, unitofwork.ErrCondition)
			refused := errorAs[*unitofwork.CommitError](t, err)
			require.Equal(t, keys[wrong], refused.Key)
			b.nothingWritten(before)
		})
	}
}

// What can never be carried out is found before the decision: after it there is
// nobody to tell.
func TestAWriteOfALargeUnitThatCannotBe(t *testing.T) {
	fine := accounts.Ref("1", "a")
	record := func(key map[string]string, update string, values map[string]types.AttributeValue) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error {
			return u.Stage(customerKey("1"), updateOf("accounts", types.Update{UpdateExpression: aws.String(update), ExpressionAttributeValues: values}, key))
		}
	}
	for name, c := range map[string]struct {
		one    func(*unitofwork.Unit) error
		script faults.Script
		table  string
		record string
	}{
		"an expression that is none": {record(ofOne, "SET", nil), nil, "accounts", `Customer="1" ID="a"`},
		"a sum of text": {record(ofOne, "SET Balance = Balance + :v", map[string]types.AttributeValue{":v": text("x")}), nil,
			"accounts", `Customer="1" ID="a"`},
		"a sum with what is not there": {record(ofOne, "SET Other = Other + :v", map[string]types.AttributeValue{":v": number("1")}), nil,
			"accounts", `Customer="1" ID="a"`},
		"half a key": {record(map[string]string{"Customer": "1"}, "SET Other = :v", map[string]types.AttributeValue{":v": number("1")}), nil,
			"accounts", `Customer="1"`},
		"a missing table": {func(u *unitofwork.Unit) error {
			return u.Stage(customerKey("1"), updateOf("nowhere", types.Update{}, map[string]string{"ID": "1"}))
		}, nil, "nowhere", `ID="1"`},
		"a missing table to delete from": {func(u *unitofwork.Unit) error {
			return u.Stage(customerKey("1"), types.TransactWriteItem{Delete: &types.Delete{
				TableName: aws.String("nowhere"), Key: map[string]types.AttributeValue{"ID": text("1")}}})
		}, nil, "nowhere", `ID="1"`},
		"a table that may not be written": {func(u *unitofwork.Unit) error { return u.Replace(customers.Of(customer{ID: "1", Name: "n"})) },
			denies("customers", "TransactWriteItems"), "customers", `ID="1"`},
		"a put whose table nobody has named a key of": {func(u *unitofwork.Unit) error {
			return errors.Join(u.Delete(fine), u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1"})))
		}, nil, "customers", ""},
		"an empty key": {func(u *unitofwork.Unit) error {
			return u.Stage(customerKey("1"), updateOf("accounts", types.Update{}, map[string]string{"Customer": "1", "ID": ""}))
		}, nil, "accounts", `Customer="1" ID=""`},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.tables()
			client := b.client("A", c.script, inSmallTransactions)
			keys, refs := largeKeys(fewKeys)
			err := client.Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("1"))}, onlyOneFails(refs, c.one))
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
			var refused *unitofwork.CommitError
			var staged *unitofwork.StageError
			found, which := "", ""
			if errors.As(err, &refused) {
				found, which = refused.Table, refused.Record
			} else if errors.As(err, &staged) {
				found, which = staged.Table, staged.Record
			}
			require.Equal(t, c.table, found, "%v", err)
			if c.record != "" {
				require.Equal(t, c.record, which, "%v", err)
			}
			b.nothingWritten(before)
			require.Empty(t, b.db.Items("units"))
		})
	}
}

// A put by its item is known by its key as soon as the table is, and then one
// record takes one write.
func TestARecordThatALargeUnitPutsTwice(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before := b.tables()
		keys, refs := largeKeys(fewKeys)
		err := b.client("A", nil, inSmallTransactions).Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("1"), customerKey("2"))}, func(ctx context.Context, u *unitofwork.Unit) error {
			return errors.Join(
				u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1"}), putOf("customers", map[string]string{"ID": "2"})),
				u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1", "Name": "other"})),
				deposit(refs, 7)(ctx, u),
				u.Get(ctx, customers.Ref("2")), // from here on it is known what is the key of customers
			)
		})
		staged := errorAs[*unitofwork.StageError](t, err)
		require.Equal(t, `ID="1"`, staged.Record)
		require.ErrorContains(t, err, "one record takes one write")
		b.nothingWritten(before)
	})
}

// largeKeys are so many accounts, of families of three.
func largeKeys(n int) (keys []ordering.Key, refs []*unitofwork.Ref[account]) {
	for i := range n {
		customer, id := fmt.Sprintf("c%03d", i/3), fmt.Sprintf("a%d", i%3)
		keys = append(keys, accountKey(customer, id))
		refs = append(refs, accounts.Ref(customer, id))
	}
	return keys, refs
}

// deposit puts so many accounts, each with a balance.
func deposit(refs []*unitofwork.Ref[account], amount int64) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		for _, ref := range refs {
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			ref.T.Balance += amount
			if err := u.Replace(ref); err != nil {
				return err
			}
		}
		return nil
	}
}

// total is the sum of all balances of accounts that have the prefix c, and how
// many there are.
func (b *bed) total() (sum int64, n int) {
	b.t.Helper()
	for _, item := range b.db.Items("accounts") {
		if item["Customer"].(*types.AttributeValueMemberS).Value[0] == 'c' {
			var v int64
			_, err := fmt.Sscan(item["Balance"].(*types.AttributeValueMemberN).Value, &v)
			require.NoError(b.t, err)
			sum, n = sum+v, n+1
		}
	}
	return sum, n
}

// nothingLeft asserts that the unit table has nothing but records of what was
// decided.
func (b *bed) nothingLeft() {
	b.t.Helper()
	for _, item := range b.db.Items("units") {
		require.Equal(b.t, "record", item["part"].(*types.AttributeValueMemberS).Value)
		require.Contains(b.t, item, "expiresAt")
	}
}

func TestAUnitLargerThanATransaction(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("A", nil)
		keys, refs := largeKeys(150)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 7)))
		sum, n := b.total()
		require.Equal(t, 150, n)
		require.Equal(t, int64(150*7), sum)
		b.allFree()
		b.nothingLeft()
		require.Equal(t, map[string]int{"committed": 1}, c.outcomes())

		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: keys}, deposit(refs, 1)), "and the next one has all of it")
		sum, _ = b.total()
		require.Equal(t, int64(150*8), sum)
	})
}
