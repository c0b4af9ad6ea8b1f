package staff

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/trace"
)

// oddCash is the n-th of jobs that all want one account: with a quirk, and every other with an ID.
func oddCash(n int, quirk Quirk) Job {
	entry := books.Entry{ID: fmt.Sprint(n), Account: "7", Partner: "8", Amount: 1}
	again := false
	return Job{Kind: "row", Once: n%2 != 0, Asks: true, Do: func(ctx context.Context, b *books.Bank) error {
		own, odd := *b, Odd{Runner: b.Run, Quirk: quirk, Nameless: n%2 == 0}
		if quirk == GoesOn && again {
			odd.Quirk = Usual
		}
		again = true
		own.Run = odd
		return own.Record(ctx, entry)
	}}
}

// Tellers in a rush want one account at the same moment: they are committed together, whatever
// is peculiar about some of them, and each is told what became of its own.
func TestARush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quirks := []Quirk{Usual, Usual, Fails, Usual, Panics, GoesOn, Lingers, Updates, Insists, Usual}
		const each = 6
		var mu sync.Mutex
		told := map[Quirk]map[Outcome]int{}
		n := 0
		cfg, tables := newConfig(t)
		desk := NewDesk(func() (Job, bool) {
			if n == each*len(quirks) {
				return Job{}, false
			}
			n++
			quirk := quirks[n%len(quirks)]
			job := oddCash(n, quirk)
			job.Told = func(o Outcome, err error) {
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				if told[quirk] == nil {
					told[quirk] = map[Outcome]int{}
				}
				told[quirk][o]++
			}
			return job, true
		})
		ends := map[string]trace.UnitEnd{}
		tried := map[string]bool{}
		cfg.Tries = func(unit string) {
			mu.Lock()
			defer mu.Unlock()
			tried[unit] = true
		}
		cfg.Ended = func(e trace.UnitEnd, _ Way) {
			mu.Lock()
			defer mu.Unlock()
			ends[e.Unit] = e
		}
		cfg.Rush = Rush{Desk: desk, Tellers: 6, From: time.Now(), Every: time.Second}
		tally := NewTally()
		require.NoError(t, Run(cfg, list(), tally))
		require.Empty(t, tally.Unexpected)
		for quirk, outcomes := range told {
			want := Committed
			if quirk == Fails || quirk == Panics {
				want = Refused
			}
			require.Len(t, outcomes, 1, "%q", quirk)
			require.Positive(t, outcomes[want], "%q", quirk)
		}
		require.Equal(t, each, tally.Refusals[books.ErrFunds.Error()])
		require.Equal(t, each, tally.Refusals[ErrPanicked.Error()])
		require.Positive(t, tally.Groups.Led)
		require.Greater(t, tally.Groups.Along, tally.Groups.Led, "groups of several")
		require.Equal(t, tally.Groups.Along, tally.Ways[Led])
		require.Positive(t, tally.Groups.Failed)
		require.Positive(t, tally.Groups.Void)
		history := sound(t, tables).History
		require.Len(t, history, 2*each*(len(quirks)-2))
		for _, c := range history {
			require.Equal(t, trace.Committed, ends[c.Unit].Outcome)
			require.True(t, tried[c.Unit])
		}
	})
}
