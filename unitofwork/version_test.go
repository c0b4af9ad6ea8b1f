package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// tally is a record whose changes programs without locks count, too.
type tally struct {
	ID      string
	N       int64
	Version int64 `dynamodbav:",omitempty"`
}

var tallies = unitofwork.Table[tally]{
	Name: "tallies", PartitionKey: "ID", Version: "Version",
	Guard: func(r *tally) ordering.Key { return tallyKey(r.ID) },
}

// unaware are the same records for a program whose struct does not have the number.
var unaware = unitofwork.Table[numberless]{
	Name: "tallies", PartitionKey: "ID", Version: "Version",
	Guard: func(r *numberless) ordering.Key { return tallyKey(r.ID) },
}

type numberless struct {
	ID   string
	Note string `dynamodbav:",omitempty"`
}

func tallyKey(id string) ordering.Key { return ordering.Join("tally:" + id) }

// inTallies has a bed with tally a, in its seventh version, and b, which was never counted.
func inTallies(t *testing.T, test func(*testing.T, *bed)) {
	inBed(t, func(t *testing.T, b *bed) {
		b.createTable("tallies", "ID")
		b.put("tallies", tally{ID: "a", N: 10, Version: 7})
		b.put("tallies", tally{ID: "b", N: 20})
		test(t, b)
	})
}

func (b *bed) tally(id string) (tally, bool) {
	b.t.Helper()
	out, err := b.db.GetItem(b.t.Context(), &dynamodb.GetItemInput{TableName: aws.String("tallies"), Key: tallyID(id), ConsistentRead: aws.Bool(true)})
	require.NoError(b.t, err)
	var r tally
	require.NoError(b.t, attributevalue.UnmarshalMap(out.Item, &r))
	return r, out.Item != nil
}

func tallyID(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: id}}
}

// addOld adds to a tally as a program does that knows nothing of locks, once: it reads the record,
// writes it whole, and is refused if its version has changed.
func (b *bed) addOld(id string, n int64) error { return b.readOld(id, n)() }

// readOld is addOld up to its write, which it returns.
func (b *bed) readOld(id string, n int64) (write func() error) {
	r, there := b.tally(id)
	was := r.Version
	r.ID, r.N, r.Version = id, r.N+n, was+1
	item, err := attributevalue.MarshalMap(r)
	require.NoError(b.t, err)
	put := &dynamodb.PutItemInput{
		TableName: aws.String("tallies"), Item: item,
		ConditionExpression:      aws.String("attribute_not_exists(#v)"),
		ExpressionAttributeNames: map[string]string{"#v": "Version"},
	}
	if there && was > 0 {
		put.ConditionExpression = aws.String("#v = :v")
		put.ExpressionAttributeValues = map[string]types.AttributeValue{":v": &types.AttributeValueMemberN{Value: fmt.Sprint(was)}}
	}
	return func() error {
		_, err := b.db.PutItem(b.t.Context(), put)
		return err
	}
}

// bothWays runs a test with units without locks, and under them.
func bothWays(t *testing.T, test func(t *testing.T, b *bed, work unitofwork.Work)) {
	for name, work := range map[string]unitofwork.Work{
		"without locks": {},
		"under locks":   {Lock: true, Keys: []ordering.Key{tallyKey("a"), tallyKey("b"), tallyKey("new"), customerKey("1")}},
	} {
		t.Run(name, func(t *testing.T) { inTallies(t, func(t *testing.T, b *bed) { test(t, b, work) }) })
	}
}

// Every kind of write leaves the next number, whatever the caller's record has.
func TestEveryWriteCountsAsOthersDo(t *testing.T) {
	bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
		c := b.client("c", nil)
		do := func(f func(context.Context, *unitofwork.Unit) error) {
			t.Helper()
			require.NoError(t, c.freely(t.Context(), work, f))
		}
		version := func(id string, want int64) {
			t.Helper()
			r, there := b.tally(id)
			require.True(t, there)
			require.Equal(t, want, r.Version)
		}
		put := func(id string) func(context.Context, *unitofwork.Unit) error {
			return change(tallies.Ref(id), func(r *tally) { r.ID, r.Version = id, 99 })
		}
		do(put("a"))
		version("a", 8)
		do(change(unaware.Ref("b"), func(r *numberless) { r.Note = "read" }))
		version("b", 1)
		do(put("new"))
		version("new", 1)
		do(func(ctx context.Context, u *unitofwork.Unit) error {
			a, n := tallies.Ref("a"), tallies.Ref("new")
			if err := u.Get(ctx, a, n); err != nil {
				return err
			}
			n.T.N++
			return errors.Join(u.Replace(a), u.PutIf(n, expression.AttributeExists(expression.Name("ID"))))
		})
		version("a", 9)
		version("new", 2)
		do(func(_ context.Context, u *unitofwork.Unit) error {
			return u.Update(tallies.Ref("a"), unitofwork.Expression{Update: "ADD N :n", Values: map[string]any{":n": 5}})
		})
		version("a", 10)
		do(func(_ context.Context, u *unitofwork.Unit) error {
			return u.Update(tallies.Ref("b"), unitofwork.Expression{Update: "SET N = :n REMOVE X", Values: map[string]any{":n": 5}})
		})
		version("b", 2)
		do(func(_ context.Context, u *unitofwork.Unit) error { return u.Delete(tallies.Ref("new")) })
		do(inserts(tallies.Of(tally{ID: "new", Version: 50})))
		version("new", 1)
		do(func(ctx context.Context, u *unitofwork.Unit) error {
			r := tallies.Ref("new")
			return errors.Join(u.Get(ctx, r), u.Delete(r))
		})
		_, there := b.tally("new")
		require.False(t, there)
		b.allFree()
	})
}

// A program without locks changes a record between a unit's read and its commit: the unit, whatever
// it writes to that record, or if it has only read it, starts over.
func TestAChangeByAProgramWithoutLocks(t *testing.T) {
	set7 := unitofwork.Expression{Update: "SET N = :n", Values: map[string]any{":n": 7}}
	holds := unitofwork.Expression{Condition: "attribute_exists(ID)"}
	for name, write := range map[string]func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error{
		"put":        func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error { r.T.N++; return u.Put(r) },
		"replace":    func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error { return u.Replace(r) },
		"update":     func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error { return u.Update(r, set7) },
		"delete":     func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error { return u.Delete(r) },
		"check":      func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error { return u.Check(r, holds) },
		"only reads": func(*unitofwork.Unit, *unitofwork.Ref[tally]) error { return nil },
		"reads twice": func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error {
			again := tallies.Ref(r.T.ID)
			err := u.Get(u.Context(), again)
			if err == nil && !u.Locked() { // under locks the commit says so
				require.Equal(t, r.T, again.T, "two reads of one record are one state")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, id := range []string{"a", "b", "new"} {
				if id == "new" && (name == "check" || name == "delete") {
					continue
				}
				bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
					calls, saw := 0, int64(0)
					require.NoError(t, b.client("c", nil).freely(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
						calls++
						r := tallies.Ref(id)
						if err := u.Get(ctx, r); err != nil {
							return err
						}
						saw = r.T.N
						if calls == 1 {
							require.NoError(t, b.addOld(id, 1))
						}
						return errors.Join(write(u, r), u.Replace(customers.Of(customer{ID: "1", Name: name})))
					}), id)
					require.Equal(t, 2, calls)
					require.Equal(t, map[string]int64{"a": 11, "b": 21, "new": 1}[id], saw, "what the commit rests on has the other program's change")
					b.allFree()
				})
			}
		})
	}
}

// What a unit has written refuses those who have read the record before, and know nothing of units.
func TestAProgramWithoutLocksIsRefused(t *testing.T) {
	for name, write := range map[string]func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error{
		"put": func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error {
			err := u.Get(u.Context(), r)
			r.T.N++
			return errors.Join(err, u.Put(r))
		},
		"update unread": func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error {
			return u.Update(r, unitofwork.Expression{Update: "ADD N :n", Values: map[string]any{":n": 5}})
		},
		"delete unread": func(u *unitofwork.Unit, r *unitofwork.Ref[tally]) error { return u.Delete(r) },
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
				old := b.readOld("a", 1)
				require.NoError(t, b.client("c", nil).freely(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error {
					return write(u, tallies.Ref("a"))
				}))
				require.ErrorAs(t, old(), new(*types.ConditionalCheckFailedException))
			})
		})
	}
}

// A condition of the caller's that does not hold is the caller's to decide about, as long as nobody
// has changed the record meanwhile.
func TestAConditionBesideAVersion(t *testing.T) {
	bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
		c := b.client("c", nil)
		rich := unitofwork.Expression{Condition: "N > :n", Values: map[string]any{":n": 10}}
		calls := 0
		check := func(read bool, meanwhile func()) error {
			calls = 0
			return c.freely(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
				calls++
				r := tallies.Ref("a")
				if read {
					if err := u.Get(ctx, r); err != nil {
						return err
					}
				}
				if calls == 1 {
					meanwhile()
				}
				return u.Update(r, unitofwork.Expression{Update: "SET N = :m", Condition: rich.Condition, Values: map[string]any{":n": 10, ":m": 0}})
			})
		}
		for _, read := range []bool{false, true} {
			require.ErrorIs(t, check(read, func() {}), unitofwork.ErrCondition)
			require.Equal(t, 1, calls)
		}
		require.NoError(t, check(true, func() { require.NoError(t, b.addOld("a", 1)) }), "it is another record then")
		require.Equal(t, 2, calls)
		require.ErrorIs(t, c.freely(t.Context(), work, inserts(tallies.Of(tally{ID: "b"}))), unitofwork.ErrExists)
	})
}

// Somebody without locks is always faster: the error says so, and who it was.
func TestAProgramWithoutLocksThatIsAlwaysFaster(t *testing.T) {
	inTallies(t, func(t *testing.T, b *bed) {
		err := b.client("c", nil).freely(t.Context(), unitofwork.Work{Attempts: 3}, change(tallies.Ref("a"), func(r *tally) {
			require.NoError(t, b.addOld("a", 1))
			r.N++
		}))
		changed := errorAs[*unitofwork.VersionError](t, err)
		require.Equal(t, lockset.StartOver, lockset.NextOf(err))
		require.EqualError(t, err, fmt.Sprintf(`not committed: table "tallies", record ID="a": its version "Version" was %s when the unit read it, `+
			`and is %s: a program without locks has changed it`, changed.Read, changed.Found))
		b.allFree()
	})
}

// What cannot be counted is refused, and nothing is written.
func TestWhatCannotBeCounted(t *testing.T) {
	update := func(e unitofwork.Expression) func(context.Context, *unitofwork.Unit) error {
		return func(_ context.Context, u *unitofwork.Unit) error { return u.Update(tallies.Ref("a"), e) }
	}
	one := map[string]any{":one": 1}
	for name, c := range map[string]struct {
		f    func(context.Context, *unitofwork.Unit) error
		text string
	}{
		"replace unread": {replaces(tallies.Of(tally{ID: "a"})), `has not read the record, so the next number is not known: Get it first`},
		"put unread under a condition": {func(_ context.Context, u *unitofwork.Unit) error {
			return u.PutIf(tallies.Of(tally{ID: "a"}), expression.AttributeExists(expression.Name("ID")))
		}, `has not read the record`},
		"no number":                     {readOnly(unaware.Ref("text")), `table "tallies", record ID="text": its version attribute "Version" is "x", which is no whole number`},
		"a null":                        {readOnly(unaware.Ref("null")), `is of type NULL, which is no whole number`},
		"a fraction":                    {readOnly(unaware.Ref("half")), `is 1.5, which is no whole number`},
		"an update that counts":         {update(unitofwork.Expression{Update: "ADD Version :one", Values: one}), `the update names the version attribute "Version", which holdall counts`},
		"and by another name":           {update(unitofwork.Expression{Update: "ADD #v :one", Names: map[string]string{"#v": "Version"}, Values: one}), `the update names the version attribute`},
		"a name of holdall's":           {update(unitofwork.Expression{Update: "ADD #holdallVersion :one", Names: map[string]string{"#holdallVersion": "N"}, Values: one}), `holdall's own`},
		"a value of holdall's":          {update(unitofwork.Expression{Update: "ADD N :holdallOne", Values: map[string]any{":holdallOne": 5}}), `holdall's own`},
		"parentheses that do not match": {update(unitofwork.Expression{Update: "ADD N :one", Condition: "N > :one) OR (N > :one", Values: one}), `do not match`},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
				b.putItem("tallies", map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "text"}, "Version": &types.AttributeValueMemberS{Value: "x"}})
				b.putItem("tallies", map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "half"}, "Version": &types.AttributeValueMemberN{Value: "1.5"}})
				b.putItem("tallies", map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: "null"}, "Version": &types.AttributeValueMemberNULL{Value: true}})
				if work.Lock {
					work.Keys = append(work.Keys, tallyKey("text"), tallyKey("half"), tallyKey("null"))
				}
				before := b.tables()
				err := b.client("c", nil).freely(t.Context(), work, c.f)
				require.ErrorContains(t, err, c.text)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				require.Equal(t, before["tallies"], b.tables()["tallies"])
			})
		})
	}
}

// A unit that does not fit into one transaction cannot check versions when it writes.
func TestAVersionInALargeUnit(t *testing.T) {
	inTallies(t, func(t *testing.T, b *bed) {
		before := b.tables()
		err := b.client("c", nil).freely(t.Context(), unitofwork.Work{}, func(_ context.Context, u *unitofwork.Unit) error {
			for i := range 100 {
				if err := u.Replace(customers.Of(customer{ID: fmt.Sprint(i)})); err != nil {
					return err
				}
			}
			return u.Update(tallies.Ref("a"), unitofwork.Expression{Update: "SET N = :n", Values: map[string]any{":n": 7}})
		})
		require.ErrorContains(t, err, `table "tallies", record ID="a": its Table has a Version, so the unit must fit into one transaction`)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.Equal(t, before["tallies"], b.tables()["tallies"])
		require.Equal(t, before["customers"], b.tables()["customers"])
		b.allFree()
	})
}

// uncounted are the tallies as a part of a program has them that was not told of versions.
var uncounted = unitofwork.Table[tally]{
	Name: "tallies", PartitionKey: "ID",
	Guard: func(r *tally) ordering.Key { return tallyKey(r.ID) },
}

// What a unit has read with a version is written with it, also by a reference that has none.
func TestAVersionBesideATableWithoutOne(t *testing.T) {
	bothWays(t, func(t *testing.T, b *bed, work unitofwork.Work) {
		calls := 0
		err := b.client("c", nil).freely(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
			read, written := tallies.Ref("a"), uncounted.Ref("a")
			if err := u.Get(ctx, read); err != nil {
				return err
			}
			if calls++; calls == 1 {
				require.NoError(t, b.addOld("a", 100))
			}
			return u.Update(written, unitofwork.Expression{Update: "SET N = :n", Values: map[string]any{":n": read.T.N + 1}})
		})
		require.NoError(t, err)
		require.Equal(t, 2, calls)
		a, _ := b.tally("a")
		require.EqualValues(t, 111, a.N)
		require.EqualValues(t, 9, a.Version)
	})
}
