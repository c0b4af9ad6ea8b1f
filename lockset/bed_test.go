package lockset_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/locks"
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

// inBeds runs a test in virtual time for each row of a table.
func inBeds[Row any](t *testing.T, rows map[string]Row, test func(*testing.T, *bed, Row)) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) { test(t, b, row) })
		})
	}
}

// inBedsOf does so for each of some values, which name themselves.
func inBedsOf[Value any](t *testing.T, values []Value, test func(*testing.T, *bed, Value)) {
	t.Helper()
	for _, v := range values {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) { test(t, b, v) })
		})
	}
}

// inBedsOfBoth does so for each pair of rows of two tables.
func inBedsOfBoth[A, B any](t *testing.T, as map[string]A, bs map[string]B, test func(*testing.T, *bed, A, B)) {
	t.Helper()
	for name, a := range as {
		t.Run(name, func(t *testing.T) {
			inBeds(t, bs, func(t *testing.T, b *bed, row B) { test(t, b, a, row) })
		})
	}
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
		),
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	o.Client, err = lockset.New(o.net, cfg)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = o.Close(ended()) }) // what goes on in the background ends before the test
	return o
}

// What units need of a client and a set beyond what users do.

func (o *owner) engine() *locks.Client { return (*locks.Client)(o.Client) }

func engine(set *lockset.Set) *locks.Set { return (*locks.Set)(set) }

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
	set := must(o.Acquire(b.t.Context(), keys))(b.t)
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
	ctx := b.lasting(d)
	set, err := o.Acquire(ctx, keys)
	require.Nil(b.t, set)
	held := as[*lockset.HeldError](b.t, err)
	require.ErrorIs(b.t, err, context.DeadlineExceeded)
	return held
}

// row returns a row as the table has it.
func (b *bed) row(key ordering.Key) item {
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
	return when(func(c faults.Call) bool { return c.Op == op && c.N == n }, f)
}

// when gives a fault to the calls that a condition is true of.
func when(is func(faults.Call) bool, f faults.Fault) faults.Script {
	return func(c faults.Call) faults.Fault {
		if is(c) {
			return f
		}
		return faults.Pass()
	}
}

// before does something before the first call that a condition is true of.
func before(is func(faults.Call) bool, do func()) faults.Script {
	var done atomic.Bool
	return func(c faults.Call) faults.Fault {
		if is(c) && !done.Swap(true) {
			do()
		}
		return faults.Pass()
	}
}

// both gives the first fault that one of two scripts gives, and has both hear of the call.
func both(first, second faults.Script) faults.Script {
	return func(c faults.Call) faults.Fault {
		f, g := first(c), second(c)
		if f.Kind != faults.Passed {
			return f
		}
		return g
	}
}

// until gives a fault to all calls before a context ends.
func until(ctx context.Context, f faults.Fault) faults.Script {
	return when(func(faults.Call) bool { return ctx.Err() == nil }, f)
}

func anyCall(faults.Call) bool { return true }

// slowBy has each request of an owner take so much longer.
func slowBy(d time.Duration) faults.Script {
	return func(faults.Call) faults.Fault {
		time.Sleep(d)
		return faults.Pass()
	}
}

// of tells the calls of some operations.
func of(ops ...string) func(faults.Call) bool {
	return func(c faults.Call) bool { return slices.Contains(ops, c.Op) }
}

// updates tells the UpdateItem calls whose expression has a text.
func updates(text string) func(faults.Call) bool {
	return func(c faults.Call) bool {
		in, ok := c.Input.(*dynamodb.UpdateItemInput)
		return ok && strings.Contains(*in.UpdateExpression, text)
	}
}

// counting has an owner count events of a kind.
func counting(kind trace.Kind, n *int) func(*lockset.Config) {
	return hearing(kind, func(trace.Event) { *n++ })
}

// hearing has an owner tell of events of a kind: of their end, or of what happens at one moment.
func hearing(kind trace.Kind, hear func(trace.Event)) func(*lockset.Config) {
	return func(c *lockset.Config) {
		c.Trace = trace.Join(c.Trace, hooks.On(kind, func(_ context.Context, e trace.Event) { hear(e) }))
	}
}

// hearingOfWaits has an owner tell when a unit begins to wait.
func hearingOfWaits(hear func(trace.Event)) func(*lockset.Config) {
	return func(c *lockset.Config) {
		c.Trace = trace.Join(c.Trace, hooks.OnStart(trace.Wait, func(ctx context.Context, e trace.Event) context.Context {
			hear(e)
			return ctx
		}))
	}
}

// inChunksOf has an owner take so many rows at a time.
func inChunksOf(rows int) func(*lockset.Config) {
	return func(c *lockset.Config) { c.ChunkSize = rows }
}

// lasting returns a context that ends after so long.
func (b *bed) lasting(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	b.t.Cleanup(cancel)
	return ctx
}

// cancellable returns a context that ends with the test at the latest.
func (b *bed) cancellable() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.t.Cleanup(cancel)
	return ctx, cancel
}

// ended returns a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// as returns the error of a type that err is or wraps.
func as[E error](t *testing.T, err error) (e E) {
	t.Helper()
	require.ErrorAs(t, err, &e)
	return e
}

// must returns what a call without an error has returned.
func must[V any](v V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// requireLost asserts that err says that this key was lost.
func requireLost(t *testing.T, err error, key ordering.Key) {
	t.Helper()
	require.ErrorIs(t, err, lockset.ErrLost)
	require.Equal(t, key, as[*heartbeat.LostError](t, err).Key)
}

// seize frees a row behind its holder's back and gives it to a thief, as if the
// holder had been dead for long.
func (b *bed) seize(key ordering.Key, thief *owner) *lockset.Set {
	b.t.Helper()
	b.change(key, "SET isReleased = :one REMOVE #unit", item{":one": s("1")})
	return b.take(thief, key)
}

// isBury reports whether a call frees the row of a dead holder: it does so for
// another unit than its own.
func isBury(c faults.Call) bool {
	in, ok := c.Input.(*dynamodb.UpdateItemInput)
	return ok && strings.Contains(aws.ToString(in.UpdateExpression), "REMOVE #unit") && !strings.Contains(aws.ToString(in.ConditionExpression), ":unit")
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

func (b *bed) putItem(item item) {
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
