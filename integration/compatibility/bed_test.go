// Package compatibility keeps what each version has left in tables and recordings, and has the
// present version meet it: it must understand it, and do about it what the version that wrote it
// would have done. Only how soon it gets past the dead has changed since: rows that tell the table's
// time show that at first sight.
//
// testdata has a folder for each version, made by the code of that version and never changed
// again. In it is a file for each scene, a state in which processes leave the tables, and a
// recording. A new version writes its own:
//
//	go -C integration test ./compatibility -run EachVersion -write v0.1.1
//
// The one before v0.1.0 is of the last commit that writes no purposes, and no owners in queues. Its
// code made the same scenes, as far as it has them.
package compatibility

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

const (
	lease = 10 * time.Second
	poll  = lease / 50 // the default of Config.Poll
	rtt   = 5 * time.Millisecond
)

// begin is when all scenes begin; who meets what they left comes an hour later.
var begin = time.Date(2026, time.November, 1, 9, 0, 0, 0, time.UTC)

// tables are those of a scene, with their keys.
var tables = map[string][]string{"locks": {"key"}, "units": {"unit", "part"}, "accounts": {"Key"}}

type item = map[string]types.AttributeValue

// Account is guarded by the key of the same name.
type Account struct {
	Key     string
	Balance int64
	Text    string `dynamodbav:",omitempty"`
}

var accounts = unitofwork.Table[Account]{
	Name: "accounts", PartitionKey: "Key", Guard: func(a *Account) ordering.Key { return ordering.Key(a.Key) },
}

// bed has the tables of a scene, in virtual time.
type bed struct {
	t     *testing.T
	db    *memdynamo.DB
	names map[string]string // what has to be known of a scene beside its tables
}

func inBed(t *testing.T, at time.Time, test func(*bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(at))
		b := &bed{t: t, names: map[string]string{}, db: memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return rtt }})}
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "locks"}))
		require.NoError(t, unitofwork.CreateTable(t.Context(), b.db, unitofwork.Config{Table: "units"}))
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: "accounts", HashKey: "Key"}))
		test(b)
		time.Sleep(10 * lease) // by then the dead have noticed that nobody answers
	})
}

func (b *bed) put(table string, i item) {
	b.t.Helper()
	_, err := b.db.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: i})
	require.NoError(b.t, err)
}

func (b *bed) items(table string) []item {
	b.t.Helper()
	out, err := b.db.Scan(b.t.Context(), &dynamodb.ScanInput{TableName: &table})
	require.NoError(b.t, err)
	require.Empty(b.t, out.LastEvaluatedKey)
	return out.Items
}

// open puts accounts, as a program without locks would, with 100 each.
func (b *bed) open(keys ...ordering.Key) {
	b.t.Helper()
	for _, key := range keys {
		i, err := attributevalue.MarshalMap(Account{Key: string(key), Balance: 100})
		require.NoError(b.t, err)
		b.put("accounts", i)
	}
}

// balances are those of accounts as they are in the table; one that is not there has -1.
func (b *bed) balances(keys ...ordering.Key) (found []int64) {
	b.t.Helper()
	all := map[string]int64{}
	for _, i := range b.items("accounts") {
		var a Account
		require.NoError(b.t, attributevalue.UnmarshalMap(i, &a))
		all[a.Key] = a.Balance
	}
	for _, key := range keys {
		balance, ok := all[string(key)]
		if !ok {
			balance = -1
		}
		found = append(found, balance)
	}
	return found
}

// client is one process.
type client struct {
	*unitofwork.Client
	*bed
	locks *lockset.Client
	net   *faults.Wrapper
}

// client starts a process of which a script says when it dies. Its random numbers depend on
// its name.
func (b *bed) client(name string, script faults.Script, hooks ...*trace.Trace) *client {
	b.t.Helper()
	if script == nil {
		script = func(faults.Call) faults.Fault { return faults.Pass() }
	}
	c := &client{bed: b, net: faults.Wrap(b.db, faults.Config{Who: name, Script: script})}
	watching := &trace.Trace{}
	for _, h := range hooks {
		watching = trace.Join(watching, h)
	}
	cfg := lockset.Config{Table: "locks", Owner: name, Lease: lease, Trace: watching, Rand: faults.Nonces(name)}
	var err error
	c.locks, err = lockset.New(c.net, cfg)
	require.NoError(b.t, err)
	c.Client, err = unitofwork.New(c.locks, unitofwork.Config{Table: "units", TransactionSize: smallTransactions})
	require.NoError(b.t, err)
	return c
}

// smallTransactions make units with few keys large.
const smallTransactions = 10

// acquire has the process hold keys.
func (c *client) acquire(purpose string, keys ...ordering.Key) *lockset.Set {
	c.t.Helper()
	set, err := c.locks.Acquire(c.t.Context(), keys, func(o *lockset.Options) { o.Purpose = purpose })
	require.NoError(c.t, err)
	return set
}

// waits has the process wait for keys until it dies.
func (c *client) waits(purpose string, keys ...ordering.Key) {
	go func() {
		_, _ = c.locks.Acquire(c.t.Context(), keys, func(o *lockset.Options) { o.Purpose = purpose })
	}()
	time.Sleep(time.Second)
}

// dies ends the process, with all that it has to do.
func (c *client) dies() {
	c.net.Crash()
	time.Sleep(time.Millisecond)
}

// add returns the function of a unit that adds to accounts.
func add(amount int64, keys ...ordering.Key) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		var refs []unitofwork.Record
		for _, key := range keys {
			ref := accounts.Ref(string(key))
			if err := u.Get(ctx, ref); err != nil {
				return err
			}
			ref.T.Balance += amount
			refs = append(refs, ref)
		}
		return u.Put(refs...)
	}
}

// inDoubt runs a unit in a process that dies at a request, and keeps its Ref under a name.
func (b *bed) inDoubt(name string, at faults.Script, work unitofwork.Work, fn func(context.Context, *unitofwork.Unit) error) {
	b.t.Helper()
	err := b.client("web-1", at).Do(b.t.Context(), work, fn)
	var doubt *unitofwork.InDoubtError
	require.ErrorAs(b.t, err, &doubt)
	b.names[name] = doubt.Ref
	b.names["unit"], _, _ = strings.Cut(strings.TrimPrefix(doubt.Ref, "unit:"), ":")
}

// nth gives one fault to the n-th request of a kind.
func nth(n int, is func(any) bool, f faults.Fault) faults.Script {
	var mu sync.Mutex
	return func(c faults.Call) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if is(c.Input) {
			if n--; n == 0 {
				return f
			}
		}
		return faults.Pass()
	}
}

// updates are those of a request.
func updates(in any) (all []types.Update) {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		all = append(all, types.Update{TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ExpressionAttributeValues: in.ExpressionAttributeValues})
	case *dynamodb.TransactWriteItemsInput:
		for _, i := range in.TransactItems {
			if i.Update != nil {
				all = append(all, *i.Update)
			}
		}
	}
	return all
}

func has(in any, match func(types.Update) bool) bool {
	for _, u := range updates(in) {
		if match(u) {
			return true
		}
	}
	return false
}

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// commits is a request that frees rows and says who has committed.
func commits(in any) bool {
	return has(in, func(u types.Update) bool { return strings.Contains(aws.ToString(u.UpdateExpression), "#committedBy") })
}

// decides is a request that writes a decision.
func decides(state string) func(any) bool {
	return func(in any) bool {
		return has(in, func(u types.Update) bool {
			return *u.TableName == "units" && text(u.ExpressionAttributeValues[":state"]) == state
		})
	}
}

// journals is a request that writes a row of a journal.
func journals(row string) func(any) bool {
	return func(in any) bool {
		return has(in, func(u types.Update) bool { return *u.TableName == "units" && text(u.Key["part"]) == "journal/"+row })
	}
}

// look is a row as an inspector sees it.
func (b *bed) look(key ordering.Key) inspect.Row {
	b.t.Helper()
	view, err := b.inspector().Look(b.t.Context(), key)
	require.NoError(b.t, err)
	require.Empty(b.t, view.Row.Damage)
	return view.Row
}

func (b *bed) inspector() *inspect.Inspector {
	b.t.Helper()
	inspector, err := inspect.New(b.db, lockset.Config{Table: "locks", Owner: "inspector", Lease: lease})
	require.NoError(b.t, err)
	return inspector
}

// gets has a newcomer wait for keys, and returns how long that took.
func (b *bed) gets(keys ...ordering.Key) time.Duration {
	b.t.Helper()
	fences := maps.Collect(func(yield func(ordering.Key, inspect.Row) bool) {
		for _, key := range keys {
			yield(key, b.look(key))
		}
	})
	c, asked := b.client("newcomer", nil), time.Now()
	set, err := c.locks.Acquire(b.t.Context(), keys)
	require.NoError(b.t, err)
	took := time.Since(asked)
	for key, row := range fences {
		require.Greater(b.t, set.Token(), row.Fence, key)
		require.Equal(b.t, set.Nonce(), b.look(key).Holder.Unit, key)
	}
	require.NoError(b.t, set.Release(b.t.Context()))
	return took
}

// refused has a newcomer try keys at once, in vain.
func (b *bed) refused(keys ...ordering.Key) *lockset.HeldError {
	b.t.Helper()
	_, err := b.client("impatient", nil).locks.TryAcquire(b.t.Context(), keys)
	var held *lockset.HeldError
	require.True(b.t, errors.As(err, &held), "%v", err)
	return held
}

// atOnce has a newcomer have keys for which nobody need be waited for.
func (b *bed) atOnce(keys ...ordering.Key) {
	b.t.Helper()
	set, err := b.client("lucky", nil).locks.TryAcquire(b.t.Context(), keys)
	require.NoError(b.t, err)
	require.NoError(b.t, set.Release(b.t.Context()))
}
