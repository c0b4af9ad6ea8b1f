package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What an operator can do about a unit that is committed and cannot be applied.

// diesWriting has an owner commit a unit of a few deposits that also does this to account a of
// customer 1, and die before anything is applied. It returns the unit and its token.
func (b *bed) diesWriting(one func(*unitofwork.Unit) error) (unit string, token int64) {
	b.t.Helper()
	keys, refs := largeKeys(fewKeys)
	dead := b.client("dead", atPhase(decides, 1, faults.CrashHere(true)), inSmallTransactions)
	units, over := make(chan string, 1), make(chan struct{})
	b.t.Cleanup(func() { <-over })
	go func() {
		defer close(over)
		_ = dead.Do(context.WithoutCancel(b.t.Context()), unitofwork.Work{Keys: append(keys, ofStuck)}, func(ctx context.Context, u *unitofwork.Unit) error {
			units <- u.Nonce()
			return errors.Join(deposit(refs, 7)(ctx, u), one(u))
		})
	}()
	<-dead.net.Dead()
	return <-units, int64(b.fenceOf(ofStuck))
}

var ofStuck = accountKey("1", "a")

func (b *bed) fenceOf(key ordering.Key) fencing.Token {
	b.t.Helper()
	token, ok := fencing.Fence{Attribute: "fence"}.Of(b.row(key))
	require.True(b.t, ok)
	return token
}

// writesOfStuck are what units do to the record that is in the way, and what becomes of its
// balance if it was 5.
var writesOfStuck = map[string]struct {
	do      func(*unitofwork.Unit) error
	applied any // nil if the record is gone then
}{
	"put": {func(u *unitofwork.Unit) error {
		return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 70}))
	}, "70"},
	"update": {func(u *unitofwork.Unit) error {
		return u.Update(accounts.Ref("1", "a"), unitofwork.Expression{
			Update: "SET #s1 = :s1 ADD Balance :n", Names: map[string]string{"#s1": "Text"}, Values: map[string]any{":n": 7, ":s1": "x"},
		})
	}, "12"},
	"deletion": {func(u *unitofwork.Unit) error { return u.Delete(accounts.Ref("1", "a")) }, nil},
}

// strange is a record that a program without locks wrote: of every type that there is.
func strange(fence types.AttributeValue) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{
		"Customer": text("1"), "ID": text("a"), "Balance": number("5"), "status": text(""),
		"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{text("x"), &types.AttributeValueMemberNULL{Value: true}}},
		"map":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"a b": &types.AttributeValueMemberBOOL{Value: true}}},
		"set":  &types.AttributeValueMemberSS{Value: []string{"a", "b"}}, "set of numbers": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
		"bytes": &types.AttributeValueMemberB{Value: []byte{0, 255}},
	}
	if fence != nil {
		item["_fence"] = fence
	}
	return item
}

// onlyObstacle asks what keeps a unit from being done, which is one thing.
func (c *client) onlyObstacle(t *testing.T, unit string) unitofwork.Obstacle {
	t.Helper()
	obstacles, err := c.StuckOf(t.Context(), unit)
	require.NoError(t, err)
	require.Len(t, obstacles, 1)
	return obstacles[0]
}

// finished asserts that a unit is done, and has left nothing.
func (b *bed) finished(c *client, unit string) {
	b.t.Helper()
	for range 2 {
		left, err := c.StuckOf(b.t.Context(), unit)
		require.NoError(b.t, err)
		require.Empty(b.t, left)
	}
	require.Equal(b.t, text("done"), b.decided(unit)["state"])
	sum, n := b.total()
	require.Equal(b.t, []int64{7 * fewKeys, fewKeys}, []int64{sum, int64(n)})
	b.nothingLeft()
	b.allFreeOnceAskedFor(ofStuck, customerKey("1"), customerKey("c000"))
}

func TestAnOperatorDecidesAboutARecord(t *testing.T) {
	for what, w := range writesOfStuck {
		for fence, value := range map[string]types.AttributeValue{"newer": number(later), "none": text("x")} {
			for _, choice := range []unitofwork.Choice{unitofwork.ApplyWrite, unitofwork.KeepRecord} {
				t.Run(fmt.Sprint(what, " fence ", fence, " ", choice), func(t *testing.T) {
					inBed(t, func(t *testing.T, b *bed) {
						unit, token := b.diesWriting(w.do)
						found := strange(value)
						b.putItem("accounts", found)
						c := b.client("operator", nil, inSmallTransactions)
						o := c.onlyObstacle(t, unit)
						require.Equal(t, unit, o.Unit)
						require.EqualValues(t, token, o.Token)
						require.Equal(t, ofStuck, o.Key)
						require.False(t, o.RowGone)
						require.Len(t, o.Writes, 1)
						require.Equal(t, found, o.Writes[0].Found)
						require.Equal(t, `Customer="1" ID="a"`, o.Writes[0].Record)
						require.Equal(t, []unitofwork.Choice{unitofwork.ApplyWrite, unitofwork.KeepRecord}, o.Choices)
						require.Equal(t, o.State, b.client("another", nil).onlyObstacle(t, unit).State)

						require.NoError(t, c.Mend(t.Context(), o, choice))
						require.ErrorIs(t, c.Mend(t.Context(), o, choice), unitofwork.ErrChanged)
						b.finished(b.client("later", nil, inSmallTransactions), unit)
						is := b.item("accounts", "1", "a")
						if choice == unitofwork.KeepRecord {
							found["_fence"] = number(fmt.Sprint(token))
							require.Equal(t, found, is)
							return
						}
						if w.applied == nil {
							require.Nil(t, is)
							return
						}
						require.Equal(t, number(w.applied.(string)), is["Balance"])
						require.Equal(t, number(fmt.Sprint(token)), is["_fence"])
						require.Equal(t, what == "update", valueOf(is["Text"]) == "x")
						require.Equal(t, what == "update", is["map"] != nil, "an update leaves the rest, and a put does not")
						require.ErrorIs(t, c.Mend(t.Context(), o, choice), unitofwork.ErrChanged)
					})
				})
			}
		}
	}
}

// An update that cannot be carried out on the record as it stands can only be left out; on one
// that is not there, not even that, for there is nothing to carry the stamp.
func TestAnOperatorDecidesAboutAnUpdateThatCannotBe(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, token := b.diesWriting(func(u *unitofwork.Unit) error {
			return u.Update(accounts.Ref("1", "a"), unitofwork.Expression{Update: "SET Balance = Balance + :n", Values: map[string]any{":n": 7}})
		})
		key := map[string]string{"Customer": "1", "ID": "a"}
		b.delete("accounts", key)
		c := b.client("operator", nil, inSmallTransactions)
		o := c.onlyObstacle(t, unit)
		require.Empty(t, o.Choices)
		require.Nil(t, o.Writes[0].Found)
		require.ErrorContains(t, o.Reason, "it cannot be kept as it is")
		for _, choice := range []unitofwork.Choice{unitofwork.ApplyWrite, unitofwork.KeepRecord, unitofwork.WasWritten, unitofwork.NotWritten} {
			require.ErrorIs(t, c.Mend(t.Context(), o, choice), unitofwork.ErrNoChoice)
		}

		b.putItem("accounts", map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": text("much")})
		o = c.onlyObstacle(t, unit)
		require.Equal(t, []unitofwork.Choice{unitofwork.KeepRecord}, o.Choices)
		require.NoError(t, c.Mend(t.Context(), o, unitofwork.KeepRecord))
		b.finished(c, unit)
		require.Equal(t, map[string]types.AttributeValue{
			"Customer": text("1"), "ID": text("a"), "Balance": text("much"), "_fence": number(fmt.Sprint(token)),
		}, b.item("accounts", "1", "a"))
	})
}

// A newer stamp on a record that the update cannot be carried out on, either.
func TestAWriteThatCannotBeDoneIsNoChoiceForLong(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, _ := b.diesWriting(writesOfStuck["update"].do)
		b.putItem("accounts", map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": text("much"), "_fence": number(later)})
		before := b.tables()
		c := b.client("operator", nil, inSmallTransactions)
		require.ErrorAs(t, c.Mend(t.Context(), c.onlyObstacle(t, unit), unitofwork.ApplyWrite), new(*lockset.TableError))
		require.Equal(t, before["accounts"][0], b.db.Items("accounts")[0])
		require.NoError(t, c.Mend(t.Context(), c.onlyObstacle(t, unit), unitofwork.KeepRecord))
		b.finished(c, unit)
	})
}

// A record has more attributes than a condition can compare, or just as many.
func TestARecordWithManyAttributes(t *testing.T) {
	for n, choices := range map[int]int{149: 2, 150: 0} {
		inBed(t, func(t *testing.T, b *bed) {
			unit, _ := b.diesWriting(writesOfStuck["update"].do)
			item := map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": number("5"), "_fence": number(later)}
			for i := len(item); i < n; i++ {
				item[fmt.Sprintf("attribute %d", i)] = text("x")
			}
			b.putItem("accounts", item)
			c := b.client("operator", nil, inSmallTransactions)
			o := c.onlyObstacle(t, unit)
			require.Len(t, o.Choices, choices)
			if choices == 0 {
				require.ErrorContains(t, o.Reason, "by hand")
				return
			}
			require.NoError(t, c.Mend(t.Context(), o, unitofwork.ApplyWrite))
			b.finished(c, unit)
		})
	}
}

// Whatever has changed since an operator looked, nothing is written.
func TestWhatWasShownHasChanged(t *testing.T) {
	of := map[string]string{"Customer": "1", "ID": "a"}
	for name, change := range map[string]func(b *bed, unit string){
		"an attribute":         func(b *bed, _ string) { b.change("accounts", of, "SET #status = :bytes") },
		"an attribute is gone": func(b *bed, _ string) { b.change("accounts", of, "REMOVE #map") },
		"the fence":            func(b *bed, _ string) { b.change("accounts", of, "SET #_fence = :bytes") },
		"the fence is gone":    func(b *bed, _ string) { b.change("accounts", of, "REMOVE #_fence") },
		"the record is gone":   func(b *bed, _ string) { b.delete("accounts", of) },
		"the key is free":      func(b *bed, _ string) { b.bury(ofStuck) },
		"the row is gone":      func(b *bed, _ string) { b.deleteRow(ofStuck) },
		"the row is another's": func(b *bed, _ string) {
			b.change("locks", map[string]string{"key": string(ofStuck)}, "REMOVE #pending")
		},
		"the decision is gone": func(b *bed, unit string) { b.delete("units", map[string]string{"unit": unit, "part": "record"}) },
		"the unit is done": func(b *bed, unit string) {
			item := b.decided(unit)
			item["state"] = text("done")
			b.putItem("units", item)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				unit, _ := b.diesWriting(writesOfStuck["put"].do)
				b.putItem("accounts", strange(number(later)))
				c := b.client("operator", nil, inSmallTransactions)
				o := c.onlyObstacle(t, unit)
				change(b, unit)
				before := b.tables()
				for _, choice := range o.Choices {
					err := c.Mend(t.Context(), o, choice)
					require.ErrorIs(t, err, unitofwork.ErrChanged)
					require.Equal(t, lockset.FixCall, lockset.NextOf(err))
				}
				require.Equal(t, before, b.tables())
			})
		})
	}
}

// A record that had no stamp when it was shown has one now: of a choice that was made.
func TestWhatWasShownWithoutAFenceHasOne(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, _ := b.diesWriting(writesOfStuck["update"].do)
		b.putItem("accounts", map[string]types.AttributeValue{"Customer": text("1"), "ID": text("a"), "Balance": text("much")})
		c := b.client("operator", nil, inSmallTransactions)
		o := c.onlyObstacle(t, unit)
		b.change("accounts", map[string]string{"Customer": "1", "ID": "a"}, "SET #_fence = :bytes")
		require.ErrorIs(t, c.Mend(t.Context(), o, unitofwork.KeepRecord), unitofwork.ErrChanged)
		require.NotEqual(t, o.State, c.onlyObstacle(t, unit).State)
	})
}

// Several operators choose at the same time, beside those who recover: one choice counts.
func TestOfSeveralChoicesOneCounts(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, token := b.diesWriting(writesOfStuck["update"].do)
		b.putItem("accounts", strange(number(later)))
		o := b.client("first", nil, inSmallTransactions).onlyObstacle(t, unit)
		results := make(chan error, 6)
		for i := range cap(results) {
			c := b.client(fmt.Sprint("operator", i), nil, inSmallTransactions)
			go func() {
				err := c.Mend(t.Context(), o, o.Choices[i%2])
				_, after := c.StuckOf(t.Context(), unit)
				results <- errors.Join(err, after)
			}()
		}
		won := 0
		for range cap(results) {
			if err := <-results; err == nil {
				won++
			} else {
				require.ErrorIs(t, err, unitofwork.ErrChanged)
			}
		}
		require.Equal(t, 1, won)
		b.finished(b.client("last", nil), unit)
		require.Contains(t, []types.AttributeValue{number("5"), number("12")}, b.item("accounts", "1", "a")["Balance"])
		require.Equal(t, number(fmt.Sprint(token)), b.item("accounts", "1", "a")["_fence"])
	})
}

// A copy of what an operator sent, or its answer that was lost, does nothing more.
func TestACopyOfAChoiceThatArrivesLate(t *testing.T) {
	for _, choice := range []unitofwork.Choice{unitofwork.ApplyWrite, unitofwork.KeepRecord, unitofwork.WasWritten, unitofwork.NotWritten} {
		t.Run(string(choice), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				unit, _ := b.diesWriting(writesOfStuck["update"].do)
				if choice == unitofwork.ApplyWrite || choice == unitofwork.KeepRecord {
					b.putItem("accounts", strange(number(later)))
				} else {
					b.deleteRow(ofStuck)
				}
				var sent *dynamodb.TransactWriteItemsInput
				c := b.client("operator", nil, inSmallTransactions)
				o := c.onlyObstacle(t, unit)
				choosing := b.client("choosing", func(c faults.Call) faults.Fault {
					in, is := c.Input.(*dynamodb.TransactWriteItemsInput)
					if is && sent == nil {
						sent = in
						return faults.LoseAnswer(faults.Reset)
					}
					return faults.Pass()
				}, inSmallTransactions)
				require.NoError(t, choosing.Mend(t.Context(), o, choice))
				copied := *sent
				copied.ClientRequestToken = new(string)
				*copied.ClientRequestToken = "another"
				arrives := func() {
					before := b.tables()
					_, err := b.db.TransactWriteItems(t.Context(), &copied)
					require.ErrorAs(t, err, new(*types.TransactionCanceledException))
					require.Equal(t, before, b.tables())
				}
				arrives()
				b.finished(c, unit)
				arrives()
			})
		})
	}
}
