package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

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
	"small": func(*lockset.Config, *unitofwork.Config) {}, "with a journal": inSmallTransactions,
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
	for _, item := range b.db.Items("accounts") {
		if item["Customer"].(*types.AttributeValueMemberS).Value == customer {
			delete(item, "_fence")
			return item
		}
	}
	return nil
}

func TestPutKeepsWhatTheStructDoesNotKnow(t *testing.T) {
	for name, change := range sized {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		})
	}
}

// What was read by anybody but this unit may have changed before it got its locks.
func TestPutOfWhatTheUnitHasNotRead(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		ref := accounts.Ref("1", "a")
		put := func(context.Context, *unitofwork.Unit) error { return nil }
		try := func() error {
			return c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := put(ctx, u); err != nil {
					return err
				}
				return u.Put(ref)
			})
		}
		refused := func() {
			t.Helper()
			err := try()
			require.ErrorAs(t, err, new(*unitofwork.StageError))
			require.ErrorContains(t, err, "Get it first")
			require.ErrorContains(t, err, `record Customer="1" ID="a"`)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.Equal(t, [2]int64{100, 100}, b.balances())
		}
		refused()
		require.NoError(t, c.Read(t.Context(), ref))
		refused()
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			return u.Get(ctx, ref)
		}))
		refused()
		put = func(ctx context.Context, u *unitofwork.Unit) error {
			err := u.Get(ctx, ref)
			ref.T.Balance = 7
			return err
		}
		require.NoError(t, try())
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
				var commit *unitofwork.CommitError
				require.ErrorAs(t, err, &commit)
				require.Equal(t, []string{"accounts", `Customer="1" ID="a"`}, []string{commit.Table, commit.Record})
				require.Equal(t, lockset.Decide, lockset.NextOf(err))
				b.nothingWritten(before)
				require.NoError(t, insert("b"))
				require.ErrorIs(t, insert("b"), unitofwork.ErrExists)
			})
		})
	}
}

func TestPutIfAndDeleteIf(t *testing.T) {
	less := func(n int) expression.ConditionBuilder {
		return expression.Name("Balance").LessThan(expression.Value(n))
	}
	for name, change := range sized {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
				for _, none := range []stage{
					func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error {
						return u.PutIf(r, expression.ConditionBuilder{})
					},
					func(u *unitofwork.Unit, r *unitofwork.Ref[account]) error {
						return u.DeleteIf(r, expression.ConditionBuilder{})
					},
				} {
					require.ErrorAs(t, do(none), new(*unitofwork.StageError))
				}
			})
		})
	}
}

// odd can be read from any item, and not be written.
type odd struct {
	ID   string
	Kind kind
}

type kind struct{}

func (kind) MarshalDynamoDBAttributeValue() (types.AttributeValue, error) {
	return nil, fmt.Errorf("a kind is not written")
}

func TestAStructThatCannotBeWrittenCanBeRead(t *testing.T) {
	odds := unitofwork.Table[odd]{Name: "customers", PartitionKey: "ID", Guard: func(o *odd) ordering.Key { return customerKey(o.ID) }}
	inBed(t, func(t *testing.T, b *bed) {
		err := b.client("c", nil).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(ctx context.Context, u *unitofwork.Unit) error {
			ref := odds.Ref("1")
			require.NoError(t, u.Get(ctx, ref))
			require.True(t, ref.Found)
			return u.Put(ref)
		})
		require.ErrorAs(t, err, new(*unitofwork.StageError))
		require.ErrorContains(t, err, "a kind is not written")
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

// What was read elsewhere may have changed: PutIf would write what it has of it.
func TestPutIfOfWhatWasReadElsewhere(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("accounts", wide())
		c := b.client("c", nil)
		ref := accounts.Ref("1", "a")
		require.NoError(t, c.Read(t.Context(), ref))
		err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.PutIf(ref, expression.Name("Balance").Equal(expression.Value(100)))
		})
		require.ErrorAs(t, err, new(*unitofwork.StageError))
		require.Equal(t, wide(), b.unfenced("1"))
	})
}

// person is known in part, within a map.
type person struct {
	ID      string
	Address struct{ City string }
}

func TestPutKeepsWhatTheStructDoesNotKnowWithin(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("people", "ID")
		people := unitofwork.Table[person]{Name: "people", PartitionKey: "ID", Guard: func(p *person) ordering.Key { return ordering.Join("person:" + p.ID) }}
		address := func(city string) types.AttributeValue {
			return &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"City": text(city), "Zip": text("8000")}}
		}
		b.putItem("people", map[string]types.AttributeValue{"ID": text("1"), "Address": address("Bern")})
		require.NoError(t, b.client("c", nil).freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			r := people.Ref("1")
			if err := u.Get(ctx, r); err != nil {
				return err
			}
			r.T.Address.City = "Basel"
			return u.Put(r)
		}))
		require.Equal(t, address("Basel"), b.db.Items("people")[0]["Address"])
	})
}
