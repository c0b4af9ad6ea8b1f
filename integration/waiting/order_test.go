package waiting

import (
	"cmp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
)

// turn is one unit's way to a key.
type turn struct {
	process int
	unit    string
	token   fencing.Token // they rise on a row: by token is in the order of taking
	called  int64         // when it asked, and when it was seen in line or had the key: numbers of one counter
	inLine  int64
	took    time.Duration // until it had the key
}

func byToken(a, b turn) int { return cmp.Compare(a.token, b.token) }

// sight is a row as an answer showed it: its next takers are to be its queue.
type sight struct {
	fence fencing.Token
	queue []string
}

// sights are what all processes saw of one row.
type sights struct {
	mu  sync.Mutex
	all []sight
}

func (s *sights) see(item map[string]types.AttributeValue) {
	fence, ok := item["fence"].(*types.AttributeValueMemberN)
	queue, queued := item["queue"].(*types.AttributeValueMemberL)
	if !ok || !queued || len(queue.Value) == 0 {
		return
	}
	n, _ := strconv.ParseInt(fence.Value, 10, 64)
	seen := sight{fence: fencing.Token(n)}
	for _, v := range queue.Value {
		unit, _, _ := strings.Cut(v.(*types.AttributeValueMemberS).Value, " ")
		seen.queue = append(seen.queue, unit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, seen)
}

// tableOrder holds turns, in the order of taking, against all queues that were
// seen: how many pairs took the row in another order than they had joined, and
// how many takers at most went before somebody in a queue who were not before it
// there.
func (s *sights) tableOrder(taken []turn) (inversions, passed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := map[string]int{}
	for i, t := range taken {
		at[t.unit] = i
	}
	inverted := map[[2]string]bool{}
	for _, seen := range s.all {
		next := sort.Search(len(taken), func(i int) bool { return taken[i].token > seen.fence })
		for i, unit := range seen.queue {
			passed = max(passed, at[unit]-next-i)
			for _, before := range seen.queue[:i] {
				if at[before] > at[unit] {
					inverted[[2]string{before, unit}] = true
				}
			}
		}
	}
	return len(inverted), passed
}

// localOrder counts the pairs of one process of which the one that was in line
// before the other asked took the key later.
func localOrder(taken []turn) (inversions int) {
	for i, t := range taken {
		for _, later := range taken[i+1:] {
			if later.process == t.process && later.inLine < t.called {
				inversions++
			}
		}
	}
	return inversions
}

// What the benchmarks report as 0 is found where it is not.
func TestOrderIsHeldAgainstWhatWasSeen(t *testing.T) {
	taken := []turn{{unit: "a", token: 1}, {unit: "c", token: 2}, {unit: "b", token: 3}, {unit: "d", token: 4}}
	seen := sights{all: []sight{{fence: 1, queue: []string{"b", "c", "d"}}, {fence: 3, queue: []string{"d"}}}}
	inversions, passed := seen.tableOrder(taken)
	require.Equal(t, 1, inversions, "b and c")
	require.Equal(t, 1, passed, "b, by c")

	seen.all = []sight{{fence: 1, queue: []string{"b", "d"}}}
	inversions, passed = seen.tableOrder(taken)
	require.Zero(t, inversions)
	require.Equal(t, 1, passed, "b, by c that was in no queue")

	seen.all = []sight{{fence: 1, queue: []string{"c", "b"}}}
	inversions, passed = seen.tableOrder(taken)
	require.Zero(t, inversions)
	require.Zero(t, passed)

	require.Equal(t, 1, localOrder([]turn{
		{process: 1, called: 4, inLine: 5}, {process: 2, called: 1, inLine: 2}, {process: 1, called: 1, inLine: 3},
	}))
}
