package unitofwork_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// atCommits gives f to the commits from the first to the last, by number.
func atCommits(first, last int, f faults.Fault) faults.Script { return nth(isCommit, first, last, f) }

const always = 1 << 30

// lost is what may happen to the sendings of a commit, and whether it is carried out all the same.
var lost = map[string]struct {
	last  int // the last of the sendings that it happens to
	fault faults.Fault
	done  bool
}{
	"answer lost once":           {1, faults.LoseAnswer(faults.Reset), true},
	"answer broken":              {1, faults.LoseAnswer(faults.Broken), true},
	"request lost once":          {1, faults.LoseRequest(faults.Hang), true},
	"delivered late, between":    {1, faults.DeliverLate(1500*time.Millisecond, faults.Hang), true},
	"duplicated":                 {1, faults.Duplicate(time.Second), true},
	"in progress":                {1, faults.InProgress(time.Second), true},
	"conflicts for a while":      {5, faults.Conflict(0), true},
	"throttled for a while":      {5, faults.Throttle(faults.InReasons, 1), true},
	"server error, executed":     {1, faults.ServerError(true), true},
	"all answers lost":           {always, faults.LoseAnswer(faults.Hang), true},
	"all answers reset":          {always, faults.LoseAnswer(faults.Reset), true},
	"all requests lost":          {always, faults.LoseRequest(faults.Hang), false},
	"all delivered far too late": {always, faults.DeliverLate(2*lease, faults.Hang), false},
	"conflicts for a lease":      {always, faults.Conflict(1), false},
	"throttled for a lease":      {always, faults.Throttle(faults.RequestLimit), false},
}

// A commit whose answer is lost, once or for as long as it is asked: what is
// said of it is true.
func TestLostAnswersOfACommit(t *testing.T) {
	for name, c := range lost {
		for _, id := range []string{"", "p1"} {
			runInBed(t, name+" "+id, func(t *testing.T, b *bed) {
				cl := b.client("c", atCommits(1, c.last, c.fault))
				err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: id, Attempts: 1}, transfer(30))
				want, balances := map[string]int{"committed": 1}, [2]int64{70, 130}
				if c.done {
					require.NoError(t, err)
				} else {
					require.Error(t, err)
					require.Equal(t, lockset.StartOver, lockset.NextOf(err), "%v", err)
					want, balances = map[string]int{"not": 1}, [2]int64{100, 100}
				}
				require.Equal(t, want, cl.outcomes())
				require.Equal(t, balances, b.balances())
				cl.net.Wait()
				require.Equal(t, balances, b.balances(), "a late packet changes nothing")
				b.allFree()
			})
		}
	}
}

// A repeated commit is the same request to DynamoDB, which answers it as done:
// nothing needs to be found out.
func TestARepeatedCommitIsTheSameRequest(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", atCommits(1, 2, faults.LoseAnswer(faults.Reset)))
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(30)))
		require.Equal(t, map[string]int{"TransactWriteItems": 4, "TransactGetItems": 1}, c.requests())
	})
}

// Starting over after a commit that never can land does the work once.
func TestStartingOverAfterALostCommit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", atCommits(1, 9, faults.DeliverLate(3*lease, faults.Hang)))
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 3}, transfer(30)))
		c.net.Wait()
		require.Equal(t, [2]int64{70, 130}, b.balances())
	})
}

// cutAfterCommit cuts the owner off once a commit was sent: executed or not, it
// hears nothing any more.
func cutAfterCommit(executed bool) faults.Script {
	if executed {
		return cutFrom(isCommit, 1, faults.LoseAnswer(faults.Hang))
	}
	return cutFrom(isCommit, 1, faults.LoseRequest(faults.Hang))
}

// Cut off in the middle of a commit, a unit is in doubt, and says so; asked
// later, the tables say what became of it.
func TestInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		executed bool
		id       string
		between  func(*testing.T, *bed) // what happens before it is asked about
		outcome  unitofwork.Outcome
	}{
		"committed":                       {true, "", nil, unitofwork.Committed},
		"not sent, rows still held":       {false, "", nil, unitofwork.Undecided},
		"not sent, taken over":            {false, "", others, unitofwork.Forgotten},
		"committed, others since":         {true, "", others, unitofwork.Forgotten},
		"committed, only locked since":    {true, "", lockers, unitofwork.Committed},
		"with an id, committed":           {true, "p/1:x", others, unitofwork.Committed},
		"with an id, not sent":            {false, "p/1:x", nil, unitofwork.Undecided},
		"with an id, not sent, taken":     {false, "p/1:x", others, unitofwork.NotCommitted},
		"with an id, done by another":     {false, "p/1:x", sameID, unitofwork.NotCommitted},
		"with an id, committed and long":  {true, "p/1:x", func(*testing.T, *bed) { time.Sleep(24 * time.Hour) }, unitofwork.Committed},
		"with an id, its record expired":  {true, "p/1:x", expired, unitofwork.Forgotten},
		"with an id, used again since":    {true, "p/1:x", func(t *testing.T, b *bed) { expired(t, b); sameID(t, b) }, unitofwork.Forgotten},
		"with an id, not sent, weeks ago": {false, "p/1:x", weeksAgo, unitofwork.Forgotten},
		"committed, its rows made anew":   {true, "", madeAnew, unitofwork.Forgotten},
		"with an id, not sent, long ago":  {false, "p/1:x", expired, unitofwork.Forgotten},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("c", cutAfterCommit(c.executed))
			err := cl.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: c.id, Attempts: 5}, transfer(30))
			doubt := errorAs[*unitofwork.InDoubtError](t, err)
			require.ErrorIs(t, err, unitofwork.ErrInDoubt)
			require.Equal(t, lockset.AskLater, lockset.NextOf(err))
			require.Equal(t, c.id, doubt.ID)
			require.Equal(t, map[string]int{"in doubt": 1}, cl.outcomes(), "a unit in doubt is not started over")

			if c.between != nil {
				c.between(t, b)
			}
			require.Equal(t, c.outcome, b.client("asker", nil).outcomeOf(t, doubt.Ref))
		})
	}
}

// others commits on both keys.
func others(t *testing.T, b *bed) {
	require.NoError(t, b.client("others", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
}

// sameID commits under the same ID.
func sameID(t *testing.T, b *bed) {
	require.NoError(t, b.client("others", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p/1:x"}, transfer(30)))
}

// expired lets the time of every record and row pass, with others between.
func expired(t *testing.T, b *bed) {
	others(t, b)
	time.Sleep(40 * 24 * time.Hour)
	b.db.Expire(time.Now())
}

// weeksAgo has others commit, and lets so much time pass that a record of an ID may
// have been deleted, by a clock that is wrong by the locks' retention.
func weeksAgo(t *testing.T, b *bed) {
	others(t, b)
	time.Sleep(17 * 24 * time.Hour)
}

// madeAnew deletes all rows, and has somebody take the keys whose clock is slow: its
// fences are below all that were there.
func madeAnew(t *testing.T, b *bed) {
	for _, item := range b.db.Items("locks") {
		b.deleteRow(ordering.Key(valueOf(item["key"])))
	}
	slow := b.client("slow", nil, clockOff(-time.Hour))
	slow.passes(t, transferKeys...)
}

// lockers take the keys and let them go.
func lockers(t *testing.T, b *bed) {
	b.client("lockers", nil).passes(t, transferKeys...)
}

// A commit that met nothing but conflicts, stalled, and whose copy lands late is
// not told as not committed, let alone done again.
func TestACopyOfACommitThatWasBusy(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		n := 0
		var commit *dynamodb.TransactWriteItemsInput
		c := b.client("c", func(call faults.Call) faults.Fault {
			if !isCommit(call) {
				return faults.Pass()
			}
			if n++; n == 1 {
				copied := *call.Input.(*dynamodb.TransactWriteItemsInput)
				commit = &copied
				return faults.Conflict(0)
			}
			// The process stalls; meanwhile the copy lands, and others commit.
			_, err := b.db.TransactWriteItems(t.Context(), commit)
			require.NoError(t, err)
			others(t, b)
			time.Sleep(lease)
			return faults.Conflict(0)
		})
		err := c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, Attempts: 3}, transfer(30))
		require.ErrorIs(t, err, unitofwork.ErrInDoubt)
		require.Equal(t, [2]int64{69, 131}, b.balances(), "once")
	})
}

func TestOutcomeOfAnID(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		ask := func(id string) (unitofwork.Outcome, error) { return c.Outcome(t.Context(), id) }
		outcome, err := ask("p1")
		require.NoError(t, err)
		require.Equal(t, unitofwork.Undecided, outcome)
		require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p1"}, transfer(1)))
		outcome, err = ask("p1")
		require.NoError(t, err)
		require.Equal(t, unitofwork.Committed, outcome)
		for _, bad := range []string{"", "unit:", "unit:a:b:c:d", "unit:n:1:1::", "unit:n:1:1:%zz:k", "unit:n:0:1::k", "unit:n:1:x::k", "unit:n:1:1:%ff:k", "\xff"} {
			_, err = ask(bad)
			require.ErrorAs(t, err, new(*unitofwork.IDError), "%q", bad)
		}
		var idErr *unitofwork.IDError
		for _, id := range []string{"p1", "unit:n:1:1:p1:k"} {
			_, err = b.client("other", nil, withoutUnitTable).Outcome(t.Context(), id)
			require.ErrorAs(t, err, &idErr, "%q", id)
			require.ErrorContains(t, err, "cannot be looked up")
		}
	})
}

// What is in the place of an ID's record and is none says nothing: neither that the
// unit is committed, nor that it is not.
func TestARecordOfAnIDThatIsNone(t *testing.T) {
	for name, harm := range map[string]string{
		"it names no unit": "REMOVE #committedBy", "it has no digest": "REMOVE #digest", "it has neither": "REMOVE #committedBy , #digest",
		"its unit is empty": "SET #committedBy = :empty", "its unit is no text": "SET #committedBy = :bytes",
		"its digest is short": "SET #digest = :bytes", "its digest is text": "SET #digest = :empty",
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", nil)
			require.NoError(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p"}, transfer(1)))
			b.change("units", map[string]string{"unit": "id:p", "part": "record"}, harm)
			_, err := c.Outcome(t.Context(), "p")
			idErr := errorAs[*unitofwork.IDError](t, err)
			require.ErrorAs(t, c.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p"}, transfer(1)), &idErr)
			require.Equal(t, lockset.FixCall, lockset.NextOf(idErr))
			require.Equal(t, [2]int64{99, 101}, b.balances())
			b.allFree()
		})
	}
}

func TestTheSameIDCommitsOnce(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		one, two := b.client("one", nil), b.client("two", nil)
		calls := 0
		work := func(ctx context.Context, u *unitofwork.Unit) error {
			calls++
			return transfer(30)(ctx, u)
		}
		broke := errors.New("broke")
		for range 3 { // aborted attempts leave no trace of the ID
			require.ErrorIs(t, one.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p", Payload: []byte("x")}, func(context.Context, *unitofwork.Unit) error { return broke }), broke)
		}
		require.Empty(t, b.db.Items("units"))

		done := make(chan error)
		for range 4 {
			go func() {
				done <- one.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p", Payload: []byte("x")}, work)
			}()
			go func() {
				done <- two.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p", Payload: []byte("x")}, work)
			}()
		}
		for range 8 {
			require.NoError(t, <-done)
		}
		require.Equal(t, 1, calls, "what is done is not done again")
		require.Equal(t, [2]int64{70, 130}, b.balances())

		_, err := one.Begin(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p", Payload: []byte("x")})
		require.ErrorIs(t, err, unitofwork.ErrAlreadyCommitted)

		idErr := errorAs[*unitofwork.IDError](t, one.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "p", Payload: []byte("other")}, work))
		require.ErrorAs(t, one.Do(t.Context(), unitofwork.Work{Keys: transferKeys[:1], ID: "p", Payload: []byte("x")}, work), &idErr, "other keys are another payload")
		require.ErrorAs(t, one.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{"elsewhere"}, ID: "p", Payload: []byte("x")}, work), &idErr)
		require.ErrorAs(t, one.Do(t.Context(), unitofwork.Work{Keys: transferKeys, ID: "unit:x", Payload: []byte("")}, work), &idErr)
		require.Equal(t, 1, calls)
		b.allFree()
	})
}

// Two units that hold different keys may race for one ID: the commit decides.
func TestARaceForAnIDIsDecidedByTheCommit(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c := b.client("c", nil)
		first := c.begins(t, unitofwork.Work{Keys: transferKeys[:1], ID: "p"})
		second := c.begins(t, unitofwork.Work{Keys: transferKeys[1:], ID: "p"})
		require.NoError(t, first.Commit(t.Context()))
		require.NoError(t, second.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})))
		err := second.Commit(t.Context())
		require.ErrorAs(t, err, new(*unitofwork.IDError), "other keys under the same ID")
		require.Equal(t, [2]int64{100, 100}, b.balances())
		b.allFree()
	})
}

// A copy of a commit that was refused, when its condition holds by then and the
// release is late: what Do says is true all the same.
func TestACopyOfARefusedCommit(t *testing.T) {
	for name, releaseLost := range map[string]bool{"the release is first": false, "the copy is first": true} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			c := b.client("c", func(call faults.Call) faults.Fault {
				switch {
				case isCommit(call):
					return faults.Duplicate(time.Millisecond)
				case releaseLost && call.Op == "UpdateItem" && call.N == 2:
					return faults.LoseRequest(faults.Reset)
				}
				return faults.Pass()
			})
			go func() {
				time.Sleep(9 * time.Millisecond) // after the commit was refused
				b.put("customers", customer{ID: "1", Name: "open"})
			}()
			err := c.Do(t.Context(), unitofwork.Work{Keys: []ordering.Key{customerKey("1")}}, func(_ context.Context, u *unitofwork.Unit) error {
				return errors.Join(
					u.Replace(accounts.Of(account{Customer: "1", ID: "a", Balance: 7})),
					u.Check(customers.Of(customer{ID: "1"}), unitofwork.Expression{
						Condition: "#n = :open", Names: map[string]string{"#n": "Name"}, Values: map[string]any{":open": "open"},
					}),
				)
			})
			c.net.Wait()
			if b.account("1").Balance == 7 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, unitofwork.ErrCondition)
			}
			require.Equal(t, releaseLost, err == nil)
			b.allFree()
		})
	}
}
