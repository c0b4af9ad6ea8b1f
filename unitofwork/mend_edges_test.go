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

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Rows of keys that are gone, and what is nobody's to choose about.

func TestAnOperatorDecidesAboutAKeyWhoseRowIsGone(t *testing.T) {
	for choice, balance := range map[unitofwork.Choice]string{unitofwork.WasWritten: "100", unitofwork.NotWritten: "107"} {
		t.Run(string(choice), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		set, err := holder.locks.Acquire(t.Context(), []ordering.Key{customerKey("1")})
		require.NoError(t, err)
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
		_, err = b.client("waiter", nil).locks.TryAcquire(t.Context(), []ordering.Key{customerKey("1")})
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
		set, err := b.client("holder", nil).locks.Acquire(t.Context(), []ordering.Key{customerKey("1")})
		require.NoError(t, err)
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
		err = c.Mend(t.Context(), o, unitofwork.NotWritten)
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				unit, _ := b.diesWriting(writesOfStuck["update"].do)
				b.putItem("locks", row)
				c := b.client("operator", nil, inSmallTransactions)
				o := c.onlyObstacle(t, unit)
				require.Empty(t, o.Choices)
				require.False(t, o.RowGone)
				require.ErrorIs(t, c.Mend(t.Context(), o, unitofwork.NotWritten), unitofwork.ErrNoChoice)
				require.Equal(t, row, b.row(ofStuck))
			})
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				unit := b.dies(c.at, 1, c.executed)
				operator := b.client("operator", nil, inSmallTransactions)
				if c.settled {
					_, err := operator.Recover(t.Context())
					require.NoError(t, err)
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
		stuck := func(c faults.Call) faults.Fault {
			if phaseOf(c) == decides {
				b.putItem("accounts", strange(number(later)))
			}
			return faults.Pass()
		}
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
		c := b.client("operator", func(c faults.Call) faults.Fault {
			if c.Op == "GetItem" {
				b.putItem("accounts", strange(number(fmt.Sprint(token))))
			}
			return faults.Pass()
		}, inSmallTransactions)
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				unit, _ := b.diesWriting(writesOfStuck["update"].do)
				if name == "to read" {
					b.putItem("accounts", strange(number(later)))
				}
				c := b.client("operator", func(c faults.Call) faults.Fault {
					if denied(c) {
						return faults.Deny()
					}
					return faults.Pass()
				}, inSmallTransactions)
				o := c.onlyObstacle(t, unit)
				require.Empty(t, o.Choices)
				require.ErrorAs(t, o.Reason, new(*lockset.TableError))
			})
		})
	}
}
