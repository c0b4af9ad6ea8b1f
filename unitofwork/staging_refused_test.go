package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func putOf(table string, attributes map[string]string) types.TransactWriteItem {
	item := map[string]types.AttributeValue{}
	for name, v := range attributes {
		item[name] = text(v)
	}
	return types.TransactWriteItem{Put: &types.Put{TableName: aws.String(table), Item: item}}
}

func updateOf(table string, u types.Update, key map[string]string) types.TransactWriteItem {
	u.TableName, u.Key = aws.String(table), map[string]types.AttributeValue{}
	for name, v := range key {
		u.Key[name] = text(v)
	}
	return types.TransactWriteItem{Update: &u}
}

const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/"

func updateByNumber(key string) types.TransactWriteItem {
	u := updateOf("numbers", types.Update{}, nil)
	u.Update.Key["N"] = &types.AttributeValueMemberN{Value: key}
	return u
}

var ofOne = map[string]string{"Customer": "1", "ID": "a"}

// raw stages actions under the key of customer 2's account.
func raw(actions ...types.TransactWriteItem) func(*unitofwork.Unit) error {
	return func(u *unitofwork.Unit) error { return u.Stage(transferKeys[0], actions...) }
}

func replacesOne(of account) func(*unitofwork.Unit) error {
	return func(u *unitofwork.Unit) error { return u.Replace(accounts.Of(of)) }
}

func deletes(record unitofwork.Record) func(*unitofwork.Unit) error {
	return func(u *unitofwork.Unit) error { return u.Delete(record) }
}

func updatesOne(e unitofwork.Expression) func(*unitofwork.Unit) error {
	return func(u *unitofwork.Unit) error { return u.Update(accounts.Ref("1", "a"), e) }
}

func checksOne(e unitofwork.Expression) func(*unitofwork.Unit) error {
	return func(u *unitofwork.Unit) error { return u.Check(accounts.Ref("1", "a"), e) }
}

// putWith is a put of account a of customer 1 that has one more attribute.
func putWith(name string, v types.AttributeValue) types.TransactWriteItem {
	put := putOf("accounts", ofOne)
	put.Put.Item[name] = v
	return put
}

var (
	noID        = map[string]types.AttributeValue{"Customer": text("1"), "ID": nil}
	nilNumber   = &types.AttributeValueMemberL{Value: []types.AttributeValue{(*types.AttributeValueMemberN)(nil)}}
	noValues    = map[string]any{":n": noValue{}}
	otherSort   = unitofwork.Table[account]{Name: "accounts", PartitionKey: "Customer", SortKey: "Branch", Guard: accounts.Guard}
	noPartition = unitofwork.Table[account]{Name: "accounts", Guard: accounts.Guard}
	noName      = unitofwork.Table[account]{PartitionKey: "Customer", SortKey: "ID", Guard: accounts.Guard}
)

// refusals are writes that cannot be part of a unit, and what is said of them.
var refusals = map[string]struct {
	stage func(*unitofwork.Unit) error
	says  string
}{
	"no key guards it": {replacesOne(account{Customer: "3", ID: "a"}), `guard "customer:3/account:a" is not covered`},
	"a coarser record than what is held": {
		func(u *unitofwork.Unit) error { return u.Replace(customers.Of(customer{ID: "1"})) }, `guard "customer:1" is not covered`,
	},
	"written twice": {
		func(u *unitofwork.Unit) error {
			return errors.Join(u.Delete(accounts.Ref("1", "a")), u.Replace(accounts.Of(account{Customer: "1", ID: "a"})))
		},
		"one record takes one write",
	},
	"written twice, as raw actions": {
		raw(updateOf("accounts", types.Update{}, ofOne), putOf("accounts", ofOne)), "one record takes one write",
	},
	"written twice, by a table's ARN": {
		raw(updateOf("accounts", types.Update{}, ofOne), updateOf(arn+"accounts", types.Update{}, ofOne)), "one record takes one write",
	},
	"written twice, by two texts of one number": {raw(updateByNumber("1"), updateByNumber("10E-1")), "one record takes one write"},
	"a value that is none":                      {raw(putWith("Balance", nil)), `"Balance" has no value`},
	"a value that is a pointer to none":         {raw(putWith("Balance", nilNumber)), `"Balance" has no value`},
	"a value of an expression that is none": {
		raw(updateOf("accounts", types.Update{
			UpdateExpression: aws.String("SET a = :x"), ExpressionAttributeValues: map[string]types.AttributeValue{":x": nil},
		}, ofOne)), `":x" has no value`,
	},
	"a value of a key that is none, to delete": {
		raw(types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String("accounts"), Key: noID}}), `"ID" has no value`,
	},
	"a value of a key that is none, to update": {
		raw(types.TransactWriteItem{Update: &types.Update{TableName: aws.String("accounts"), Key: noID}}), `"ID" has no value`,
	},
	"a value of a key that is none, to check": {
		raw(types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String("accounts"), Key: noID, ConditionExpression: aws.String("attribute_exists(ID)"),
		}}), `"ID" has no value`,
	},
	"a value of an update that cannot be one": {
		updatesOne(unitofwork.Expression{Update: "SET Balance = :n", Values: noValues}), "value :n",
	},
	"a value of a check that cannot be one": {checksOne(unitofwork.Expression{Condition: "Balance = :n", Values: noValues}), "value :n"},
	"a key attribute that the record does not have": {
		func(u *unitofwork.Unit) error { return u.Replace(otherSort.Of(account{Customer: "1", ID: "a"})) }, `no key attribute "Branch"`,
	},
	"a key attribute that is empty now": {
		func(u *unitofwork.Unit) error {
			ref := accounts.Ref("1", "a")
			ref.T.ID = ""
			return u.Put(ref)
		},
		`key attribute "ID"`,
	},
	"a key that is no text": {
		raw(updateOf("accounts", types.Update{}, map[string]string{"Customer": "1", "ID": "M\xfcller"})), "not valid UTF-8",
	},
	"our own tables":            {raw(putOf("locks", map[string]string{"key": "x"})), "holdall's own"},
	"our own tables, by an ARN": {raw(putOf(arn+"locks", map[string]string{"key": "x"})), "holdall's own"},
	"the fence in an item":      {raw(putWith("_fence", text("1"))), `fence attribute "_fence"`},
	"the fence by a placeholder": {
		updatesOne(unitofwork.Expression{Update: "REMOVE #f", Names: map[string]string{"#f": "_fence"}}), `fence attribute "_fence"`,
	},
	"the fence by name": {checksOne(unitofwork.Expression{Condition: "attribute_exists(_fence)"}), `fence attribute "_fence"`},
	"a placeholder of ours": {
		checksOne(unitofwork.Expression{Condition: "Balance = :holdallToken", Values: map[string]any{":holdallToken": 1}}), "holdall's own",
	},
	"parentheses that open our condition": {
		checksOne(unitofwork.Expression{Condition: "attribute_exists(ID)) OR (attribute_exists(ID)"}), "parentheses",
	},
	"an invalid guard": {
		func(u *unitofwork.Unit) error { return u.Stage("a//b", putOf("accounts", ofOne)) }, "segment 2 is empty",
	},
	"no action":                       {raw(types.TransactWriteItem{}), "0 actions"},
	"a key that is not one":           {deletes(accounts.Ref("1")), "1 values for the key"},
	"an empty key":                    {replacesOne(account{Customer: "1"}), `"ID" that is empty`},
	"an empty key to delete":          {deletes(accounts.Ref("1", "")), `key attribute "ID" is empty`},
	"an empty key of bytes":           {deletes(accounts.Ref("1", []byte{})), `key attribute "ID" is empty`},
	"a key that cannot be one":        {deletes(accounts.Ref("1", true)), "not a string, a number or bytes"},
	"a Table without a partition key": {deletes(noPartition.Ref("1")), "no PartitionKey"},
	"a Table without a name":          {deletes(noName.Ref("1", "a")), "no Name"},
	"no table":                        {raw(putOf("", ofOne)), "no table is named"},
	"a put of nothing":                {raw(putOf("accounts", nil)), "the put has no item"},
	"an action without a key":         {raw(updateOf("accounts", types.Update{}, nil)), "the action has no key"},
	"two actions in one": {
		raw(types.TransactWriteItem{Put: putOf("accounts", ofOne).Put, Update: updateOf("accounts", types.Update{}, ofOne).Update}),
		"2 actions",
	},
	"a reference to another record": {
		func(u *unitofwork.Unit) error {
			r := accounts.Ref("1", "a")
			r.T = account{Customer: "1", ID: "b"}
			return u.Put(r)
		},
		"the reference's",
	},
}

// noValue is what no attribute can have.
type noValue struct{}

func (noValue) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return nil, errors.New("is none")
}

// What cannot be part of a unit is refused when it is staged; and if the
// function does not look, by the commit.
func TestRefusedWhenStaged(t *testing.T) {
	for name, c := range refusals {
		runInBed(t, name, func(t *testing.T, b *bed) {
			client := b.client("c", nil)
			before := b.db.Items("accounts")
			err := client.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
				err := c.stage(u)
				staged := errorAs[*unitofwork.StageError](t, err)
				require.NotEmpty(t, staged.Record)
				require.ErrorContains(t, err, c.says)
				return nil // it does not look
			})
			require.ErrorContains(t, err, c.says)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.Equal(t, before, b.db.Items("accounts"))
			b.allFree()
		})
	}
}

func TestARecordKeepsItsGuard(t *testing.T) {
	roaming := unitofwork.Table[account]{
		Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
		Guard: func(a *account) ordering.Key { return ordering.Key(fmt.Sprintf("family:%d/x", a.Balance)) }, GuardByContent: true,
	}
	inBed(t, func(t *testing.T, b *bed) {
		work := unitofwork.Work{Keys: []ordering.Key{"family:100", "family:7"}}
		err := b.client("c", nil).Do(t.Context(), work, change(roaming.Ref("1", "a"), func(r *account) { r.Balance = 7 }))
		require.ErrorContains(t, err, "keeps its guard")
	})
}

func TestEveryKindOfWrite(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.put("accounts", account{Customer: "1", ID: "gone", Balance: 3})
		b.put("accounts", account{Customer: "1", ID: "unread", Balance: 3})
		c := b.client("c", nil)
		err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2")}}, func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(
				u.Replace(accounts.Of(account{Customer: "1", ID: "new", Balance: 1})),
				u.Update(accounts.Of(account{Customer: "1", ID: "a"}), unitofwork.Expression{
					Update: "ADD Balance :ten SET #n = :name REMOVE gone", Condition: "Balance >= :ten",
					Names: map[string]string{"#n": "Name"}, Values: map[string]any{":ten": 10, ":name": text("n")},
				}),
				u.Delete(accounts.Of(account{Customer: "1", ID: "gone"}), accounts.Ref("1", "unread")),
				u.Check(customers.Of(customer{ID: "1"}), unitofwork.Expression{
					Condition: "attribute_exists(ID) OR attribute_exists(x)",
				}),
				u.Stage(customerKey("2"), updateOf("accounts", types.Update{UpdateExpression: aws.String("set Balance = Balance - :ten"),
					ExpressionAttributeValues: map[string]types.AttributeValue{":ten": &types.AttributeValueMemberN{Value: "10"}}},
					map[string]string{"Customer": "2", "ID": "a"})),
			)
		})
		require.NoError(t, err)
		found := map[string]int64{}
		var fences []int64
		for _, item := range b.db.Items("accounts") {
			var a account
			require.NoError(t, attributevalue.UnmarshalMap(item, &a))
			found[a.Customer+a.ID] = a.Balance
			fences = append(fences, a.Fence)
		}
		require.Equal(t, map[string]int64{"1new": 1, "1a": 110, "2a": 90}, found)
		require.NotZero(t, fences[0])
		require.Equal(t, []int64{fences[0], fences[0], fences[0]}, fences, "one token on all")
	})
}

func TestAConditionThatDoesNotHoldIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 5}, func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(
				u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 1})),
				u.Check(accounts.Of(account{Customer: "2", ID: "a"}), unitofwork.Expression{
					Condition: "Balance > :most", Values: map[string]any{":most": 1000},
				}),
			)
		})
		require.ErrorIs(t, err, unitofwork.ErrCondition)
		commit := errorAs[*unitofwork.CommitError](t, err)
		require.Equal(t, "accounts", commit.Table)
		require.Equal(t, `Customer="2" ID="a"`, commit.Record)
		require.Equal(t, lockset.Decide, commit.Next)
		require.Equal(t, [2]int64{100, 100}, b.balances())
		require.Equal(t, map[string]int{"not": 1}, c.outcomes(), "doing the same again is the caller's decision")
		b.allFree()
	})
}

func TestTablesAtFaultAreNamed(t *testing.T) {
	nowhere := unitofwork.Table[customer]{Name: "nowhere", PartitionKey: "ID", Guard: customers.Guard}
	otherKey := unitofwork.Table[account]{Name: "accounts", PartitionKey: "Customer", Guard: accounts.Guard}
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		keys := []ordering.Key{customerKey("1")}
		for table, records := range map[string][]unitofwork.Record{
			"nowhere":  {customers.Ref("1"), accounts.Ref("1", "a"), nowhere.Ref("1")},
			"accounts": {customers.Ref("1"), otherKey.Ref("1")},
		} {
			err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, records...) })
			tableErr := errorAs[*lockset.TableError](t, err)
			require.Equal(t, []string{table}, tableErr.Tables)
		}
		for table, record := range map[string]unitofwork.Record{
			"nowhere":  nowhere.Of(customer{ID: "1"}),
			"accounts": otherKey.Of(account{Customer: "1"}),
		} {
			err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
				return errors.Join(u.Replace(customers.Of(customer{ID: "1"})), u.Delete(record))
			})
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.ErrorContains(t, err, fmt.Sprintf("table %q", table))
		}
		err := c.Do(t.Context(), unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(u.Replace(customers.Of(customer{ID: "1"})), u.Stage("customer:1", putOf("nowhere", map[string]string{"x": "y"})))
		})
		require.ErrorContains(t, err, `table "nowhere": TransactWriteItems: does not exist`)
		b.allFree()
	})
}

func TestGet(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		for i := range 230 {
			b.put("accounts", account{Customer: "many", ID: fmt.Sprint(i), Balance: int64(i)})
		}
		c := b.client("c", nil)
		err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"customer:1", "customer:many", "customer:none"}}, func(ctx context.Context, u *unitofwork.Unit) error {
			one, none := customers.Ref("1"), customers.Ref("none")
			none.T.Name = "left over"
			refs := []unitofwork.Record{one, none}
			var many []*unitofwork.Ref[account]
			for i := range 230 {
				many = append(many, accounts.Ref("many", fmt.Sprint(i)))
				refs = append(refs, many[i])
			}
			c.requests()
			if err := u.Get(ctx, refs...); err != nil {
				return err
			}
			require.Equal(t, map[string]int{"TransactGetItems": 3}, c.requests())
			require.True(t, one.Found)
			require.Equal(t, "name 1", one.T.Name)
			require.False(t, none.Found, "an absent record is no error")
			require.Equal(t, customer{ID: "none"}, none.T, "its key, and nothing left over")
			for i, r := range many {
				require.Equal(t, int64(i), r.T.Balance)
			}
			// It sees the table, not the stage.
			one.T.Name = "staged"
			require.NoError(t, u.Put(one))
			again := customers.Ref("1")
			require.NoError(t, u.Get(ctx, again))
			require.Equal(t, "name 1", again.T.Name)
			return nil
		})
		require.NoError(t, err)

		byARN := customers
		byARN.Name = "arn:aws:dynamodb:eu-west-1:1:table/" + customers.Name
		for _, twice := range [][]unitofwork.Record{
			{customers.Ref("1"), customers.Ref("none"), customers.Ref("1")},
			{customers.Ref("1"), byARN.Ref("1")}, // a table is the same one by its name and by its ARN
		} {
			err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"customer:1"}}, readOnly(twice...))
			require.ErrorContains(t, err, "named twice")
		}
	})
}

// Two records are two, also if only bytes tell them apart.
func TestKeysOfBytes(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, err := b.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("blobs"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("ID"), AttributeType: types.ScalarAttributeTypeB}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("ID"), KeyType: types.KeyTypeHash}},
		})
		require.NoError(t, err)
		put := func(key string) types.TransactWriteItem {
			return types.TransactWriteItem{Update: &types.Update{TableName: aws.String("blobs"), Key: map[string]types.AttributeValue{
				"ID": &types.AttributeValueMemberB{Value: []byte(key)},
			}}}
		}
		c := b.client("c", nil)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Stage(transferKeys[0], put("\x01"), put("\x10"), put("\x01\x10"))
		}))
		require.Len(t, b.db.Items("blobs"), 3)
		err = c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Stage(transferKeys[0], put("\x01"), put("\x01"))
		})
		require.ErrorContains(t, err, "one record takes one write")
		require.ErrorContains(t, err, "record ID=0x01")
	})
}

// A check without a condition of its own has that of every write: no later unit has
// written the record. It is asked whatever the size of the unit.
func TestACheckOfNothingButTheFence(t *testing.T) {
	for name, change := range map[string]func(*lockset.Config, *unitofwork.Config){
		"small": asItIs, "with a journal": inSmallTransactions,
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.put("accounts", account{Customer: "1", ID: "a", Fence: time.Now().Add(time.Minute).UnixMicro()})
			keys, refs := largeKeys(fewKeys)
			err := b.client("c", nil, change).Do(t.Context(), unitofwork.Work{Keys: append(keys, customerKey("1")), Attempts: 1}, onlyOneFails(refs, func(u *unitofwork.Unit) error {
				return u.Stage(customerKey("1"), types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
					TableName: aws.String("accounts"), Key: map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a")},
				}})
			}))
			require.ErrorIs(t, err, fencing.ErrStale)
			_, n := b.total()
			require.Zero(t, n)
		})
	}
}

// What puts without their key attributes write is for DynamoDB to say: it refuses them,
// and they are not taken for writes of one record.
func TestAPutWithoutItsKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before := b.tables()
		err := b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			require.NoError(t, u.Get(ctx, accounts.Ref("1", "a"))) // so that the key of the table is known
			for _, name := range []string{"one", "another"} {
				require.NoError(t, u.Stage(transferKeys[0], putOf("accounts", map[string]string{"Customer": "1", "Name": name})))
			}
			return nil
		})
		refused := errorAs[*unitofwork.CommitError](t, err)
		require.Equal(t, lockset.FixCall, refused.Next)
		b.nothingWritten(before)
	})
}

// A record that is no such thing is named, by whoever reads it.
func TestARecordThatCannotBeRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("accounts", map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": text("much")})
		c := b.client("c", nil)
		one, other := accounts.Ref("1", "a"), accounts.Ref("2", "a")
		named := func(err error) {
			t.Helper()
			staged := errorAs[*unitofwork.StageError](t, err)
			require.Equal(t, "accounts", staged.Table)
			require.Equal(t, `Customer="1" ID="a"`, staged.Record)
			require.ErrorAs(t, err, new(*attributevalue.UnmarshalTypeError))
			require.False(t, other.Found, "nothing is shown")
		}
		named(c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, other, one) }))
		named(c.Read(t.Context(), other, one))
	})
}
