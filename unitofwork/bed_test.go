package unitofwork_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/internal/newtable"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

const (
	lease = 10 * time.Second
	rtt   = 5 * time.Millisecond
)

type customer struct {
	ID   string
	Name string
}

type account struct {
	Customer, ID string
	Balance      int64
	Fence        int64 `dynamodbav:"_fence,omitempty"`
}

var customers = unitofwork.Table[customer]{
	Name: "customers", PartitionKey: "ID",
	Guard: func(c *customer) ordering.Key { return customerKey(c.ID) },
}

var accounts = unitofwork.Table[account]{
	Name: "accounts", PartitionKey: "Customer", SortKey: "ID",
	Guard: func(a *account) ordering.Key { return accountKey(a.Customer, a.ID) },
}

func customerKey(id string) ordering.Key { return ordering.Join("customer:" + id) }
func accountKey(customer, id string) ordering.Key {
	return ordering.Join("customer:"+customer, "account:"+id)
}

// bed is a small bank in virtual time.
type bed struct {
	t  *testing.T
	db *memdynamo.DB
}

func inBed(t *testing.T, test func(*testing.T, *bed)) {
	t.Helper()
	inBedDated(t, nil, test)
}

// runInBed is inBed as a subtest with a name.
func runInBed(t *testing.T, name string, test func(*testing.T, *bed)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBed(t, test) })
}

// inBedDated is inBed with a table that says what time it is.
func inBedDated(t *testing.T, date func() time.Time, test func(*testing.T, *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t, db: memdynamo.New(memdynamo.Config{Latency: func() time.Duration { return rtt }, Date: date})}
		ctx := t.Context()
		require.NoError(t, lockset.CreateTable(ctx, b.db, lockset.Config{Table: "locks"}))
		require.NoError(t, unitofwork.CreateTable(ctx, b.db, unitofwork.Config{Table: "units"}))
		b.createTable("customers", "ID")
		b.createTable("accounts", "Customer", "ID")
		for _, c := range []string{"1", "2"} {
			b.put("customers", customer{ID: c, Name: "name " + c})
			b.put("accounts", account{Customer: c, ID: "a", Balance: 100})
		}
		test(t, b)
	})
}

func (b *bed) createTable(name string, keys ...string) {
	b.t.Helper()
	_, err := b.db.CreateTable(b.t.Context(), newtable.Input(name, keys...))
	require.NoError(b.t, err)
}

// put writes a record as a program without locks would.
func (b *bed) put(table string, record any) {
	b.t.Helper()
	item, err := attributevalue.MarshalMap(record)
	require.NoError(b.t, err)
	b.putItem(table, item)
}

func (b *bed) putItem(table string, item map[string]types.AttributeValue) {
	b.t.Helper()
	_, err := b.db.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: item})
	require.NoError(b.t, err)
}

// writeLate writes an account as a holder of set would that has not noticed that it holds it no
// longer.
func (b *bed) writeLate(set *lockset.Set, customer, id string, balance int64) {
	b.t.Helper()
	item, err := attributevalue.MarshalMap(account{Customer: customer, ID: id, Balance: balance})
	require.NoError(b.t, err)
	put, fence := &dynamodb.PutItemInput{TableName: aws.String("accounts"), Item: item}, fencing.Fence{Token: set.Token()}
	require.NoError(b.t, fence.Put(put))
	_, err = b.db.PutItem(b.t.Context(), put)
	require.NoError(b.t, err)
}

// hold has somebody hold keys for some time from now on.
func (b *bed) hold(holder *client, d time.Duration, keys ...ordering.Key) {
	b.t.Helper()
	set, err := holder.locks.Acquire(b.t.Context(), keys)
	require.NoError(b.t, err)
	time.AfterFunc(d, func() { _ = set.Release(context.WithoutCancel(b.t.Context())) })
}

// client is one process.
type client struct {
	*unitofwork.Client
	locks *lockset.Client
	net   *faults.Wrapper

	mu   sync.Mutex
	sent map[string]int
	ends map[string]int // units by outcome
}

func (b *bed) client(name string, script faults.Script, change ...func(*lockset.Config, *unitofwork.Config)) *client {
	b.t.Helper()
	c := &client{sent: map[string]int{}, ends: map[string]int{}}
	c.net = faults.Wrap(b.db, faults.Config{Who: name, Script: script})
	note := func(m map[string]int, key string) { c.mu.Lock(); m[key]++; c.mu.Unlock() }
	lc := lockset.Config{
		Table: "locks", Owner: name, Lease: lease,
		Rand:  faults.Nonces(name),
		Trace: hooks.On(trace.Request, func(_ context.Context, i trace.Event) { note(c.sent, i.Op) }),
	}
	uc := unitofwork.Config{Table: "units", Trace: trace.Join(
		hooks.On(trace.Unit, func(_ context.Context, e trace.Event) {
			if e.Unit != "" { // it has had its locks
				note(c.ends, map[string]string{
					hooks.Committed: "committed", hooks.CommittedBefore: "already", hooks.NotCommitted: "not", hooks.InDoubt: "in doubt",
				}[e.Outcome])
			}
		}),
		hooks.On(trace.StartingOver, func(context.Context, trace.Event) { note(c.ends, "over") }),
	)}
	for _, f := range change {
		f(&lc, &uc)
	}
	var err error
	c.locks, err = lockset.New(c.net, lc)
	require.NoError(b.t, err)
	c.Client, err = unitofwork.New(c.locks, uc)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { // what goes on in the background ends before the test
		over := endedContext(context.Background())
		_ = c.locks.Close(over)
	})
	return c
}

// logbook keeps what a client logs.
type logbook struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

func withoutUnitTable(_ *lockset.Config, u *unitofwork.Config) { u.Table = "" }

func (c *client) requests() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := maps.Clone(c.sent)
	clear(c.sent)
	return sent
}

func (c *client) outcomes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.ends)
}

// transfer moves amount from customer 1 to customer 2.
func transfer(amount int64) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		from, to := accounts.Ref("1", "a"), accounts.Ref("2", "a")
		if err := u.Get(ctx, from, to); err != nil {
			return err
		}
		from.T.Balance -= amount
		to.T.Balance += amount
		if amount == 0 { // a Put of what has not changed writes nothing
			return u.Replace(from, to)
		}
		return u.Put(from, to)
	}
}

var transferKeys = []ordering.Key{accountKey("2", "a"), accountKey("1", "a")}

// balances returns those of customers 1 and 2.
func (b *bed) balances() [2]int64 { return [2]int64{b.account("1").Balance, b.account("2").Balance} }

// account is the account a of a customer.
func (b *bed) account(customer string) (a account) {
	b.t.Helper()
	require.NoError(b.t, attributevalue.UnmarshalMap(b.item("accounts", customer, "a"), &a))
	return a
}

// customer returns the record of a customer.
func (b *bed) customer(id string) (c customer) {
	b.t.Helper()
	require.NoError(b.t, attributevalue.UnmarshalMap(itemOf(b.db.Items("customers"), attributes{"ID": text(id)}), &c))
	return c
}

// allFree asserts that nothing is held and no intent is left.
func (b *bed) allFree() {
	b.t.Helper()
	for _, item := range b.db.Items("locks") {
		require.Contains(b.t, item, "isReleased", "%v", item["key"])
		require.NotContains(b.t, item, "unit", "%v", item["key"])
		require.NotContains(b.t, item, "below", "%v", item["key"])
	}
}

// allFreeOnceAskedFor is allFree after somebody wanted these keys: what the dead
// leave behind is buried and cleaned by whoever it is in the way of.
func (b *bed) allFreeOnceAskedFor(keys ...ordering.Key) {
	b.t.Helper()
	heir := b.client("heir", nil)
	for _, k := range keys {
		heir.passes(b.t, k)
	}
	b.allFree()
}

// bury frees a row behind its holder's back, as if it had been dead for long.
func (b *bed) bury(key ordering.Key) {
	b.t.Helper()
	_, err := b.db.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 aws.String("locks"),
		Key:                       map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: string(key)}},
		UpdateExpression:          aws.String("SET isReleased = :one REMOVE #unit"),
		ExpressionAttributeNames:  map[string]string{"#unit": "unit"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberS{Value: "1"}},
	})
	require.NoError(b.t, err)
}

// passes has a client take keys and let them go. It returns the set that had them.
func (c *client) passes(t *testing.T, keys ...ordering.Key) *lockset.Set {
	t.Helper()
	set := c.has(t, keys...)
	require.NoError(t, set.Release(t.Context()))
	return set
}

// recovers is Recover, which finds nothing wrong.
func (c *client) recovers(t *testing.T) unitofwork.Recovery {
	t.Helper()
	found, err := c.Recover(t.Context())
	require.NoError(t, err)
	return found
}

// outcomeOf is Outcome, which has an answer.
func (c *client) outcomeOf(t *testing.T, idOrRef string) unitofwork.Outcome {
	t.Helper()
	outcome, err := c.Outcome(t.Context(), idOrRef)
	require.NoError(t, err)
	return outcome
}

// errorAs returns the T that err is or wraps.
func errorAs[T error](t *testing.T, err error, says ...any) (found T) {
	t.Helper()
	require.ErrorAs(t, err, &found, says...)
	return found
}

// endedContext is a context that has been canceled.
func endedContext(of context.Context) context.Context {
	ctx, cancel := context.WithCancel(of)
	cancel()
	return ctx
}

// each calls f for so many numbers, until it fails.
func each(n int, f func(int) error) error {
	for i := range n {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// when is a script that has f happen to some calls.
func when(is func(faults.Call) bool, f faults.Fault) faults.Script {
	return func(c faults.Call) faults.Fault {
		if is(c) {
			return f
		}
		return faults.Pass()
	}
}

// upon is a script that calls do before some calls.
func upon(is func(faults.Call) bool, do func()) faults.Script {
	return func(c faults.Call) faults.Fault {
		if is(c) {
			do()
		}
		return faults.Pass()
	}
}

// isCommit tells the transaction that carries a unit's writes.
func isCommit(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	return ok && slices.ContainsFunc(in.TransactItems, func(item types.TransactWriteItem) bool { return item.Put != nil })
}

// tokenOf is the token of a unit under locks.
func tokenOf(u *unitofwork.Unit) fencing.Token {
	token, _ := u.Token()
	return token
}

// Do takes the locks first. What units do that take none is tested by freely.
func (c *client) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, *unitofwork.Unit) error) error {
	work.Lock = true
	return c.Client.Do(ctx, work, fn)
}

// freely runs a unit as Do does if nobody says anything else: without locks at first.
func (c *client) freely(ctx context.Context, work unitofwork.Work, fn func(context.Context, *unitofwork.Unit) error) error {
	return c.Client.Do(ctx, work, fn)
}

// nth is a script that has f happen to the calls of a kind from the first to the last, by number.
func nth(is func(faults.Call) bool, first, last int, f faults.Fault) faults.Script {
	var n atomic.Int64
	return when(func(c faults.Call) bool {
		if !is(c) {
			return false
		}
		at := int(n.Add(1))
		return at >= first && at <= last
	}, f)
}

// cutFrom is a script that has f happen to the n-th call of a kind, and loses all that is sent after it.
func cutFrom(is func(faults.Call) bool, n int, f faults.Fault) faults.Script {
	var mu sync.Mutex
	seen := 0
	return func(c faults.Call) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if seen == n {
			return faults.LoseRequest(faults.Hang)
		}
		if is(c) {
			if seen++; seen == n {
				return f
			}
		}
		return faults.Pass()
	}
}

// diesIn has a client do a unit in which its process dies, by its script. It returns the unit.
func (c *client) diesIn(t *testing.T, work unitofwork.Work, fn func(context.Context, *unitofwork.Unit) error) (unit string) {
	t.Helper()
	units, over := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() { <-over })
	go func() {
		defer close(over)
		_ = c.Do(context.WithoutCancel(t.Context()), work, func(ctx context.Context, u *unitofwork.Unit) error {
			units <- u.Nonce()
			return fn(ctx, u)
		})
	}()
	<-c.net.Dead()
	return <-units
}

// clockOff has the wall clock of a client be wrong.
func clockOff(by time.Duration) func(*lockset.Config, *unitofwork.Config) {
	return func(l *lockset.Config, _ *unitofwork.Config) {
		l.Now = func() time.Time { return time.Now().Add(by) }
	}
}

// begins is Begin, which nothing is in the way of.
func (c *client) begins(t *testing.T, work unitofwork.Work) *unitofwork.Unit {
	t.Helper()
	u, err := c.Begin(t.Context(), work)
	require.NoError(t, err)
	return u
}

// has has a client hold keys.
func (c *client) has(t *testing.T, keys ...ordering.Key) *lockset.Set {
	t.Helper()
	set, err := c.locks.Acquire(t.Context(), keys)
	require.NoError(t, err)
	return set
}

// replaces is a unit that replaces records, and reads nothing.
func replaces(records ...unitofwork.Record) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error { return u.Replace(records...) }
}

// inserts is a unit that inserts records.
func inserts(records ...unitofwork.Record) func(context.Context, *unitofwork.Unit) error {
	return func(_ context.Context, u *unitofwork.Unit) error { return u.Insert(records...) }
}

// setTo replaces the account of customer 1.
func setTo(balance int64) func(context.Context, *unitofwork.Unit) error {
	return replaces(accounts.Of(account{Customer: "1", ID: "a", Balance: balance}))
}

// change reads a record, and puts it as f leaves it. Each run has a reference of its own.
func change[T any](of *unitofwork.Ref[T], f func(*T)) func(context.Context, *unitofwork.Unit) error {
	return func(ctx context.Context, u *unitofwork.Unit) error {
		ref := *of
		if err := u.Get(ctx, &ref); err != nil {
			return err
		}
		f(&ref.T)
		return u.Put(&ref)
	}
}
