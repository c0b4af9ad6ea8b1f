package requests_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
)

func TestTheTablesTimeIsBetweenItsBounds(t *testing.T) {
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		wall      time.Duration // passes by the wall clock while a minute passes
		low, high time.Duration // after noon, a minute after the header
	}{
		"both clocks go":                {wall: time.Minute, low: time.Minute, high: time.Minute + 3*time.Second},
		"the wall clock is set back":    {wall: -time.Hour, low: -time.Hour, high: time.Minute + 3*time.Second},
		"the wall clock is set forward": {wall: time.Hour, low: time.Minute, high: time.Hour + 3*time.Second},
		"the machine was suspended":     {wall: 2 * time.Minute, low: time.Minute, high: 2*time.Minute + 3*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
				table := requests.NewTableTime(func() time.Time { return wall })
				low, high := table.Now()
				require.Zero(t, low)
				require.Zero(t, high)

				heard := table.Asked()
				time.Sleep(2 * time.Second)
				wall = wall.Add(2 * time.Second)
				heard(noon, 2*time.Second)
				time.Sleep(time.Minute)
				wall = wall.Add(c.wall)
				low, high = table.Now()
				require.Equal(t, noon.Add(c.low), low)
				require.Equal(t, noon.Add(c.high), high)

				table.Asked()(noon.Add(-time.Minute), 0) // a later header counts, whatever it says
				low, high = table.Now()
				require.Equal(t, noon.Add(-time.Minute), low)
				require.Equal(t, noon.Add(-time.Minute+time.Second), high)
			})
		})
	}
}

// A process may stand still between an answer and what it makes of it, by its own scheduler or with the
// whole machine: the header is as old as what was asked for.
func TestAnAnswerThatIsHeardLate(t *testing.T) {
	noon := time.Date(2024, 5, 6, 12, 0, 0, 0, time.UTC)
	for name, suspended := range map[string]time.Duration{"the goroutine stood still": 0, "the machine was suspended": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wall := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
				table := requests.NewTableTime(func() time.Time { return wall })
				passes := func(d time.Duration) { time.Sleep(d); wall = wall.Add(d) }
				heard := table.Asked()
				passes(time.Second)
				passes(time.Minute) // the answer is there
				wall = wall.Add(suspended)
				heard(noon, time.Second)
				passes(time.Second)
				is := noon.Add(time.Minute + suspended + time.Second)
				low, high := table.Now()
				require.False(t, low.After(is), "%v", low)
				require.False(t, high.Before(is), "%v", high)
				require.Equal(t, noon.Add(time.Second), low)
			})
		})
	}
}

// What can be no time of a server, nor be on a row, changes nothing.
func TestADateThatIsNoTimeIsPassedOver(t *testing.T) {
	table := requests.NewTableTime(time.Now)
	odd := []time.Time{{}, time.Unix(-1, 0), time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	for _, server := range odd {
		table.Asked()(server, 0)
		_, high := table.Now()
		require.Zero(t, high, "%v", server)
	}
	noon := time.Now()
	table.Asked()(noon, 0)
	for _, server := range odd {
		table.Asked()(server, 0)
		low, _ := table.Now()
		require.WithinRange(t, low, noon, noon.Add(time.Minute))
	}
}
