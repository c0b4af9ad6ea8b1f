package lockset_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/memdynamo"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

const (
	lease = 10 * time.Second
	rtt   = 5 * time.Millisecond
	table = "locks"
)

// bed is a lock table in virtual time, and the owners that use it.
type bed struct {
	t       *testing.T
	db      *memdynamo.DB
	windows *faults.Windows
	date    atomic.Value // of the table's answers: a func() time.Time
}

// inBed runs a test in virtual time.
func inBed(t *testing.T, test func(*testing.T, *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{
			t:       t,
			windows: faults.NewWindows(map[string][]string{table: {"key"}}),
		}
		b.date.Store(time.Now)
		b.db = memdynamo.New(memdynamo.Config{
			Latency: func() time.Duration { return rtt },
			Date:    func() time.Time { return b.date.Load().(func() time.Time)() },
		})
		require.NoError(t, lockset.CreateTable(t.Context(), b.db, lockset.Config{Table: table}))
		test(t, b)
	})
}

// owner is one process with its own way to the table.
type owner struct {
	*lockset.Client
	net *faults.Wrapper

	mu      sync.Mutex
	sent    map[string]int // requests by operation
	buried  []ordering.Key
	cleaned []ordering.Key
	raised  int
	blocked int
}

func (b *bed) owner(name string, script faults.Script, change ...func(*lockset.Config)) *owner {
	b.t.Helper()
	o := &owner{sent: map[string]int{}}
	o.net = faults.Wrap(b.db, faults.Config{Who: name, Windows: b.windows, Script: script})
	note := func(f func()) { o.mu.Lock(); f(); o.mu.Unlock() }
	cfg := lockset.Config{
		Table: table, Owner: name, Lease: lease,
		Rand: faults.Nonces(name),
		Trace: trace.Join(
			hooks.On(trace.Request, func(_ context.Context, i trace.Event) { note(func() { o.sent[i.Op]++ }) }),
			hooks.On(trace.Buried, func(_ context.Context, i trace.Event) { note(func() { o.buried = append(o.buried, i.Key) }) }),
			hooks.On(trace.Cleaned, func(_ context.Context, i trace.Event) { note(func() { o.cleaned = append(o.cleaned, i.Key) }) }),
			hooks.On(trace.Raised, func(context.Context, trace.Event) { note(func() { o.raised++ }) }),
			hooks.OnStart(trace.Wait, func(ctx context.Context, _ trace.Event) context.Context { note(func() { o.blocked++ }); return ctx }),
		),
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	o.Client, err = lockset.New(o.net, cfg)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { // what goes on in the background ends before the test
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = o.Close(over)
	})
	return o
}

// requests returns how many were sent by operation since the last call.
func (o *owner) requests() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	sent := maps.Clone(o.sent)
	clear(o.sent)
	return sent
}

func (b *bed) take(o *owner, keys ...ordering.Key) *lockset.Set {
	b.t.Helper()
	set, err := o.Acquire(b.t.Context(), keys)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = set.Release(context.Background()) })
	return set
}

func (b *bed) free(set *lockset.Set) {
	b.t.Helper()
	require.NoError(b.t, set.Release(b.t.Context()))
}

// refused asserts that o cannot have keys within d.
func (b *bed) refused(o *owner, d time.Duration, keys ...ordering.Key) *lockset.HeldError {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	set, err := o.Acquire(ctx, keys)
	require.Nil(b.t, set)
	var held *lockset.HeldError
	require.ErrorAs(b.t, err, &held)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	return held
}

// row returns a row as the table has it.
func (b *bed) row(key ordering.Key) map[string]types.AttributeValue {
	for _, item := range b.db.Items(table) {
		if item["key"].(*types.AttributeValueMemberS).Value == string(key) {
			return item
		}
	}
	return nil
}

// allFree asserts that no row is held and no intent left: no ghost locks.
func (b *bed) allFree() {
	b.t.Helper()
	for _, item := range b.db.Items(table) {
		require.Contains(b.t, item, "isReleased", "%v", item["key"])
		require.NotContains(b.t, item, "unit", "%v", item["key"])
		require.NotContains(b.t, item, "below", "%v", item["key"])
		require.Contains(b.t, item, "fence", "%v", item["key"])
	}
}

// allFreeOnceAskedFor is allFree after somebody wanted these keys: what the dead
// leave behind is buried and cleaned by whoever it is in the way of, and by
// nobody else.
func (b *bed) allFreeOnceAskedFor(keys ...ordering.Key) {
	b.t.Helper()
	heir := b.owner("heir", nil)
	for _, k := range keys {
		b.free(b.take(heir, k))
	}
	b.allFree()
}

func (b *bed) fence(key ordering.Key) string {
	return b.row(key)["fence"].(*types.AttributeValueMemberN).Value
}

// nth gives one fault to the n-th call of an operation.
func nth(op string, n int, f faults.Fault) faults.Script {
	return func(c faults.Call) faults.Fault {
		if c.Op == op && c.N == n {
			return f
		}
		return faults.Pass()
	}
}

// seize frees a row behind its holder's back and gives it to a thief, as if the
// holder had been dead for long.
func (b *bed) seize(key ordering.Key, thief *owner) *lockset.Set {
	b.t.Helper()
	_, err := b.db.UpdateItem(b.t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 aws.String(table),
		Key:                       map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: string(key)}},
		UpdateExpression:          aws.String("SET isReleased = :one REMOVE #unit"),
		ExpressionAttributeNames:  map[string]string{"#unit": "unit"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberS{Value: "1"}},
	})
	require.NoError(b.t, err)
	return b.take(thief, key)
}

// isBury reports whether a call frees the row of a dead holder: it does so for
// another unit than its own.
func isBury(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.UpdateItemInput)
	return ok && strings.Contains(aws.ToString(in.UpdateExpression), "REMOVE #unit") && !strings.Contains(aws.ToString(in.ConditionExpression), ":unit")
}

// lateBury lets a dead holder's row be buried late: when the bury arrives,
// another unit, whose set is returned, has taken a key over that row.
func (b *bed) lateBury(dead, taken ordering.Key) *lockset.Set {
	b.t.Helper()
	b.crashed(dead)
	slow := b.owner("slow", func(c faults.Call) faults.Fault {
		if isBury(c) {
			return faults.DeliverLate(3*time.Second, faults.Hang)
		}
		return faults.Pass()
	})
	ctx, cancel := context.WithTimeout(b.t.Context(), lease+lease/10)
	defer cancel()
	gone := make(chan error)
	go func() {
		_, err := slow.Acquire(ctx, []ordering.Key{dead})
		gone <- err
	}()
	next := b.take(b.owner("next", nil), taken)
	require.Error(b.t, <-gone)
	slow.net.Wait()
	require.Equal(b.t, 1, slow.net.Counts()[faults.DeliveredLate])
	return next
}

// landsUnheard lets a unit's first try land without its knowing: it is sent
// while another holds the first key, and delivered after that one is free. The
// unit's process is stopped for three leases, then goes on; done is what its
// Acquire and Release come to.
func (b *bed) landsUnheard(ctx context.Context, keys ...ordering.Key) (u *owner, done <-chan error) {
	b.t.Helper()
	return b.landsUnheardWith(ctx, func(faults.Call) faults.Fault { return faults.Pass() }, func() {}, keys...)
}

// landsUnheardWith is landsUnheard; other is the script of u's other requests, and
// holding is called while it has the set.
func (b *bed) landsUnheardWith(ctx context.Context, other faults.Script, holding func(), keys ...ordering.Key) (u *owner, done <-chan error) {
	b.t.Helper()
	held := b.take(b.owner("holder", nil), keys[0])
	woken := time.Now().Add(3 * lease)
	script := func(c faults.Call) faults.Fault {
		switch {
		case c.Op == "TransactGetItems" && time.Since(woken) < lease: // it sees no more ahead than it must
			return faults.LoseRequest(faults.Reset)
		case c.Op == "TransactWriteItems" && c.N == 1:
			return faults.DeliverLate(2*time.Second, faults.Reset)
		}
		return other(c)
	}
	u = b.owner("u", script, func(c *lockset.Config) {
		c.Trace = trace.Join(c.Trace, hooks.OnStart(trace.Wait, func(ctx context.Context, _ trace.Event) context.Context { time.Sleep(3 * lease); return ctx })) // the process is stopped
	})
	end := make(chan error)
	go func() {
		set, err := u.Acquire(ctx, keys)
		if err == nil {
			holding()
			err = set.Release(b.t.Context())
		}
		end <- err
	}()
	time.Sleep(time.Second)
	b.free(held)
	time.Sleep(2 * time.Second) // what was sent first lands
	return u, end
}

func (b *bed) putItem(item map[string]types.AttributeValue) {
	b.t.Helper()
	_, err := b.db.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item})
	require.NoError(b.t, err)
}

// waysToTake are keys for which a unit takes the row c: for itself, or to leave an intent there.
var waysToTake = map[string]ordering.Key{"exclusive": "c", "an intent": "c/1"}

// within waits until something has happened, for so long at most.
func (b *bed) within(most time.Duration, happened *atomic.Bool) {
	b.t.Helper()
	for began := time.Now(); !happened.Load(); time.Sleep(rtt) {
		require.Less(b.t, time.Since(began), most)
	}
}

// shorter returns n, or the lesser number in the short form.
func shorter(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}
