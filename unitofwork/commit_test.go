package unitofwork_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
				err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 1}, func(_ context.Context, u *unitofwork.Unit) error {
					return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7}))
				})
				require.ErrorIs(t, err, c.is)
				require.Equal(t, c.is == nil, b.account("1").Balance == 7)
				b.allFree()
			})
		})
	}
}

// What the release of the rows has said needs no other look.
func TestWhatARefusedCommitSends(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, func(_ context.Context, u *unitofwork.Unit) error {
			return u.Check(accounts.Ref("1", "a"), unitofwork.Expression{Condition: "attribute_not_exists(ID)"})
		})
		require.ErrorIs(t, err, unitofwork.ErrCondition)
		require.Equal(t, map[string]int{"TransactWriteItems": 3}, c.requests(), "it locks, commits and releases")
	})
}

// A commit that was refused for a later token is started over with one above it, though
// nobody has read the record.
func TestATokenThatRefusedACommitIsNotProposedAgain(t *testing.T) {
	for name, change := range map[string]func(*lockset.Config, *unitofwork.Config){
		"at once": func(*lockset.Config, *unitofwork.Config) {}, "with a journal": inOneAction,
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				later := time.Now().Add(time.Hour).UnixMicro()
				b.put("accounts", account{Customer: "1", ID: "a", Fence: later})
				c := b.client("c", nil, change)
				require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 2}, func(_ context.Context, u *unitofwork.Unit) error {
					return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7}))
				}))
				require.Equal(t, int64(7), b.account("1").Balance)
				require.Greater(t, b.account("1").Fence, later)
			})
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				before := b.db.Items("accounts")
				client := b.client("A", func(call faults.Call) faults.Fault {
					if isCommit(call) {
						return faults.RefuseAsTooLarge()
					}
					return faults.Pass()
				}, withoutUnitTable, withTokenOf(1_900_000_000_123_457))
				err := client.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
					for _, stage := range c.stage {
						if err := stage(u); err != nil {
							return err
						}
					}
					return nil
				})
				var refused *unitofwork.CommitError
				require.ErrorAs(t, err, &refused)
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
		})
	}
}

// A hook that panics in the midst of a commit leaves nothing held, and no context alive.
func TestAHookThatPanicsInACommit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		committing := false
		cl := b.client("c", nil, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Trace = trace.Join(l.Trace, hooks.On(trace.Request, func(context.Context, trace.Event) {
				if committing {
					committing = false
					panic("the hook is broken")
				}
			}))
		})
		u, err := cl.Begin(t.Context(), unitofwork.Work{Keys: transferKeys})
		require.NoError(t, err)
		require.NoError(t, transfer(30)(t.Context(), u))
		committing = true
		require.PanicsWithValue(t, "the hook is broken", func() { _ = u.Commit(t.Context()) })
		require.Error(t, u.Context().Err())
		require.ErrorIs(t, u.Commit(t.Context()), unitofwork.ErrEnded)
	})
}
