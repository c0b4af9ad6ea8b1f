package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

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
	unit = dead.diesIn(b.t, unitofwork.Work{Keys: append(keys, ofStuck)}, func(ctx context.Context, u *unitofwork.Unit) error {
		return errors.Join(deposit(refs, 7)(ctx, u), one(u))
	})
	return unit, int64(b.fenceOf(ofStuck))
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
				runInBed(t, fmt.Sprint(what, " fence ", fence, " ", choice), func(t *testing.T, b *bed) {
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
		runInBed(t, name, func(t *testing.T, b *bed) {
			unit, _ := b.diesWriting(writesOfStuck["put"].do)
			b.putItem("accounts", strange(number(later)))
			c := b.client("operator", nil, inSmallTransactions)
			o := c.onlyObstacle(t, unit)
			change(b, unit)
			before := b.tables()
			for _, choice := range o.Choices {
				err := c.Mend(t.Context(), o, choice)
				require.ErrorIs(t, err, unitofwork.ErrChanged)
				require.Equal(t, lockset.StartOver, lockset.NextOf(err))
			}
			require.Equal(t, before, b.tables())
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
		runInBed(t, choice, func(t *testing.T, b *bed) {
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
	}
}

// Rows of keys that are gone, and what is nobody's to choose about.

func TestAnOperatorDecidesAboutAKeyWhoseRowIsGone(t *testing.T) {
	for choice, balance := range map[unitofwork.Choice]string{unitofwork.WasWritten: "100", unitofwork.NotWritten: "107"} {
		runInBed(t, choice, func(t *testing.T, b *bed) {
			unit, token := b.diesWriting(writesOfStuck["update"].do)
			row := b.row(ofStuck)
			b.deleteRow(ofStuck)
			c := b.client("operator", nil, inSmallTransactions)
			o := c.onlyObstacle(t, unit)
			require.True(t, o.RowGone)
			require.Equal(t, ofStuck, o.Key)
			require.Equal(t, []unitofwork.Choice{unitofwork.WasWritten, unitofwork.NotWritten}, o.Choices)
			require.Len(t, o.Writes, 1)
			require.Equal(t, number("100"), o.Writes[0].Found["Balance"])

			require.NoError(t, c.Mend(t.Context(), o, choice))
			is := b.row(ofStuck)
			if choice == unitofwork.WasWritten {
				require.Equal(t, text("1"), is["isReleased"])
				require.Greater(t, int64(b.fenceOf(ofStuck)), token, "the row that is gone may have had a higher one")
				require.Equal(t, text(unit), is["committedBy"])
				require.Contains(t, is, "expiresAt")
			} else {
				for _, name := range []string{"unit", "fence", "pending"} {
					require.Equal(t, row[name], is[name], name)
				}
				require.NotContains(t, is, "expiresAt")
				require.Contains(t, b.row(customerKey("1")), "below")
			}
			require.ErrorIs(t, c.Mend(t.Context(), o, choice), unitofwork.ErrChanged)
			b.finished(b.client("later", nil, inSmallTransactions), unit)
			require.Equal(t, number(balance), b.item("accounts", "1", "a")["Balance"])
		})
	}
}

// Of several keys whose rows are gone each is asked about; what has the unit's stamp is not
// written again.
func TestRowsThatAreGoneInSeveralFamilies(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, _ := b.diesWriting(writesOfStuck["update"].do)
		for _, key := range []ordering.Key{ofStuck, accountKey("c000", "a1"), accountKey("c000", "a2")} {
			b.deleteRow(key)
		}
		c := b.client("operator", nil, inSmallTransactions)
		var asked []ordering.Key
		for {
			obstacles, err := c.StuckOf(t.Context(), unit)
			require.NoError(t, err)
			if len(obstacles) == 0 {
				break
			}
			for _, o := range obstacles {
				asked = append(asked, o.Key)
				require.NoError(t, c.Mend(t.Context(), o, unitofwork.NotWritten))
			}
		}
		slices.Sort(asked)
		require.Equal(t, []ordering.Key{ofStuck, accountKey("c000", "a1"), accountKey("c000", "a2")}, asked)
		b.finished(c, unit)
		require.Equal(t, number("107"), b.item("accounts", "1", "a")["Balance"])
	})
}

// Whoever has a key above has all below it: the unit does not get its key back meanwhile, and
// nobody can have it above while the unit has it again.
func TestAKeyIsNotGivenBackBelowAHolder(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, _ := b.diesWriting(writesOfStuck["update"].do)
		b.deleteRow(ofStuck)
		b.deleteRow(customerKey("1")) // with the unit's intent
		holder := b.client("holder", nil)
		set := holder.has(t, customerKey("1"))
		c := b.client("operator", nil, inSmallTransactions)
		o := c.onlyObstacle(t, unit)
		before := b.tables()
		require.ErrorIs(t, c.Mend(t.Context(), o, unitofwork.NotWritten), unitofwork.ErrChanged)
		require.Equal(t, before["accounts"], b.db.Items("accounts"))
		require.False(t, b.hasRow(ofStuck))
		require.NoError(t, set.Release(t.Context()))

		fence := b.fenceOf(customerKey("1"))
		require.NoError(t, c.Mend(t.Context(), o, unitofwork.NotWritten))
		require.Equal(t, fence, b.fenceOf(customerKey("1")), "it never falls")
		require.NotContains(t, b.row(customerKey("1")), "expiresAt")
		_, err := b.client("waiter", nil).locks.TryAcquire(t.Context(), []ordering.Key{customerKey("1")})
		require.ErrorAs(t, err, new(*lockset.HeldError))
		b.finished(c, unit)
	})
}

// A choice that was sent and not answered may be carried out later, when it is refused by now: that
// nothing was written would be untrue.
func TestAChoiceThatArrivesAfterItWasRefused(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, _ := b.diesWriting(writesOfStuck["update"].do)
		b.deleteRow(ofStuck)
		b.deleteRow(customerKey("1")) // with the unit's intent
		set := b.client("holder", nil).has(t, customerKey("1"))
		o := b.client("looking", nil, inSmallTransactions).onlyObstacle(t, unit)
		n := 0
		c := b.client("operator", func(c faults.Call) faults.Fault {
			if _, is := c.Input.(*dynamodb.TransactWriteItemsInput); is {
				if n++; n == 1 {
					return faults.DeliverLate(lease/2, faults.Reset)
				}
			}
			return faults.Pass()
		}, inSmallTransactions)
		err := c.Mend(t.Context(), o, unitofwork.NotWritten)
		require.False(t, b.hasRow(ofStuck))
		require.NoError(t, set.Release(t.Context()))
		c.net.Wait()
		require.True(t, b.hasRow(ofStuck))
		require.NotErrorIs(t, err, unitofwork.ErrChanged)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		b.finished(b.client("last", nil, inSmallTransactions), unit)
	})
}

// A row that the unit cannot have left is nobody's to choose about.
func TestARowOfSomebodyElseIsLeftAlone(t *testing.T) {
	for name, row := range map[string]map[string]types.AttributeValue{
		"free, with a lower fence": {"key": text(string(ofStuck)), "isReleased": text("1"), "fence": number("1")},
		"none that we understand":  {"key": text(string(ofStuck)), "data": text("x")},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			unit, _ := b.diesWriting(writesOfStuck["update"].do)
			b.putItem("locks", row)
			c := b.client("operator", nil, inSmallTransactions)
			o := c.onlyObstacle(t, unit)
			require.Empty(t, o.Choices)
			require.False(t, o.RowGone)
			require.ErrorIs(t, c.Mend(t.Context(), o, unitofwork.NotWritten), unitofwork.ErrNoChoice)
			require.Equal(t, row, b.row(ofStuck))
		})
	}
}

// What is not committed is not touched, and above all not aborted: its owner may be at work.
func TestWhatIsNotCommittedIsNotMended(t *testing.T) {
	for name, c := range map[string]struct {
		at       phase
		executed bool
		settled  bool
	}{
		"not decided": {decides, false, false},
		"aborted":     {decides, false, true},
		"done":        {decides, true, true},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			unit := b.dies(c.at, 1, c.executed)
			operator := b.client("operator", nil, inSmallTransactions)
			if c.settled {
				operator.recovers(t)
			}
			before := b.tables()
			obstacles, err := operator.StuckOf(t.Context(), unit)
			require.Empty(t, obstacles)
			if c.executed {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, unitofwork.ErrNotCommitted)
			}
			require.Equal(t, before, b.tables())
			_, err = operator.StuckOf(t.Context(), "anotherUnitAltogether_")
			require.ErrorIs(t, err, unitofwork.ErrNotCommitted)
		})
	}
}

// About a journal that is damaged there is no choice.
func TestAJournalCannotBeMended(t *testing.T) {
	for _, part := range []string{"journal/000000", "record"} {
		inBed(t, func(t *testing.T, b *bed) {
			unit, _ := b.diesWriting(writesOfStuck["put"].do)
			b.change("units", map[string]string{"unit": unit, "part": part}, "SET #body = :bytes REMOVE #state")
			before := b.tables()
			obstacles, err := b.client("operator", nil).StuckOf(t.Context(), unit)
			require.ErrorAs(t, err, new(*unitofwork.JournalError))
			require.Empty(t, obstacles)
			require.Equal(t, before, b.tables())
		})
	}
}

// The unit's own process is alive, and has not come to its end when somebody mends it.
func TestAUnitOfALivingOwnerIsMended(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("accounts", strange(nil))
		stuck := upon(decides.is, func() {
			b.putItem("accounts", strange(number(later)))
		})
		owner := b.client("owner", stuck, inSmallTransactions)
		keys, refs := largeKeys(fewKeys)
		units, done := make(chan string, 1), make(chan error)
		go func() {
			done <- owner.Do(t.Context(), unitofwork.Work{Keys: append(keys, ofStuck)}, func(ctx context.Context, u *unitofwork.Unit) error {
				units <- u.Nonce()
				return errors.Join(deposit(refs, 7)(ctx, u), writesOfStuck["update"].do(u))
			})
		}()
		unit := <-units
		c := b.client("operator", nil, inSmallTransactions)
		for {
			obstacles, err := c.StuckOf(t.Context(), unit)
			if errors.Is(err, unitofwork.ErrNotCommitted) {
				time.Sleep(rtt)
				continue
			}
			require.NoError(t, err)
			for _, o := range obstacles {
				require.NoError(t, c.Mend(t.Context(), o, unitofwork.ApplyWrite))
			}
			if len(obstacles) == 0 {
				break
			}
		}
		require.NoError(t, <-done)
		b.finished(c, unit)
		require.Equal(t, number("12"), b.item("accounts", "1", "a")["Balance"])
	})
}

// Another operator has been quicker, between the refusal and the look: nothing is in the way.
func TestARecordThatIsMendedWhileAnotherLooks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		unit, token := b.diesWriting(writesOfStuck["update"].do)
		b.putItem("accounts", strange(number(later)))
		c := b.client("operator", upon(func(c faults.Call) bool { return c.Op == "GetItem" }, func() {
			b.putItem("accounts", strange(number(fmt.Sprint(token))))
		}), inSmallTransactions)
		b.finished(c, unit)
		require.Equal(t, number("5"), b.item("accounts", "1", "a")["Balance"])
	})
}

// What a permission is in the way of is no operator's to choose about, and what cannot be read is
// not, either.
func TestAPermissionIsNoChoice(t *testing.T) {
	for name, denied := range map[string]func(faults.Call) bool{
		"to write": func(c faults.Call) bool {
			in, is := c.Input.(*dynamodb.TransactWriteItemsInput)
			return is && slices.ContainsFunc(in.TransactItems, func(item types.TransactWriteItem) bool {
				return item.Update != nil && *item.Update.TableName == "accounts"
			})
		},
		"to read": func(c faults.Call) bool { return c.Op == "GetItem" },
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			unit, _ := b.diesWriting(writesOfStuck["update"].do)
			if name == "to read" {
				b.putItem("accounts", strange(number(later)))
			}
			c := b.client("operator", when(denied, faults.Deny()), inSmallTransactions)
			o := c.onlyObstacle(t, unit)
			require.Empty(t, o.Choices)
			require.ErrorAs(t, o.Reason, new(*lockset.TableError))
		})
	}
}
