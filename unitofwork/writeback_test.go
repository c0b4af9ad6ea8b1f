package unitofwork_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// P9, only what you changed changes: a record that is read, changed in one field and put, keeps
// everything else bit for bit.

// counting is a record that counts, and has a field that nobody touches.
type counting[F any] struct {
	ID    string
	Count int
	F     F
}

type (
	numberSet struct {
		ID    string
		Count int
		F     []float64 `dynamodbav:",numberset"`
	}
	stringSet struct {
		ID    string
		Count int
		F     []string `dynamodbav:",stringset"`
	}
	unixTime struct {
		ID    string
		Count int
		F     time.Time `dynamodbav:",unixtime"`
	}
	omitted struct {
		ID    string
		Count int
		F     string `dynamodbav:",omitempty"`
	}
	street     struct{ Street string }
	notKnowing struct {
		ID    string
		Count int
	}
)

const longNumber = "12345678901234567890.123456789012345678"

// stored are values as other programs may have left them, by name.
func stored() map[string]types.AttributeValue {
	m := func(item map[string]types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: item}
	}
	l := func(all ...types.AttributeValue) types.AttributeValue {

		return &types.AttributeValueMemberL{Value: append([]types.AttributeValue{}, all...)}
	}
	set := &types.AttributeValueMemberSS{Value: []string{"a", "b"}}
	inner := map[string]types.AttributeValue{"n": number(longNumber), "set": set, "none": &types.AttributeValueMemberNULL{Value: true}, "Street": text("Mill"), "Zip": text("1")}
	return map[string]types.AttributeValue{
		"nothing":        nil,
		"NULL":           &types.AttributeValueMemberNULL{Value: true},
		"a text":         text("text"),
		"no text":        text(""),
		"a number":       number("5"),
		"a long number":  number(longNumber),
		"yes":            &types.AttributeValueMemberBOOL{Value: true},
		"bytes":          &types.AttributeValueMemberB{Value: []byte{1, 2}},
		"no bytes":       &types.AttributeValueMemberB{Value: []byte{}},
		"a set":          set,
		"numbers":        &types.AttributeValueMemberNS{Value: []string{"1", "1.00000000000000000001", "2"}},
		"a set of bytes": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
		"a time":         text("2026-01-02T03:04:05.500Z"),
		"an offset":      text("2026-01-02T03:04:05+00:00"),
		"a map":          m(inner),
		"no map":         m(map[string]types.AttributeValue{}),
		"a list":         l(m(inner), m(inner)),
		"no list":        l(),
		"texts":          l(text("a"), &types.AttributeValueMemberNULL{Value: true}, text("")),
	}
}

func keeps[R any](t *testing.T, b *bed, c *client, name string, count func(*R)) (read int) {
	for kind := range stored() {
		for _, work := range []unitofwork.Work{{}, {Lock: true, Keys: []ordering.Key{customerKey("1")}}} {
			item := itemWith(kind)
			b.putItem("customers", item)
			if err := c.freely(t.Context(), work, counts(count)); err != nil { // the SDK does not read one into the other
				require.ErrorAs(t, err, new(*unitofwork.StageError), "%s: %s", name, kind)
				continue
			}
			read++
			item["Count"] = number("2")
			require.Equal(t, item, b.customerItem("1"), "%s: %s", name, kind)
		}
	}
	return read
}

// itemWith is a record that has a value of this kind, and some others.
func itemWith(kind string) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{"ID": text("1"), "Count": number("1"), "Beside": number(longNumber)}
	if value := stored()[kind]; value != nil {
		item["F"] = value
	}
	return item
}

// counts reads the record of customer 1, has it count, and puts it.
func counts[R any](count func(*R)) func(context.Context, *unitofwork.Unit) error {
	table := unitofwork.Table[R]{Name: "customers", PartitionKey: "ID", Guard: func(*R) ordering.Key { return customerKey("1") }}
	return change(table.Ref("1"), count)
}

// customerItem is a customer's record as it is stored, but for its stamp.
func (b *bed) customerItem(id string) map[string]types.AttributeValue {
	item := itemOf(b.db.Items("customers"), attributes{"ID": text(id)})
	delete(item, "_fence")
	return item
}

func keepsField[F any](t *testing.T, b *bed, c *client) int {
	return keeps(t, b, c, fmt.Sprintf("%T", *new(F)), func(r *counting[F]) { r.Count++ })
}

// Whatever is stored, and whatever the type of the field that it is read into.
func TestWhatWasNotTouchedStays(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		read := 0
		for _, try := range []func(*testing.T, *bed, *client) int{
			keepsField[string], keepsField[*string], keepsField[int64], keepsField[*int64], keepsField[float64], keepsField[bool], keepsField[any], keepsField[[]byte],
			keepsField[[]any], keepsField[map[string]any], keepsField[[]map[string]any], keepsField[[]string], keepsField[[]float64], keepsField[[][]byte],
			keepsField[time.Time], keepsField[*time.Time], keepsField[attributevalue.Number], keepsField[street], keepsField[*street], keepsField[[]street],
			keepsField[map[string]street], keepsField[[1]street], keepsField[attributevalue.UnixTime], keepsField[[2]string],
		} {
			read += try(t, b, c)
		}
		read += keeps(t, b, c, "numberset", func(r *numberSet) { r.Count++ })
		read += keeps(t, b, c, "stringset", func(r *stringSet) { r.Count++ })
		read += keeps(t, b, c, "unixtime", func(r *unixTime) { r.Count++ })
		read += keeps(t, b, c, "omitempty", func(r *omitted) { r.Count++ })
		read += keeps(t, b, c, "not known", func(r *notKnowing) { r.Count++ })
		require.Greater(t, read, 300, "combinations")
	})
}

// A Put that changes nothing is a read: no write, and no event in a stream. What was read is checked all
// the same, and the record may still be written.
func TestAPutThatChangesNothing(t *testing.T) {
	for name, work := range map[string]unitofwork.Work{"without locks": {}, "under locks": {Lock: true, Keys: transferKeys}} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.putItem("accounts", wide())
			c := b.client("c", nil)
			do := func(f func(from, to *unitofwork.Ref[account], u *unitofwork.Unit) error) error {
				return c.freely(t.Context(), work, func(ctx context.Context, u *unitofwork.Unit) error {
					from, to := accounts.Ref("1", "a"), accounts.Ref("2", "a")
					if err := u.Get(ctx, from, to); err != nil {
						return err
					}
					from.T.Fence = 99 // which every write sets
					return f(from, to, u)
				})
			}
			before := b.tables()
			require.NoError(t, do(func(from, to *unitofwork.Ref[account], u *unitofwork.Unit) error { return u.Put(from, to) }))
			b.nothingWritten(before)
			require.NoError(t, do(func(from, to *unitofwork.Ref[account], u *unitofwork.Unit) error {
				to.T.Balance++
				return u.Put(from, to)
			}))
			require.Equal(t, wide(), b.unfenced("1"))
			require.Equal(t, [2]int64{100, 101}, b.balances())
			require.ErrorIs(t, do(func(from, _ *unitofwork.Ref[account], u *unitofwork.Unit) error {
				return u.PutIf(from, expression.Name("Balance").Equal(expression.Value(7)))
			}), unitofwork.ErrCondition)
			require.NoError(t, do(func(from, _ *unitofwork.Ref[account], u *unitofwork.Unit) error {
				return u.PutIf(from, expression.Name("Balance").Equal(expression.Value(100)))
			}))
			require.Zero(t, b.account("1").Fence, "it was never written")
			require.NoError(t, do(func(from, _ *unitofwork.Ref[account], u *unitofwork.Unit) error {
				require.NoError(t, u.Put(from))
				from.T.Balance = 5
				return u.Put(from)
			}))
			require.Equal(t, [2]int64{5, 101}, b.balances())
			err := do(func(from, _ *unitofwork.Ref[account], u *unitofwork.Unit) error {
				require.NoError(t, u.Delete(from))
				return u.Put(from)
			})
			require.ErrorContains(t, err, "writes this record already")
		})
	}
}

// Somebody changes what a unit has read and put as it was: the unit, which writes something else, starts over.
func TestAPutThatChangesNothingIsValidated(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, other := b.client("c", nil), b.client("other", nil)
		calls := 0
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			from, to := accounts.Ref("1", "a"), accounts.Ref("2", "a")
			if err := u.Get(ctx, from, to); err != nil {
				return err
			}
			if calls++; calls == 1 {
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, payIn("1")))
			}
			to.T.Balance += from.T.Balance
			return u.Put(from, to)
		}))
		require.Equal(t, 2, calls)
		require.Equal(t, [2]int64{101, 201}, b.balances())
	})
}

// A member of a group puts what another has staged: that is what it has changed or has not.
func TestAMemberPutsWhatAnotherHasStaged(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		set := func(to int64) come {
			return come{fn: func(ctx context.Context, u *unitofwork.Unit) error {
				ref := accounts.Ref("1", "a")
				if err := u.Get(ctx, ref, accounts.Ref("2", "a")); err != nil {
					return err
				}
				ref.T.Balance = to
				return u.Put(ref)
			}}
		}
		noErrors(t, b.crowd(c, set(7), set(7), set(100)))
		require.Equal(t, 2, c.requests()["TransactWriteItems"])
		require.Equal(t, number("100"), b.unfenced("1")["Balance"], "as the table had it, and not as the members before left it")
	})
}
