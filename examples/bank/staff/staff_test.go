package staff

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

func session(t *testing.T) *Session {
	t.Helper()
	cfg := &Config{Latency: 8 * time.Millisecond, Owners: 1, Tellers: 1, Lease: time.Second, Customers: 60}
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	return s
}

// The error decides what a teller does with a job.
func TestTheErrorDecides(t *testing.T) {
	s := session(t)
	canceled := fmt.Errorf("get: %w", context.Canceled)
	for name, c := range map[string]struct {
		err  error
		once bool
		went string  // how its owner went meanwhile
		over Outcome // none if the job is to be tried again
	}{
		"no error":                         {over: Committed},
		"refused by the bank":              {err: fmt.Errorf("pay: %w", books.ErrFunds), over: Refused},
		"refused by the job":               {err: fmt.Errorf("%w: for a reason", ErrRefused), over: Refused},
		"lost":                             {err: &heartbeat.LostError{Reason: errors.New("late")}},
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
			r := &shift{s: s, tally: NewTally()}
			o, err := r.newOwner(0, 1)
			require.NoError(t, err)
			defer o.leave()
			switch c.went {
			case "dead":
				o.line.Crash()
			case "left":
				o.leave()
			}
			outcome, err := o.outcome(Job{Once: c.once}, c.err)
			require.Equal(t, c.over, outcome)
			require.Equal(t, outcome == Failed || outcome == again, err != nil)
		})
	}
}

// A job that always fails in a passing way is not tried for ever.
func TestAJobIsNotTriedForEver(t *testing.T) {
	tally, tries := NewTally(), 0
	require.NoError(t, session(t).Run(t.Context(), tally, NewDesk(1, Numbered(1, func(int) Job {
		return Job{Kind: "x", Do: func(context.Context, *books.Bank) error {
			tries++
			return &lockset.HeldError{Err: context.DeadlineExceeded}
		}}
	}))))
	require.Equal(t, maxTries, tries)
	require.Equal(t, 1, tally.Kinds["x"][Failed])
}
