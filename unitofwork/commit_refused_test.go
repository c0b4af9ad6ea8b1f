package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// What a unit makes of answers that DynamoDB seldom gives.

// answering refuses every commit with the same words, and carries out nothing of it.
type answering struct {
	*memdynamo.DB
	err   error
	times int
}

func (a *answering) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if !isCommit(faults.Call{Input: in}) {
		return a.DB.TransactWriteItems(ctx, in, options...)
	}
	a.times++
	return nil, a.err
}

func canceled(codes ...string) error {
	e := &types.TransactionCanceledException{Message: ptr("cancelled")}
	for _, code := range codes {
		r := types.CancellationReason{}
		if code != "" {
			r.Code, r.Message = ptr(code), ptr("because of "+code)
		}
		e.CancellationReasons = append(e.CancellationReasons, r)
	}
	return e
}

// A transaction is cancelled for reasons that blame nobody, or for fewer than it has
// actions: the unit is not committed, its locks are free, and no record is blamed
// that DynamoDB did not blame.
func TestACommitThatIsCancelledForOddReasons(t *testing.T) {
	const condition, invalid, conflict, none = "ConditionalCheckFailed", "ValidationError", "TransactionConflict", "None"
	for name, c := range map[string]struct {
		err    error
		next   lockset.Next
		record string
		id     string
	}{
		"no reasons":               {canceled(), lockset.FixCall, "", ""},
		"nobody's":                 {canceled(none, none, none, none, none, none), lockset.FixCall, "", ""},
		"nobody's, and unnamed":    {canceled("", "", "", "", "", ""), lockset.FixCall, "", ""},
		"one, nobody's":            {canceled(none), lockset.FixCall, "", ""},
		"one, a write's":           {canceled(none, none, none, none, invalid), lockset.FixCall, `Customer="1" ID="a"`, ""},
		"the last write's":         {canceled(none, none, none, none, none, invalid), lockset.FixCall, `Customer="2" ID="a"`, ""},
		"a write's, beside a busy": {canceled(none, none, none, none, conflict, invalid), lockset.FixCall, `Customer="2" ID="a"`, ""},
		"both writes'":             {canceled(none, none, none, none, invalid, invalid), lockset.FixCall, `Customer="1" ID="a"`, ""},
		"a record without fence, after a wrong one": {canceled(none, none, none, none, invalid, condition), lockset.FixCall, `Customer="1" ID="a"`, ""},
		"one more than there are actions":           {canceled(none, none, none, none, none, none, condition), lockset.FixCall, "", ""},
		"all but the ID's":                          {canceled(none, none, none, none, none, invalid), lockset.FixCall, `Customer="2" ID="a"`, "p"},
		"a write's, beside an ID":                   {canceled(none, none, none, none, none, invalid, none), lockset.FixCall, `Customer="2" ID="a"`, "p"},
		"a write's, beside a busy ID":               {canceled(none, none, none, none, none, invalid, conflict), lockset.FixCall, `Customer="2" ID="a"`, "p"},
		"an ID's, whose record is gone again":       {canceled(none, none, none, none, none, none, condition), lockset.StartOver, "", "p"},
		"an ID's before a write's":                  {canceled(none, none, none, none, invalid, none, condition), lockset.StartOver, "", "p"},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			db := &answering{DB: b.db, err: c.err}
			locks, err := lockset.New(db, lockset.Config{Table: "locks", Owner: "A", Lease: lease})
			require.NoError(t, err)
			config := unitofwork.Config{} // without journals
			if c.id != "" {
				config.Table = "units"
			}
			client, err := unitofwork.New(locks, config)
			require.NoError(t, err)
			err = client.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: c.id, Attempts: 1}, transfer(30))
			require.Equal(t, 1, db.times)
			require.Equal(t, c.next, lockset.NextOf(err), "%v", err)
			refused := errorAs[*unitofwork.CommitError](t, err)
			require.Equal(t, c.record, refused.Record, "%v", err)
			require.Equal(t, c.record != "", refused.Table == "accounts")
			require.Equal(t, [2]int64{100, 100}, b.balances())
			b.allFree()
		})
	}
}

// Which table a commit cannot use is named if reads tell: not by a read that fails for
// a reason of its own, and not for a reason that reads do not share.
func TestWhichTableIsNamed(t *testing.T) {
	nowhere := unitofwork.Table[customer]{Name: "nowhere", PartitionKey: "ID", Guard: customers.Guard}
	elsewhere := unitofwork.Table[customer]{Name: "elsewhere", PartitionKey: "ID", Guard: customers.Guard}
	unread := denies("accounts", "GetItem")
	account := func(u *unitofwork.Unit) error { return u.Replace(accounts.Of(account{Customer: "1", ID: "a"})) }
	raw := func(u *unitofwork.Unit) error {
		return u.Stage(customerKey("1"), putOf("nowhere", map[string]string{"ID": "1"}))
	}
	known := func(u *unitofwork.Unit) error { return u.Replace(nowhere.Of(customer{ID: "1"})) }
	tooLarge := when(isCommit, faults.RefuseAsTooLarge())
	for name, c := range map[string]struct {
		script faults.Script
		stage  []func(*unitofwork.Unit) error
		named  []string
		reads  int
	}{
		"one is not there":                         {nil, []func(*unitofwork.Unit) error{account, known}, []string{"nowhere"}, 3},
		"one is not there, another cannot be read": {unread, []func(*unitofwork.Unit) error{account, known}, []string{"nowhere"}, 3},
		"one is not there, its key is not known":   {nil, []func(*unitofwork.Unit) error{account, raw}, []string{"nowhere"}, 3},
		"the one beside the locks":                 {nil, []func(*unitofwork.Unit) error{known}, []string{"nowhere"}, 2},
		"the one beside the locks, unread":         {nil, []func(*unitofwork.Unit) error{raw}, []string{"nowhere"}, 2},
		"neither key is known, or may be read":     {unread, []func(*unitofwork.Unit) error{account, raw}, []string{"nowhere"}, 3},
		"the first of two":                         {nil, []func(*unitofwork.Unit) error{known, func(u *unitofwork.Unit) error { return u.Replace(elsewhere.Of(customer{ID: "1"})) }}, []string{"nowhere"}, 2},
		"it is no table's fault":                   {tooLarge, []func(*unitofwork.Unit) error{account, known}, []string{"accounts", "locks", "nowhere"}, 0},
		"a table is read once, of however many":    {nil, []func(*unitofwork.Unit) error{account, func(u *unitofwork.Unit) error { return u.Delete(accounts.Ref("1", "b")) }, raw}, []string{"nowhere"}, 3},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			client := b.client("A", c.script, withoutUnitTable)
			err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
				for _, stage := range c.stage {
					if err := stage(u); err != nil {
						return err
					}
				}
				return nil
			})
			refused := errorAs[*lockset.TableError](t, err)
			require.Equal(t, c.named, refused.Tables, "%v", err)
			require.Equal(t, "TransactWriteItems", refused.Op)
			require.Equal(t, c.reads, client.requests()["GetItem"])
			b.allFree()
		})
	}
}

// An ID is one more action: with it a unit that would just fit is journaled.
func TestAnIDCountsAsAnAction(t *testing.T) {
	for name, c := range map[string]struct {
		writes   int
		id       string
		journals bool
	}{
		"all there is room for":         {7, "", false},
		"one more":                      {8, "", true},
		"all there is room for with it": {6, "p", false},
		"one more with it":              {7, "p", true},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			client := b.client("A", nil, inSmallTransactions)
			require.NoError(t, client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, ID: c.id}, func(_ context.Context, u *unitofwork.Unit) error {
				return each(c.writes, func(i int) error {
					return u.Replace(accounts.Of(account{Customer: "1", ID: fmt.Sprint("n", i)}))
				})
			}))
			sent := client.requests()["TransactWriteItems"]
			if c.journals {
				require.Greater(t, sent, 1)
			} else {
				require.Equal(t, 1, sent)
			}
		})
	}
}

// The pause before a unit is started over doubles, up to a second or so, and is cut by
// as much as half, by chance.
func TestThePauseBeforeStartingOver(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const attempts = 10
		var ends []time.Time
		var pauses []time.Duration
		c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = trace.Join(u.Trace, hooks.On(trace.StartingOver, func(context.Context, trace.Event) { ends = append(ends, time.Now()) }))
		}, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Request, func(_ context.Context, i trace.Event) {
				if len(pauses) < len(ends) {
					pauses = append(pauses, time.Since(ends[len(pauses)])-i.Took)
				}
			}))
		})
		ahead := time.Now().Add(time.Minute).UnixMicro()
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: attempts}, func(_ context.Context, u *unitofwork.Unit) error {
			b.put("accounts", account{Customer: "1", ID: "a", Fence: ahead})
			ahead += int64(time.Minute / time.Microsecond)
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a"}))
		})
		require.Error(t, err)
		require.Len(t, pauses, attempts-1)
		doubling(t, pauses, 40*time.Millisecond, 1280*time.Millisecond)
	})
}

// Errors show what they wrap, however deep.
func TestErrorsShowTheirReasons(t *testing.T) {
	deep := errors.New("deep")
	table := &lockset.TableError{Op: "op", Tables: []string{"t"}, Err: deep}
	for name, err := range map[string]error{
		"StageError":     &unitofwork.StageError{Table: "t", Record: "r", Reason: table},
		"CommitError":    &unitofwork.CommitError{Table: "t", Record: "r", Err: table},
		"InDoubtError":   &unitofwork.InDoubtError{Ref: "r", Err: table},
		"JournalError":   &unitofwork.JournalError{Table: "t", Unit: "u", Reason: table},
		"UnappliedError": &unitofwork.UnappliedError{Unit: "u", Key: "k", Err: table},
	} {
		err = fmt.Errorf("wrapped: %w", err)
		require.ErrorIs(t, err, deep, name)
		found := errorAs[*lockset.TableError](t, err, name)
		require.Same(t, table, found)
		require.Equal(t, name == "InDoubtError", errors.Is(err, unitofwork.ErrInDoubt))
	}
	require.NotErrorIs(t, &unitofwork.InDoubtError{Err: deep}, unitofwork.ErrCondition)
}

// The caller goes away while its unit waits to be started over: it is told why the
// last attempt failed, and which attempt would have been next.
func TestACallersEndBeforeStartingOver(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ctx, cancel := context.WithCancel(t.Context())
		var next []int
		c := b.client("c", nil, func(_ *lockset.Config, u *unitofwork.Config) {
			u.Trace = trace.Join(u.Trace, hooks.On(trace.StartingOver, func(_ context.Context, s trace.Event) {
				next = append(next, s.N)
				time.AfterFunc(time.Millisecond, cancel)
			}))
		})
		calls := 0
		err := c.Do(ctx, unitofwork.Work{Keys: transferKeys, Attempts: 3}, func(_ context.Context, u *unitofwork.Unit) error {
			calls++
			b.put("accounts", account{Customer: "1", ID: "a", Fence: time.Now().Add(time.Minute).UnixMicro()})
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a"}))
		})
		require.ErrorIs(t, err, fencing.ErrStale)
		require.Equal(t, []int{2}, next)
		require.Equal(t, 1, calls)
	})
}

// What DynamoDB will not carry out, however often it is asked: for want of a
// permission, or because it is too large.

const notAuthorized = "User: arn:aws:iam::123456789012:user/faults is not authorized to perform this"

// denied is a call refused for want of a permission, in the time of any other.
func denied() faults.Fault {
	time.Sleep(rtt)
	return faults.Deny()
}

// denies refuses operations on a table, all of them if none is named.
func denies(table string, ops ...string) faults.Script {
	return func(c faults.Call) faults.Fault {
		if slices.Contains(tablesOf(c), table) && (len(ops) == 0 || slices.Contains(ops, c.Op)) {
			return denied()
		}
		return faults.Pass()
	}
}

// tablesOf names the tables that a call reads or writes.
func tablesOf(c faults.Call) (tables []string) {
	for _, r := range requestsOf(c) {
		tables = append(tables, r.table)
	}
	return tables
}

// Whatever part of a unit may not be done, it is tried once, and Do says which
// table it was. Nothing is written, and the locks are released when it returns.
func TestAUnitWithoutAPermission(t *testing.T) {
	write := setTo(7)
	for name, c := range map[string]struct {
		denies  faults.Script
		id      string
		fn      func(context.Context, *unitofwork.Unit) error
		calls   int    // of fn
		table   string // at fault
		commits bool   // it is the commit that was refused
		ends    map[string]int
	}{
		"to lock":                      {denies("locks"), "", write, 0, "locks", false, map[string]int{}},
		"to look up an ID":             {denies("units"), "p1", write, 0, "units", false, map[string]int{"not": 1}},
		"to read a record":             {denies("accounts"), "", transfer(30), 1, "accounts", false, map[string]int{"not": 1}},
		"to read or write a record":    {denies("accounts"), "", write, 1, "accounts", true, map[string]int{"not": 1}},
		"to write a record it may see": {denies("accounts", "TransactWriteItems"), "", transfer(30), 1, "accounts", true, map[string]int{"not": 1}},
		"to remember an ID":            {denies("units", "TransactWriteItems"), "p1", transfer(30), 1, "units", true, map[string]int{"not": 1}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("denied", c.denies)
			calls := 0
			start := time.Now()
			err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: c.id, Attempts: 3}, func(ctx context.Context, u *unitofwork.Unit) error {
				calls++
				return c.fn(ctx, u)
			})
			require.Less(t, time.Since(start), 10*rtt)
			tableErr := errorAs[*lockset.TableError](t, err)
			require.Contains(t, tableErr.Tables, c.table)
			require.ErrorContains(t, err, strconv.Quote(c.table))
			require.ErrorContains(t, err, "may not be accessed")
			require.ErrorContains(t, err, notAuthorized)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err))
			require.Equal(t, c.commits, errors.As(err, new(*unitofwork.CommitError)))
			require.Equal(t, c.calls, calls, "it is not started over")
			require.Equal(t, c.ends, cl.outcomes())

			b.allFree()
			require.Equal(t, [2]int64{100, 100}, b.balances())
			require.Empty(t, b.db.Items("units"))
			start = time.Now()
			require.NoError(t, b.client("next", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
			require.Equal(t, 3*rtt, time.Since(start), "nothing is in the way")
		})
	}
}

// Without the permission to release, either, the unit is not in doubt: its one sending was refused,
// and a copy of it would be as well. Its locks are taken over after a lease.
func TestAUnitThatMayNotEvenRelease(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var revoked atomic.Bool
		cl := b.client("denied", func(faults.Call) faults.Fault {
			if revoked.Load() {
				return denied()
			}
			return faults.Pass()
		})
		err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(ctx context.Context, u *unitofwork.Unit) error {
			err := transfer(30)(ctx, u)
			revoked.Store(true)
			return err
		})
		require.NotErrorIs(t, err, unitofwork.ErrInDoubt)
		require.Equal(t, lockset.FixCall, lockset.NextOf(err))
		require.ErrorContains(t, err, notAuthorized)
		asker := b.client("asker", nil)
		require.NoError(t, asker.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)), "after a lease")
		require.Equal(t, [2]int64{99, 101}, b.balances())
	})
}

// A commit of few writes may still be larger than the 4 MB that DynamoDB takes,
// by the items as they are stored, which the client does not see. That is said,
// nothing is written, and nobody is in doubt.
func TestWithoutAUnitTableACommitAbove4MBWritesNothing(t *testing.T) {
	for name, stage := range map[string]func(*unitofwork.Unit, int) error{
		"put": func(u *unitofwork.Unit, i int) error {
			return u.Replace(bulks.Of(bulky{Customer: "1", ID: fmt.Sprint(i), Text: strings.Repeat("x", 390<<10)}))
		},
		"update": func(u *unitofwork.Unit, i int) error {
			return u.Update(accounts.Ref("1", fmt.Sprint(i)), unitofwork.Expression{Update: "SET Seen = :one", Values: map[string]any{":one": 1}})
		},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.putLarge()
			before := b.db.Items("accounts")
			cl := b.client("c", nil, withoutUnitTable)
			commit := func(n int) error {
				work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: 3}
				return cl.Do(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error {
					return each(n, func(i int) error { return stage(u, i) })
				})
			}
			err := commit(largeRecords)
			require.Equal(t, lockset.FixCall, lockset.NextOf(err), "%v", err)
			require.ErrorAs(t, err, new(*unitofwork.CommitError))
			require.Contains(t, errorAs[*lockset.TableError](t, err).Tables, "accounts")
			require.ErrorContains(t, err, "Transaction payload size cannot exceed 4MB")
			require.Equal(t, map[string]int{"not": 1}, cl.outcomes(), "neither in doubt nor started over")
			require.Equal(t, before, b.db.Items("accounts"))
			require.Empty(t, b.db.Items("units"))
			b.allFree()

			require.NoError(t, commit(largeRecords-1), "the locks are there for one that fits")
			require.Equal(t, map[string]int{"not": 1, "committed": 1}, cl.outcomes())
		})
	}
}

// A record that grows above the 400 KB that DynamoDB keeps is named.
func TestARecordThatGrowsTooLargeIsNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putItem("accounts", map[string]types.AttributeValue{
			"Customer": text("1"), "ID": text("large"), "Text": text(strings.Repeat("x", 399<<10)),
		})
		before := b.db.Items("accounts")
		cl := b.client("c", nil)
		err := cl.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: 3}, func(_ context.Context, u *unitofwork.Unit) error {
			return errors.Join(
				u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})),
				u.Update(accounts.Of(account{Customer: "1", ID: "large"}), unitofwork.Expression{
					Update: "SET More = :more", Values: map[string]any{":more": strings.Repeat("y", 2<<10)},
				}),
			)
		})
		commitErr := errorAs[*unitofwork.CommitError](t, err)
		require.Equal(t, lockset.FixCall, commitErr.Next, "%v", err)
		require.Equal(t, "accounts", commitErr.Table)
		require.Equal(t, `Customer="1" ID="large"`, commitErr.Record)
		require.ErrorContains(t, err, "size")
		require.Equal(t, map[string]int{"not": 1}, cl.outcomes())
		require.Equal(t, before, b.db.Items("accounts"))
		b.allFree()
	})
}

// doubling asserts that pauses double, from the first up to the most, and are cut by as much as half, by
// chance.
func doubling(t *testing.T, pauses []time.Duration, first, most time.Duration) {
	t.Helper()
	short := 0
	for i, pause := range pauses {
		longest := min(first<<i, most)
		require.GreaterOrEqual(t, pause, longest/2, "pause %d", i+1)
		require.Less(t, pause, longest, "pause %d", i+1)
		if pause < longest*3/4 {
			short++
		}
	}
	require.Positive(t, short)
	require.Less(t, short, len(pauses))
}
