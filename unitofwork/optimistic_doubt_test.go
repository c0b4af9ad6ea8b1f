package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
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

// freeUnits are units that commit without locks: with one ID or none, and adding to account 2. Of what
// a unit has only read the rows say nothing of its commit; a row that is checked is the first in the
// order here. One that writes nothing commits the record of its ID.
var freeUnits = map[string]struct {
	fn   func(context.Context, *unitofwork.Unit) error
	ids  []string
	adds int64
}{
	"writes":                    {transfer(30), []string{"", "p1"}, 30},
	"reads one, writes another": {reading("2", customers.Ref("1")), []string{"", "p1"}, 1},
	"only reads":                {readOnly(customers.Ref("1")), []string{"p1"}, 0},
}

// A commit without locks whose answer is lost, once or for as long as it is asked: what is
// said of it is true, and it is done once, now or under locks.
func TestLostAnswersOfACommitWithoutLocks(t *testing.T) {
	for name, c := range lost {
		for what, unit := range freeUnits {
			for _, id := range unit.ids {
				runInBed(t, fmt.Sprint(name, ", ", what, " ", id), func(t *testing.T, b *bed) {
					cl, r := b.traced("c", atFree(1, c.last, c.fault))
					require.NoError(t, cl.freely(t.Context(), unitofwork.Work{ID: id}, unit.fn))
					want := []string{"free committed"}
					if !c.done {
						want = []string{"free fell back", "locked committed"}
					}
					require.Equal(t, want, r.texts())
					require.Equal(t, 100+unit.adds, b.account("2").Balance)
					cl.net.Wait()
					require.Equal(t, 100+unit.adds, b.account("2").Balance, "a late packet changes nothing")
					b.allFree()
					if id != "" {
						require.Len(t, b.db.Items("units"), 1)
						require.Equal(t, unitofwork.Committed, cl.outcomeOf(t, id))
					}
				})
			}
		}
	}
}

// passes tells a commit without locks from one that frees them.
func passes(c faults.Call) bool {
	in := c.Input.(*dynamodb.TransactWriteItemsInput)
	first := in.TransactItems[0].Update
	return first != nil && !strings.Contains(*first.UpdateExpression, "#unit") && !strings.Contains(*first.UpdateExpression, "#below")
}

// Nothing is heard of a commit, nor of anything after it: the caller is in doubt, and can ask. What it
// asks by is its ID, or names a row that the commit has passed.
func TestInDoubtWithoutLocks(t *testing.T) {
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
		for what, unit := range freeUnits {
			for _, id := range unit.ids {
				runInBed(t, fmt.Sprint(name, ", ", what, " ", id), func(t *testing.T, b *bed) {
					cl := b.client("c", cutFrom(isFree, 1, c.commit))
					err := cl.freely(t.Context(), unitofwork.Work{ID: id}, unit.fn)
					doubt := errorAs[*unitofwork.InDoubtError](t, err)
					require.Equal(t, lockset.AskLater, lockset.NextOf(err))
					balance := int64(100)
					if c.others {
						require.NoError(t, b.client("other", nil).Do(t.Context(), unitofwork.Work{Keys: transferKeys}, transfer(1)))
						balance++
					}
					want, later := c.want, c.later
					if id != "" && want == unitofwork.Forgotten { // the ID's record tells, or that there is none
						switch want = unitofwork.NotCommitted; {
						case c.commit.Kind == faults.AnswerLost:
							want = unitofwork.Committed
						case unit.adds == 0: // which is asked about by its ID: another may commit under it
							want = unitofwork.Undecided
						}
						later = want
					}
					asker := b.client("asker", nil)
					require.Equal(t, want, asker.outcomeOf(t, doubt.Ref))
					cl.net.Wait()
					require.Equal(t, later, asker.outcomeOf(t, doubt.Ref))
					if later == unitofwork.Committed || c.commit.Kind == faults.AnswerLost {
						balance += unit.adds
					}
					require.Equal(t, balance, b.account("2").Balance)
					if unit.adds == 0 {
						require.Equal(t, id, doubt.Ref)
					}
				})
			}
		}
	}
}

// A commit that is refused by what may pass, a waiter's place, say, is never carried out once
// its caller was told so, or has done the same under locks. Nor is one of an ID alone.
func TestARefusedCommitIsNotCarriedOutLater(t *testing.T) {
	for name, c := range map[string]struct {
		work unitofwork.Work
		fn   func(context.Context, *unitofwork.Unit) error
	}{
		"of writes": {unitofwork.Work{}, transfer(30)}, "of an ID": {unitofwork.Work{ID: "p1"}, readOnly(customers.Ref("1"))},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl := b.client("c", atFree(2, 2, faults.Duplicate(time.Hour)))
			require.NoError(t, cl.freely(t.Context(), unitofwork.Work{}, transfer(0)), "so that there are rows")
			err := cl.freely(t.Context(), c.work, func(ctx context.Context, u *unitofwork.Unit) error {
				return errors.Join(c.fn(ctx, u), u.Check(customers.Ref("1"), nameIs("later")))
			})
			require.ErrorIs(t, err, unitofwork.ErrCondition)
			require.Equal(t, lockset.Decide, lockset.NextOf(err))
			b.put("customers", customer{ID: "1", Name: "later"})
			cl.net.Wait()
			require.Equal(t, 1, cl.net.Counts()[faults.Duplicated])
			require.Equal(t, [2]int64{100, 100}, b.balances())
			require.Empty(t, b.db.Items("units"))
		})
	}
}

// The same ID commits once, in whichever way.
func TestTheSameIDWithoutLocks(t *testing.T) {
	for _, first := range []bool{true, false} { // Work.Lock
		for _, second := range []bool{true, false} {
			runInBed(t, fmt.Sprintf("locks first: %t, then %t", first, second), func(t *testing.T, b *bed) {
				c := b.client("c", nil)
				do := func(lock bool, payload string) error {
					work := unitofwork.Work{Keys: transferKeys, ID: "p1", Payload: []byte(payload), Lock: lock}
					return c.freely(t.Context(), work, transfer(30))
				}
				require.NoError(t, do(first, "30"))
				require.NoError(t, do(second, "30"))
				require.Equal(t, [2]int64{70, 130}, b.balances())
				require.ErrorAs(t, do(second, "31"), new(*unitofwork.IDError))
				require.Equal(t, unitofwork.Committed, c.outcomeOf(t, "p1"))
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
		"reads":                     {transfer(30), map[string]int{"TransactGetItems": 1}},
		"fails":                     {func(context.Context, *unitofwork.Unit) error { return failed }, map[string]int{"TransactGetItems": 1}},
		"only writes":               {setTo(0), map[string]int{"TransactWriteItems": 1, "UpdateItem": 1}},
		"does nothing":              {func(context.Context, *unitofwork.Unit) error { return nil }, map[string]int{"TransactWriteItems": 1, "TransactGetItems": 1}},
		"reads, and says otherwise": {func(ctx context.Context, u *unitofwork.Unit) error { _ = transfer(30)(ctx, u); return failed }, map[string]int{"TransactGetItems": 1}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			cl, r := b.traced("c", nil)
			work := unitofwork.Work{ID: "p1"}
			require.NoError(t, cl.freely(t.Context(), work, transfer(30)))
			cl.requests()
			require.NoError(t, cl.freely(t.Context(), work, c.fn))
			require.Equal(t, c.sent, cl.requests())
			require.Equal(t, []string{"free committed", "free committed before"}, r.texts())
			require.Equal(t, [2]int64{70, 130}, b.balances())
			require.ErrorAs(t, cl.freely(t.Context(), unitofwork.Work{ID: "p1", Payload: []byte("other")}, c.fn), new(*unitofwork.IDError))
		})
	}
}

// An ID is remembered also if there was nothing to do.
func TestAnIDWithoutAKey(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		nothing := func(context.Context, *unitofwork.Unit) error { return nil }
		c := b.client("c", nil)
		require.NoError(t, c.freely(t.Context(), unitofwork.Work{ID: "p1"}, nothing))
		require.Equal(t, unitofwork.Committed, c.outcomeOf(t, "p1"))

		deaf := b.client("deaf", func(call faults.Call) faults.Fault { return faults.LoseAnswer(faults.Hang) })
		err := deaf.freely(t.Context(), unitofwork.Work{ID: "p2"}, nothing)
		doubt := errorAs[*unitofwork.InDoubtError](t, err)
		require.Equal(t, unitofwork.Committed, c.outcomeOf(t, doubt.Ref))
	})
}

// A token that is too low for a row that was not looked at is raised once; then the unit
// takes locks, and a place in the row's queue with them.
func TestATokenThatIsTooLow(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ahead := b.client("ahead", nil, clockOff(time.Minute))
		behind, r := b.traced("behind", nil)
		require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, setTo(5)))
		require.NoError(t, behind.freely(t.Context(), unitofwork.Work{}, setTo(5)))
		require.Equal(t, map[string]int{"TransactWriteItems": 2}, behind.requests())
		require.NoError(t, behind.freely(t.Context(), unitofwork.Work{}, setTo(5)))
		require.Equal(t, map[string]int{"TransactWriteItems": 1}, behind.requests(), "its clock has seen it")
		require.Equal(t, []string{"free committed", "free committed"}, r.texts())
	})
}

// A token is not raised if an earlier sending may have landed.
func TestATokenIsNotRaisedAfterASilence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		ahead := b.client("ahead", nil, clockOff(time.Minute))
		behind, r := b.traced("behind", atCommits(1, 1, faults.LoseRequest(faults.Reset)))
		require.NoError(t, ahead.freely(t.Context(), unitofwork.Work{}, setTo(5)))
		err := behind.freely(t.Context(), unitofwork.Work{}, setTo(5))
		require.ErrorIs(t, err, unitofwork.ErrInDoubt, "the row is overtaken, and does not tell")
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
		runInBed(t, name, func(t *testing.T, b *bed) {
			var r runs
			slow := func(l *lockset.Config, _ *unitofwork.Config) { l.Lease, l.AttemptTimeout = time.Hour, 10*time.Minute }
			holder, other := b.client("holder", nil, slow), b.client("other", nil, slow)
			set := holder.has(t, accountKey("1", "a"))
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
			err := cl.freely(t.Context(), unitofwork.Work{}, addBlindly(5))
			require.Equal(t, c.runs, r.texts())
			if c.takes > 5*time.Minute {
				require.ErrorIs(t, err, unitofwork.ErrInDoubt)
			} else {
				require.NoError(t, err)
			}
			require.EqualValues(t, c.sum, b.account("1").Balance)
		})
	}
}

// isFree tells the commit of a unit without locks, also if it only checks rows.
func isFree(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && (in.TransactItems[0].ConditionCheck != nil || isCommit(c) && passes(c))
}

// atFree gives f to the commits without locks from the first to the last, by number.
func atFree(first, last int, f faults.Fault) faults.Script { return nth(isFree, first, last, f) }

// A commit was carried out, its answers were lost, and somebody has had the row that it has passed
// before the unit asks. The row that it has only checked does not say that it was not.
func TestARowThatWasOnlyCheckedProvesNothing(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		other, came := b.client("other", nil), false
		require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, naming("1", "name"))) // so that there is a row
		cl := b.client("c", func(call faults.Call) faults.Fault {
			if _, burns := call.Input.(*dynamodb.UpdateItemInput); burns && !came {
				came = true
				require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, payIn("2")))
			}
			if isFree(call) {
				return faults.LoseAnswer(faults.Hang)
			}
			return faults.Pass()
		})
		err := cl.freely(t.Context(), unitofwork.Work{}, reading("2", customers.Ref("1")))
		require.True(t, came)
		require.ErrorIs(t, err, unitofwork.ErrInDoubt)
		require.EqualValues(t, 102, b.account("2").Balance)
	})
}

func nameIs(name string) unitofwork.Expression {
	return unitofwork.Expression{Condition: "#n = :name", Names: map[string]string{"#n": "Name"}, Values: map[string]any{":name": name}}
}

// A unit that has nothing to write but conditions changes nothing, so there is never a doubt.
func TestAUnitThatOnlyChecks(t *testing.T) {
	for name, reads := range map[string]bool{"what it has read": true, "what it has not read": false} {
		for answer, script := range map[string]faults.Script{
			"answered": nil, "answers lost": atFree(1, 1000, faults.LoseAnswer(faults.Hang)), "requests lost": atFree(1, 1000, faults.LoseRequest(faults.Hang)),
		} {
			runInBed(t, name+", "+answer, func(t *testing.T, b *bed) {
				cl := b.client("c", script)
				check := func(ref *unitofwork.Ref[customer], condition string) error {
					return cl.freely(t.Context(), unitofwork.Work{}, func(ctx context.Context, u *unitofwork.Unit) error {
						if reads {
							if err := u.Get(ctx, ref); err != nil {
								return err
							}
						}
						return u.Check(ref, nameIs(condition))
					})
				}
				require.NoError(t, check(customers.Ref("1"), "name 1"))
				require.ErrorIs(t, check(customers.Ref("1"), "another"), unitofwork.ErrCondition)
				if script == nil {
					require.Empty(t, b.db.Items("locks"))
				}
			})
		}
	}
}

// Those who come along with one another do not keep out others who read the same: what only one of
// them has read is checked, whatever its function came to, and what one of them writes is passed.
func TestAGroupChecksWhatItsMembersHaveRead(t *testing.T) {
	mine := errors.New("mine")
	names := func(ref *unitofwork.Ref[customer], told *[]string, failed error) func(context.Context, *unitofwork.Unit) error {
		return func(ctx context.Context, u *unitofwork.Unit) error {
			*ref = *customers.Ref(ref.T.ID)
			if err := u.Get(ctx, ref, accounts.Ref("1", "a")); err != nil {
				return err
			}
			*told = append(*told, ref.T.Name)
			return failed
		}
	}
	for name, failed := range map[string]error{"it fails": mine, "it has an ID": nil} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			other, writes := b.client("other", nil), false
			cl := b.client("c", func(call faults.Call) faults.Fault {
				if in, ok := call.Input.(*dynamodb.TransactWriteItemsInput); ok && !writes && len(in.TransactItems) > 6 {
					writes = true
					require.NoError(t, other.freely(t.Context(), unitofwork.Work{}, naming("7", "new")))
				}
				return faults.Pass()
			})
			b.put("customers", customer{ID: "7", Name: "old"})
			var told []string
			follower := come{fn: names(customers.Ref("7"), &told, failed)}
			if failed == nil {
				follower.Work.ID = "x"
			}
			errs := b.crowd(cl, come{fn: transfer(1)}, follower, come{fn: transfer(1)})
			require.True(t, writes)
			require.NoError(t, errs[0])
			require.Equal(t, failed, errs[1])
			require.Equal(t, "new", told[len(told)-1], "it was told what was true")
			require.Equal(t, [2]int64{98, 102}, b.balances())
		})
	}
}

// A member that has an ID and writes nothing is in doubt by its ID; one that has only read is not.
func TestAGroupThatWritesNothingButIDs(t *testing.T) {
	for name, commit := range map[string]faults.Fault{"done": faults.LoseAnswer(faults.Hang), "not done": faults.LoseRequest(faults.Hang)} {
		for _, lead := range []string{"", "lead"} {
			runInBed(t, name+" "+lead, func(t *testing.T, b *bed) {
				read := readOnly(accounts.Ref("1", "a"))
				cl := b.client("c", cutFrom(isFree, 2, commit))
				errs := b.crowd(cl, come{unitofwork.Work{ID: lead}, read}, come{unitofwork.Work{ID: "x"}, read})
				for i, id := range []string{lead, "x"} {
					if id == "" {
						require.NoError(t, errs[i])
						continue
					}
					doubt := errorAs[*unitofwork.InDoubtError](t, errs[i], fmt.Sprint(i))
					require.Equal(t, id, doubt.Ref)
					outcome := b.client(fmt.Sprint("asker", i), nil).outcomeOf(t, doubt.Ref)
					require.Equal(t, name == "done", outcome == unitofwork.Committed)
				}
			})
		}
	}
}

// What a member has named keeps others out, if it commits something.
func TestAGroupPassesWhatItsMembersHaveNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		c, r := b.traced("c", nil)
		names := func(id string) unitofwork.Work { return unitofwork.Work{Keys: []ordering.Key{customerKey(id)}} }
		withID := names("9")
		withID.ID = "x"
		read := readOnly(accounts.Ref("1", "a"))
		noErrors(t, b.crowd(c, come{names("6"), transfer(1)}, come{names("7"), transfer(1)}, come{names("8"), read}, come{withID, read}))
		require.Equal(t, 2, r.leaders()[""], "the one that was there, and the leader")
		for _, id := range []string{"6", "7", "9"} {
			require.NotNil(t, b.row(customerKey(id)), id)
		}
		require.Nil(t, b.row(customerKey("8")), "it has committed nothing")
	})
}

// Nothing is heard of a group's commit: a member that has only staged a condition has nothing to
// be in doubt about.
func TestMembersThatOnlyCheckAreInNoDoubt(t *testing.T) {
	checks := func(ctx context.Context, u *unitofwork.Unit) error {
		return errors.Join(u.Get(ctx, accounts.Ref("1", "a")), u.Check(customers.Ref("1"), nameIs("name 1")))
	}
	for name, all := range map[string][]come{
		"a follower": {{fn: transfer(1)}, {fn: checks}}, "the leader": {{fn: checks}, {fn: transfer(1)}},
	} {
		runInBed(t, name, func(t *testing.T, b *bed) {
			errs := b.crowd(b.client("c", cutFrom(isCommit, 2, faults.LoseRequest(faults.Hang))), all...)
			for i, one := range []string{"a follower", "the leader"} {
				require.Equal(t, one == name, errors.Is(errs[i], unitofwork.ErrInDoubt), "%d: %v", i, errs[i])
			}
		})
	}
}
