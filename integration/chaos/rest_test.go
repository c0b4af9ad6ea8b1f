package chaos

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func listOf(values ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: values}
}

// Whatever may be left of somebody is seen, and nothing else.
func TestLook(t *testing.T) {
	var r rest
	for _, row := range []item{
		{"key": str("free"), "isReleased": str("1")},
		{"key": str("held"), "unit": str("u")},
		{"key": str("intended"), "isReleased": str("1"), "below": &types.AttributeValueMemberSS{Value: []string{"v 1"}}},
		{"key": str("marked"), "isReleased": str("1"), "pending": str("units")},
		{"key": str("wanted"), "isReleased": str("1"), "queue": listOf(str("w"), str("x"))},
		{"key": str("left"), "isReleased": str("1"), "queue": listOf()},
	} {
		r.addLock(row)
	}
	for _, row := range []item{
		{"unit": str("id:1"), "part": str("record"), "expiresAt": str("1")},
		{"unit": str("u"), "part": str("record")},
		{"unit": str("u"), "part": str("journal/000000")},
		{"unit": str("u"), "part": str("journal/000010")},
		{"unit": str("open"), "part": str("u")},
	} {
		r.addUnit(row)
	}
	require.Equal(t, rest{
		keys: []ordering.Key{"free", "held", "intended", "marked", "wanted", "left"},
		held: []ordering.Key{"held", "intended"}, units: []string{"u", "v"}, marked: []ordering.Key{"marked"},
		places: []ordering.Key{"wanted", "wanted"}, lasts: []string{"u record", "u journal/000000", "open u"}, strays: 1,
	}, r)
}

func TestByDepth(t *testing.T) {
	require.Empty(t, byDepth(nil))
	require.Equal(t, [][]ordering.Key{{"a/b/c"}, {"a/b", "d/e"}, {"a", "b"}}, byDepth([]ordering.Key{"a", "a/b", "a/b/c", "b", "d/e"}))
}

// inherit removes the places of dead waiters from every row's queue, of a coarse key as of a fine
// one below it.
func TestInherit(t *testing.T) {
	t.Parallel()
	client := engineIn(t, t.TempDir()).Client
	cfg := lockset.Config{Table: "x-locks", Owner: "somebody", Lease: time.Second}
	require.NoError(t, lockset.CreateTable(t.Context(), client, cfg))
	require.NoError(t, unitofwork.CreateTable(t.Context(), client, unitofwork.Config{Table: "x-units"}))
	locks, err := lockset.New(client, cfg)
	require.NoError(t, err)
	set, err := locks.Acquire(t.Context(), []ordering.Key{"a/1", "b"})
	require.NoError(t, err)
	require.NoError(t, set.Release(t.Context()))
	for _, key := range []string{"a", "a/1", "b"} {
		_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String("x-locks"), Key: item{"key": str(key)}, UpdateExpression: aws.String("SET #queue = :queue"),
			ExpressionAttributeNames:  map[string]string{"#queue": "queue"},
			ExpressionAttributeValues: item{":queue": listOf(str("AAAAAAAAAAAAAAAAAAAAAA"), str("BBBBBBBBBBBBBBBBBBBBBB"))},
		})
		require.NoError(t, err)
	}
	before, after, err := inherit(t.Context(), client, "x-", cfg.Lease)
	require.NoError(t, err)
	require.ElementsMatch(t, []ordering.Key{"a", "a", "a/1", "a/1", "b", "b"}, before.places)
	require.Empty(t, after.places)
	require.Len(t, after.keys, 3)
}

const (
	waiterEngine = "HOLDALL_WAITER_ENGINE" // URL: the process is to acquire waiterKey, and to wait for as long as it takes
	waiterKey    = "HOLDALL_WAITER_KEY"
)

// waiterLocks has a lease that the holder can renew while all the waiters start.
var waiterLocks = lockset.Config{Table: "locks", Lease: 4 * time.Second}

// Processes that wait are killed. The key is free soon after its holder has released it, or has been
// killed, too, although every caller asks once and none watches the row for longer than that.
func TestPlacesOfTheDeadAreInherited(t *testing.T) {
	if engine := os.Getenv(waiterEngine); engine != "" {
		locks, err := lockset.New(engines.Client(engine), waiterLocks)
		require.NoError(t, err)
		_, err = locks.Acquire(t.Context(), []ordering.Key{ordering.Key(os.Getenv(waiterKey))})
		require.NoError(t, err)
		time.Sleep(time.Hour) // as the holder, until it is killed
	}
	for name, crashes := range map[string]bool{"the holder releases": false, "the holder is killed": true} {
		t.Run(name, func(t *testing.T) {
			if crashes && testing.Short() {
				t.Skip("a dead holder is succeeded by callers that ask once after two leases and 30 s")
			}
			t.Parallel()
			inheritedAtOnce(t, crashes)
		})
	}
}

// inheritedAtOnce has processes wait for a key and for a coarser one, kills them, and then asks for
// both keys, as another process each time.
func inheritedAtOnce(t *testing.T, crashes bool) {
	t.Helper()
	const fine, coarse = ordering.Key("a/1"), ordering.Key("a")
	ofEach := 8
	if testing.Short() { // each is a process
		ofEach = 3
	}
	e := engineIn(t, t.TempDir())
	client := e.Client
	require.NoError(t, lockset.CreateTable(t.Context(), client, waiterLocks))
	left := func() (r rest) {
		require.NoError(t, scan(t.Context(), client, waiterLocks.Table, r.addLock))
		return r
	}

	var release func()
	if crashes {
		release = startWaiter(t, e.Endpoint, fine).Kill
	} else {
		locks, err := lockset.New(client, waiterLocks)
		require.NoError(t, err)
		defer func() { require.NoError(t, locks.Close(t.Context())) }()
		set, err := locks.Acquire(t.Context(), []ordering.Key{fine})
		require.NoError(t, err)
		release = func() { require.NoError(t, set.Release(t.Context())) }
	}
	require.Eventually(t, func() bool { return len(left().held) == 2 }, time.Minute, 10*time.Millisecond, "the key, and the intent above it")
	var waiters []*engines.Child
	for _, key := range []ordering.Key{fine, coarse} { // a waiter for the coarse key keeps others from the fine one
		for range ofEach {
			waiters = append(waiters, startWaiter(t, e.Endpoint, key))
		}
		require.Eventually(t, func() bool { return len(left().places) == len(waiters) }, time.Minute, 10*time.Millisecond, "%v waits", key)
	}
	for _, w := range waiters {
		w.Kill()
	}
	release()

	// Two Grace and the seconds by which the table's clock is not known: then the row counts as left
	// untaken. A dead holder's row counts as free since two leases and 30 s after its last renewal.
	soon := 2*waiterLocks.Lease/4 + 5*time.Second
	if crashes {
		soon += 2*waiterLocks.Lease + 30*time.Second
	}
	ended := time.Now()
	for _, key := range []ordering.Key{fine, coarse} {
		for {
			locks, err := lockset.New(client, waiterLocks) // it has seen nothing yet
			require.NoError(t, err)
			set, err := locks.TryAcquire(t.Context(), []ordering.Key{key})
			if err == nil {
				require.NoError(t, set.Release(t.Context()))
				break
			}
			require.ErrorAs(t, err, new(*lockset.HeldError))
			require.Less(t, time.Since(ended), soon, "%v is not free: %v", key, err)
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("key %q was free after %v", key, time.Since(ended))
	}
	require.Empty(t, left().places)
	require.Empty(t, left().held)
}

// startWaiter starts a process that acquires a key, and holds it until it is killed.
func startWaiter(t *testing.T, engine string, key ordering.Key) *engines.Child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPlacesOfTheDeadAreInherited$")
	cmd.Env = append(os.Environ(), waiterEngine+"="+engine, waiterKey+"="+string(key), "TMPDIR="+t.TempDir())
	child, err := engines.StartChild(cmd)
	require.NoError(t, err)
	t.Cleanup(child.Kill)
	return child
}
