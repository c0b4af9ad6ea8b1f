package unitofwork_test

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
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
		over, cancel := context.WithCancel(context.Background())
		cancel()
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
func (b *bed) balances() [2]int64 {
	b.t.Helper()
	var found [2]int64
	for _, item := range b.db.Items("accounts") {
		var a account
		require.NoError(b.t, attributevalue.UnmarshalMap(item, &a))
		n, err := strconv.Atoi(a.Customer)
		require.NoError(b.t, err)
		found[n-1] = a.Balance
	}
	return found
}

func (b *bed) account(customer string) account {
	b.t.Helper()
	for _, item := range b.db.Items("accounts") {
		var a account
		require.NoError(b.t, attributevalue.UnmarshalMap(item, &a))
		if a.Customer == customer {
			return a
		}
	}
	return account{}
}

// customer returns the record of a customer.
func (b *bed) customer(id string) customer {
	b.t.Helper()
	for _, item := range b.db.Items("customers") {
		var c customer
		require.NoError(b.t, attributevalue.UnmarshalMap(item, &c))
		if c.ID == id {
			return c
		}
	}
	return customer{}
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
		set, err := heir.locks.Acquire(b.t.Context(), []ordering.Key{k})
		require.NoError(b.t, err)
		require.NoError(b.t, set.Release(b.t.Context()))
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

// isCommit tells the transaction that carries a unit's writes.
func isCommit(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return false
	}
	for _, item := range in.TransactItems {
		if item.Put != nil {
			return true
		}
	}
	return false
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
