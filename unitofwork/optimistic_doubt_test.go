package unitofwork_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// A commit without locks whose answer is lost, once or for as long as it is asked: what is
// said of it is true, and it is done once, now or under locks.
func TestLostAnswersOfACommitWithoutLocks(t *testing.T) {
	for name, c := range map[string]struct {
		script faults.Script
		runs   []string
	}{
		"answer lost once":           {atCommits(1, 1, faults.LoseAnswer(faults.Reset)), []string{"free committed"}},
		"answer broken":              {atCommits(1, 1, faults.LoseAnswer(faults.Broken)), []string{"free committed"}},
		"request lost once":          {atCommits(1, 1, faults.LoseRequest(faults.Hang)), []string{"free committed"}},
		"delivered late, between":    {atCommits(1, 1, faults.DeliverLate(1500*time.Millisecond, faults.Hang)), []string{"free committed"}},
		"duplicated":                 {atCommits(1, 1, faults.Duplicate(time.Second)), []string{"free committed"}},
		"in progress":                {atCommits(1, 1, faults.InProgress(time.Second)), []string{"free committed"}},
		"conflicts for a while":      {atCommits(1, 5, faults.Conflict(0)), []string{"free committed"}},
		"throttled for a while":      {atCommits(1, 5, faults.Throttle(faults.InReasons, 1)), []string{"free committed"}},
		"server error, executed":     {atCommits(1, 1, faults.ServerError(true)), []string{"free committed"}},
		"all answers lost":           {beforeLocks(faults.LoseAnswer(faults.Hang)), []string{"free committed"}},
		"all answers reset":          {beforeLocks(faults.LoseAnswer(faults.Reset)), []string{"free committed"}},
		"all requests lost":          {beforeLocks(faults.LoseRequest(faults.Hang)), []string{"free fell back", "locked committed"}},
		"all delivered far too late": {beforeLocks(faults.DeliverLate(2*lease, faults.Hang)), []string{"free fell back", "locked committed"}},
		"conflicts for a lease":      {beforeLocks(faults.Conflict(1)), []string{"free fell back", "locked committed"}},
	} {
		for _, id := range []string{"", "p1"} {
			t.Run(name+" "+id, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					var r runs
					cl := b.client("c", c.script, r.traced)
					err := cl.freely(t.Context(), unitofwork.Work{ID: id}, transfer(30))
					require.Equal(t, c.runs, r.texts())
					require.NoError(t, err)
					balances := [2]int64{70, 130}
					require.Equal(t, balances, b.balances())
					cl.net.Wait()
					require.Equal(t, balances, b.balances(), "a late packet changes nothing")
					b.allFree()
				})
			})
		}
	}
}

// beforeLocks gives f to every commit without locks.
func beforeLocks(f faults.Fault) faults.Script {
	return func(c faults.Call) faults.Fault {
		if isCommit(c) && passes(c) {
			return f
		}
		return faults.Pass()
	}
}

// passes tells a commit without locks from one that frees them.
func passes(c faults.Call) bool {
	in := c.Input.(*dynamodb.TransactWriteItemsInput)
	first := in.TransactItems[0].Update
	return first != nil && !strings.Contains(*first.UpdateExpression, "#unit") && !strings.Contains(*first.UpdateExpression, "#below")
}

// Nothing is heard of a commit, nor of anything after it: the caller is in doubt, and can ask.
func TestInDoubtWithoutLocks(t *testing.T) {
	for _, id := range []string{"", "p1"} {
		for name, c := range map[string]struct {
			commit faults.Fault
			others bool // somebody else has had the keys before it is asked
			want   unitofwork.Outcome
			later  unitofwork.Outcome // when the network has delivered all there is
		}{
			"done":                           {faults.LoseAnswer(faults.Hang), false, unitofwork.Committed, unitofwork.Committed},
			"not done":                       {faults.LoseRequest(faults.Hang), false, unitofwork.Undecided, unitofwork.Undecided},
			"late":                           {faults.DeliverLate(time.Hour, faults.Hang), false, unitofwork.Undecided, unitofwork.Committed},
			"late, and somebody came before": {faults.DeliverLate(time.Hour, faults.Hang), true, unitofwork.Forgotten, unitofwork.Forgotten},
			"done, and somebody came after":  {faults.LoseAnswer(faults.Hang), true, unitofwork.Forgotten, unitofwork.Forgotten},
		} {
			t.Run(name+" "+id, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					silent := false
					cl := b.client("c", func(call faults.Call) faults.Fault {
						switch {
						case isCommit(call):
							silent = true
							return c.commit
						case silent:
							return faults.LoseRequest(faults.Hang)
						}
						return faults.Pass()
					})
					err := cl.freely(t.Context(), unitofwork.Work{ID: id}, transfer(30))
					var doubt *unitofwork.InDoubtError
					require.ErrorAs(t, err, &doubt)
					require.Equal(t, lockset.AskLater, lockset.NextOf(err))
					if c.others {
						require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
					}
					want, later := c.want, c.later
					if id != "" && want == unitofwork.Forgotten { // the ID's record tells, or that there is none
						want = unitofwork.NotCommitted
						if c.commit.Kind == faults.AnswerLost {
							want = unitofwork.Committed
						}
						later = want
					}
					asker := b.client("asker", nil)
					outcome, err := asker.Outcome(t.Context(), doubt.Ref)
					require.NoError(t, err)
					require.Equal(t, want, outcome)
					cl.net.Wait()
					outcome, err = asker.Outcome(t.Context(), doubt.Ref)
					require.NoError(t, err)
					require.Equal(t, later, outcome)
					moved := b.balances()[0] < 99
					require.Equal(t, moved, later == unitofwork.Committed || id == "" && c.commit.Kind == faults.AnswerLost)
				})
			})
		}
	}
}

// A commit that is refused by what may pass, a waiter's place, say, is never carried out once
// its caller was told so, or has done the same under locks.
func TestARefusedCommitIsNotCarriedOutLater(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		n := 0
		cl := b.client("c", func(call faults.Call) faults.Fault {
			if isCommit(call) {
				if n++; n == 1 {
					return faults.Duplicate(time.Hour)
				}
			}
			return faults.Pass()
		})
		require.NoError(t, cl.freely(t.Context(), unitofwork.Work{}, transfer(0)))
		n = 0
		err := cl.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
			return errors.Join(transfer(30)(ctx, u), u.Check(customers.Ref("1"), unitofwork.Expression{
				Condition: "#n = :later", Names: map[string]string{"#n": "Name"}, Values: map[string]any{":later": "later"},
			}))
		})
		require.ErrorIs(t, err, unitofwork.ErrCondition)
		require.Equal(t, lockset.Decide, lockset.NextOf(err))
		b.put("customers", customer{ID: "1", Name: "later"})
		cl.net.Wait()
		require.Equal(t, [2]int64{100, 100}, b.balances())
	})
}

// The same ID commits once, in whichever way.
func TestTheSameIDWithoutLocks(t *testing.T) {
	ways := map[string]func(*client) func(context.Context, unitofwork.Work, func(context.Context, *unitofwork.Unit) error) error{
		"free": func(c *client) func(context.Context, unitofwork.Work, func(context.Context, *unitofwork.Unit) error) error {
			return c.freely
		},
		"locked": func(c *client) func(context.Context, unitofwork.Work, func(context.Context, *unitofwork.Unit) error) error {
			return c.Do
		},
	}
	for first, before := range ways {
		for second, after := range ways {
			t.Run(first+" then "+second, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					c := b.client("c", nil)
					work := unitofwork.Work{Keys: transferKeys, ID: "p1", Payload: []byte("30")}
					require.NoError(t, before(c)(t.Context(), work, transfer(30)))
					require.NoError(t, after(c)(t.Context(), work, transfer(30)))
					require.Equal(t, [2]int64{70, 130}, b.balances())
					work.Payload = []byte("31")
					require.ErrorAs(t, after(c)(t.Context(), work, transfer(31)), new(*unitofwork.IDError))
					outcome, err := c.Outcome(t.Context(), "p1")
					require.NoError(t, err)
					require.Equal(t, unitofwork.Committed, outcome)
				})
			})
		}
	}
}

// The record of an ID is read with what the function reads first. What a function says that
// reads nothing, or that fails, does not count if the ID was committed.
func TestAnIDThatWasCommittedBefore(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		fn   func(context.Context, *unitofwork.Unit) error
		sent map[string]int
	}{
		"reads": {transfer(30), map[string]int{"TransactGetItems": 1}},
		"fails": {func(context.Context, *unitofwork.Unit) error { return failed }, map[string]int{"TransactGetItems": 1}},
		"only writes": {func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a"}))
		}, map[string]int{"TransactWriteItems": 1, "UpdateItem": 1}},
		"does nothing":              {func(context.Context, *unitofwork.Unit) error { return nil }, map[string]int{"TransactWriteItems": 1, "TransactGetItems": 1}},
		"reads, and says otherwise": {func(ctx context.Context, u *unitofwork.Unit) error { _ = transfer(30)(ctx, u); return failed }, map[string]int{"TransactGetItems": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				cl := b.client("c", nil, r.traced)
				work := unitofwork.Work{ID: "p1"}
				require.NoError(t, cl.freely(t.Context(), work, transfer(30)))
				cl.requests()
				require.NoError(t, cl.freely(t.Context(), work, c.fn))
				require.Equal(t, c.sent, cl.requests())
				require.Equal(t, []string{"free committed", "free committed before"}, r.texts())
				require.Equal(t, [2]int64{70, 130}, b.balances())
				require.ErrorAs(t, cl.freely(t.Context(), unitofwork.Work{ID: "p1", Payload: []byte("other")}, c.fn), new(*unitofwork.IDError))
			})
		})
	}
}

// An ID is remembered also if there was nothing to do.
func TestAnIDWithoutAKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		nothing := func(context.Context, *unitofwork.Unit) error { return nil }
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{ID: "p1"}, nothing))
		outcome, err := c.Outcome(t.Context(), "p1")
		require.NoError(t, err)
		require.Equal(t, unitofwork.Committed, outcome)

		deaf := b.client("deaf", func(call faults.Call) faults.Fault { return faults.LoseAnswer(faults.Hang) })
		err = deaf.freely(t.Context(), unitofwork.Work{ID: "p2"}, nothing)
		var doubt *unitofwork.InDoubtError
		require.ErrorAs(t, err, &doubt)
		outcome, err = c.Outcome(t.Context(), doubt.Ref)
		require.NoError(t, err)
		require.Equal(t, unitofwork.Committed, outcome)
	})
}

// A token that is too low for a row that was not looked at is raised once; then the unit
// takes locks, and a place in the row's queue with them.
func TestATokenThatIsTooLow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		ahead := b.client("ahead", nil, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Now = func() time.Time { return time.Now().Add(time.Minute) }
		})
		behind := b.client("behind", nil, r.traced)
		write := func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 5}))
		}
		require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, write))
		require.NoError(t, behind.freely(t.Context(), unitofwork.Work{}, write))
		require.Equal(t, map[string]int{"TransactWriteItems": 2}, behind.requests())
		require.NoError(t, behind.freely(t.Context(), unitofwork.Work{}, write))
		require.Equal(t, map[string]int{"TransactWriteItems": 1}, behind.requests(), "its clock has seen it")
		require.Equal(t, []string{"free committed", "free committed"}, r.texts())
	})
}

// A token is not raised if an earlier sending may have landed.
func TestATokenIsNotRaisedAfterASilence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		ahead := b.client("ahead", nil, func(l *lockset.Config, _ *unitofwork.Config) {
			l.Now = func() time.Time { return time.Now().Add(time.Minute) }
		})
		n := 0
		behind := b.client("behind", func(call faults.Call) faults.Fault {
			if isCommit(call) {
				if n++; n == 1 {
					return faults.LoseRequest(faults.Reset)
				}
			}
			return faults.Pass()
		}, r.traced)
		write := func(_ context.Context, u *unitofwork.Unit) error {
			return u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 5}))
		}
		require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, write))
		require.ErrorIs(t, behind.freely(t.Context(), unitofwork.Work{}, write), unitofwork.ErrInDoubt, "the row is overtaken, and does not tell")
		require.Equal(t, []string{"free in doubt"}, r.texts())
	})
}

// A commit is refused because somebody has its row, with a lower token, and before its own token
// can be made unusable others with a higher one have had the row, who leave no trace of it. A
// copy of the commit may have been carried out in between. What became of it is known all the
// same, unless finding out takes longer than DynamoDB remembers request tokens.
func TestACommitThatWasRefusedAndOvertaken(t *testing.T) {
	for name, c := range map[string]struct {
		copied bool
		takes  time.Duration
		runs   []string
		sum    int64
	}{
		"at once":                  {false, 0, []string{"free fell back", "locked committed"}, 112},
		"a copy was carried out":   {true, 0, []string{"free committed"}, 112},
		"after a while":            {false, 4 * time.Minute, []string{"free fell back", "locked committed"}, 112},
		"too late":                 {false, 6 * time.Minute, []string{"free in doubt"}, 107},
		"too late, and a copy was": {true, 6 * time.Minute, []string{"free in doubt"}, 112},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				slow := func(l *lockset.Config, _ *unitofwork.Config) { l.Lease, l.AttemptTimeout = time.Hour, 10*time.Minute }
				holder, other := b.client("holder", nil, slow), b.client("other", nil, slow)
				set, err := holder.locks.Acquire(t.Context(), []ordering.Key{accountKey("1", "a")})
				require.NoError(t, err)
				commits, burns := 0, 0
				cl := b.client("c", func(call faults.Call) faults.Fault {
					switch _, updates := call.Input.(*dynamodb.UpdateItemInput); {
					case updates && burns == 0:
						burns++
						require.NoError(t, set.Release(t.Context()))
						time.Sleep(2 * time.Second)
						require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, addBlindly(7)))
						time.Sleep(c.takes)
					case call.Op == "TransactWriteItems" && commits == 0:
						if commits++; c.copied {
							return faults.Duplicate(time.Second)
						}
					}
					return faults.Pass()
				}, r.traced, slow)
				err = cl.freely(t.Context(), unitofwork.Work{}, addBlindly(5))
				require.Equal(t, c.runs, r.texts())
				if c.takes > 5*time.Minute {
					require.ErrorIs(t, err, unitofwork.ErrInDoubt)
				} else {
					require.NoError(t, err)
				}
				require.EqualValues(t, c.sum, b.account("1").Balance)
			})
		})
	}
}
