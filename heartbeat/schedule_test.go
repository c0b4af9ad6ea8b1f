package heartbeat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/ordering"
)

// Which keys are renewed next, and when.
func TestWhatIsRenewedNext(t *testing.T) {
	t0 := time.Unix(1_000_000, 0)
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	all := []ordering.Key{"a", "b", "c"}
	for name, c := range map[string]struct {
		confirmed    [3]int // seconds after t0
		failed       []ordering.Key
		now          int
		every, retry int
		keys         []ordering.Key
		at           int
	}{
		"all were confirmed":                      {[3]int{5, 3, 4}, nil, 6, 10, 1, all, 13},
		"one failed":                              {[3]int{5, 0, 4}, []ordering.Key{"b"}, 6, 10, 2, []ordering.Key{"b"}, 8},
		"two failed":                              {[3]int{0, 5, 0}, []ordering.Key{"c", "a"}, 6, 10, 2, []ordering.Key{"a", "c"}, 8},
		"one failed, the others are due first":    {[3]int{5, 0, 4}, []ordering.Key{"b"}, 13, 10, 2, all, 14},
		"one failed, the others are due just now": {[3]int{5, 0, 4}, []ordering.Key{"b"}, 12, 10, 2, all, 14},
		"one failed, the others are overdue":      {[3]int{5, 0, 4}, []ordering.Key{"b"}, 20, 10, 2, all, 14},
		"all failed":                              {[3]int{1, 1, 1}, all, 6, 10, 2, all, 8},
		"all failed, and are to be left alone":    {[3]int{1, 1, 1}, all, 6, 3, 5, all, 11},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSchedule()
			for i, k := range all {
				s.add([]ordering.Key{k}, at(c.confirmed[i]))
			}
			for _, k := range c.failed {
				s.fail(k)
			}
			due := func(confirmed time.Time) time.Time { return confirmed.Add(time.Duration(c.every) * time.Second) }
			keys, when := s.next(at(c.now), due, time.Duration(c.retry)*time.Second)
			require.Equal(t, c.keys, keys)
			require.Equal(t, at(c.at), when)
		})
	}
	keys, _ := newSchedule().next(t0, nil, 1)
	require.Nil(t, keys)
}

// A round comes at one of the moments that are counted from the epoch: as late as may be.
func TestWhenAKeyIsDue(t *testing.T) {
	epoch := time.Unix(1_000_000, 0)
	c := Config{Every: 80 * time.Second, Epoch: epoch}
	for confirmed, due := range map[int]int{
		0: 80, 1: 80, 9: 80, 10: 90, 3995: 4070, 4000: 4080, -5: 70, -10: 70, -1000: -920, -1001: -930,
	} {
		got := c.due(epoch.Add(time.Duration(confirmed) * time.Second))
		require.Equal(t, time.Duration(due)*time.Second, got.Sub(epoch), "%d", confirmed)
	}
	c.Every = 1
	require.Equal(t, epoch.Add(6), c.due(epoch.Add(5)))
}
