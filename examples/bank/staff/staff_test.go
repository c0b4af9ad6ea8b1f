package staff

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func session(t *testing.T, change func(*Config)) *Session {
	t.Helper()
	cfg := &Config{Latency: 8 * time.Millisecond, Owners: 1, Tellers: 1, Lease: time.Second, Wait: 5 * time.Second, Customers: 60, Accounts: 1}
	change(cfg)
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	return s
}

// sound returns the records, which must pass the audit.
func (s *Session) sound(t *testing.T) books.Records {
	t.Helper()
	records, err := s.Load(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, books.Sound(books.Audit(records)), "%+v", books.Audit(records))
	return records
}

// list returns jobs of a kind, by number.
func list(n int, job func(n int) Job) func() (Job, bool) {
	next := 0
	return func() (Job, bool) {
		next++
		return job(next), next <= n
	}
}

// The error decides what a teller does with a job.
func TestTheErrorDecides(t *testing.T) {
	s := session(t, func(*Config) {})
	canceled := fmt.Errorf("get: %w", context.Canceled)
	for name, c := range map[string]struct {
		err  error
		once bool
		went string // how its owner went meanwhile
		over Outcome
	}{
		"no error":                         {over: Committed},
		"refused by the bank":              {err: fmt.Errorf("pay: %w", books.ErrFunds), over: Refused},
		"refused by the job":               {err: fmt.Errorf("%w: for a reason", ErrRefused), over: Refused},
		"lost":                             {err: &lockset.LostError{Reason: errors.New("late")}},
		"held":                             {err: &lockset.HeldError{Err: context.DeadlineExceeded}},
		"no answer":                        {err: &lockset.NoAnswerError{Last: errors.New("timeout"), End: errors.New("for too long")}},
		"stale":                            {err: &unitofwork.CommitError{Next: lockset.StartOver, Err: fencing.ErrStale}},
		"children changed":                 {err: books.ErrChanged},
		"a read that took too long":        {err: context.DeadlineExceeded},
		"in doubt, with an ID":             {err: &unitofwork.InDoubtError{ID: "p"}, once: true},
		"in doubt, and cannot be asked":    {err: unitofwork.ErrInDoubt, over: Failed},
		"a wrong call":                     {err: &ordering.KeyError{Reason: "is empty"}, over: Failed},
		"another error":                    {err: errors.New("surprise"), over: Failed},
		"committed before the owner died":  {went: "dead", over: Committed},
		"of a dead owner, with an ID":      {err: canceled, once: true, went: "dead"},
		"of a dead owner, without":         {err: canceled, went: "dead", over: Unknown},
		"of an owner that left":            {err: canceled, went: "left"},
		"of an owner that left, in doubt":  {err: unitofwork.ErrInDoubt, went: "left", over: Failed},
		"refused as its owner was leaving": {err: books.ErrFunds, went: "left", over: Refused},
	} {
		t.Run(name, func(t *testing.T) {
			tally := NewTally()
			o, err := s.newOwner(tally, 1)
			require.NoError(t, err)
			defer o.leave()
			desk := NewDesk(1, list(1, func(int) Job {
				return Job{Kind: "x", Once: c.once, Do: func(context.Context, *books.Bank) error {
					switch c.went {
					case "dead":
						o.die()
					case "left":
						o.leave()
					}
					return c.err
				}}
			}))
			job, _ := desk.take(t.Context())
			teller{owner: o, desk: desk, tally: tally}.do(job)
			if c.over == "" {
				require.Len(t, desk.back, 1, "another teller does it")
				require.Zero(t, tally.Over())
				return
			}
			require.Empty(t, desk.back)
			require.Equal(t, 1, tally.Kinds["x"][c.over])
			require.Equal(t, c.over == Failed, len(tally.Unexpected) == 1)
		})
	}
}

// A job that always fails in a passing way is not tried for ever.
func TestAJobIsNotTriedForEver(t *testing.T) {
	tally, tries := NewTally(), 0
	require.NoError(t, session(t, func(*Config) {}).Run(t.Context(), tally, NewDesk(1, list(1, func(int) Job {
		return Job{Kind: "x", Do: func(context.Context, *books.Bank) error {
			tries++
			return &lockset.HeldError{Err: context.DeadlineExceeded}
		}}
	}))))
	require.Equal(t, maxTries, tries)
	require.Equal(t, 1, tally.Total(Failed))
}

// Owners come and go while work is done. All of it is done, each row once, with locks and without.
func TestOwnersComeAndGo(t *testing.T) {
	for _, lock := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := session(t, func(c *Config) { c.Owners, c.Tellers, c.Churn, c.Lock = 3, 4, c.Lease/2, lock })
			const rows = 600
			tally := NewTally()
			require.NoError(t, s.Run(t.Context(), tally, NewDesk(4, list(rows, func(n int) Job {
				entry := books.Entry{ID: fmt.Sprint(n), Account: fmt.Sprint(n % 40), Partner: fmt.Sprintf("YZ/%d", n%37), Amount: 1}
				return Job{Kind: "row", Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.Record(ctx, entry) }}
			}))))
			require.Empty(t, tally.Unexpected)
			require.Equal(t, rows, tally.Total(Committed))
			require.Positive(t, tally.Events[Died])
			require.Equal(t, lock, tally.Ways[WithoutLocks] == 0)
			require.Equal(t, lock, tally.Ways[LockedFirst] > 0)
			if lock {
				require.Positive(t, tally.Events[TakenOver])
			}
			require.Len(t, s.sound(t).History, 2*rows)
		})
	}
}

// Owners die within months' ends. All months are paid in the end, once, by later owners or by Recover.
func TestOwnersDieWithinLargeUnits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		s := session(t, func(c *Config) { c.Owners, c.Tellers, c.Churn, c.Crash, c.Seed = 4, 2, c.Lease, true, seed })
		customers := NewCustomers(s.cfg)
		require.NoError(t, s.OpenCustomers(t.Context(), customers))
		const months = 40
		tally := NewTally()
		require.NoError(t, s.Run(t.Context(), tally, NewDesk(2, list(months, func(n int) Job {
			month := books.Month{ID: fmt.Sprint("month-", n), Customers: customers.All()}
			return Job{Kind: "month", Once: true, Do: func(ctx context.Context, b *books.Bank) error { return b.CloseMonth(ctx, month) }}
		}))))
		require.Empty(t, tally.Unexpected)
		require.Equal(t, months, tally.Total(Committed))
		require.Positive(t, tally.Events[DiedInLarge])
		left, err := s.Recover(t.Context())
		require.NoError(t, err)
		require.Empty(t, left.Alive)
		require.Len(t, s.sound(t).History, months*(60+1))
	})
}

// The work is a function of the seed, and different processes have different IDs.
func TestTheWorkIsDrawnFromTheSeed(t *testing.T) {
	mix := DefaultMix()
	require.NoError(t, mix.Set("payment=6,move=2,interest=2,merge=1,month-end=1"))
	require.Equal(t, "interest=2,merge=1,month-end=1,move=2,payment=6", mix.String())
	kinds := func(seed uint64) (kinds string) {
		next := NewCustomers(&Config{Customers: 200, Accounts: 2, Seed: seed, Mix: mix}).Jobs(200)
		for job, ok := next(); ok; job, ok = next() {
			kinds += job.Kind + " "
		}
		return kinds
	}
	require.Equal(t, kinds(3), kinds(3))
	require.NotEqual(t, kinds(3), kinds(4))
	for kind := range DefaultMix() {
		require.Contains(t, kinds(3), kind)
	}
	require.Equal(t, "payment-7", NewCustomers(&Config{}).ID("payment", 7))
	require.Equal(t, "b1-payment-7", NewCustomers(&Config{Name: "b1"}).ID("payment", 7))
}
