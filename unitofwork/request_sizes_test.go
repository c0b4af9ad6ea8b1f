package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
		return each(n, func(i int) error {
			return u.Replace(bulks.Of(bulky{Customer: "1", ID: fmt.Sprint("bulk", i), Text: bulk(bytes)}))
		})
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
	atMost := when(func(c faults.Call) bool { return c.Op != "BatchExecuteStatement" && c.Actions > 4 }, faults.RefuseAsTooLarge())
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
		return each(n, func(i int) error {
			return u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint("bulk", i)}))
		})
	}
}

func deleteFine(n int) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error {
		return each(n, func(i int) error {
			return u.Delete(accounts.Ref("1", fmt.Sprint("bulk", i)))
		})
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
			net:   when(func(c faults.Call) bool { return updates(c, "bulk7") }, faults.RefuseAsTooLarge()),
			stage: updateBulk(110, 10), record: "bulk7",
		},
		"in a small unit":                    {stage: putBulk(1, 500<<10), record: "bulk0"},
		"in a unit that can have no journal": {stage: putBulk(2, 500<<10), record: "bulk0", change: withoutUnitTable},
		"as sent":                            {stage: putBulk(1, 3<<20), record: "bulk0"},
		"as sent, in a unit that can have no journal": {stage: putBulk(1, 3<<20), record: "bulk0", change: withoutUnitTable},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.db.Items("accounts")
			if c.change == nil {
				c.change = asItIs
			}
			client := b.client("A", c.net, c.change)
			start := time.Now()
			err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, c.stage)
			require.Less(t, time.Since(start), time.Second)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
			refused := errorAs[*unitofwork.CommitError](t, err)
			require.Equal(t, "accounts", refused.Table)
			require.Contains(t, refused.Record, c.record)
			require.Equal(t, before, b.db.Items("accounts"))
			b.allFree()
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
		"at once": asItIs, "without a unit table": withoutUnitTable, "with a journal": inOneAction,
	} {
		for size, fits := range map[int]bool{limit - 1: true, limit: true, limit + 1: false} {
			runInBed(t, fmt.Sprint(name, " ", size), func(t *testing.T, b *bed) {
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
				refused := errorAs[*unitofwork.CommitError](t, err)
				require.Equal(t, lockset.FixCall, refused.Next)
				require.Equal(t, customerKey("1"), refused.Key)
				require.Equal(t, "accounts", refused.Table)
				require.Equal(t, `Customer="1" ID="large"`, refused.Record, "%v", err)
				require.ErrorContains(t, err, "size")
				b.nothingWritten(before)
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

// staging stages a write of a record of customer 1's.
type staging = func(u *unitofwork.Unit, id string) error

func stagedPut(more map[string]types.AttributeValue) staging {
	return func(u *unitofwork.Unit, id string) error {
		item := map[string]types.AttributeValue{"Customer": text("1"), "ID": text(id)}
		maps.Copy(item, more)
		return u.Stage(customerKey("1"), types.TransactWriteItem{Put: &types.Put{TableName: ptr("accounts"), Item: item}})
	}
}

// Of many writes that look alike one can never be carried out: it is named before
// anything is decided, in a unit with a journal as in a small one.
func TestEveryWriteIsTriedBeforeTheDecision(t *testing.T) {
	update := func(e unitofwork.Expression) staging {
		return func(u *unitofwork.Unit, id string) error { return u.Update(accounts.Ref("1", id), e) }
	}
	set := func(values map[string]any) staging {
		return update(unitofwork.Expression{Update: "SET Balance = :n", Values: values})
	}
	for name, c := range map[string]struct{ good, bad staging }{
		"a value is missing": {set(map[string]any{":n": 1}), set(map[string]any{":m": 1})},
		"a value is of another type": {
			update(unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": 1}}),
			update(unitofwork.Expression{Update: "ADD Balance :n", Values: map[string]any{":n": "x"}}),
		},
		"an attribute is not there": {
			set(map[string]any{":n": 1}),
			update(unitofwork.Expression{Update: "SET Balance = #x", Names: map[string]string{"#x": "absent"}}),
		},
		"the record grows too large": {
			set(map[string]any{":n": 1}),
			set(map[string]any{":n": strings.Repeat("x", 400<<10)}),
		},
		"the key is of another type": {
			stagedPut(nil),
			stagedPut(map[string]types.AttributeValue{"ID": &types.AttributeValueMemberN{Value: "7"}}),
		},
	} {
		t.Run(name, func(t *testing.T) { isTried(t, c.good, c.bad) })
	}
}

func TestEveryValueIsTriedBeforeTheDecision(t *testing.T) {
	number := func(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }
	numbers := func(all ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: all} }
	texts := func(all ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: all} }
	bytes := func(all ...[]byte) types.AttributeValue { return &types.AttributeValueMemberBS{Value: all} }
	list := func(all ...types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberL{Value: all}
	}
	record := func(all map[string]types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: all}
	}
	nested := func(levels int) (v types.AttributeValue) {
		v = text("x")
		for range levels {
			v = list(v)
		}
		return v
	}
	for name, c := range map[string]struct{ good, bad types.AttributeValue }{
		"a number is none":               {number("7"), number("seven")},
		"a number is too large":          {number("7"), number("1E+126")},
		"a number is too small":          {number("7"), number("1E-131")},
		"a number has too many digits":   {number("7"), number(strings.Repeat("7", 39))},
		"a set is empty":                 {texts("a"), texts()},
		"a set has a text twice":         {texts("a", "b"), texts("a", "a")},
		"a set has a number twice":       {numbers("1", "2"), numbers("1", "1.0")},
		"a set has bytes twice":          {bytes([]byte{1}, []byte{2}), bytes([]byte{1}, []byte{1})},
		"bytes are none":                 {bytes([]byte{1}), &types.AttributeValueMemberB{}},
		"bytes in a list are none":       {list(&types.AttributeValueMemberB{Value: []byte{1}}), list(&types.AttributeValueMemberB{})},
		"bytes in a set are none":        {bytes([]byte{1}), bytes([]byte{2}, nil)},
		"null is not":                    {&types.AttributeValueMemberNULL{Value: true}, &types.AttributeValueMemberNULL{}},
		"a value is nested too deep":     {nested(2), nested(32)},
		"a set in a record has it twice": {record(nil), record(map[string]types.AttributeValue{"s": numbers("1", "1")})},
		"the item is too large":          {list(slices.Repeat([]types.AttributeValue{number("777")}, 1000)...), list(slices.Repeat([]types.AttributeValue{number("777")}, 110_000)...)},
	} {
		t.Run(name, func(t *testing.T) {
			isTried(t, stagedPut(map[string]types.AttributeValue{"V": c.good}), stagedPut(map[string]types.AttributeValue{"V": c.bad}))
		})
	}
}

// isTried asserts that one bad write behind good ones is found when nothing is
// decided.
func isTried(t *testing.T, good, bad staging) {
	t.Helper()
	for _, n := range []int{1, 110} {
		inBed(t, func(t *testing.T, b *bed) {
			client := b.client("A", nil)
			for i := range 5 { // update needs a record that has what it copies
				b.put("accounts", account{Customer: "1", ID: fmt.Sprint("good", i)})
			}
			before := b.db.Items("accounts")
			err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(ctx context.Context, u *unitofwork.Unit) error {
				if err := u.Get(ctx, accounts.Ref("1", "a")); err != nil { // the key of the table is known
					return err
				}
				for i := range n {
					if err := good(u, fmt.Sprint("good", i%5, strings.Repeat("+", i/5))); err != nil {
						return err
					}
				}
				return bad(u, "bad")
			})
			require.Error(t, err)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%d: %v", n, err)
			require.Equal(t, before, b.db.Items("accounts"))
			b.allFree()
			require.Empty(t, b.db.Items("units"))
		})
	}
}

func ptr[T any](v T) *T { return &v }

// A Table names a sort key that its table does not have: two records of its are one
// to DynamoDB, and the second put would meet the stamp of the first.
func TestATableWithAnotherKey(t *testing.T) {
	wrong := unitofwork.Table[customer]{
		Name: "customers", PartitionKey: "ID", SortKey: "Name",
		Guard: func(*customer) ordering.Key { return customerKey("1") },
	}
	for _, n := range []int{0, 150} {
		inBed(t, func(t *testing.T, b *bed) {
			before := b.db.Items("customers")
			err := b.client("A", nil).Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
				for i := range n {
					if err := u.Replace(wrong.Of(customer{ID: fmt.Sprint("x", i), Name: "x"})); err != nil {
						return err
					}
				}
				return u.Replace(wrong.Of(customer{ID: "7", Name: "first"}), wrong.Of(customer{ID: "7", Name: "second"}))
			})
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%d: %v", n, err)
			require.Equal(t, before, b.db.Items("customers"))
			b.allFree()
		})
	}
}

// What is rehearsed is never done, not even by a copy that arrives when the unit has
// written its journal: it may yet not commit.
func TestALateCopyOfARehearsalDoesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const late = time.Second
		before := b.tables()
		c := b.client("A", func(c faults.Call) faults.Fault {
			switch phaseOf(c) {
			case rehearses:
				return faults.Duplicate(late)
			case marks:
				time.Sleep(2 * late)
				return faults.Deny()
			}
			return faults.Pass()
		}, inSmallTransactions)
		_, stage, _ := fewAccounts()
		require.Error(t, c.Do(t.Context(), unitofwork.Work{Keys: keysOfFew()}, stage))
		c.net.Wait()
		require.Positive(t, c.net.Counts()[faults.Duplicated])
		b.nothingWritten(before)
	})
}
