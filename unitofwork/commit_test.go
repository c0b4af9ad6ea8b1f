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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// How a commit finds out what became of it, and what it says of a refusal.

// No answer to a commit is heard, and others have had the rows since: they say nothing
// any more. The record of the ID does.
func TestTheRecordOfAnIDTellsWhatTheRowsDoNot(t *testing.T) {
	for name, c := range map[string]struct {
		first   faults.Fault
		id      string
		outcome string
		is      error
	}{
		"committed":                 {faults.LoseAnswer(faults.Reset), "p", "committed", nil},
		"not committed":             {faults.LoseRequest(faults.Reset), "p", "not", unitofwork.ErrSuperseded},
		"committed, without an ID":  {faults.LoseAnswer(faults.Reset), "", "in doubt", unitofwork.ErrInDoubt},
		"not committed, without it": {faults.LoseRequest(faults.Reset), "", "in doubt", unitofwork.ErrInDoubt},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			n := 0
			cl := b.client("c", func(call faults.Call) faults.Fault {
				if !isCommit(call) {
					return faults.Pass()
				}
				switch n++; n {
				case 1:
					return c.first
				case 2: // the process hangs, and others take over what is still held
					others(t, b)
					time.Sleep(lease)
				}
				return faults.LoseRequest(faults.Reset)
			})
			err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: c.id, Attempts: 1}, transfer(30))
			require.ErrorIs(t, err, c.is)
			require.Equal(t, map[string]int{c.outcome: 1}, cl.outcomes())
			if strings.HasPrefix(name, "committed") {
				require.Equal(t, [2]int64{69, 131}, b.balances())
			} else {
				require.Equal(t, [2]int64{99, 101}, b.balances())
			}
		})
	}
}

// A commit without an answer may have landed, whatever is said of its repetition: it is
// not done once more by a journal.
func TestACommitThatIsTooLargeAfterOneWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		first faults.Fault
		is    error
	}{
		"it has landed": {faults.LoseAnswer(faults.Reset), nil}, "it has not": {faults.LoseRequest(faults.Reset), unitofwork.ErrSuperseded},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			n := 0
			cl := b.client("c", func(call faults.Call) faults.Fault {
				require.NotContains(t, tablesOf(call), "units", "there is no journal")
				if isCommit(call) {
					if n++; n == 1 {
						return c.first
					}
					return faults.RefuseAsTooLarge()
				}
				return faults.Pass()
			})
			err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, setTo(7))
			require.ErrorIs(t, err, c.is)
			require.Equal(t, c.is == nil, b.account("1").Balance == 7)
			b.allFree()
		})
	}
}

// What the release of the rows has said needs no other look, nor does a journal that was not begun.
func TestWhatARefusedCommitSends(t *testing.T) {
	for name, change := range map[string]func(*lockset.Config, *unitofwork.Config){"at once": asItIs, "with a journal": inOneAction} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil, change)
			err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
				return u.Check(accounts.Ref("1", "a"), unitofwork.Expression{Condition: "attribute_not_exists(ID)"})
			})
			require.ErrorIs(t, err, unitofwork.ErrCondition)
			require.Equal(t, map[string]int{"TransactWriteItems": 3}, c.requests(), "it locks, asks or commits, and releases")
			require.Empty(t, b.db.Items("units"))
			b.allFree()
		})
	}
}

// asItIs changes nothing of a configuration.
func asItIs(*lockset.Config, *unitofwork.Config) {}

// A commit that was refused for a later token is started over with one above it, though
// nobody has read the record.
func TestATokenThatRefusedACommitIsNotProposedAgain(t *testing.T) {
	for name, change := range map[string]func(*lockset.Config, *unitofwork.Config){
		"at once": asItIs, "with a journal": inOneAction,
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			later := time.Now().Add(time.Hour).UnixMicro()
			b.put("accounts", account{Customer: "1", ID: "a", Fence: later})
			c := b.client("c", nil, change)
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 2}, setTo(7)))
			require.Equal(t, int64(7), b.account("1").Balance)
			require.Greater(t, b.account("1").Fence, later)
		})
	}
}

// A request is refused for its size: the write that is too large by itself is named, the
// first if there are several, and none if all of them are as large as may be.
func TestWhichWriteIsTooLarge(t *testing.T) {
	const names = len("Customer1") + len("IDx") + len("Text") + len("_fence") + 1 + 16/2
	text := func(bytes int) string { return strings.Repeat("x", bytes-names) }
	put := func(id string, bytes int) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error {
			return u.Replace(bulks.Of(bulky{Customer: "1", ID: id, Text: text(bytes)}))
		}
	}
	check := func(id string, bytes int) func(*unitofwork.Unit) error {
		return func(u *unitofwork.Unit) error {
			is := unitofwork.Expression{Condition: "#t <> :t", Names: map[string]string{"#t": "Text"}, Values: map[string]any{":t": bulk(bytes)}}
			return u.Check(accounts.Ref("1", id), is)
		}
	}
	const limit = 400 << 10
	for name, c := range map[string]struct {
		stage  []func(*unitofwork.Unit) error
		record string
	}{
		"none":            {[]func(*unitofwork.Unit) error{put("a", limit), put("b", limit)}, ""},
		"the first":       {[]func(*unitofwork.Unit) error{put("a", limit+1), put("b", limit)}, "a"},
		"the second":      {[]func(*unitofwork.Unit) error{put("a", limit), put("b", limit+1)}, "b"},
		"two of three":    {[]func(*unitofwork.Unit) error{put("a", 100), put("b", limit+1), put("c", limit+1)}, "b"},
		"one as sent":     {[]func(*unitofwork.Unit) error{put("a", 100), check("b", 3<<20)}, "b"},
		"none as sent":    {[]func(*unitofwork.Unit) error{put("a", 100), check("b", 2<<20)}, ""},
		"one of each way": {[]func(*unitofwork.Unit) error{check("a", 3<<20), put("b", limit+1)}, "a"},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			before := b.db.Items("accounts")
			client := b.client("A", when(isCommit, faults.RefuseAsTooLarge()), withoutUnitTable, withTokenOf(1_900_000_000_123_457))
			err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
				for _, stage := range c.stage {
					if err := stage(u); err != nil {
						return err
					}
				}
				return nil
			})
			refused := errorAs[*unitofwork.CommitError](t, err)
			require.Equal(t, lockset.FixCall, refused.Next)
			if c.record == "" {
				require.Empty(t, refused.Record, "%v", err)
			} else {
				require.Equal(t, `Customer="1" ID="`+c.record+`"`, refused.Record)
				require.Equal(t, "accounts", refused.Table)
				require.Equal(t, customerKey("1"), refused.Key)
			}
			require.Equal(t, before, b.db.Items("accounts"))
			b.allFree()
		})
	}
}

// A hook that panics at the request of a commit takes the unit down, and nothing else: no context of it
// is alive, its client closes at once, and others have the keys when a lease is over.
func TestAHookThatPanicsInACommit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		committing := false
		c := b.client("c", nil, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Request, func(context.Context, trace.Event) {
				if committing {
					committing = false
					panic("the hook is broken")
				}
			}))
		})
		u := c.begins(t, unitofwork.Work{Keys: transferKeys})
		require.NoError(t, transfer(30)(t.Context(), u))
		committing = true
		require.PanicsWithValue(t, "the hook is broken", func() { _ = u.Commit(t.Context()) })
		require.Error(t, u.Context().Err())
		require.ErrorIs(t, u.Commit(t.Context()), unitofwork.ErrEnded)

		closing, cancel := context.WithTimeout(t.Context(), 10*lease)
		defer cancel()
		began := time.Now()
		require.NoError(t, c.Close(closing))
		require.NoError(t, c.locks.Close(closing))
		require.LessOrEqual(t, time.Since(began), lease)
		b.client("other", nil).has(t, transferKeys...)
	})
}

// The hook says that nothing of a unit is held any more: when it is known.
func TestReleasedIsSaidOfWhatIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		script faults.Script
		want   int32
	}{
		"a commit":                        {nil, 1},
		"a commit without an answer":      {loseAnswersOfCommits, 1},
		"cut off before the commit lands": {cutAfterCommit(false), 0},
		"cut off after it":                {cutAfterCommit(true), 0},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			var released atomic.Int32
			cl := b.client("c", c.script, func(l *lockset.Config, _ *unitofwork.Config) {
				l.Trace = trace.Join(l.Trace, hooks.On(trace.Released, func(context.Context, trace.Event) { released.Add(1) }))
			})
			err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(30))
			require.Equal(t, c.want == 1, err == nil, "%v", err)
			require.Equal(t, c.want, released.Load())
		})
	}
}

// loseAnswersOfCommits carries them out, and nobody hears of it.
func loseAnswersOfCommits(c faults.Call) faults.Fault {
	if isCommit(c) {
		return faults.LoseAnswer(faults.Reset)
	}
	return faults.Pass()
}

// Cut off in its commit, and overtaken: what the unit left above its key goes
// when it comes back, though nobody can say what became of the commit.
func TestAnOvertakenCommitLeavesNoIntent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		key := []ordering.Key{ordering.Join("c", "x")}
		cl, other := b.client("c", nil), b.client("other", nil)
		taken := make(chan *lockset.Set)
		err := cl.Do(t.Context(), unitofwork.Work{Keys: key}, func(context.Context, *unitofwork.Unit) error {
			cl.net.Partition(true)
			time.AfterFunc(lease+lease/2, func() { cl.net.Partition(false) })
			go func() {
				set, err := other.locks.Acquire(context.Background(), key)
				assert.NoError(t, err)
				taken <- set
			}()
			return nil
		})
		require.ErrorIs(t, err, unitofwork.ErrInDoubt)
		require.NoError(t, (<-taken).Release(t.Context()))
		for _, row := range b.db.Items("locks") {
			require.NotContains(t, row, "below", "%v", row["key"])
		}
	})
}

// A row that a commit frees says since when it is free this time, as one that is released does: who
// looks at it once goes past those who wait by that.
func TestACommitSaysSinceWhenItsRowsAreFree(t *testing.T) {
	inBedDated(t, time.Now, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		for range 2 { // the first has seen no date when it begins
			time.Sleep(time.Hour)
			began := time.Now()
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Lock: true, Keys: transferKeys}, transfer(1)))
			for _, k := range []ordering.Key{transferKeys[0], transferKeys[0].Root()} {
				require.Contains(t, b.row(k), "turnAt")
				at, err := strconv.ParseInt(b.row(k)["turnAt"].(*types.AttributeValueMemberN).Value, 10, 64)
				require.NoError(t, err)
				require.GreaterOrEqual(t, at, began.UnixNano(), "%s", k)
			}
		}
	})
}

// A table that can be read may still be the one that cannot be written; a table that cannot be read
// may still be one that can be written; and the unit table, here, was only read so far. The table at
// fault must be among those named.
func TestTheTableThatMayNotBeWrittenIsAmongThoseNamed(t *testing.T) {
	one := account{Customer: "1", ID: "a", Balance: 7}
	rawCustomer := func(u *unitofwork.Unit) error {
		return u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1"}))
	}
	for name, c := range map[string]struct {
		denies faults.Script
		stage  func(*unitofwork.Unit) error
		table  string
	}{
		"accounts may only be read, customers only be written": {func(c faults.Call) faults.Fault {
			if f := denies("accounts", "TransactWriteItems")(c); f.Kind == faults.Denied {
				return f
			}
			return denies("customers", "TransactGetItems")(c)
		}, func(u *unitofwork.Unit) error {
			return u.Replace(accounts.Of(one), customers.Of(customer{ID: "1", Name: "n"}))
		}, "accounts"},
		"accounts may only be read, beside a raw put": {denies("accounts", "TransactWriteItems"), func(u *unitofwork.Unit) error {
			return errors.Join(u.Replace(accounts.Of(one)), rawCustomer(u))
		}, "accounts"},
		"the unit table": {denies("units", "TransactWriteItems"), rawCustomer, "units"},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}
			if c.table == "units" {
				work.ID = "p1"
			}
			err := b.client("denied", c.denies).Do(t.Context(), work, func(_ context.Context, u *unitofwork.Unit) error { return c.stage(u) })
			require.Contains(t, errorAs[*lockset.TableError](t, err).Tables, c.table, "%v", err)
		})
	}
}

// A commit that is too large is no table's fault, least of all that of the one
// with the small record.
func TestACommitThatIsTooLargeIsNotBlamedOnTheSmallRecord(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putLarge()
		small := func(_ context.Context, u *unitofwork.Unit) error {
			return u.Stage(customerKey("1"), putOf("customers", map[string]string{"ID": "1"}))
		}
		work := unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}
		err := b.client("c", nil, withoutUnitTable).Do(t.Context(), work, after(count, small))
		require.NotEqual(t, []string{"customers"}, errorAs[*lockset.TableError](t, err).Tables, "%v", err)
	})
}

// tables returns all that is in the tables.
func (b *bed) tables() map[string][]map[string]types.AttributeValue {
	items := map[string][]map[string]types.AttributeValue{}
	for _, name := range []string{"locks", "units", "customers", "accounts"} {
		items[name] = b.db.Items(name)
	}
	return items
}

// since are what may have happened since a commit when a copy of it arrives. What
// they return is still held then, and is committed afterwards.
var since = map[string]struct {
	do     func(*testing.T, *bed, []ordering.Key) *unitofwork.Unit
	wanted [2]int64 // balances in the end
}{
	"nobody since": {
		func(*testing.T, *bed, []ordering.Key) *unitofwork.Unit { return nil }, [2]int64{70, 130},
	},
	"another unit holds the keys": {
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			u := b.client("other", nil).begins(t, unitofwork.Work{Keys: keys})
			require.NoError(t, transfer(1)(t.Context(), u))
			return u
		}, [2]int64{69, 131},
	},
	"a later unit has written": {
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: keys}, transfer(1)))
			return nil
		}, [2]int64{69, 131},
	},
	"a later unit has written, and another holds the keys": {
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			other := b.client("other", nil)
			require.NoError(t, other.Do(t.Context(), unitofwork.Work{Keys: keys}, transfer(1)))
			u := other.begins(t, unitofwork.Work{Keys: keys})
			require.NoError(t, transfer(1)(t.Context(), u))
			return u
		}, [2]int64{68, 132},
	},
	"a later unit has deleted": { // the stamps have gone with the records
		func(t *testing.T, b *bed, keys []ordering.Key) *unitofwork.Unit {
			require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: keys}, func(_ context.Context, u *unitofwork.Unit) error {
				return u.Delete(accounts.Ref("1", "a"), accounts.Ref("2", "a"))
			}))
			return nil
		}, [2]int64{},
	},
	"written without a lock": { // nor do these have any
		func(_ *testing.T, b *bed, _ []ordering.Key) *unitofwork.Unit {
			b.put("accounts", account{Customer: "1", ID: "a", Balance: 7})
			b.put("accounts", account{Customer: "2", ID: "a", Balance: 8})
			return nil
		}, [2]int64{7, 8},
	},
}

// A copy of a commit that arrives when DynamoDB has forgotten its request token
// is a request like any other: the conditions in it refuse it.
func TestACopyOfACommitAfterItsRequestTokenIsForgotten(t *testing.T) {
	for kind, keys := range map[string][]ordering.Key{
		"fine":   transferKeys,
		"coarse": {customerKey("1"), customerKey("2")}, // without an intent that could refuse it
	} {
		for name, c := range since {
			for _, id := range []string{"", "p1"} {
				runInBed(t, kind+", "+name+" "+id, func(t *testing.T, b *bed) {
					held := b.copied(keys, id, c.do)
					if held != nil {
						time.Sleep(2 * lease)
						require.NoError(t, held.Context().Err())
						require.NoError(t, held.Commit(t.Context()))
					}
					require.Equal(t, c.wanted, b.balances())
					b.allFree()
				})
			}
		}
	}
}

// copied commits a transfer of 30, has a copy of that commit arrive late, and
// asserts that it changes nothing. What happens shortly before returns what is
// held then.
func (b *bed) copied(keys []ordering.Key, id string, before func(*testing.T, *bed, []ordering.Key) *unitofwork.Unit) *unitofwork.Unit {
	b.t.Helper()
	const late = 11 * time.Minute // request tokens are good for ten
	cl := b.client("c", atCommits(1, 1, faults.Duplicate(late)))
	start := time.Now()
	require.NoError(b.t, cl.Do(b.t.Context(), unitofwork.Work{Keys: keys, ID: id}, transfer(30)))
	require.Equal(b.t, [2]int64{70, 130}, b.balances())
	time.Sleep(time.Until(start.Add(late - time.Second)))
	held := before(b.t, b, keys) // its first heartbeat is later than the copy
	tables := b.tables()
	cl.net.Wait()
	require.Greater(b.t, time.Since(start), late)
	require.Less(b.t, time.Since(start), late+lease/10)
	require.Equal(b.t, 1, cl.net.Counts()[faults.Duplicated])
	require.Equal(b.t, tables, b.tables())
	require.Equal(b.t, map[string]int{"committed": 1}, cl.outcomes())
	return held
}

// One transaction was refused as too large, and its unit goes on with a journal. The
// network has a copy of that transaction; it comes when the records are smaller.

const largeRecords = 11 // of 390 KB: more than 4 MB

func (b *bed) putLarge() {
	for i := range largeRecords {
		b.putItem("accounts", map[string]types.AttributeValue{
			"Customer": text("1"), "ID": text(fmt.Sprint(i)), "Text": &types.AttributeValueMemberB{Value: make([]byte, 390<<10)},
		})
	}
}

// shrink deletes one of the large records, as the table's time to live may.
func (b *bed) shrink() { b.delete("accounts", map[string]string{"Customer": "1", "ID": "0"}) }

// count writes once to each of the large records.
func count(_ context.Context, u *unitofwork.Unit) error {
	one := types.Update{
		UpdateExpression:          aws.String("ADD Seen :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": number("1")},
	}
	return each(largeRecords, func(i int) error {
		return u.Stage(customerKey("1"), updateOf("accounts", one, map[string]string{"Customer": "1", "ID": fmt.Sprint(i)}))
	})
}

func inOneTransaction(_ *lockset.Config, u *unitofwork.Config) {
	u.TransactionSize = requests.MaxActions
}

// seen is how often each of the large records was written.
func (b *bed) seen() (times []string) {
	for _, item := range b.db.Items("accounts") {
		if n, ok := item["Seen"].(*types.AttributeValueMemberN); ok {
			times = append(times, n.Value)
		}
	}
	return times
}

// copied has the network deliver a copy of the one transaction, late.
func copied(late time.Duration) faults.Script {
	done := false
	return func(c faults.Call) faults.Fault {
		if c.Op == "TransactWriteItems" && c.Actions == largeRecords+1 && !done { // the row and the writes
			done = true
			return faults.Duplicate(late)
		}
		return faults.Pass()
	}
}

var once = slices.Repeat([]string{"1"}, largeRecords)

// The copy is carried out before the rows are marked: then it has committed the unit.
func TestACopyOfACommitThatWasTooLarge(t *testing.T) {
	for name, attempts := range map[string]int{"told": 1, "not done again": 2} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			b.putLarge()
			c := b.client("A", copied(2*time.Second), atProgress(hooks.Journaling, func() {
				b.shrink()
				time.Sleep(3 * time.Second)
			}), inOneTransaction)
			err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}, Attempts: attempts}, count)
			c.net.Wait()
			require.NoError(t, err)
			require.Equal(t, 1, c.net.Counts()[faults.Duplicated])
			require.Equal(t, map[string]int{"committed": 1}, c.outcomes())
			require.Equal(t, once, b.seen())
			b.nothingLeft()
		})
	}
}

// Who does not come as far as the mark is told so only when no copy can be carried
// out any more.
func TestACopyOfACommitThatWasTooLargeAfterItsUnitGaveUp(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putLarge()
		ctx, cancel := context.WithCancel(t.Context())
		c := b.client("A", copied(2*time.Second), atProgress(hooks.Journaling, cancel), inOneTransaction)
		require.Error(t, c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count))
		b.shrink()
		c.net.Wait()
		require.Equal(t, 1, c.net.Counts()[faults.Duplicated])
		require.Equal(t, map[string]int{"not": 1}, c.outcomes())
		require.Empty(t, b.seen())
		b.nothingLeft()
	})
}

// The copy finds the rows marked: the journal decides, and nothing else.
func TestACopyOfACommitThatWasTooLargeAfterTheMark(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		const late = 30 * time.Second
		b.putLarge()
		duplicate, dies := copied(late), atPhase(decides, 1, faults.CrashHere(false))
		dead := b.client("dead", func(c faults.Call) faults.Fault {
			if f := duplicate(c); f.Kind != faults.Pass().Kind {
				return f
			}
			return dies(c)
		})
		began := time.Now()
		require.Error(t, dead.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count))
		require.Contains(t, b.row(customerKey("1")), "pending")
		b.shrink()
		aborted := false
		heir := b.client("heir", func(c faults.Call) faults.Fault {
			if aborted { // it is held up before it frees what it has aborted
				time.Sleep(time.Until(began.Add(late + time.Second)))
			}
			aborted = aborted || phaseOf(c) == aborts
			return faults.Pass()
		}, func(l *lockset.Config, _ *unitofwork.Config) { l.Lease = 4 * lease })
		found := heir.recovers(t)
		dead.net.Wait()
		require.Len(t, found.Aborted, 1)
		require.Empty(t, b.seen())
	})
}

// Whether the copy was carried out cannot be asked any more: the unit says that it does
// not know, and leaves the journal to Recover.
func TestACopyOfACommitThatWasTooLargeAfterTheNetworkFailed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.putLarge()
		ctx, cancel := context.WithCancel(t.Context())
		var c *client
		c = b.client("A", nil, atProgress(hooks.Journaling, func() {
			c.net.Partition(true)
			cancel()
		}), inOneTransaction)
		err := c.Do(ctx, unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, count)
		require.ErrorIs(t, err, unitofwork.ErrInDoubt)
		require.ErrorIs(t, err, context.Canceled, "which is why it went no further")
		require.Equal(t, map[string]int{"in doubt": 1}, c.outcomes())
		c.net.Partition(false)
		c.net.Wait()
		b.client("heir", nil).recovers(t)
		require.Empty(t, b.seen())
		b.nothingLeft()
	})
}
