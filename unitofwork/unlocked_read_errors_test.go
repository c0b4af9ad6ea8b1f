package unitofwork_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// What Read makes of rows and answers that tell it nothing, and how often it asks.

// A record whose guard is known only when it is read is seen by half as little as those
// beside it, whichever is named first.
func TestAReaderOfRecordsGuardedByContentBesideOthers(t *testing.T) {
	for name, order := range map[string][]int{"it is the first": {0, 1}, "it is the last": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.createTable("holdings", "ID")
				b.put("holdings", holding{ID: "h", Customer: "1"})
				held := accountKey("1", "h")
				dead := b.client("dead", nil)
				set, err := dead.locks.Acquire(t.Context(), []ordering.Key{held})
				require.NoError(t, err)
				marked, err := (*locks.Set)(set).Prepare(t.Context(), "units", func(int) {})
				require.NoError(t, err)
				marked.Done(false)

				reader := b.client("reader", nil)
				both := []unitofwork.Record{holdings.Ref("h"), accounts.Ref("2", "a")}
				ctx, cancel := context.WithTimeout(t.Context(), lease/2)
				defer cancel()
				err = reader.Read(ctx, both[order[0]], both[order[1]])
				require.ErrorIs(t, err, context.DeadlineExceeded, "its unit may have written half")
			})
		})
	}
}

// Parts that are read without a look at all rows before them may be of two moments: a
// look without an answer is an error.
func TestALookAtTheRowsWithoutAnAnswer(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		end := time.Now().Add(lease)
		reader := b.client("reader", func(c faults.Call) faults.Fault {
			if time.Now().Before(end) {
				return faults.LoseRequest(faults.Hang)
			}
			return faults.Pass()
		})
		_, refs := largeKeys(120)
		err := reader.Read(t.Context(), asRecords(refs)...)
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
		require.NoError(t, reader.Read(t.Context(), asRecords(refs)...))
	})
}

// A lock row that is none says nothing of what it guards.
func TestAReaderOfARowThatIsNone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("locks", map[string]types.AttributeValue{"key": text(string(customerKey("1"))), "colour": text("red")})
		c := b.client("reader", nil)
		one := accounts.Ref("1", "a")
		err := c.Read(t.Context(), one, accounts.Ref("2", "a"))
		var foreign *lockrow.RowError
		require.ErrorAs(t, err, &foreign)
		require.Equal(t, customerKey("1"), foreign.Key)
		require.Equal(t, "locks", foreign.Table)
		require.False(t, one.Found, "nothing is shown")
		require.NoError(t, c.Read(t.Context(), accounts.Ref("2", "a")))
	})
}

// Whoever may not read a table is told which those of the request are: the lock table
// is one of them where a record has a guard.
func TestTheTablesOfARead(t *testing.T) {
	free := unitofwork.Table[account]{Name: "accounts", PartitionKey: "Customer", SortKey: "ID"}
	for name, c := range map[string]struct {
		record unitofwork.Record
		tables []string
	}{
		"guarded":         {accounts.Ref("1", "a"), []string{"accounts", "locks"}},
		"without a guard": {free.Ref("1", "a"), []string{"accounts"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				err := b.client("reader", denies("accounts")).Read(t.Context(), c.record)
				var refused *lockset.TableError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, c.tables, refused.Tables)
				require.Equal(t, "TransactGetItems", refused.Op)
			})
		})
	}
}

// As many records as fit into one request with their rows are one request; the records
// of one more are two, after a look at all rows.
func TestHowManyRequestsARead(t *testing.T) {
	for name, c := range map[string]struct{ records, requests int }{
		"one":                {1, 1},
		"as many as fit":     {99, 1}, // with one row
		"one more than that": {100, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				one := unitofwork.Table[account]{Name: "accounts", PartitionKey: "Customer", SortKey: "ID", Guard: func(*account) ordering.Key { return "one" }}
				var refs []unitofwork.Record
				for i := range c.records {
					refs = append(refs, one.Ref("3", strconv.Itoa(i)))
				}
				reader := b.client("reader", nil)
				require.NoError(t, reader.Read(t.Context(), refs...))
				require.Equal(t, map[string]int{"TransactGetItems": c.requests}, reader.requests())
			})
		})
	}
}

// No request of a read has more than a hundred items, however the records and their
// rows come together.
func TestARequestOfAReadIsNeverTooLarge(t *testing.T) {
	for _, n := range []int{33, 34, 49, 50, 51, 99, 100, 101, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				reader := b.client("reader", func(c faults.Call) faults.Fault {
					if in, ok := c.Input.(*dynamodb.TransactGetItemsInput); ok {
						require.LessOrEqual(t, len(in.TransactItems), requests.MaxActions)
					}
					return faults.Pass()
				})
				_, refs := largeKeys(n)
				require.NoError(t, reader.Read(t.Context(), asRecords(refs)...))
			})
		})
	}
}

// However few records DynamoDB takes at once, so many are asked for, and one that it does
// not take alone ends the read.
func TestARequestOfAReadIsHalvedUntilItFits(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		for most := range n + 1 {
			t.Run(fmt.Sprint(n, " records, ", most, " at once"), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					reader := b.client("reader", func(c faults.Call) faults.Fault {
						records := 0
						for _, table := range tablesOf(c) {
							if table == "accounts" {
								records++
							}
						}
						if records > most {
							return faults.RefuseAsTooLarge()
						}
						return faults.Pass()
					})
					ctx, cancel := context.WithTimeout(t.Context(), lease)
					defer cancel()
					_, refs := largeKeys(n)
					err := reader.Read(ctx, asRecords(refs)...)
					if most > 0 {
						require.NoError(t, err)
					} else {
						require.ErrorAs(t, err, new(*lockset.TableError))
					}
				})
			})
		}
	}
}

// A fence that was read without locks is not proposed again either.
func TestAFenceThatWasReadWithoutLocks(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		fence := time.Now().Add(time.Hour).UnixMicro()
		b.put("accounts", account{Customer: "1", ID: "a", Balance: 5, Fence: fence})
		c := b.client("c", nil)
		require.NoError(t, c.Read(t.Context(), accounts.Ref("1", "a")))
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, transfer(1)))
		require.Greater(t, b.account("1").Fence, fence)
	})
}

// The pause before a reader looks again doubles, up to the poll of those who wait for
// locks, and is cut by as much as half, by chance.
func TestThePauseBeforeAReaderLooksAgain(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.diesDecided(fewKeys, inSmallTransactions)
		const poll = 300 * time.Millisecond
		var sent []time.Time
		reader := b.client("reader", func(faults.Call) faults.Fault {
			sent = append(sent, time.Now())
			return faults.Pass()
		}, func(l *lockset.Config, _ *unitofwork.Config) { l.Poll = poll })
		_, refs := largeKeys(1)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.ErrorIs(t, reader.Read(ctx, refs[0]), context.DeadlineExceeded)
		require.Greater(t, len(sent), 12)
		short := 0
		for i := range len(sent) - 1 {
			pause, longest := sent[i+1].Sub(sent[i])-rtt, min(10*time.Millisecond<<i, poll)
			require.GreaterOrEqual(t, pause, longest/2, "pause %d", i+1)
			require.Less(t, pause, longest, "pause %d", i+1)
			if pause < longest*3/4 {
				short++
			}
		}
		require.Positive(t, short)
		require.Less(t, short, len(sent)-1)
	})
}
