package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/ordering"
)

const (
	me    = "me-me-me-me-me-me-me-m"
	other = "other-other-other-othe"
	grace = 3 * time.Second
)

var (
	t0      = time.Unix(1_000_000, 0)
	heldRow = lockrow.Row{
		Key: "a", Exists: true, Unit: other, Owner: "host", Lease: 10 * time.Second,
		RVN: "other.a1", Fence: 50,
	}
)

func with(r lockrow.Row, change func(*lockrow.Row)) lockrow.Row {
	change(&r)
	return r
}

// Which attempts are burned when a unit gives up: each write costs a request, and each
// that is left out may land.
func TestWhatIsBurned(t *testing.T) {
	at := func(rvn string, key ordering.Key, token int64) attempt {
		return attempt{rvn: rvn, at: key, token: fencing.Token(token)}
	}
	doubted := func(a attempt) attempt { a.doubts = true; return a }
	dead := func(a attempt) attempt { a.dead = true; return a }
	for name, c := range map[string]struct {
		tried  []attempt
		burned []string
	}{
		"nothing":                          {nil, nil},
		"one that was refused":             {[]attempt{at("1", "a", 5)}, []string{"1"}},
		"a higher token later":             {[]attempt{at("1", "a", 5), at("2", "a", 6)}, []string{"2"}},
		"the same token later":             {[]attempt{at("1", "a", 5), at("2", "a", 5)}, []string{"2"}},
		"a lower token later":              {[]attempt{at("1", "a", 6), at("2", "a", 5)}, []string{"1", "2"}},
		"a higher token at another row":    {[]attempt{at("1", "a", 5), at("2", "b", 6)}, []string{"1", "2"}},
		"one of many later ones":           {[]attempt{at("1", "a", 5), at("2", "b", 6), at("3", "a", 7)}, []string{"2", "3"}},
		"without an answer, and covered":   {[]attempt{doubted(at("1", "a", 5)), at("2", "a", 6)}, []string{"1", "2"}},
		"dead":                             {[]attempt{dead(at("1", "a", 5))}, nil},
		"dead, and without an answer":      {[]attempt{dead(doubted(at("1", "a", 5)))}, nil},
		"dead, and others after it":        {[]attempt{dead(at("1", "a", 5)), at("2", "b", 5)}, []string{"2"}},
		"without an answer, the last also": {[]attempt{at("1", "a", 5), doubted(at("2", "a", 6))}, []string{"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var burned []string
			for _, b := range (&ledger{attempts: c.tried}).toBurn() {
				burned = append(burned, b.rvn)
			}
			require.Equal(t, c.burned, burned)
		})
	}
}

func TestTheAttemptThatWroteAnRVN(t *testing.T) {
	l := &ledger{attempts: []attempt{{rvn: "1", first: 1}, {rvn: "2", first: 2}, {rvn: "3", first: 3}}}
	for i, rvn := range []string{"1", "2", "3"} {
		won, ok := l.wrote(rvn)
		require.True(t, ok)
		require.Equal(t, i+1, won.first)
	}
	_, ok := l.wrote("4")
	require.False(t, ok)
}

// What a secured attempt says of those before it: with its fence on the rows none of
// them can land that has one of these and a token no higher. What had an answer is
// forgotten then; what had none may have landed before, and is remembered.
func TestWhatASecuredAttemptSaysOfOthers(t *testing.T) {
	plan, err := plans.New("a", "b", "c", "d")
	require.NoError(t, err)
	l := ledger{secured: 1, stamps: []fencing.Token{4}, attempts: []attempt{ // it has a
		{rvn: "refused", token: 5, first: 1, steps: plan[1:2]},
		{rvn: "unheard", token: 5, first: 1, steps: plan[1:2], doubts: true},
		{rvn: "higher", token: 7, first: 1, steps: plan[1:2]},
		{rvn: "the same token", token: 6, first: 1, steps: plan[1:3]},
		{rvn: "of steps before", token: 5, first: 0, steps: plan[:1]},
		{rvn: "from before into these", token: 5, first: 0, steps: plan[:2], doubts: true},
		{rvn: "dead before", token: 7, first: 0, steps: plan[:1], doubts: true, dead: true},
		{token: 5, first: 1, at: "joins", doubts: true},
		{token: 5, first: 0, at: "joined before", doubts: true},
	}}
	l.won(attempt{rvn: "won", token: 6, first: 1, steps: plan[1:3]})
	left := map[string]bool{}
	for _, old := range l.attempts {
		left[old.rvn+string(old.at)] = old.dead
	}
	require.Equal(t, map[string]bool{
		"unheard": true, "higher": false, "of steps before": false, "from before into these": true, "dead before": true,
		"joins": true, "joined before": false,
	}, left)
	require.Equal(t, 3, l.secured)
	require.Equal(t, []fencing.Token{4, 6, 6}, l.stamps)
}
