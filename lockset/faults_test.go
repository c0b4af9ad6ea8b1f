package lockset_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// shape is the write by which keys are taken and, once more, released.
type shape struct {
	op   string
	keys []ordering.Key
}

var shapes = map[string]shape{
	"one row": {"UpdateItem", []ordering.Key{"a"}},
	"a chunk": {"TransactWriteItems", []ordering.Key{"a", "b/1"}},
}

// Each fault, on each kind of acquiring write: the set is held in the end, as
// one, and released without a trace.
func TestFaultsWhileAcquiring(t *testing.T) {
	inBedsOfBoth(t, map[string]faults.Fault{
		"answer lost, reset":      faults.LoseAnswer(faults.Reset),
		"answer lost, hanging":    faults.LoseAnswer(faults.Hang),
		"answer broken":           faults.LoseAnswer(faults.Broken),
		"request lost":            faults.LoseRequest(faults.Reset),
		"delivered late":          faults.DeliverLate(2*time.Second, faults.Hang),
		"delivered late, reset":   faults.DeliverLate(500*time.Millisecond, faults.Reset),
		"duplicated":              faults.Duplicate(time.Second),
		"throttled":               faults.Throttle(faults.ThrottledGeneric),
		"throttled by throughput": faults.Throttle(faults.Provisioned),
		"conflict":                faults.Conflict(),
		"server error":            faults.ServerError(false),
		"server error, executed":  faults.ServerError(true),
	}, shapes, func(t *testing.T, b *bed, f faults.Fault, c shape) {
		o := b.owner("o", nth(c.op, 1, f))
		set := b.take(o, c.keys...)
		time.Sleep(2 * lease)
		require.NoError(t, set.Context().Err())
		b.free(set)
		o.net.Wait()
		b.allFree()
	})
}

func TestALandedAttemptCountsFromItsFirstSending(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nth("UpdateItem", 1, faults.LoseAnswer(faults.Hang)))
		start := time.Now()
		set := b.take(o, "a")
		require.Greater(t, time.Since(start), lease/10)
		require.Equal(t, start.Add(lease-lease/10), set.Deadline())
		b.free(set)
	})
}

// Giving up with an attempt under way: it is burned before anything is
// released, so the late packet finds a fence that refuses it. No ghost locks.
func TestNoGhostLocks(t *testing.T) {
	type given struct {
		keys []ordering.Key
		seen []ordering.Key // by the table
		held bool           // by another, to this day
	}
	chunk := []ordering.Key{"m/1", "m/2", "n"}
	lates := map[string]time.Duration{"a moment": 2 * time.Second, "a lease": lease, "three leases": 3 * lease}
	inBedsOfBoth(t, map[string]given{
		"an absent row":       {[]ordering.Key{"m"}, nil, false},
		"a free row":          {[]ordering.Key{"m"}, []ordering.Key{"m"}, false},
		"a chunk of absent":   {chunk, nil, false},
		"a chunk of free":     {chunk, chunk, false},
		"behind a secured":    {append(singles(24), "m/1", "m/2"), nil, false},
		"on a row held since": {[]ordering.Key{"m", "n"}, []ordering.Key{"n"}, true},
	}, lates, func(t *testing.T, b *bed, c given, late time.Duration) {
		if c.seen != nil {
			set := b.take(b.owner("w", nil), c.seen...)
			if !c.held {
				b.free(set)
			}
		}
		// Everything that acquires is late once it comes to the second half of the keys, until the
		// caller loses patience.
		ctx := b.lasting(time.Second)
		acquires := of("TransactWriteItems", "UpdateItem")
		o := b.owner("o", when(func(call faults.Call) bool {
			return acquires(call) && ctx.Err() == nil && !(call.N == 1 && len(c.keys) > 20)
		}, faults.DeliverLate(late, faults.Hang)))
		_, err := o.Acquire(ctx, c.keys)
		require.Error(t, err)
		o.net.Wait() // the late packets have all arrived
		other := b.owner("other", nil)
		for _, key := range []ordering.Key{"m", "m/1", "m/2", "k0000", "k0023"} {
			start := time.Now()
			b.free(b.take(other, key))
			require.Less(t, time.Since(start), lease/10, "%q is free", key)
		}
		require.Empty(t, other.buried)
	})
}

func TestGivingUpReleasesWhatLandedUnheard(t *testing.T) {
	inBeds(t, shapes, func(t *testing.T, b *bed, c shape) {
		ctx := b.lasting(lease / 20)
		o := b.owner("o", until(ctx, faults.LoseAnswer(faults.Hang)))
		_, err := o.Acquire(ctx, c.keys)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		b.allFree()
	})
}

func TestGivingUpEndsByItself(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", when(anyCall, faults.LoseRequest(faults.Hang)))
		ctx := b.lasting(time.Second)
		start := time.Now()
		_, err := o.Acquire(ctx, []ordering.Key{"a", "b"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "in the background")
		require.LessOrEqual(t, time.Since(start), time.Second+lease/10)
		require.NoError(t, o.Close(context.Background()))
		require.GreaterOrEqual(t, time.Since(start), time.Second+lease, "Close waits for the cleanup")
		require.LessOrEqual(t, time.Since(start), time.Second+lease+lease/10)
	})
}

// Without an answer for a whole lease there is no point in going on, even if
// the caller would.
func TestAcquireGivesUpOnASilentDynamoDB(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, err := b.owner("o", when(anyCall, faults.LoseRequest(faults.Reset))).Acquire(t.Context(), []ordering.Key{"a"})
		require.ErrorAs(t, err, new(*lockset.NoAnswerError))
	})
}

func TestFaultsInHeartbeats(t *testing.T) {
	inBeds(t, map[string]faults.Fault{
		"answer lost":        faults.LoseAnswer(faults.Hang),
		"answer broken":      faults.LoseAnswer(faults.Broken),
		"request lost":       faults.LoseRequest(faults.Reset),
		"late":               faults.DeliverLate(lease, faults.Hang),
		"duplicated":         faults.Duplicate(lease / 2),
		"throttled":          faults.Throttle(faults.RequestLimit),
		"a statement's rate": faults.Throttle(faults.InReasons, 1),
		"conflict on one":    faults.Conflict(0),
		"server error":       faults.ServerError(true),
	}, func(t *testing.T, b *bed, f faults.Fault) {
		o := b.owner("o", when(func(c faults.Call) bool { return c.Op == "BatchExecuteStatement" && c.N%2 == 1 }, f))
		set := b.take(o, "a", "b/1")
		waiter := b.owner("waiter", nil)
		b.refused(waiter, 4*lease, "b")
		require.NoError(t, set.Context().Err())
		b.free(set)
		o.net.Wait()
		b.allFree()
	})
}

func TestFaultsInBuryAndClean(t *testing.T) {
	inBeds(t, map[string]faults.Fault{
		"answer lost":  faults.LoseAnswer(faults.Reset),
		"request lost": faults.LoseRequest(faults.Hang),
		"late":         faults.DeliverLate(3*time.Second, faults.Reset),
		"conflict":     faults.Conflict(),
	}, func(t *testing.T, b *bed, f faults.Fault) {
		b.crashed("c/a")
		cleaned := false
		o := b.owner("o", when(func(c faults.Call) bool {
			cleans := c.Op == "TransactWriteItems" && c.Actions == 2 && !cleaned
			cleaned = cleaned || cleans
			return cleans || c.Op == "UpdateItem" && c.N == 1
		}, f))
		coarse := b.take(o, "c")
		o.net.Wait()
		require.NoError(t, coarse.Context().Err())
		b.free(coarse)
		b.free(b.take(o, "c/a"))
		b.allFree()
	})
}

func TestFaultsInRelease(t *testing.T) {
	inBedsOfBoth(t, map[string]faults.Fault{
		"answer lost":  faults.LoseAnswer(faults.Hang),
		"request lost": faults.LoseRequest(faults.Reset),
		"late":         faults.DeliverLate(2*time.Second, faults.Hang),
		"duplicated":   faults.Duplicate(time.Second),
		"conflict":     faults.Conflict(0),
	}, shapes, func(t *testing.T, b *bed, f faults.Fault, c shape) {
		if c.op == "UpdateItem" {
			f.At = nil
		}
		o := b.owner("o", nth(c.op, 2, f))
		b.free(b.take(o, c.keys...))
		again := b.take(b.owner("next", nil), c.keys...)
		o.net.Wait()
		time.Sleep(lease)
		require.NoError(t, again.Context().Err(), "a late release frees nobody else's lock")
		b.free(again)
		b.allFree()
	})
}

// What fences are for: nothing lowers one, and nothing that is sent to raise one
// touches what is another's.

// ahead is an owner whose clock is wrong by as much.
func (b *bed) ahead(name string, wrong time.Duration) *owner {
	return b.owner(name, nil, wrongBy(wrong))
}

// wrongBy has an owner's clock be wrong by as much.
func wrongBy(d time.Duration) func(*lockset.Config) {
	return func(c *lockset.Config) { c.Now = func() time.Time { return time.Now().Add(d) } }
}

// Others burn their tokens on rows that are held. A unit that stamps its own
// rows anew, with a token between, takes nothing of that back: what was burned
// may still be under way.
func TestARestampLowersNoFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		last := b.take(b.ahead("ahead", time.Hour), "z")
		waits := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{"a", "c/x", "z"})
		burned := map[ordering.Key]string{}
		for _, key := range []ordering.Key{"a", "c", "c/x"} {
			b.refused(b.ahead("further ahead, for "+string(key), 2*time.Hour), time.Second, key)
			burned[key] = b.fence(key)
		}
		b.free(last)
		set := waits.got()
		require.Greater(t, set.Token(), last.Token())
		for key, fence := range burned {
			require.Greater(t, fence, set.Token().String(), "burned on %q", key)
			require.Equal(t, fence, b.fence(key), "fence of %q", key)
		}
		b.free(set)
		b.allFree()
	})
}

// A token is burned where there is no row by writing one; a row that appears
// meanwhile is somebody's.
func TestABurnMeetsARowThatAppeared(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		other := b.owner("other", nil)
		ctx := b.lasting(time.Second)
		burns := 0
		var held *lockset.Set
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if ctx.Err() == nil {
				return faults.LoseRequest(faults.Hang)
			}
			if burns++; burns == 2 { // after the one that met no row
				held = b.take(other, "m")
			}
			return faults.Pass()
		})
		_, err := o.Acquire(ctx, []ordering.Key{"m"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, held)
		b.refused(b.owner("third", nil), 2*lease, "m")
		require.NoError(t, held.Context().Err())
		b.free(held)
		b.allFree()
	})
}

func TestABurnLowersNoFence(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		first := b.take(b.owner("first", nil), "m")
		ctx := b.lasting(lease / 2)
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op == "UpdateItem" && c.N == 1 || ctx.Err() != nil {
				return faults.Pass() // the attempt is refused
			}
			return faults.LoseRequest(faults.Reset) // and the unit never joins
		})
		gone := b.ask(ctx, o, []ordering.Key{"m"})
		time.Sleep(lease / 4)
		b.free(first)
		held := b.take(b.owner("next", nil), "m")
		require.Error(t, gone.failed())
		require.Equal(t, held.Token().String(), b.fence("m"))
		b.free(held)
		b.allFree()
	})
}

// A step landed unheard and was buried, and nobody had its key since: the row
// still has the RVN that the unit wrote, but is not the unit's any more.
func TestAUnitMeetsItsOwnBuriedStep(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, done := b.landsUnheard(t.Context(), "a/k")
		undertaker := b.owner("undertaker", when(func(c faults.Call) bool { // it buries, and comes to nothing more
			return c.Op == "TransactWriteItems" && c.N > 1
		}, faults.LoseRequest(faults.Hang)))
		_, err := undertaker.Acquire(b.lasting(lease+lease/10), []ordering.Key{"a/k"})
		require.Error(t, err)
		require.Equal(t, []ordering.Key{"a/k"}, undertaker.buried)
		b.free(b.take(b.ahead("ahead", time.Hour), "a/other")) // its fence on a refuses u's token
		require.NoError(t, <-done)
		b.allFree()
	})
}

// A row that somebody else wrote over while a unit waited is not touched by its burn,
// though it has attributes of the same names.
func TestABurnLeavesAForeignRowAlone(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("holder", nil), "a")
		foreign := item{"key": s("a"), "fence": n(oldFence), "below": s("another's"), "pending": s("another's")}
		burned := false
		burns := updates("SET #fence = :token, #expiresAt = if_not_exists(#pendingBelow, :outlives)")
		o := b.owner("o", before(burns, func() { b.putItem(foreign); burned = true }))
		b.refused(o, lease/20, "a")
		require.True(t, burned)
		require.Equal(t, foreign, b.row("a"))
	})
}

// Permissions that are missing, or are taken away while a set is held.

const notAuthorized = "User: arn:aws:iam::123456789012:user/faults is not authorized to perform this"

// denied is a call refused for want of a permission, in the time of any other.
func denied() faults.Fault {
	time.Sleep(rtt)
	return faults.Deny()
}

// What may not be done is not tried again: Acquire says at once which table it
// was, and keeps nothing.
func TestAcquireWithoutAPermissionEndsAtOnce(t *testing.T) {
	type given struct {
		keys   []ordering.Key
		denies func(faults.Call) bool
		op     string
		within time.Duration
	}
	inBeds(t, map[string]given{
		"one row":                       {[]ordering.Key{"a"}, of("UpdateItem"), "UpdateItem", 2 * rtt},
		"several rows":                  {shapes["a chunk"].keys, of("TransactWriteItems"), "TransactWriteItems", 3 * rtt},
		"several rows, nothing allowed": {shapes["a chunk"].keys, anyCall, "TransactWriteItems", 2 * rtt},
		"looking at a row that is held": {[]ordering.Key{"a", "held"}, of("GetItem"), "GetItem", lease / 50},
	}, func(t *testing.T, b *bed, c given) {
		held := b.take(b.owner("holder", nil), "held")
		repeated := 0
		o := b.owner("o", func(call faults.Call) faults.Fault {
			if c.denies(call) {
				return denied()
			}
			return faults.Pass()
		}, hearing(trace.Request, func(e trace.Event) { repeated = max(repeated, e.N-1) }))
		start := time.Now()
		_, err := o.Acquire(t.Context(), c.keys)
		require.LessOrEqual(t, time.Since(start), c.within)
		tableErr := as[*lockset.TableError](t, err)
		require.Equal(t, c.op, tableErr.Op)
		require.Equal(t, []string{table}, tableErr.Tables)
		require.ErrorContains(t, err, `table "locks": `+c.op+`: may not be accessed`)
		require.ErrorContains(t, err, notAuthorized)
		require.Zero(t, repeated)
		require.Equal(t, 1, o.net.Counts()[faults.Denied], "it has nothing to undo")

		require.NoError(t, held.Context().Err())
		b.free(held)
		b.allFree()
	})
}

// deniesRenewals refuses renewals while they are revoked: the requests, or the
// statements of one key alone, for a policy may allow some keys and not others.
func deniesRenewals(revoked *atomic.Bool, only ordering.Key) faults.Script {
	return func(c faults.Call) faults.Fault {
		in, ok := c.Input.(*dynamodb.BatchExecuteStatementInput)
		if !ok || !revoked.Load() {
			return faults.Pass()
		}
		if only == "" {
			return denied()
		}
		at := slices.IndexFunc(in.Statements, func(s types.BatchStatementRequest) bool {
			return s.Parameters[2].(*types.AttributeValueMemberS).Value == string(only)
		})
		if at < 0 {
			return faults.Pass()
		}
		return faults.DenyStatements(at)
	}
}

// renewals are what may be denied: every request, or the statements of b/1 and no others.
var renewals = map[string]ordering.Key{"the request": "", "the statement of one key": "b/1"}

// A permission that is taken away is no proof that a key is lost: the set lives
// to its deadline and not longer, and says why it ended.
func TestARenewalWithoutAPermissionEndsTheSetAtItsDeadline(t *testing.T) {
	inBeds(t, renewals, func(t *testing.T, b *bed, only ordering.Key) {
		var revoked atomic.Bool
		holder := b.owner("holder", deniesRenewals(&revoked, only))
		set := b.take(holder, "a", "b/1")
		time.Sleep(2 * lease)
		revoked.Store(true)
		time.Sleep(2 * rtt) // a renewal under way has come back
		deadline := set.Deadline()
		require.NoError(t, set.Context().Err())
		require.Greater(t, time.Until(deadline), lease/2)

		<-set.Context().Done()
		require.Equal(t, deadline, time.Now())
		require.Equal(t, deadline, set.Deadline())
		require.Greater(t, holder.net.Counts()[faults.Denied], 1, "it might have been given back")
		cause := context.Cause(set.Context())
		require.ErrorIs(t, cause, lockset.ErrLost)
		require.ErrorContains(t, cause, "no renewal was confirmed in time")
		require.ErrorContains(t, cause, "AccessDenied")
		require.ErrorContains(t, cause, notAuthorized)

		require.ErrorIs(t, set.Release(t.Context()), lockset.ErrLost)
		b.allFree()
	})
}

func TestARenewalWithoutAPermissionForAWhile(t *testing.T) {
	inBeds(t, renewals, func(t *testing.T, b *bed, only ordering.Key) {
		var revoked atomic.Bool
		holder := b.owner("holder", deniesRenewals(&revoked, only))
		set := b.take(holder, "a", "b/1")
		for range 5 {
			revoked.Store(true)
			time.Sleep(lease / 2)
			revoked.Store(false)
			time.Sleep(lease / 2)
		}
		require.NotZero(t, holder.net.Counts()[faults.Denied])
		require.NoError(t, set.Context().Err())
		b.refused(b.owner("waiter", nil), 2*lease, "b")
		b.free(set)
		b.allFree()
	})
}
