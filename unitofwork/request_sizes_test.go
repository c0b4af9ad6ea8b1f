package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// Units whose requests would be too large: they are cut by bytes, and what DynamoDB
// refuses for its size all the same is halved, or said at once to be too large.

// bulk is a record's text, of characters that are six bytes as sent.
func bulk(bytes int) string { return strings.Repeat("\x01", bytes) }

type bulky struct{ Customer, ID, Text string }

var bulks = unitofwork.Table[bulky]{
	Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
	Guard: func(b *bulky) ordering.Key { return customerKey(b.Customer) },
}

// putBulk stages puts of records with so much text.
func putBulk(n, bytes int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		for i := range n {
			if err := u.Replace(bulks.Of(bulky{Customer: "1", ID: fmt.Sprint("bulk", i), Text: bulk(bytes)})); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkBulk stages conditions of the same size on the same records, and a put.
func checkBulk(n, bytes int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		for i := range n {
			is := unitofwork.Expression{Condition: "#t = :t", Names: map[string]string{"#t": "Text"}, Values: map[string]any{":t": bulk(bytes)}}
			if err := u.Check(accounts.Ref("1", fmt.Sprint("bulk", i)), is); err != nil {
				return err
			}
		}
		return u.Replace(accounts.Of(account{Customer: "1", ID: "checked"}))
	}
}

// updateBulk stages updates that write as much.
func updateBulk(n, bytes int) func(context.Context, *unitofwork.Unit) error {
	return updateText(n, bulk(bytes))
}

func updateText(n int, text string) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		for i := range n {
			set := unitofwork.Expression{Update: "SET #t = :t", Names: map[string]string{"#t": "Text"}, Values: map[string]any{":t": text}}
			if err := u.Update(accounts.Ref("1", fmt.Sprint("bulk", i)), set); err != nil {
				return err
			}
		}
		return nil
	}
}

// tooLargeTold counts the requests that were refused for the way they are.
func tooLargeTold(refused *int) func(*lockset.Config, *unitofwork.Config) {
	return func(l *lockset.Config, _ *unitofwork.Config) {
		l.Trace = trace.Join(l.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
			if i.Answer == "invalid" {
				*refused++
			}
		}))
	}
}

// What is known beforehand to be too large at once is cut beforehand.
func TestRequestsAreCutByTheirBytes(t *testing.T) {
	const bytes = 395 << 10 // seven of them, up to ten, are below 4 MB as stored, and above 16 as sent
	n := 10
	if testing.Short() {
		n = 7
	}
	inBed(t, func(t *testing.T, b *bed) {
		refused := 0
		c := b.client("A", nil, tooLargeTold(&refused))
		stages := []func(context.Context, *unitofwork.Unit) error{
			putBulk(n, bytes), checkBulk(n, bytes), updateBulk(n, bytes), putBulk(8, bytes), putBulk(14, 10), updateText(14, strings.Repeat("x", bytes)),
		}
		if testing.Short() {
			stages = slices.Delete(stages, 1, 4)
		}
		for i, stage := range stages {
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, stage))
			require.Equal(t, map[string]int{"committed": i + 1}, c.outcomes())
			require.Zero(t, refused, "%d", i)
			b.nothingLeft()
		}
	})
}

// As many conditions are asked at once as a request can have: six of these have less
// than 16 MB.
func TestConditionsAreCutByWhatTheyAreAsSent(t *testing.T) {
	const records = 14
	inBed(t, func(t *testing.T, b *bed) {
		asked := 0
		c := b.client("A", func(c faults.Call) faults.Fault {
			in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
			if ok && !slices.ContainsFunc(in.TransactItems, func(item types.TransactWriteItem) bool { return item.ConditionCheck == nil }) {
				asked++
			}
			return faults.Pass()
		})
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
			for i := range records {
				not := unitofwork.Expression{Condition: "#t <> :t", Names: map[string]string{"#t": "Text"}, Values: map[string]any{":t": bulk(395 << 10)}}
				if err := u.Check(accounts.Ref("1", fmt.Sprint(i)), not); err != nil {
					return err
				}
			}
			return nil
		}))
		require.Equal(t, 3, asked)
	})
}

// A network, or a DynamoDB, that takes less than it should: everything that consists of
// parts is done in parts.
func TestWhatIsRefusedForItsSizeIsHalved(t *testing.T) {
	atMost := func(c faults.Call) faults.Fault {
		if c.Op != "BatchExecuteStatement" && c.Actions > 4 {
			return faults.RefuseAsTooLarge()
		}
		return faults.Pass()
	}
	inBed(t, func(t *testing.T, b *bed) {
		var keys []ordering.Key
		for i := range 12 {
			keys = append(keys, accountKey("1", fmt.Sprint("bulk", i)))
		}
		c := b.client("A", atMost)
		start := time.Now()
		for _, stage := range []func(context.Context, *unitofwork.Unit) error{putFine(12), updateBulk(12, 10), checkBulk(12, 10), deleteFine(12)} {
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: append(keys, accountKey("1", "checked"))}, stage))
			b.nothingLeft()
		}
		require.Less(t, time.Since(start), lease, "nothing is sent again as it was")
		require.Equal(t, map[string]int{"committed": 4}, c.outcomes())
		require.Len(t, b.db.Items("accounts"), 2+1, "what was checked")
	})
}

func putFine(n int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		for i := range n {
			if err := u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint("bulk", i)})); err != nil {
				return err
			}
		}
		return nil
	}
}

func deleteFine(n int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		for i := range n {
			if err := u.Delete(accounts.Ref("1", fmt.Sprint("bulk", i))); err != nil {
				return err
			}
		}
		return nil
	}
}

// updates reports whether a call would update a record, by its ID.
func updates(c faults.Call, id string) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && slices.ContainsFunc(in.TransactItems, func(item types.TransactWriteItem) bool {
		if item.Update == nil {
			return false
		}
		is, ok := item.Update.Key["ID"].(*types.AttributeValueMemberS)
		return ok && is.Value == id
	})
}

// What cannot be halved is named, at once, whatever the number of records beside it.
func TestOneRecordThatIsTooLarge(t *testing.T) {
	for name, c := range map[string]struct {
		net    faults.Script
		stage  func(context.Context, *unitofwork.Unit) error
		record string
		change func(*lockset.Config, *unitofwork.Config)
	}{
		"refused by DynamoDB": {
			net: func(c faults.Call) faults.Fault {
				if updates(c, "bulk7") {
					return faults.RefuseAsTooLarge()
				}
				return faults.Pass()
			},
			stage: updateBulk(110, 10), record: "bulk7",
		},
		"in a small unit":                    {stage: putBulk(1, 500<<10), record: "bulk0"},
		"in a unit that can have no journal": {stage: putBulk(2, 500<<10), record: "bulk0", change: withoutUnitTable},
		"as sent":                            {stage: putBulk(1, 3<<20), record: "bulk0"},
		"as sent, in a unit that can have no journal": {stage: putBulk(1, 3<<20), record: "bulk0", change: withoutUnitTable},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := b.db.Items("accounts")
				if c.change == nil {
					c.change = func(*lockset.Config, *unitofwork.Config) {}
				}
				client := b.client("A", c.net, c.change)
				start := time.Now()
				err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, c.stage)
				require.Less(t, time.Since(start), time.Second)
				require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
				var refused *unitofwork.CommitError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, "accounts", refused.Table)
				require.Contains(t, refused.Record, c.record)
				require.Equal(t, before, b.db.Items("accounts"))
				b.allFree()
			})
		})
	}
}

// All of them are too many, and none is too large.
func TestAUnitThatIsTooLargeAndCanHaveNoJournal(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		client := b.client("A", nil, withoutUnitTable)
		start := time.Now()
		err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, putBulk(9, 395<<10))
		require.Less(t, time.Since(start), time.Second)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
		require.ErrorAs(t, err, new(*lockset.TableError))
		b.allFree()
	})
}

// A record may have 400 KB and not a byte more, with its stamp: the one above is named,
// in a unit of any size, with a journal and without.
func TestARecordOf400KBToTheByte(t *testing.T) {
	const (
		limit = 400 << 10
		names = len("Customer") + len("ID") + len("Text") + len("_fence")
		token = 1_900_000_000_123_457
		stamp = 1 + 16/2 // of its digits
	)
	of := func(size int) unitofwork.Record {
		return bulks.Of(bulky{Customer: "1", ID: "large", Text: strings.Repeat("x", size-names-stamp-len("1")-len("large"))})
	}
	for name, change := range map[string]func(*lockset.Config, *unitofwork.Config){
		"at once": func(*lockset.Config, *unitofwork.Config) {}, "without a unit table": withoutUnitTable, "with a journal": inOneAction,
	} {
		for size, fits := range map[int]bool{limit - 1: true, limit: true, limit + 1: false} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					before := b.tables()
					start := time.Now()
					err := b.client("A", nil, change, withTokenOf(token)).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
						return errors.Join(u.Replace(accounts.Of(account{Customer: "1", ID: "small"})), u.Replace(of(size)))
					})
					require.Less(t, time.Since(start), time.Second)
					b.nothingLeft()
					b.allFree()
					if fits {
						require.NoError(t, err)
						require.Len(t, valueOf(b.item("accounts", "1", "large")["Text"]), size-names-stamp-len("1large"))
						require.Equal(t, number(strconv.Itoa(token)), b.item("accounts", "1", "large")["_fence"])
						return
					}
					var refused *unitofwork.CommitError
					require.ErrorAs(t, err, &refused)
					require.Equal(t, lockset.FixCall, refused.Next)
					require.Equal(t, customerKey("1"), refused.Key)
					require.Equal(t, "accounts", refused.Table)
					require.Equal(t, `Customer="1" ID="large"`, refused.Record, "%v", err)
					require.ErrorContains(t, err, "size")
					b.nothingWritten(before)
				})
			})
		}
	}
}

// inOneAction has every unit journaled.
func inOneAction(_ *lockset.Config, u *unitofwork.Config) { u.TransactionSize = 1 }

// withTokenOf has the first unit of a client have this token.
func withTokenOf(token int64) func(*lockset.Config, *unitofwork.Config) {
	return func(l *lockset.Config, _ *unitofwork.Config) {
		l.Now = func() time.Time { return time.UnixMicro(token) }
	}
}
