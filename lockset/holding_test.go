package lockset_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
)

// warnings collects what a client logs.
type warnings struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *warnings) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(line)
}

func (w *warnings) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func (w *warnings) lines() []string { return strings.Split(strings.TrimSpace(w.String()), "\n") }

func (w *warnings) log(c *lockset.Config) { c.Logger = slog.New(slog.NewTextHandler(w, nil)) }

func TestASetThatIsHeldForHoursIsLogged(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var w warnings
		o := b.owner("o", nil, w.log, func(c *lockset.Config) { c.Lease = 5 * time.Minute }) // few heartbeats
		set := must(o.Acquire(t.Context(), []ordering.Key{"a", "b"}, purposed("nightly")))(t)
		time.Sleep(59 * time.Minute)
		require.Empty(t, w.lines()[0])
		time.Sleep(2 * time.Hour)
		lines := w.lines()
		require.Len(t, lines, 2)
		for _, part := range []string{"level=WARN", "still held", "unit=" + set.Nonce(), "purpose=nightly", "a b", "since=", "held=2h0m0s"} {
			require.Contains(t, lines[1], part)
		}
		b.free(set)
		time.Sleep(3 * time.Hour)
		require.Len(t, w.lines(), 2)
	})
}

func TestASetIsHeldForNoLongerThanItsBound(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		bound := func(o *lockset.Options) { o.HoldFor = 10 * time.Minute }
		set := must(o.Acquire(t.Context(), []ordering.Key{"a"}, bound))(t)
		ends := time.Now().Add(10 * time.Minute)
		require.True(t, set.Deadline().Before(ends), "it is lost a lease after its heartbeats fail")
		time.Sleep(10*time.Minute - time.Millisecond)
		require.NoError(t, set.Context().Err())
		require.Equal(t, ends, set.Deadline())
		time.Sleep(2 * time.Millisecond)
		cause := context.Cause(set.Context())
		require.ErrorIs(t, cause, lockset.ErrLost)
		require.ErrorContains(t, cause, "held for 10m0s, as long as Options.HoldFor allows")
		b.free(b.take(b.owner("next", nil), "a"))

		set = must(o.Acquire(t.Context(), []ordering.Key{"b"}, bound))(t)
		b.free(set)
		time.Sleep(time.Hour)
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrReleased)

		_, err := o.Acquire(t.Context(), []ordering.Key{"b"}, func(o *lockset.Options) { o.HoldFor = -1 })
		require.ErrorAs(t, err, new(*locks.ConfigError))
	})
}

func TestARenewalThatTheBoundEndsIsNoFailure(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var w warnings
		s := &silence{fault: faults.LoseRequest(faults.Hang)}
		o := b.owner("o", func(c faults.Call) faults.Fault {
			if c.Op != "BatchExecuteStatement" {
				return faults.Pass()
			}
			return s.script(c)
		}, w.log)
		for bound := time.Duration(0); s.sent.Load() == 0; bound += attempt / 4 { // until a renewal has begun
			_, err := o.Acquire(t.Context(), []ordering.Key{"a"}, func(o *lockset.Options) { o.HoldFor = lease/8 + bound })
			require.NoError(t, err)
			time.Sleep(2 * lease)
		}
		require.NotContains(t, w.String(), "a renewal failed")
	})
}

// Renewals that fail again and again for one reason are logged once for each set, and the error of the
// loss names the permission if they are denied.
func TestRenewalsThatFailForOneReasonAreLoggedOnce(t *testing.T) {
	const permission = "allow dynamodb:PartiQLUpdate"
	type given struct {
		fault faults.Fault
		says  string
	}
	inBeds(t, map[string]given{
		"the request is denied":     {faults.Deny(), permission},
		"each statement is denied":  {faults.DenyStatements(0), permission},
		"the connection is refused": {faults.LoseRequest(faults.Reset), "reset"},
		"the server fails":          {faults.ServerError(false), "InternalServerError"},
	}, func(t *testing.T, b *bed, failure given) {
		var w warnings
		set := b.take(b.owner("o", when(of("BatchExecuteStatement"), failure.fault), w.log), "a")
		<-set.Context().Done()
		if failure.says == permission {
			require.ErrorContains(t, context.Cause(set.Context()), permission)
		}
		failed := slices.DeleteFunc(w.lines(), func(line string) bool { return !strings.Contains(line, "a renewal failed") })
		require.Len(t, failed, 1)
		require.Contains(t, failed[0], failure.says)
	})
}

// Many sets of one key cost about as many renewals as one set of many keys.
func TestSetsOfAProcessRenewTogether(t *testing.T) {
	const sets, leases = 200, 5
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		for _, key := range singles(sets) {
			b.take(o, key)
			time.Sleep(lease / 100) // whenever they come
		}
		o.requests()
		time.Sleep(leases * lease)
		shared := o.requests()["BatchExecuteStatement"]
		t.Logf("%d renewals in %d leases", shared, leases)
		require.LessOrEqual(t, shared, 3*leases*12, "for 8 that would be full")
	})
}

// Every round is told, with how long the set still has: first confirmed, then not.
func TestRoundsAreTold(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		rounds, told := make(chan trace.Event, 100), make(chan time.Time, 100)
		o := b.owner("o", nil, hearing(trace.Renewed, func(r trace.Event) { rounds <- r; told <- time.Now() }))
		left := lease - o.Config().Margin
		set := b.take(o, "a", "b")
		time.Sleep(3*lease - lease/5) // no round is under way
		require.GreaterOrEqual(t, len(rounds), 7)
		var last trace.Event
		for range len(rounds) {
			last = <-rounds
			require.WithinRange(t, last.Confirmed, (<-told).Add(-2*rtt), time.Now())
			require.Equal(t, trace.Event{Kind: trace.Renewed, Unit: set.Nonce(), Count: 2, Confirmed: last.Confirmed, Deadline: last.Confirmed.Add(left)}, last)
		}
		require.Equal(t, set.Deadline(), last.Deadline)

		o.net.Partition(true)
		<-set.Context().Done()
		require.Equal(t, last.Deadline, time.Now())
		require.NotEmpty(t, rounds)
		for range len(rounds) {
			r := <-rounds
			require.Error(t, r.Err)
			require.Equal(t, trace.Event{Kind: trace.Renewed, Unit: set.Nonce(), Count: 2, Failed: 2, Err: r.Err, Confirmed: last.Confirmed, Deadline: last.Deadline}, r)
		}
		o.net.Partition(false)
		_ = set.Release(t.Context())
	})
}

// Who watches whom, and who is told of what, when.

// A living intent is enough to keep a coarse lock out; the dead behind it are
// watched meanwhile, and keep nobody waiting once it has gone.
func TestTheDeadBehindALivingIntentAreWatchedMeanwhile(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		living := b.take(b.owner("living", nil), "c/a")
		b.crashed("c/z")
		coarse := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{"c"})
		time.Sleep(3 * lease)
		b.free(living)
		left := time.Now()
		coarse.leave()
		require.Less(t, coarse.at.Sub(left), lease/5)
	})
}

func TestReadsAreStronglyConsistent(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.take(b.owner("fine", nil), "c/a")
		b.take(b.owner("coarse", nil), "d")
		var behind atomic.Int64
		o := b.owner("o", counted(&behind, func(c faults.Call) bool {
			in, ok := c.Input.(*dynamodb.GetItemInput)
			return ok && !aws.ToBool(in.ConsistentRead)
		}))
		b.refused(o, lease, "c") // reads a witness
		b.refused(o, lease, "d") // reads a holder
		require.NotZero(t, o.requests()["GetItem"])
		require.Zero(t, behind.Load())
	})
}

// purposed is an option of a set.
func purposed(purpose string) func(*lockset.Options) {
	return func(o *lockset.Options) { o.Purpose = purpose }
}

// view is a row as an inspector has it.
func (b *bed) view(key ordering.Key) inspect.Row {
	b.t.Helper()
	i, _ := b.operator(nil)
	return b.looked(i, key).Row
}

// Who waits for a key is told whose it is and what for, and so is who looks at the table; also
// after the unit, until another has it.
func TestAPurposeIsToldToOthers(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		holder := b.owner("holder", nil)
		set := must(holder.Acquire(t.Context(), []ordering.Key{"a"}, purposed("pay out")))(t)
		require.Equal(t, "pay out", b.view("a").Holder.Purpose)

		var told []trace.Event
		other := b.owner("other", nil, hearingOfWaits(func(w trace.Event) { told = append(told, w) }))
		refused := b.refused(other, 10*rtt, "a")
		require.Equal(t, "pay out", refused.Purpose)
		require.Equal(t, "pay out", b.refused(holder, 10*rtt, "a").Purpose, "in its own process")
		require.Contains(t, refused.Error(), `of owner "holder" for "pay out": `)
		require.Equal(t, "pay out", told[0].Purpose)

		b.free(set)
		require.Equal(t, "pay out", b.view("a").LastPurpose)
		require.Equal(t, "holder", b.view("a").LastOwner)

		b.take(other, "a")
		require.Empty(t, b.view("a").Holder.Purpose)
		require.NotContains(t, b.refused(b.owner("third", nil), 10*rtt, "a").Error(), ` for "`)
	})
}

// A unit that lets go of what it has, and has a step alone, is for the same.
func TestAPurposeStaysWithACallThatLetsGo(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		b.crashed("b")
		seen := map[string]bool{}
		waits := b.ask(t.Context(), b.owner("o", nil), []ordering.Key{"a", "b"}, purposed("count"))
		for waits.waits() {
			for _, key := range []ordering.Key{"a", "b"} {
				if row := b.row(key); row["unit"] != nil && lockrow.TextOf(row["ownerName"]) == "o" {
					seen[lockrow.TextOf(row["purpose"])] = true
				}
			}
			time.Sleep(rtt / 2)
		}
		require.Equal(t, map[string]bool{"count": true}, seen)
		waits.leave()
	})
}

func TestLogLinesNameThePurpose(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		dead, late := b.owner("dead", nil), b.owner("late", nil)
		must(dead.Acquire(t.Context(), []ordering.Key{"a"}, purposed("pay out")))(t)
		b.ask(t.Context(), late, []ordering.Key{"a"}, purposed("count"))
		dead.net.Crash()
		late.net.Crash()

		var lines warnings
		b.free(b.take(b.owner("heir", nil, lines.log), "a"))
		told := map[string]string{"buried": `owner=dead purpose="pay out"`, "lost its place": `owner=late purpose=count`}
		for _, line := range lines.lines() {
			for what, whose := range told {
				if strings.Contains(line, what) {
					require.Contains(t, line, whose)
					delete(told, what)
				}
			}
		}
		require.Empty(t, told)
	})
}

// A row with eight waiting units is one write unit, however long what they say is.
func TestARowWithManyWaitingIsOneWriteUnit(t *testing.T) {
	long := strings.Repeat("x", lockrow.MaxPurpose)
	key := ordering.Key(strings.Repeat("k", 64))
	inBed(t, func(t *testing.T, b *bed) {
		var mu sync.Mutex
		most := map[string]float64{}
		owner := func(name string) *owner {
			return b.owner(name+strings.Repeat("o", 64-len(name)), nil, func(c *lockset.Config) {
				c.Trace = trace.Join(&trace.Trace{Capacity: true}, hooks.On(trace.Request, func(_ context.Context, r trace.Event) {
					mu.Lock()
					defer mu.Unlock()
					most[r.Op] = max(most[r.Op], r.Capacity)
				}))
			})
		}
		first := must(owner("first").Acquire(t.Context(), []ordering.Key{key}, purposed(long)))(t)
		ctx, cancel := b.cancellable()
		waiting := []*patron{b.ask(ctx, owner("holder"), []ordering.Key{key}, purposed(long))}
		for n := range 7 {
			waiting = append(waiting, b.ask(ctx, owner(fmt.Sprint("waits", n)), []ordering.Key{key}, purposed(long)))
		}
		b.free(first) // the next one has it, and one more waits: the row has all that it can have
		holder := waiting[0].got()
		waiting = append(waiting, b.ask(ctx, owner("last"), []ordering.Key{key}, purposed(long)))
		require.Len(t, b.queue(key), 8)
		time.Sleep(lease) // it is renewed
		cancel()
		for _, p := range waiting[1:] {
			require.ErrorIs(t, p.failed(), context.Canceled)
		}
		b.free(holder)
		time.Sleep(lease / 10) // places that were not given up at once
		mu.Lock()
		require.Equal(t, 1.0, most["UpdateItem"])
		require.Equal(t, 1.0, most["BatchExecuteStatement"])
		mu.Unlock()
		b.allFree()
	})
}

func TestAPurposeThatCannotBe(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		for purpose, reason := range map[string]string{
			strings.Repeat("x", 257): "config: Options.Purpose is longer than 256 bytes",
			"\xff":                   "config: Options.Purpose is not UTF-8",
		} {
			_, err := o.Acquire(t.Context(), []ordering.Key{"a"}, purposed(purpose))
			require.EqualError(t, err, reason)
			require.ErrorAs(t, err, new(*locks.ConfigError))
			err = o.With(t.Context(), []ordering.Key{"a"}, func(context.Context, fencing.Token) error { panic("called") }, purposed(purpose))
			require.EqualError(t, err, reason)
			i, _ := b.operator(nil)
			err = i.Free(t.Context(), "a", "unit", inspect.Freeing{Reason: purpose})
			require.EqualError(t, err, strings.ReplaceAll(reason, "Options.Purpose", "Freeing.Reason"))
		}
		require.Empty(t, o.requests())
	})
}
