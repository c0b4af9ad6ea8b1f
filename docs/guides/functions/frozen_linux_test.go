package functions

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

func itemKey(id string) map[string]types.AttributeValue {
	return textValue("ID", id)
}

func textValue(name, value string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{name: &types.AttributeValueMemberS{Value: value}}
}

// serve serves a DynamoDB in memory to this process and to others.
func serve(t *testing.T) (endpoint string, client *dynamodb.Client) {
	db := memory(t)
	db.SetLatency(5 * time.Millisecond) // as in TestOneClientForEachInstance
	server := httptest.NewServer(db.Handler())
	t.Cleanup(server.Close)
	return server.URL, overHTTP(server.URL)
}

// moment is where an instance is stopped.
type moment struct {
	lock    bool
	request int
	after   bool
	held    bool // others wait for a lease
}

func (m moment) String() string {
	return fmt.Sprintf("lock=%v, request %d, after=%v", m.lock, m.request, m.after)
}

// moments are all requests of a payment: without locks it reads and commits; with locks it
// takes them, looks the ID up, reads, and commits.
func moments() (all []moment) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 2; n++ {
			all = append(all, moment{false, n, after, false})
		}
		for n := 1; n <= 4; n++ {
			taken, freed := n > 1 || after, n == 4 && after
			all = append(all, moment{true, n, after, taken && !freed})
		}
	}
	if testing.Short() {
		return []moment{{false, 2, false, false}, {true, 3, true, true}}
	}
	return all
}

// Instances are frozen after each answer, and stopped at each request of a payment: for longer than
// a lease, or for good. Another process pays with the same accounts meanwhile. Whatever was stopped,
// each payment is made once, and nobody but who holds locks keeps others waiting.
func TestFrozenInstances(t *testing.T) {
	endpoint, db := serve(t)
	for i, m := range moments() {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, killed=%v", m, killed), func(t *testing.T) {
				t.Parallel()
				s := scene{t: t, endpoint: endpoint, m: m, a: fmt.Sprintf("a%d-%v", i, killed), b: fmt.Sprintf("b%d-%v", i, killed)}
				other, err := rival(db, &s.buried)
				require.NoError(t, err)
				s.rival = other
				require.NoError(t, open(t.Context(), s.rival, s.a, s.b))
				s.play(killed)
			})
		}
	}
}

// scene is an instance, and another process that pays with the same accounts.
type scene struct {
	t        *testing.T
	endpoint string
	m        moment
	a, b     string
	rival    *Function
	buried   atomic.Int64 // keys that the other process took from the dead
}

// rival is a function in this process, which counts what it takes from the dead.
func rival(db *dynamodb.Client, buried *atomic.Int64) (*Function, error) {
	counts := hooks.On(trace.Buried, func(context.Context, trace.Event) { buried.Add(1) })
	units, err := unitofwork.Open(db, unitofwork.Config{
		Locks: lockset.Config{Table: "locks", Lease: shortLease, Trace: counts}, Table: "units",
	})
	return &Function{units: units}, err
}

// The amounts are powers of two, so that the balance tells which payments were made.
func (s *scene) play(killed bool) {
	t := s.t
	c := start(t, s.endpoint)
	first, second := s.payment("1st", 1), s.payment("2nd", 4)

	c.ask(invocation{Event: first, Lock: s.m.lock})
	s.made(c.answer()) // and is frozen

	s.pays("while it is frozen between two events", 2)
	require.Zero(t, s.buried.Load(), "something was held by an instance that had answered")

	c.ask(invocation{Event: second, Lock: s.m.lock, StopAt: s.m.request, After: s.m.after})
	require.True(t, c.answer().Stopping, "it has fewer requests")
	began := time.Now()
	s.pays("while it is stopped in the middle", 8)
	if s.m.held {
		require.Positive(t, s.buried.Load(), "nothing was held")
		require.GreaterOrEqual(t, time.Since(began), shortLease, "its keys were taken from it within a lease")
	} else {
		require.Zero(t, s.buried.Load(), "something was held")
	}

	if killed {
		require.NoError(t, c.Kill())
		c = start(t, s.endpoint)
		c.ask(invocation{Event: second, Lock: s.m.lock})
	} else {
		time.Sleep(time.Until(began.Add(shortLease * 11 / 10)))
		c.thaw()
	}
	for tries := 0; len(c.answer().Response.BatchItemFailures) > 0; tries++ { // it was stopped for too long
		require.Less(t, tries, 5)
		c.ask(invocation{Event: second, Lock: s.m.lock})
	}
	c.ask(invocation{Event: Event{Records: append(first.Records, second.Records...)}, Lock: s.m.lock}) // as queues do
	s.made(c.answer())

	all, err := balances(t.Context(), s.rival, s.a, s.b)
	require.NoError(t, err)
	require.Equal(t, []int64{1000 - 15, 1000 + 15}, all)
	s.nothingHeld()
}

func (s *scene) payment(id string, amount int64) Event {
	return eventOf(Payment{s.a + id, s.a, s.b, amount})
}

// pays makes a payment by the other process.
func (s *scene) pays(when string, amount int64) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.t.Context(), longTimeout)
	defer cancel()
	require.NoError(s.t, s.rival.pay(ctx, messageOf(Payment{s.a + when, s.a, s.b, amount})), when)
	s.t.Logf("%s: paid in %.2f leases", when, float64(time.Since(began))/float64(shortLease))
}

func (s *scene) made(a answer) {
	s.t.Helper()
	require.Equal(s.t, answer{Response: Response{BatchItemFailures: []Failure{}}}, a)
}

func (s *scene) nothingHeld() {
	inspector, err := inspect.New(s.rival.units.Locks().DynamoDB().(*dynamodb.Client), lockset.Config{Table: "locks"})
	require.NoError(s.t, err)
	for _, id := range []string{s.a, s.b} {
		key := Accounts.Guard(&Account{ID: id})
		view, err := inspector.Look(s.t.Context(), key)
		require.NoError(s.t, err)
		require.True(s.t, view.Row.Idle(), key)
	}
}

// What not to do: an instance that keeps a lock set is frozen with it, and others have the key a
// lease later. What it writes then is refused by the token, whatever it believes.
func TestAKeptLockSet(t *testing.T) {
	endpoint, db := serve(t)
	c := start(t, endpoint)
	c.ask(invocation{Keep: "take"})
	require.Empty(t, c.answer().Err)

	var buried atomic.Int64
	other, err := rival(db, &buried)
	require.NoError(t, err)
	began := time.Now()
	set, err := other.units.Locks().Acquire(t.Context(), []ordering.Key{keptKey})
	require.NoError(t, err)
	require.Equal(t, int64(1), buried.Load())
	t.Logf("others have the key after %.2f leases", float64(time.Since(began))/float64(shortLease))
	require.NoError(t, write(t.Context(), db, set.Token(), "the successor"))

	c.ask(invocation{Keep: "write"})
	a := c.answer()
	require.True(t, a.Stale, a.Err)
	require.True(t, a.Lost, "when it asked, its context had ended")
	require.NoError(t, set.Release(t.Context()))
}
