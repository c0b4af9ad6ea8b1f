package heartbeat

import (
	"maps"
	"slices"
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

// plain is what a schedule knows, kept in the plainest way.
type plain struct {
	order     []ordering.Key
	confirmed map[ordering.Key]time.Time
	failed    map[ordering.Key]bool
}

func (p *plain) oldest() (at time.Time, any bool) {
	for _, c := range p.confirmed {
		if !any || c.Before(at) {
			at, any = c, true
		}
	}
	return at, any
}

// FuzzSchedule: whatever comes to a schedule in whatever order, it knows what it was
// told, every key is due in time, and those without an answer are asked again.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{0, 1, 5, 0, 2, 6, 1, 1, 9, 3, 2, 0}, int64(10), int64(3))
	f.Add([]byte{0, 7, 5, 3, 1, 0, 3, 2, 0, 2, 4, 0, 0, 4, 1, 1, 4, 250}, int64(1000), int64(2000))
	f.Add([]byte{0, 1, 9, 1, 1, 1}, int64(10), int64(3))
	f.Add([]byte{2, 1, 1, 3, 1, 1, 1, 1, 1}, int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, input []byte, every, retry int64) {
		s, p := newSchedule(), plain{confirmed: map[ordering.Key]time.Time{}, failed: map[ordering.Key]bool{}}
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for ; len(input) >= 3; input = input[3:] {
			var keys []ordering.Key
			for i := range 5 {
				if input[1]>>i&1 == 1 {
					keys = append(keys, ordering.Key('a'+rune(i)))
				}
			}
			at := begin.Add(time.Duration(input[2]))
			p.step(s, input[0], keys, at)
			p.agrees(t, s, begin.Add(300), time.Duration(every%1e18), time.Duration(retry%1e18))
		}
	})
}

// step tells both the same.
func (p *plain) step(s *schedule, op byte, keys []ordering.Key, at time.Time) {
	switch op % 4 {
	case 0:
		s.add(keys, at)
	case 1:
		for _, k := range keys {
			s.confirm(k, at)
		}
	case 2:
		s.remove(keys)
	default:
		for _, k := range keys {
			s.fail(k)
		}
	}
	for _, k := range keys {
		was, has := p.confirmed[k]
		switch {
		case op%4 == 2:
			delete(p.confirmed, k)
			delete(p.failed, k)
			p.order = slices.DeleteFunc(p.order, func(o ordering.Key) bool { return o == k })
		case op%4 == 3:
			if has {
				p.failed[k] = true
			}
		case has || op%4 == 0:
			if !has {
				p.order = append(p.order, k)
			}
			if at.After(was) {
				p.confirmed[k] = at
			}
			delete(p.failed, k)
		}
	}
}

func (p *plain) agrees(t *testing.T, s *schedule, now time.Time, every, retry time.Duration) {
	t.Helper()
	require.Equal(t, p.confirmed, s.confirmed)
	require.Equal(t, p.failed, s.failed)
	require.Equal(t, len(p.order), len(s.left()))
	require.ElementsMatch(t, p.order, s.left())
	oldest, any := s.oldest()
	wantOldest, wantAny := p.oldest()
	require.Equal(t, wantAny, any)
	require.True(t, oldest.Equal(wantOldest))
	keys, at := s.next(now, func(confirmed time.Time) time.Time { return confirmed.Add(every) }, retry)
	if !any {
		require.Empty(t, keys)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(p.failed)) {
		require.Contains(t, keys, k, "it had no answer")
	}
	switch {
	case len(p.failed) == 0:
		require.ElementsMatch(t, p.order, keys)
		require.True(t, at.Equal(oldest.Add(every)))
	default:
		require.False(t, at.After(now.Add(retry)) && at.After(now.Add(every)), "%v, and it is %v", at, now)
	}
	for k, confirmed := range p.confirmed { // nobody is passed over whose time has come
		due := confirmed.Add(every)
		require.True(t, slices.Contains(keys, k) || !due.Before(at), "%q was due at %v, and the next round is at %v", k, due, at)
	}
	whole := slices.Concat(batches(keys, 1+len(p.order)/2)...)
	require.Equal(t, len(keys), len(whole))
}
