package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// isFree tells the commit of a unit without locks, also if it only checks rows.
func isFree(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && (in.TransactItems[0].ConditionCheck != nil || isCommit(c) && passes(c))
}

// atFree gives f to the commits without locks from the first to the last, by number.
func atFree(first, last int, f faults.Fault) faults.Script {
	n := 0
	return func(c faults.Call) faults.Fault {
		if isFree(c) {
			if n++; n >= first && n <= last {
				return f
			}
		}
		return faults.Pass()
	}
}

// Of what a unit has only read the rows say nothing of its commit. The row that is checked is the
// first in the order here.
func TestLostAnswersOfACommitThatChecksRows(t *testing.T) {
	for name, c := range map[string]struct {
		script faults.Script
		runs   []string
	}{
		"answer lost once":           {atFree(1, 1, faults.LoseAnswer(faults.Reset)), []string{"free committed"}},
		"request lost once":          {atFree(1, 1, faults.LoseRequest(faults.Hang)), []string{"free committed"}},
		"delivered late, between":    {atFree(1, 1, faults.DeliverLate(1500*time.Millisecond, faults.Hang)), []string{"free committed"}},
		"duplicated":                 {atFree(1, 1, faults.Duplicate(time.Second)), []string{"free committed"}},
		"all answers lost":           {atFree(1, 1000, faults.LoseAnswer(faults.Hang)), []string{"free committed"}},
		"all requests lost":          {atFree(1, 1000, faults.LoseRequest(faults.Hang)), []string{"free fell back", "locked committed"}},
		"all delivered far too late": {atFree(1, 1000, faults.DeliverLate(2*lease, faults.Hang)), []string{"free fell back", "locked committed"}},
		"conflicts for a lease":      {atFree(1, 1000, faults.Conflict(1)), []string{"free fell back", "locked committed"}},
	} {
		for _, id := range []string{"", "p1"} {
			t.Run(name+" "+id, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					var r runs
					cl := b.client("c", c.script, r.traced)
					require.NoError(t, cl.freely(t.Context(), unitofwork.Work{ID: id}, reading("2", customers.Ref("1"))))
					require.Equal(t, c.runs, r.texts())
					require.EqualValues(t, 101, b.account("2").Balance)
					cl.net.Wait()
					require.EqualValues(t, 101, b.account("2").Balance, "a late packet changes nothing")
					b.allFree()
				})
			})
		}
	}
}

// Nothing is heard of such a commit, nor of anything after it. What the caller asks by names a
// row that the commit has passed.
func TestInDoubtBesideRowsThatAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		commit faults.Fault
		others bool // somebody else has had the row that is passed
		want   unitofwork.Outcome
	}{
		"done":                          {faults.LoseAnswer(faults.Hang), false, unitofwork.Committed},
		"not done":                      {faults.LoseRequest(faults.Hang), false, unitofwork.Undecided},
		"done, and somebody came after": {faults.LoseAnswer(faults.Hang), true, unitofwork.Forgotten},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				silent := false
				cl := b.client("c", func(call faults.Call) faults.Fault {
					switch {
					case isFree(call):
						silent = true
						return c.commit
					case silent:
						return faults.LoseRequest(faults.Hang)
					}
					return faults.Pass()
				})
				err := cl.freely(t.Context(), unitofwork.Work{}, reading("2", customers.Ref("1")))
				var doubt *unitofwork.InDoubtError
				require.ErrorAs(t, err, &doubt)
				if c.others {
					require.NoError(t, b.client("other", nil).freely(t.Context(), unitofwork.Work{}, payIn("2")))
				}
				outcome, err := b.client("asker", nil).Outcome(t.Context(), doubt.Ref)
				require.NoError(t, err)
				require.Equal(t, c.want, outcome)
			})
		})
	}
}

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

// A unit that writes nothing commits the record of its ID, beside checks of what it has read. What
// became of it is known by that record, once the commit cannot be carried out any more.
func TestAnIDBesideRowsThatAreOnlyChecked(t *testing.T) {
	for name, c := range map[string]struct {
		script faults.Script
		runs   []string
	}{
		"answered":                   {nil, []string{"free committed"}},
		"answer lost once":           {atFree(1, 1, faults.LoseAnswer(faults.Reset)), []string{"free committed"}},
		"duplicated":                 {atFree(1, 1, faults.Duplicate(time.Second)), []string{"free committed"}},
		"all answers lost":           {atFree(1, 1000, faults.LoseAnswer(faults.Hang)), []string{"free committed"}},
		"all requests lost":          {atFree(1, 1000, faults.LoseRequest(faults.Hang)), []string{"free fell back", "locked committed"}},
		"all delivered far too late": {atFree(1, 1000, faults.DeliverLate(2*lease, faults.Hang)), []string{"free fell back", "locked committed"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var r runs
				cl := b.client("c", c.script, r.traced)
				require.NoError(t, cl.freely(t.Context(), unitofwork.Work{ID: "p1"}, readOnly(customers.Ref("1"))))
				require.Equal(t, c.runs, r.texts())
				cl.net.Wait()
				units := b.db.Items("units")
				require.Len(t, units, 1)
				outcome, err := cl.Outcome(t.Context(), "p1")
				require.NoError(t, err)
				require.Equal(t, unitofwork.Committed, outcome)
			})
		})
	}
}

// Nothing is heard of such a commit, nor of anything after it: the caller can ask by the ID.
func TestInDoubtWithNothingButAnID(t *testing.T) {
	for want, commit := range map[unitofwork.Outcome]faults.Fault{
		unitofwork.Committed: faults.LoseAnswer(faults.Hang),
		unitofwork.Undecided: faults.LoseRequest(faults.Hang),
	} {
		t.Run(want.String(), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				silent := false
				cl := b.client("c", func(call faults.Call) faults.Fault {
					switch {
					case isFree(call):
						silent = true
						return commit
					case silent:
						return faults.LoseRequest(faults.Hang)
					}
					return faults.Pass()
				})
				err := cl.freely(t.Context(), unitofwork.Work{ID: "p1"}, readOnly(customers.Ref("1")))
				var doubt *unitofwork.InDoubtError
				require.ErrorAs(t, err, &doubt)
				require.Equal(t, "p1", doubt.Ref)
				outcome, err := b.client("asker", nil).Outcome(t.Context(), doubt.Ref)
				require.NoError(t, err)
				require.Equal(t, want, outcome)
			})
		})
	}
}

// The commit of an ID alone is refused by what may pass. It is not carried out later, when its caller
// was told so.
func TestAnIDThatWasRefusedIsNotRecordedLater(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		cl := b.client("c", atFree(1, 1, faults.Duplicate(time.Hour)))
		err := cl.freely(t.Context(), unitofwork.Work{ID: "p1"}, func(ctx context.Context, u *unitofwork.Unit) error {
			return errors.Join(u.Get(ctx, customers.Ref("1")), u.Check(customers.Ref("1"), nameIs("later")))
		})
		require.ErrorIs(t, err, unitofwork.ErrCondition)
		b.put("customers", customer{ID: "1", Name: "later"})
		cl.net.Wait()
		require.Empty(t, b.db.Items("units"))
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
			t.Run(name+", "+answer, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
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
		})
	}
}

// A member that has an ID and writes nothing is in doubt by its ID; one that has only read is not.
func TestAGroupThatWritesNothingButIDs(t *testing.T) {
	for name, commit := range map[string]faults.Fault{"done": faults.LoseAnswer(faults.Hang), "not done": faults.LoseRequest(faults.Hang)} {
		for _, lead := range []string{"", "lead"} {
			t.Run(name+" "+lead, func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					silent, commits := false, 0
					cl := b.client("c", func(call faults.Call) faults.Fault {
						if isFree(call) {
							commits++
						}
						switch {
						case isFree(call) && commits > 1 && !silent:
							silent = true
							return commit
						case silent:
							return faults.LoseRequest(faults.Hang)
						}
						return faults.Pass()
					})
					read := readOnly(accounts.Ref("1", "a"))
					errs := b.crowd(cl, come{unitofwork.Work{ID: lead}, read}, come{unitofwork.Work{ID: "x"}, read})
					for i, id := range []string{lead, "x"} {
						if id == "" {
							require.NoError(t, errs[i])
							continue
						}
						var doubt *unitofwork.InDoubtError
						require.ErrorAs(t, errs[i], &doubt, fmt.Sprint(i))
						require.Equal(t, id, doubt.Ref)
						outcome, err := b.client(fmt.Sprint("asker", i), nil).Outcome(t.Context(), doubt.Ref)
						require.NoError(t, err)
						require.Equal(t, name == "done", outcome == unitofwork.Committed)
					}
				})
			})
		}
	}
}

// What a member has named keeps others out, if it commits something.
func TestAGroupPassesWhatItsMembersHaveNamed(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var r runs
		c := b.client("c", nil, r.traced)
		names := func(id string) unitofwork.Work { return unitofwork.Work{Keys: []ordering.Key{customerKey(id)}} }
		withID := names("9")
		withID.ID = "x"
		read := readOnly(accounts.Ref("1", "a"))
		noErrors(t, b.crowd(c, come{names("6"), transfer(1)}, come{names("7"), transfer(1)}, come{names("8"), read}, come{withID, read}))
		require.Equal(t, 2, r.leaders()[""], "the one that was there, and the leader")
		for _, id := range []string{"6", "7", "9"} {
			require.NotNil(t, b.lockRow(customerKey(id)), id)
		}
		require.Nil(t, b.lockRow(customerKey("8")), "it has committed nothing")
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
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				silent, commits := false, 0
				cl := b.client("c", func(call faults.Call) faults.Fault {
					if isCommit(call) {
						if commits++; commits > 1 {
							silent = true
						}
					}
					if silent {
						return faults.LoseRequest(faults.Hang)
					}
					return faults.Pass()
				})
				errs := b.crowd(cl, all...)
				for i, one := range []string{"a follower", "the leader"} {
					require.Equal(t, one == name, errors.Is(errs[i], unitofwork.ErrInDoubt), "%d: %v", i, errs[i])
				}
			})
		})
	}
}

// A process dies at a request of a unit that reads one record and writes another: it is done or not,
// and nobody has to wait.
func TestAReaderThatCrashes(t *testing.T) {
	for at := 1; at <= 2; at++ {
		for _, executed := range []bool{false, true} {
			t.Run(fmt.Sprint(at, " ", executed), func(t *testing.T) {
				inBed(t, func(t *testing.T, b *bed) {
					n := 0
					cl := b.client("c", func(faults.Call) faults.Fault {
						if n++; n == at {
							return faults.CrashHere(executed)
						}
						return faults.Pass()
					})
					var done sync.WaitGroup
					defer done.Wait()
					done.Go(func() { _ = cl.freely(t.Context(), unitofwork.Work{}, reading("2", customers.Ref("1"))) })
					<-cl.net.Dead()
					next, begin := b.client("next", nil), time.Now()
					require.NoError(t, next.freely(t.Context(), unitofwork.Work{}, reading("2", customers.Ref("1"))))
					require.NoError(t, next.freely(t.Context(), unitofwork.Work{}, naming("1", "new")))
					require.Less(t, time.Since(begin), 100*time.Millisecond)
					want := int64(101)
					if at == 2 && executed {
						want++
					}
					require.Equal(t, want, b.account("2").Balance)
				})
			})
		}
	}
}
