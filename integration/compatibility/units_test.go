package compatibility

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

var both = []ordering.Key{giro, savings}

const payment = "payment-4711"

// once is the unit of the scenes with an ID.
func once(lock bool) unitofwork.Work {
	w := unitofwork.Work{ID: payment, Payload: []byte("7"), Purpose: "a payment", Lock: lock}
	if lock {
		w.Keys = both
	}
	return w
}

// ofUnits are those of units of one transaction.
var ofUnits = []scene{
	{
		name: "committed", about: "rows and the record of an ID, as a unit under locks commits, which did not hear of it",
		make: func(b *bed) {
			b.open(both...)
			b.inDoubt("ref", nth(1, commits, faults.CrashHere(true)), once(true), add(7, both...))
		},
		met: committedOnce(true),
	},
	{
		name: "passed", about: "rows and the record of an ID, as a unit without locks commits, which did not hear of it",
		make: func(b *bed) {
			b.open(both...)
			require.NoError(b.t, b.client("web-0", nil).Do(b.t.Context(), unitofwork.Work{}, add(0, giro))) // one row is there, one is not
			b.inDoubt("ref", nth(1, commits, faults.CrashHere(true)), once(false), add(7, both...))
		},
		met: committedOnce(false),
	},
	{
		name: "group", about: "a row and records of IDs, as a group commits, which did not hear of it",
		make: func(b *bed) { b.open(giro); b.grouped() },
		met: map[string]func(*bed){
			"asked about": func(b *bed) {
				for _, id := range members {
					b.outcome(unitofwork.Committed, id)
				}
				require.True(b.t, b.look(giro).Idle())
			},
			"done once": func(b *bed) {
				for _, id := range members {
					require.NoError(b.t, b.client("again-"+id, nil).Do(b.t.Context(), unitofwork.Work{ID: id}, add(7, giro)))
				}
				require.Equal(b.t, []int64{121}, b.balances(giro))
			},
		},
	},
	{
		name: "unheard", about: "the rows of a unit under locks that died, and whose commit may yet arrive",
		make: func(b *bed) {
			b.open(both...)
			b.inDoubt("ref", nth(1, commits, faults.CrashHere(false)), once(true), add(7, both...))
		},
		met: map[string]func(*bed){
			"undecided": func(b *bed) {
				b.outcome(unitofwork.Undecided, "ref")
				b.takenOver(giro)
				b.outcome(unitofwork.NotCommitted, "ref")
			},
			"done again": func(b *bed) {
				require.NoError(b.t, b.client("web-2", nil).Do(b.t.Context(), once(true), add(7, both...)))
				require.Equal(b.t, []int64{107, 107}, b.balances(both...))
				b.outcome(unitofwork.NotCommitted, "ref")
			},
		},
	},
	{
		name: "unheard-free", about: "rows as earlier units left them, and a unit without locks whose commit may yet arrive",
		make: func(b *bed) {
			b.open(both...)
			require.NoError(b.t, b.client("web-0", nil).Do(b.t.Context(), unitofwork.Work{}, add(1, both...)))
			b.inDoubt("ref", nth(1, commits, faults.CrashHere(false)), once(false), add(7, both...))
		},
		met: map[string]func(*bed){
			"undecided": func(b *bed) {
				b.outcome(unitofwork.Undecided, "ref")
				require.NoError(b.t, b.client("web-2", nil).Do(b.t.Context(), unitofwork.Work{}, add(5, both...)))
				b.outcome(unitofwork.NotCommitted, "ref")
				require.Equal(b.t, []int64{106, 106}, b.balances(both...))
			},
		},
	},
}

// members are units of one process that are committed together; one of them leads the others.
var members = []string{"order-1", "order-2", "order-3"}

// grouped has a process die when a group of all members was committed.
func (b *bed) grouped() {
	b.t.Helper()
	whole := nth(1, func(in any) bool {
		ids := 0
		if t, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
			for _, i := range t.TransactItems {
				if i.Put != nil && *i.Put.TableName == "units" {
					ids++
				}
			}
		}
		return ids == len(members)
	}, faults.CrashHere(true))
	c := b.client("web-1", whole)
	var running sync.WaitGroup
	running.Go(func() { _ = c.Do(b.t.Context(), unitofwork.Work{}, add(0, giro)) }) // the others line up behind it
	time.Sleep(time.Millisecond)
	refs := make([]string, len(members))
	for i, id := range members {
		running.Go(func() {
			var doubt *unitofwork.InDoubtError
			if errors.As(c.Do(b.t.Context(), unitofwork.Work{ID: id}, add(7, giro)), &doubt) {
				refs[i] = doubt.Ref
			}
		})
	}
	running.Wait()
	for i, id := range members {
		require.NotEmpty(b.t, refs[i])
		b.names[id] = refs[i]
	}
}

// outcome says what became of the unit with the Ref of this name.
func (b *bed) outcome(want unitofwork.Outcome, name string) {
	b.t.Helper()
	outcome, err := b.client("asks", nil).Outcome(b.t.Context(), b.names[name])
	require.NoError(b.t, err)
	require.Equal(b.t, want, outcome)
}

func committedOnce(lock bool) map[string]func(*bed) {
	return map[string]func(*bed){
		"shown": func(b *bed) {
			for _, key := range both {
				row := b.look(key)
				require.True(b.t, row.Idle())
				require.Equal(b.t, b.names["unit"], row.CommittedBy)
			}
			require.True(b.t, b.look(customer).Idle())
			require.Equal(b.t, []int64{107, 107}, b.balances(both...))
		},
		"asked about": func(b *bed) {
			b.outcome(unitofwork.Committed, "ref")
			b.names["id"] = payment
			b.outcome(unitofwork.Committed, "id")
			b.atOnce(both...)
			b.atOnce(customer)
			b.outcome(unitofwork.Committed, "ref") // by the record of its ID
		},
		"done once": func(b *bed) {
			require.NoError(b.t, b.client("web-2", nil).Do(b.t.Context(), once(lock), add(7, both...)))
			require.Equal(b.t, []int64{107, 107}, b.balances(both...))
			other := once(lock)
			other.Payload = []byte("8")
			require.ErrorAs(b.t, b.client("web-3", nil).Do(b.t.Context(), other, add(8, both...)), new(*unitofwork.IDError))
		},
		"followed by others": func(b *bed) {
			for _, locks := range []bool{false, true} {
				require.NoError(b.t, b.client(fmt.Sprint("web-", locks), nil).Do(b.t.Context(), unitofwork.Work{Keys: both, Lock: locks}, add(5, both...)))
			}
			require.Equal(b.t, []int64{117, 117}, b.balances(both...))
		},
	}
}

// manyKeys are those of a unit with a journal: of some a record is put, of one updated, of one
// deleted.
func manyKeys() (keys []ordering.Key) {
	for i := range 6 {
		keys = append(keys, ordering.Join("customer:"+fmt.Sprint(i/2), fmt.Sprint("account:", i%2)))
	}
	return keys
}

const updated, deleted = 4, 5

var (
	before = []int64{100, 100, 100, 100, 100, 100}
	after  = []int64{107, 107, 107, 107, 107, -1}
)

// many is the function of a unit with a journal, of which each record has a text.
func many(long string) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		for i, key := range manyKeys() {
			ref := accounts.Ref(string(key))
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			var err error
			switch i {
			case updated:
				err = u.Update(ref, unitofwork.Expression{Update: "SET #b = #b + :n", Names: map[string]string{"#b": "Balance"}, Values: map[string]any{":n": 7}})
			case deleted:
				err = u.Delete(ref)
			default:
				ref.T.Balance, ref.T.Text = ref.T.Balance+7, long
				err = u.Put(ref)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// large makes the scene of a unit with a journal of so many rows that dies at its n-th request of
// a kind.
func large(rows, n int, is func(any) bool, dies faults.Fault) func(*bed) {
	return func(b *bed) {
		long := ""
		if rows > 1 {
			long = strings.Repeat("x", 100<<10)
		}
		b.open(manyKeys()...)
		b.dead(nth(n, is, dies), long)
	}
}

// dead has a process die with a unit that has a journal, whether or not it is in doubt.
func (b *bed) dead(at faults.Script, long string) {
	b.t.Helper()
	c := b.client("web-1", at)
	err := c.Do(b.t.Context(), unitofwork.Work{Keys: manyKeys(), Purpose: "all accounts", Lock: true, ID: payment}, func(ctx context.Context, u *unitofwork.Unit) error {
		b.names["unit"] = u.Nonce()
		return many(long)(ctx, u)
	})
	var doubt *unitofwork.InDoubtError
	if errors.As(err, &doubt) {
		b.names["ref"] = doubt.Ref
	}
	time.Sleep(3 * lease) // until it has given up
	select {
	case <-c.net.Dead():
	default:
		require.Fail(b.t, "it lives", "%v", err)
	}
}

// ofJournals are those of units with a journal.
var ofJournals = []scene{
	{
		name: "journal-undecided", about: "a unit with a journal that died before its decision", make: large(1, 1, decides("committed"), faults.CrashHere(false)),
		met: aborted(1, unitofwork.Undecided),
	},
	{
		name: "journal-decided", about: "a unit with a journal that died after its decision", make: large(1, 1, decides("committed"), faults.CrashHere(true)),
		met: rolledForward(1),
	},
	{
		name: "journal-applied-in-part", about: "a unit with a journal that died when some of its batches were applied", make: large(1, 2, commits, faults.CrashHere(false)),
		met: rolledForward(1),
	},
	{
		name: "journal-aborted", about: "a unit with a journal that is aborted, and has its keys still",
		make: func(b *bed) {
			large(1, 1, decides("committed"), faults.CrashHere(false))(b)
			_, err := b.client("recovers", nth(1, decides("aborted"), faults.CrashHere(true))).Recover(b.t.Context())
			require.Error(b.t, err)
		},
		met: aborted(1, unitofwork.NotCommitted),
	},
	{
		name: "journal-done", about: "what a unit with a journal leaves that is done, with an ID",
		make: func(b *bed) {
			b.open(manyKeys()...)
			require.NoError(b.t, b.client("web-1", nil).Do(b.t.Context(), unitofwork.Work{Keys: manyKeys(), Lock: true, ID: payment}, func(ctx context.Context, u *unitofwork.Unit) error {
				b.names["unit"] = u.Nonce()
				return many("")(ctx, u)
			}))
		},
		met: map[string]func(*bed){
			"shown": func(b *bed) {
				state := b.journal()
				require.True(b.t, state.Done && !state.Open && state.Rows == 0)
				require.Equal(b.t, unitofwork.Committed, state.Outcome)
				require.Equal(b.t, after, b.balances(manyKeys()...))
				b.names["id"] = payment
				b.outcome(unitofwork.Committed, "id")
				b.atOnce(manyKeys()...)
			},
			"done once": func(b *bed) {
				require.NoError(b.t, b.client("web-2", nil).Do(b.t.Context(), unitofwork.Work{Keys: manyKeys(), Lock: true, ID: payment}, many("")))
				require.Equal(b.t, after, b.balances(manyKeys()...))
			},
		},
	},
	{
		name: "journal-stuck", about: "a committed unit, one of whose records somebody has written without its lock",
		make: func(b *bed) {
			large(1, 1, decides("committed"), faults.CrashHere(true))(b)
			i, err := attributevalue.MarshalMap(Account{Key: string(manyKeys()[0]), Balance: 1})
			require.NoError(b.t, err)
			i["_fence"] = &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().UnixMicro())}
			b.put("accounts", i)
		},
		met: map[string]func(*bed){
			"shown": func(b *bed) {
				_, err := b.client("recovers", nil).Recover(b.t.Context())
				require.ErrorAs(b.t, err, new(*unitofwork.UnappliedError))
				require.Equal(b.t, append([]int64{1, 100}, after[2:]...), b.balances(manyKeys()...), "what is of the same customer comes after it")
				stuck, err := b.client("looks", nil).StuckOf(b.t.Context(), b.names["unit"])
				require.NoError(b.t, err)
				require.Len(b.t, stuck, 1)
			},
		},
	},
	{
		name: "journal-in-part", about: "a unit that died when the first row of its journal was written, of two", make: large(2, 1, journals("000001"), faults.CrashHere(false)),
		met: aborted(1, unitofwork.Undecided),
	},
	{
		name: "journal-in-rows", about: "a unit that died after its decision, with a journal of two rows", make: large(2, 1, decides("committed"), faults.CrashHere(true)),
		met: rolledForward(2),
	},
}

func (b *bed) journal() unitofwork.JournalState {
	b.t.Helper()
	state, err := b.client("looks", nil).JournalOf(b.t.Context(), b.names["unit"])
	require.NoError(b.t, err)
	require.Empty(b.t, state.Problem)
	return state
}

// prepared are the rows that a unit with a journal has still.
func (b *bed) prepared() (rows []inspect.Row) {
	b.t.Helper()
	for _, key := range manyKeys() {
		if row := b.look(key); row.Prepared() {
			rows = append(rows, row)
		}
	}
	require.NotEmpty(b.t, rows)
	return rows
}

// aborted are the ways in which a unit with a journal ends that was not decided.
func aborted(rows int, is unitofwork.Outcome) map[string]func(*bed) {
	over := func(b *bed) {
		b.t.Helper()
		b.atOnce(manyKeys()...)
		require.Equal(b.t, before, b.balances(manyKeys()...))
		require.Equal(b.t, unitofwork.NotCommitted, b.journal().Outcome)
		if b.names["ref"] != "" {
			b.outcome(unitofwork.NotCommitted, "ref")
		}
	}
	return map[string]func(*bed){
		"shown": func(b *bed) {
			state := b.journal()
			require.True(b.t, state.Open)
			require.Equal(b.t, rows, state.Rows)
			require.Equal(b.t, "locks", state.Locks)
			require.Equal(b.t, []int{6, 6}, []int{state.Steps, state.Writes})
			require.Equal(b.t, is, state.Outcome)
			require.Equal(b.t, b.names["unit"], b.look(manyKeys()[0]).Holder.Unit)
		},
		"recovered": func(b *bed) {
			found, err := b.client("recovers", nil).Recover(b.t.Context())
			require.NoError(b.t, err)
			require.Equal(b.t, unitofwork.Recovery{Aborted: []string{b.names["unit"]}}, found)
			b.gets(manyKeys()...) // those that it had without having prepared them are taken over
			over(b)
		},
		"waited for": func(b *bed) {
			require.NoError(b.t, b.client("web-2", nil).Do(b.t.Context(), unitofwork.Work{Keys: manyKeys(), Lock: true}, add(0, manyKeys()...)))
			require.Equal(b.t, before, b.balances(manyKeys()...))
			b.atOnce(manyKeys()...)
		},
	}
}

// rolledForward are the ways in which a unit with a journal ends that was decided.
func rolledForward(rows int) map[string]func(*bed) {
	over := func(b *bed) {
		b.t.Helper()
		require.Equal(b.t, after, b.balances(manyKeys()...))
		require.Equal(b.t, unitofwork.Committed, b.journal().Outcome)
		if b.names["ref"] != "" {
			b.outcome(unitofwork.Committed, "ref")
		}
		b.names["id"] = payment
		b.outcome(unitofwork.Committed, "id")
		b.atOnce(manyKeys()...)
	}
	return map[string]func(*bed){
		"shown": func(b *bed) {
			state := b.journal()
			require.True(b.t, state.Open && !state.Done)
			require.Equal(b.t, []int{rows, rows}, []int{state.Rows, state.Decided})
			require.Equal(b.t, unitofwork.Committed, state.Outcome)
			require.Equal(b.t, []int{6, 6}, []int{state.Steps, state.Writes})
			prepared := b.prepared()
			require.Equal(b.t, []string{b.names["unit"], "units"}, []string{prepared[0].Holder.Unit, prepared[0].Holder.Prepared})
		},
		"recovered": func(b *bed) {
			found, err := b.client("recovers", nil).Recover(b.t.Context())
			require.NoError(b.t, err)
			require.Equal(b.t, unitofwork.Recovery{Committed: []string{b.names["unit"]}}, found)
			over(b)
		},
		"waited for": func(b *bed) {
			b.takenOver(b.prepared()[0].Key)
			over(b)
		},
	}
}
