package protocol

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// entry is a record of a ledger. Accounts have no part.
type entry struct {
	ID   string `dynamodbav:"id"`
	Part string `dynamodbav:"part,omitempty"`
	N    int64
	Text string `dynamodbav:",omitempty"`
}

// ledger is a unit larger than a transaction, over two tables: accounts under
// fine keys, of two and three segments in families of three, and parts of depots,
// five under each coarse key. It puts, updates, deletes and checks, and can tell
// whether none or all of it happened, once.
type ledger struct {
	b       *bed
	name    string // begins every key
	keys    []ordering.Key
	records []*unitofwork.Ref[entry]
}

const opening = 100

// accounts are guarded by the key of the same name, parts by the one below that
// of their depot.
func (b *bed) accounts() *unitofwork.Table[entry] {
	return &unitofwork.Table[entry]{Name: b.data, PartitionKey: "id", Guard: func(e *entry) ordering.Key { return ordering.Key(e.ID) }}
}

func (b *bed) parts() *unitofwork.Table[entry] {
	return &unitofwork.Table[entry]{
		Name: b.data + "-parts", PartitionKey: "id", SortKey: "part",
		Guard: func(e *entry) ordering.Key { return ordering.Join(e.ID, e.Part) },
	}
}

// ledger fills the tables with what the unit will find there.
func (b *bed) ledger(name string, families, depots int) *ledger {
	b.t.Helper()
	require.NoError(b.t, newtable.Create(b.t.Context(), b.db, newtable.Input(b.parts().Name, "id", "part"))) // unless by another ledger
	l := &ledger{b: b, name: name}
	for f := range families {
		for _, below := range []string{"a0", "a1", "a1x/card"} {
			id := fmt.Sprintf("%s-c%03d/%s", name, f, below)
			l.keys, l.records = append(l.keys, ordering.Key(id)), append(l.records, b.accounts().Ref(id))
		}
	}
	for d := range depots {
		id := fmt.Sprintf("%s-d%03d", name, d)
		l.keys = append(l.keys, ordering.Key(id))
		for p := range 5 {
			l.records = append(l.records, b.parts().Ref(id, fmt.Sprint("p", p)))
		}
	}
	var puts []types.TransactWriteItem
	for i, r := range l.records {
		if i%5 == 4 {
			continue
		}
		before := r.T
		before.N = opening
		item, err := attributevalue.MarshalMap(before)
		require.NoError(b.t, err)
		puts = append(puts, types.TransactWriteItem{Put: &types.Put{TableName: aws.String(tableOf(b, r)), Item: item}})
	}
	for some := range slices.Chunk(puts, requests.MaxActions) {
		_, err := b.db.TransactWriteItems(b.t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: some})
		require.NoError(b.t, err)
	}
	return l
}

func tableOf(b *bed, r *unitofwork.Ref[entry]) string {
	if r.T.Part == "" {
		return b.accounts().Name
	}
	return b.parts().Name
}

// ref refers to the i-th record anew.
func (l *ledger) ref(i int) *unitofwork.Ref[entry] {
	if r := l.records[i].T; r.Part != "" {
		return l.b.parts().Ref(r.ID, r.Part)
	}
	return l.b.accounts().Ref(l.records[i].T.ID)
}

// refs refers to some records anew.
func (l *ledger) refs(which []int) (refs []*unitofwork.Ref[entry]) {
	for _, i := range which {
		refs = append(refs, l.ref(i))
	}
	return refs
}

// stage stages the unit's writes, by the number of the record.
func (l *ledger) stage(_ context.Context, u *unitofwork.Unit) error {
	for i := range l.records {
		r := l.ref(i)
		before := map[string]any{":before": opening}
		var err error
		switch i % 5 {
		case 0:
			r.T.N = opening + 7
			err = u.Replace(r)
		case 1:
			err = u.Update(r, unitofwork.Expression{
				Update: "SET N = N + :n", Condition: "N = :before", Values: map[string]any{":n": 7, ":before": opening},
			})
		case 2:
			err = u.Delete(r)
		case 3:
			err = u.Check(r, unitofwork.Expression{Condition: "N = :before", Values: before})
		default:
			r.T.N = 7
			err = u.Replace(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// happened returns whether all of the unit happened, once; it fails the test if
// only some did, or something twice.
func (l *ledger) happened() bool {
	l.b.t.Helper()
	all, half := l.sight(l.scanned(), l.every(1))
	require.False(l.b.t, half, "only some of the writes happened")
	return all
}

// scanned are the records of all ledgers, read one after the other.
func (l *ledger) scanned() map[string]int64 {
	l.b.t.Helper()
	found := map[string]int64{}
	for _, table := range []string{l.b.accounts().Name, l.b.parts().Name} {
		for _, item := range l.b.items(table) {
			var e entry
			require.NoError(l.b.t, attributevalue.UnmarshalMap(item, &e))
			found[e.ID+"/"+e.Part] = e.N
		}
	}
	return found
}

// every are the numbers of one record of so many.
func (l *ledger) every(n int) (which []int) {
	for i := 0; i < len(l.records); i += n {
		which = append(which, i)
	}
	return which
}

// sight says of some records whether all are as they are after the unit, or only half
// of them.
func (l *ledger) sight(found map[string]int64, which []int) (all, half bool) {
	writes, after := 0, 0
	for _, i := range which {
		r := l.records[i].T
		n, there := found[r.ID+"/"+r.Part]
		before, now := written(i, n, there)
		require.True(l.b.t, before || now, "record %d has %d", i, n)
		if before && now { // only checked
			continue
		}
		writes++
		if now {
			after++
		}
	}
	return after == writes, after > 0 && after < writes
}

// written says of the i-th record whether it is as it was before the unit, and as it
// is after; one that was only checked is both.
func written(i int, n int64, there bool) (before, now bool) {
	before = [...]bool{n == opening, n == opening, n == opening, n == opening, !there}[i%5]
	now = [...]bool{n == opening+7, n == opening+7, !there, n == opening, n == 7}[i%5]
	return before, now
}

// settled asserts that nothing is left of units with a journal but what was
// decided about them: no rows of journals, no entries of open units, no marks.
func (b *bed) settled() {
	b.t.Helper()
	b.allFree()
	for _, item := range b.items(b.locks) {
		require.NotContains(b.t, item, "pending", "%v", item["key"])
	}
	for _, item := range b.items(b.units) {
		require.Equal(b.t, "record", item["part"].(*types.AttributeValueMemberS).Value)
		require.Contains(b.t, item, "expiresAt")
	}
}

func TestAUnitLargerThanATransaction(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		b.lease *= 2
		l := b.ledger("l", shorter(60, 24), shorter(40, 20)) // more keys and more writes than a transaction has
		var decisions atomic.Int64
		o := b.owner("o", counting(&decisions))
		require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: l.keys, ID: l.name}, l.stage))
		require.EqualValues(t, 1, decisions.Load())
		require.True(t, l.happened())
		b.settled()
		outcome, err := o.units.Outcome(t.Context(), l.name)
		require.NoError(t, err)
		require.Equal(t, unitofwork.Committed, outcome)
		_, err = b.owner("again", nil).units.Begin(t.Context(), unitofwork.Work{Keys: l.keys, ID: l.name})
		require.ErrorIs(t, err, unitofwork.ErrAlreadyCommitted)
		require.True(t, l.happened())

		err = o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: l.keys}, l.stage) // its checks do not hold any more
		require.Equal(t, lockset.Decide, lockset.NextOf(err), "%v", err)
		require.ErrorIs(t, err, unitofwork.ErrCondition)
		require.True(t, l.happened())
		b.settled()
	})
}

// isDecision recognises the write from which on a unit with a journal is
// committed.
func isDecision(in *dynamodb.TransactWriteItemsInput) bool {
	u := in.TransactItems[0].Update
	if u == nil {
		return false
	}
	part, _ := u.Key["part"].(*types.AttributeValueMemberS)
	return part != nil && part.Value == "record"
}

// counting counts decisions.
func counting(decisions *atomic.Int64) faults.Script {
	return func(c faults.Call) faults.Fault {
		if in, ok := c.Input.(*dynamodb.TransactWriteItemsInput); ok && isDecision(in) {
			decisions.Add(1)
		}
		return faults.Pass()
	}
}

// deaths are when the owner of a large unit dies, and whether the unit is
// committed then.
var deaths = map[string]struct {
	dies     func() faults.Script
	happened bool
}{
	"before the decision": {func() faults.Script { return diesAfterDecision(0, false) }, false},
	"with the decision":   {func() faults.Script { return diesAfterDecision(0, true) }, true},
	"while it applies":    {func() faults.Script { return diesAfterDecision(2, false) }, true},
}

// diesAfterDecision: the owner dies at so many transactions after the decision.
func diesAfterDecision(n int64, executed bool) faults.Script {
	var decided atomic.Bool
	var since atomic.Int64
	return func(c faults.Call) faults.Fault {
		in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
		switch {
		case !ok:
			return faults.Pass()
		case isDecision(in):
			decided.Store(true)
		case decided.Load():
			since.Add(1)
		}
		if decided.Load() && since.Load() == n {
			return faults.CrashHere(executed)
		}
		return faults.Pass()
	}
}

// dead has an owner begin a unit for each of the deaths.
func (b *bed) dead() map[string]*ledger {
	b.t.Helper()
	families, depots := 10, 14
	if testing.Short() { // also larger than a transaction, which is then smaller
		families, depots, b.transaction = 4, 4, 20
	} else {
		b.lease *= 2
	}
	ledgers := map[string]*ledger{}
	for name, death := range deaths {
		l := b.ledger(strings.ReplaceAll(name, " ", "-"), families, depots)
		dead := b.owner("dead "+name, death.dies())
		go func() {
			_ = dead.units.Do(context.WithoutCancel(b.t.Context()), unitofwork.Work{Lock: true, Keys: l.keys, ID: l.name}, l.stage)
		}()
		<-dead.net.Dead()
		dead.net.Wait()
		ledgers[name] = l
	}
	return ledgers
}

// requireOutcomes asserts that of each dead owner's unit all happened or nothing,
// as it was decided.
func (b *bed) requireOutcomes(o *owner, ledgers map[string]*ledger) {
	b.t.Helper()
	for name, l := range ledgers {
		require.Equal(b.t, deaths[name].happened, l.happened(), name)
		outcome, err := o.units.Outcome(b.t.Context(), l.name)
		require.NoError(b.t, err)
		require.Equal(b.t, deaths[name].happened, outcome == unitofwork.Committed, "%s: %v", name, outcome)
	}
}

// Whoever waits for the locks of a dead owner does what its unit had decided, and
// so does Recover.
func TestADeadOwnersUnitIsFinished(t *testing.T) {
	t.Parallel()
	t.Run("by takers", func(t *testing.T) {
		t.Parallel()
		eachHeavy(t, func(t *testing.T, b *bed) {
			ledgers := b.dead()
			taker := b.owner("taker", nil)
			taken := make(chan error, len(ledgers))
			for _, l := range ledgers {
				go func() {
					set, err := taker.locks.Acquire(t.Context(), l.keys)
					if err == nil {
						err = set.Release(t.Context())
					}
					taken <- err
				}()
			}
			for range ledgers {
				require.NoError(t, <-taken)
			}
			b.requireOutcomes(taker, ledgers)
			b.settled()
			l := ledgers["before the decision"]
			require.NoError(t, taker.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: l.keys, ID: l.name}, l.stage), "the honest retry")
			require.True(t, l.happened())
		})
	})
	t.Run("by Recover", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, b *bed) {
			ledgers := b.dead()
			o := b.owner("o", nil)
			found, err := o.units.Recover(t.Context())
			require.NoError(t, err)
			require.Len(t, found.Committed, 2)
			require.Len(t, found.Aborted, 1)
			require.Empty(t, found.Alive)
			b.requireOutcomes(o, ledgers)
			b.settled()
			found, err = o.units.Recover(t.Context())
			require.NoError(t, err)
			require.Equal(t, unitofwork.Recovery{}, found, "all is done with")
			b.requireOutcomes(o, ledgers)
		})
	})
}

// The records of one unit are larger together than a transaction may be.
func TestAUnitOfMoreThan4MB(t *testing.T) {
	eachHeavy(t, func(t *testing.T, b *bed) {
		const n, size = 12, 370_000
		b.lease *= 10 // no answer to 4 MB comes soon on a busy machine
		o := b.owner("o", nil)
		accounts := b.accounts()
		stage := func(text string) func(context.Context, *unitofwork.Unit) error {
			return func(_ context.Context, u *unitofwork.Unit) error {
				for i := range n {
					e := entry{ID: fmt.Sprint("large/", i), N: int64(i), Text: strings.Repeat(text, size)}
					if err := u.Replace(accounts.Of(e)); err != nil {
						return err
					}
				}
				return nil
			}
		}
		if !testing.Short() { // the corners of integration/large are under locks, too
			require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{Lock: true, Keys: []ordering.Key{"large"}}, stage("x")))
		}
		require.NoError(t, o.units.Do(t.Context(), unitofwork.Work{}, stage("y")), "also if it names nothing")
		items := b.items(b.data)
		require.Len(t, items, n)
		for _, item := range items {
			require.Equal(t, strings.Repeat("y", size), item["Text"].(*types.AttributeValueMemberS).Value)
		}

		var w ways
		reader := b.owner("reader", nil, w.traced)
		require.NoError(t, reader.units.Do(t.Context(), unitofwork.Work{ID: "read"}, func(ctx context.Context, u *unitofwork.Unit) error {
			var refs []*unitofwork.Ref[entry]
			for i := range n {
				refs = append(refs, accounts.Ref(fmt.Sprint("large/", i)))
			}
			if err := u.Get(ctx, records(refs)...); err != nil {
				return err
			}
			for i, r := range refs {
				require.Len(t, r.T.Text, size)
				require.EqualValues(t, i, r.T.N)
			}
			return u.Delete(refs[0])
		}))
		ends, sent := w.took()
		require.Equal(t, []string{"free committed"}, ends, "what is too large to be read at once is read in parts")
		require.Contains(t, []int{1, 3}, sent["TransactGetItems"], "dynoxide reads it at once all the same")
		require.Equal(t, 1, sent["TransactWriteItems"])
		b.settled()
	})
}
