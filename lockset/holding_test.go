package lockset_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
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

// A set that nobody releases is logged every hour, with what a reader needs to find it.
func TestASetThatIsHeldForHoursIsLogged(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		var w warnings
		o := b.owner("o", nil, w.log)
		set, err := o.Acquire(t.Context(), []ordering.Key{"a", "b"}, func(o *lockset.Options) { o.Purpose = "nightly" })
		require.NoError(t, err)
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

// A set with a bound is lost when the bound is over, and others have its keys a lease later.
func TestASetIsHeldForNoLongerThanItsBound(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		o := b.owner("o", nil)
		bound := func(o *lockset.Options) { o.HoldFor = 10 * time.Minute }
		set, err := o.Acquire(t.Context(), []ordering.Key{"a"}, bound)
		require.NoError(t, err)
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

		set, err = o.Acquire(t.Context(), []ordering.Key{"b"}, bound)
		require.NoError(t, err)
		b.free(set)
		time.Sleep(time.Hour)
		require.ErrorIs(t, context.Cause(set.Context()), heartbeat.ErrReleased)

		_, err = o.Acquire(t.Context(), []ordering.Key{"b"}, func(o *lockset.Options) { o.HoldFor = -1 })
		require.ErrorAs(t, err, new(*locks.ConfigError))
	})
}

// A round of renewals that is under way when the set's time is over is not told as one that failed.
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
	for name, failure := range map[string]struct {
		fault faults.Fault
		says  string
	}{
		"the request is denied":     {faults.Deny(), permission},
		"each statement is denied":  {faults.DenyStatements(0), permission},
		"the connection is refused": {faults.LoseRequest(faults.Reset), "reset"},
		"the server fails":          {faults.ServerError(false), "InternalServerError"},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				var w warnings
				o := b.owner("o", func(c faults.Call) faults.Fault {
					if c.Op == "BatchExecuteStatement" {
						return failure.fault
					}
					return faults.Pass()
				}, w.log)
				set := b.take(o, "a")
				<-set.Context().Done()
				if failure.says == permission {
					require.ErrorContains(t, context.Cause(set.Context()), permission)
				}
				failed := 0
				for _, line := range w.lines() {
					if strings.Contains(line, "a renewal failed") {
						failed++
						require.Contains(t, line, failure.says)
					}
				}
				require.Equal(t, 1, failed)
			})
		})
	}
}
