package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What the ways to write a record leave of what was there.

// sized are a small unit, and one with a journal.
var sized = map[string]func(*lockset.Config, *unitofwork.Config){
	"small": asItIs, "with a journal": inSmallTransactions,
}

// within runs a unit whose function does something with customer 1's account, and
// writes so many others.
func (b *bed) within(c *client, f func(context.Context, *unitofwork.Unit, *unitofwork.Ref[account]) error) error {
	keys, refs := largeKeys(fewKeys)
	return c.Do(b.t.Context(), unitofwork.Work{Keys: append(keys, transferKeys[1], customerKey("1"))}, func(ctx context.Context, u *unitofwork.Unit) error {
		for _, ref := range refs {
			if err := u.Replace(ref); err != nil {
				return err
			}
		}
		return f(ctx, u, accounts.Ref("1", "a"))
	})
}

// wide is an account with more than account knows.
func wide() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"Customer": text("1"), "ID": text("a"), "Balance": number("100"),
		"Currency": text("EUR"), "LIMIT": number("5"),
	}
}

func (b *bed) unfenced(customer string) map[string]types.AttributeValue {
	item := b.item("accounts", customer, "a")
	delete(item, "_fence")
	return item
}

func TestPutKeepsWhatTheStructDoesNotKnow(t *testing.T) {
	for name, change := range sized {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.putItem("accounts", wide())
			c := b.client("c", nil, change)
			for name, write := range map[string]func(*unitofwork.Unit, unitofwork.Record) error{
				"Put": func(u *unitofwork.Unit, r unitofwork.Record) error { return u.Put(r) },
				"PutIf": func(u *unitofwork.Unit, r unitofwork.Record) error {
					return u.PutIf(r, expression.Name("Currency").Equal(expression.Value("EUR")))
				},
			} {
				require.NoError(t, b.within(c, func(ctx context.Context, u *unitofwork.Unit, ref *unitofwork.Ref[account]) error {
					if err := u.Get(ctx, ref); err != nil {
						return err
					}
					ref.T.Balance++
					return write(u, ref)
				}), name)
			}
			want := wide()
			want["Balance"] = number("102")
			require.Equal(t, want, b.unfenced("1"))

			require.NoError(t, b.within(c, func(_ context.Context, u *unitofwork.Unit, ref *unitofwork.Ref[account]) error {
				ref.T.Balance = 7
				return u.Replace(ref)
			}))
			require.Equal(t, map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": number("7")}, b.unfenced("1"))
		})
	}
}

// What was read by anybody but this unit may have changed before it got its locks: Put, and PutIf, would
// write what they have of it.
func TestPutOfWhatTheUnitHasNotRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		ref := accounts.Ref("1", "a")
		put := func(_ context.Context, u *unitofwork.Unit) error { return u.Put(ref) }
		putIf := func(_ context.Context, u *unitofwork.Unit) error {
			return u.PutIf(ref, expression.Name("Balance").Equal(expression.Value(100)))
		}
		try := func(fn func(context.Context, *unitofwork.Unit) error) error {
			return c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, fn)
		}
		refused := func(says string, fn func(context.Context, *unitofwork.Unit) error) {
			t.Helper()
			err := try(fn)
			require.ErrorAs(t, err, new(*unitofwork.StageError))
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, `record Customer="1" ID="a"`)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.Equal(t, [2]int64{100, 100}, b.balances())
		}
		refused("Get it first", put)
		require.NoError(t, c.Read(t.Context(), ref))
		refused("Get it first", put)
		refused("", putIf)
		require.NoError(t, try(readOnly(ref)))
		refused("Get it first", put)
		refused("", putIf)
		require.NoError(t, try(change(ref, func(a *account) { a.Balance = 7 })))
		require.Equal(t, [2]int64{7, 100}, b.balances())
	})
}

// A record that was not there can be put as well: nobody else can have made it since this
// unit has its locks.
func TestPutOfWhatWasNotThere(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		before, c := accounts.Ref("1", "new"), b.client("other", nil)
		work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}
		require.NoError(t, c.Do(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error { return u.Get(ctx, before) }))
		err := c.Do(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error { return u.Put(before) })
		require.ErrorContains(t, err, "has not read it")

		require.NoError(t, b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(ctx context.Context, u *unitofwork.Unit) error {
			ref := accounts.Ref("1", "new")
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			require.False(t, ref.Found)
			ref.T.Balance = 3
			return u.Put(ref)
		}))
		require.Len(t, b.db.Items("accounts"), 3)
	})
}

func TestInsertOfWhatIsThere(t *testing.T) {
	for name, change := range sized {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil, change)
			before := b.tables()
			insert := func(id string) error {
				return b.within(c, func(_ context.Context, u *unitofwork.Unit, _ *unitofwork.Ref[account]) error {
					return u.Insert(accounts.Of(account{Customer: "1", ID: id, Balance: 7}))
				})
			}
			err := insert("a")
			require.ErrorIs(t, err, unitofwork.ErrExists)
			require.NotErrorIs(t, err, unitofwork.ErrCondition)
			commit := errorAs[*unitofwork.CommitError](t, err)
			require.Equal(t, []string{"accounts", `Customer="1" ID="a"`}, []string{commit.Table, commit.Record})
			require.Equal(t, lockset.Decide, lockset.NextOf(err))
			b.nothingWritten(before)
			require.NoError(t, insert("b"))
			require.ErrorIs(t, insert("b"), unitofwork.ErrExists)
		})
	}
}

func TestPutIfAndDeleteIf(t *testing.T) {
	less := func(n int) expression.ConditionBuilder {
		return expression.Name("Balance").LessThan(expression.Value(n))
	}
	none := expression.ConditionBuilder{}
	for name, change := range sized {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.putItem("accounts", wide())
			c := b.client("c", nil, change)
			type stage = func(*unitofwork.Unit, *unitofwork.Ref[account]) error
			do := func(s stage) error {
				return b.within(c, func(_ context.Context, u *unitofwork.Unit, ref *unitofwork.Ref[account]) error {
					ref.T.Balance = 7
					return s(u, ref)
				})
			}
			before := b.tables()
			for _, refused := range []stage{
				func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error { return u.PutIf(r, less(100)) },
				func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error { return u.DeleteIf(r, less(100)) },
			} {
				require.ErrorIs(t, do(refused), unitofwork.ErrCondition)
				b.nothingWritten(before)
			}
			require.NoError(t, do(func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error { return u.PutIf(r, less(101)) }))
			require.Equal(t, map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": number("7")}, b.unfenced("1"), "not read, so replaced")
			require.NoError(t, do(func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error { return u.DeleteIf(r, less(101)) }))
			require.Nil(t, b.unfenced("1"))
			for _, wrong := range []stage{
				func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error { return u.PutIf(r, none) },
				func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error { return u.DeleteIf(r, none) },
			} {
				require.ErrorAs(t, do(wrong), new(*unitofwork.StageError))
			}
		})
	}
}

// odd can be read from any item, and not be written as it was read.
type odd struct {
	ID   string
	Kind kind
}

type kind struct{ known bool }

func (k kind) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	if k.known {
		return text("known"), nil
	}
	return nil, fmt.Errorf("a kind is not written")
}

func TestAStructThatCannotBeWrittenCanBeRead(t *testing.T) {
	odds := unitofwork.Table[odd]{Name: "customers", PartitionKey: "ID", Guard: func(o *odd) ordering.Key { return customerKey(o.ID) }}
	inBed(t, func(t *testing.T, b *bed) {
		for known, says := range map[bool]string{false: "a kind is not written", true: "what has changed cannot be told: "} {
			ref := odds.Ref("1")
			err := b.client("c", nil).freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
				require.NoError(t, u.Get(ctx, ref))
				require.True(t, ref.Found)
				ref.T.Kind.known = known
				return u.Put(ref)
			})
			require.ErrorAs(t, err, new(*unitofwork.StageError))
			require.ErrorContains(t, err, says)
		}
	})
}

// money is written by a method of its pointer.
type money struct{ cents int64 }

func (m *money) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(m.cents, 10)}, nil
}

func (m *money) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) (err error) {
	m.cents, err = strconv.ParseInt(av.(*types.AttributeValueMemberN).Value, 10, 64)
	return err
}

type wallet struct {
	ID, Name string
	Money    money
}

func TestAStructIsWrittenAsTheSDKWritesIt(t *testing.T) {
	wallets := unitofwork.Table[wallet]{Name: "customers", PartitionKey: "ID", Guard: func(w *wallet) ordering.Key { return customerKey(w.ID) }}
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("customers", map[string]types.AttributeValue{"ID": text("1"), "Name": text("old"), "Money": number("500")})
		require.NoError(t, b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1"), customerKey("2x")}}, func(ctx context.Context, u *unitofwork.Unit) error {
			w := wallets.Ref("1")
			if err := u.Get(ctx, w); err != nil {
				return err
			}
			require.Equal(t, int64(500), w.T.Money.cents)
			w.T.Name = "new"
			return errors.Join(u.Put(w), u.Insert(wallets.Of(wallet{ID: "2x", Money: money{7}})))
		}))
		cents := map[string]types.AttributeValue{}
		for _, item := range b.db.Items("customers") {
			cents[item["ID"].(*types.AttributeValueMemberS).Value] = item["Money"]
		}
		require.Equal(t, number("500"), cents["1"])
		require.Equal(t, number("7"), cents["2x"])
	})
}

// shop is guarded by its region, which is no part of its key.
type shop struct{ ID, Region, Name string }

var shops = unitofwork.Table[shop]{
	Name: "customers", PartitionKey: "ID", GuardByContent: true,
	Guard: func(s *shop) ordering.Key { return ordering.Join("region:" + s.Region[:2]) }, // it cannot do without
}

// A record whose guard nobody knows is not written under another one.
func TestAGuardByContentIsNotGuessed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.put("customers", shop{ID: "7", Region: "eu", Name: "seven"})
		before := b.tables()
		for name, stage := range map[string]func(*unitofwork.Unit, unitofwork.Record) error{
			"Put":     func(u *unitofwork.Unit, r unitofwork.Record) error { return u.Put(r) },
			"Insert":  func(u *unitofwork.Unit, r unitofwork.Record) error { return u.Insert(r) },
			"Replace": func(u *unitofwork.Unit, r unitofwork.Record) error { return u.Replace(r) },
			"Delete":  func(u *unitofwork.Unit, r unitofwork.Record) error { return u.Delete(r) },
			"Update": func(u *unitofwork.Unit, r unitofwork.Record) error {
				return u.Update(r, unitofwork.Expression{Update: "REMOVE Name"})
			},
		} {
			err := b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"region:us"}}, func(_ context.Context, u *unitofwork.Unit) error {
				return stage(u, shops.Ref("7"))
			})
			require.ErrorAs(t, err, new(*unitofwork.StageError), name)
			require.ErrorContains(t, err, "Get it first", name)
			b.nothingWritten(before)
		}
	})
}

// A reference by its content keeps it, and its guard, while there is no such record, also
// over several attempts.
func TestGetOrCreate(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		ref, plain := shops.Of(shop{ID: "9", Region: "eu", Name: "nine"}), customers.Of(customer{ID: "1x", Name: "one"})
		for range 2 {
			require.NoError(t, c.Read(t.Context(), ref, plain))
			require.False(t, ref.Found)
			require.Equal(t, "nine", ref.T.Name)
		}
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"region:eu", customerKey("1x")}}, func(ctx context.Context, u *unitofwork.Unit) error {
			if err := u.Get(ctx, ref, plain); err != nil {
				return err
			}
			return errors.Join(u.Insert(ref), u.Put(plain))
		}))
		again, also := shops.Ref("9"), customers.Ref("1x")
		require.NoError(t, c.Read(t.Context(), again, also))
		require.Equal(t, shop{ID: "9", Region: "eu", Name: "nine"}, again.T)
		require.Equal(t, "one", also.T.Name)
	})
}

// parcel is a record with a value that its struct shares with whoever has it.
type parcel struct {
	ID     string
	State  string
	Labels []byte
}

var parcels = unitofwork.Table[parcel]{
	Name: "customers", PartitionKey: "ID",
	Guard: func(p *parcel) ordering.Key { return customerKey(p.ID) },
}

func nested(v string) *types.AttributeValueMemberM {
	return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text(v)}},
		"set":  &types.AttributeValueMemberSS{Value: []string{v}},
		"sets": &types.AttributeValueMemberBS{Value: [][]byte{[]byte(v)}},
		"nums": &types.AttributeValueMemberNS{Value: []string{"1"}},
	}}
}

func spoil(m *types.AttributeValueMemberM) {
	m.Value["list"].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberS).Value = "spoiled"
	m.Value["set"].(*types.AttributeValueMemberSS).Value[0] = "spoiled"
	m.Value["sets"].(*types.AttributeValueMemberBS).Value[0][0] = 'x'
	m.Value["nums"].(*types.AttributeValueMemberNS).Value[0] = "2"
	m.Value["more"] = text("spoiled")
}

// stageAndSpoil stages actions of every kind, and then changes all that it has handed over.
func stageAndSpoil(u *unitofwork.Unit) error {
	names, values, v := map[string]string{"#a": "A"}, map[string]any{":v": nested("good")}, nested("good")
	values[":v"] = v
	if err := u.Update(parcels.Ref("11"), unitofwork.Expression{Update: "SET #a = :v", Names: names, Values: values}); err != nil {
		return err
	}
	spoil(v)
	names["#a"] = "B"
	values[":v"] = "spoiled"

	names, state := map[string]string{"#s": "State"}, text("ready").(*types.AttributeValueMemberS)
	if err := u.Check(parcels.Ref("12"), unitofwork.Expression{Condition: "#s = :s", Names: names, Values: map[string]any{":s": state}}); err != nil {
		return err
	}
	names["#s"], state.Value = "ID", "12"

	p := parcels.Of(parcel{ID: "13", Labels: []byte("good")})
	if err := u.Insert(p); err != nil {
		return err
	}
	p.T.Labels[0] = 'x'

	state = text("ready").(*types.AttributeValueMemberS)
	q := parcels.Of(parcel{ID: "14", State: "ready", Labels: []byte("good")})
	if err := u.PutIf(q, expression.Name("State").Equal(expression.Value(state))); err != nil {
		return err
	}
	q.T.Labels[0], state.Value = 'x', "spoiled"

	put := &types.Put{TableName: aws.String("customers"), Item: map[string]types.AttributeValue{"ID": text("15"), "A": nested("good")}}
	del := &types.Delete{TableName: aws.String("customers"), Key: map[string]types.AttributeValue{"ID": text("16")}}
	if err := u.Stage(customerKey("15"), types.TransactWriteItem{Put: put}, types.TransactWriteItem{Delete: del}); err != nil {
		return err
	}
	spoil(put.Item["A"].(*types.AttributeValueMemberM))
	*put.TableName, *del.TableName = "accounts", "accounts"
	put.Item["B"], del.Key["ID"] = text("spoiled"), text("17")
	return nil
}

// What a caller does to its maps and values after it has staged them changes nothing, whichever
// way the unit commits.
func TestWhatIsStagedIsTheUnitsOwn(t *testing.T) {
	keys := []ordering.Key{customerKey("11"), customerKey("12"), customerKey("13"), customerKey("14"), customerKey("15")}
	for name, work := range map[string]unitofwork.Work{
		"without locks": {}, "under locks": {Lock: true, Keys: keys}, "by a journal": {Lock: true, Keys: keys},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			if name == "by a journal" {
				c = b.client("c", nil, inSmallTransactions)
			}
			for _, id := range []string{"12", "14", "16", "17"} {
				b.put("customers", parcel{ID: id, State: "ready"})
			}
			require.NoError(t, c.Client.Do(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error { return stageAndSpoil(u) }))
			is := map[string]map[string]types.AttributeValue{}
			for _, item := range b.db.Items("customers") {
				delete(item, "_fence")
				is[valueOf(item["ID"])] = item
			}
			require.Equal(t, map[string]types.AttributeValue{"ID": text("11"), "A": nested("good")}, is["11"])
			require.Equal(t, &types.AttributeValueMemberB{Value: []byte("good")}, is["13"]["Labels"])
			require.Equal(t, &types.AttributeValueMemberB{Value: []byte("good")}, is["14"]["Labels"])
			require.Equal(t, map[string]types.AttributeValue{"ID": text("15"), "A": nested("good")}, is["15"])
			require.NotContains(t, is, "16")
			require.Contains(t, is, "17")
		})
	}
}
