package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// sending notes what is sent, and answers each statement with its own text.
type sending struct {
	mu   sync.Mutex
	sent [][]types.BatchStatementRequest
	err  error
	took time.Duration

	forgotten bool
}

func (s *sending) send(ctx context.Context, _ int, statements []types.BatchStatementRequest) (_ []types.BatchStatementResponse, timedOut bool, _ error) {
	s.mu.Lock()
	s.sent = append(s.sent, statements)
	s.mu.Unlock()
	if err := requests.Sleep(ctx, s.took); err != nil {
		s.forgotten = true
		return nil, false, err
	}
	answers := make([]types.BatchStatementResponse, len(statements))
	for i, st := range statements {
		answers[i].TableName = st.Statement
	}
	return answers, false, s.err
}

// renews has a set renew keys, and returns what it is told.
func renews(ctx context.Context, r *renewals, keys ...ordering.Key) <-chan error {
	told := make(chan error, 1)
	go func() {
		statements := make([]types.BatchStatementRequest, len(keys))
		for i, k := range keys {
			statements[i].Statement = aws.String(string(k))
		}
		answers, err := r.execute(ctx, string(keys[0])+"'s", keys, statements)
		for i := range answers {
			if *answers[i].TableName != string(keys[i]) {
				err = fmt.Errorf("%q was answered for %q", *answers[i].TableName, keys[i])
			}
		}
		if err == nil && len(answers) != len(keys) {
			err = fmt.Errorf("%d answers for %d keys", len(answers), len(keys))
		}
		told <- err
	}()
	return told
}

// of are some keys.
func of(prefix string, n int) (keys []ordering.Key) {
	for i := range n {
		keys = append(keys, ordering.Key(fmt.Sprint(prefix, i)))
	}
	return keys
}

func TestRenewalsAreGathered(t *testing.T) {
	for name, c := range map[string]struct {
		sets [][]ordering.Key
		want []int // statements of each request
	}{
		"one":                           {[][]ordering.Key{of("a", 3)}, []int{3}},
		"some":                          {[][]ordering.Key{of("a", 3), of("b", 1), of("c", 10)}, []int{14}},
		"as many as fit":                {[][]ordering.Key{of("a", 20), of("b", 5)}, []int{25}},
		"more than fit":                 {[][]ordering.Key{of("a", 20), of("b", 6)}, []int{20, 6}},
		"whole requests":                {[][]ordering.Key{of("a", 25), of("b", 25), of("c", 1)}, []int{25, 25, 1}},
		"a key that is renewed for two": {[][]ordering.Key{of("a", 2), {"x", "a1"}, of("c", 1)}, []int{2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &sending{}
				r := &renewals{send: s.send, gather: gatherFor}
				var told []<-chan error
				for _, keys := range c.sets {
					told = append(told, renews(t.Context(), r, keys...))
					synctest.Wait()
				}
				for _, err := range told {
					require.NoError(t, <-err)
				}
				var sent []int
				for _, statements := range s.sent {
					sent = append(sent, len(statements))
				}
				require.ElementsMatch(t, c.want, sent)
				require.Empty(t, r.parts)
			})
		})
	}
}

// What is due later goes with the next request: nobody waits for long.
func TestRenewalsAreNotGatheredForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sending{took: time.Minute}
		r := &renewals{send: s.send, gather: gatherFor}
		began := time.Now()
		first := renews(t.Context(), r, "a")
		time.Sleep(gatherFor + 1)
		second := renews(t.Context(), r, "b")
		require.NoError(t, <-first)
		require.Equal(t, time.Minute+gatherFor, time.Since(began))
		require.NoError(t, <-second)
		require.Len(t, s.sent, 2)
	})
}

// An error is told to all.
func TestAnErrorOfARequestThatIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		s := &sending{err: failed}
		r := &renewals{send: s.send, gather: gatherFor}
		a, b := renews(t.Context(), r, "a"), renews(t.Context(), r, "b")
		require.Equal(t, failed, <-a)
		require.Equal(t, failed, <-b)
	})
}

// Who waits no longer is told at once. A request for which nobody waits is forgotten.
func TestWhoWaitsNoLongerForARenewal(t *testing.T) {
	left := errors.New("left")
	for name, leave := range map[string][]int{ // of three, in this order
		"one": {1}, "the first": {0}, "all but one": {0, 2}, "all": {1, 0, 2},
	} {
		for _, when := range []time.Duration{gatherFor / 2, time.Second} { // gathering, or under way
			t.Run(fmt.Sprint(name, ", ", when), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &sending{took: time.Minute}
					r := &renewals{send: s.send, gather: gatherFor}
					told, cancel := map[int]<-chan error{}, map[int]context.CancelCauseFunc{}
					began := time.Now()
					for n := range 3 {
						ctx, end := context.WithCancelCause(t.Context())
						told[n], cancel[n] = renews(ctx, r, ordering.Key(fmt.Sprint(n))), end
					}
					time.Sleep(when)
					for _, n := range leave {
						cancel[n](left)
						require.Equal(t, left, <-told[n])
						delete(told, n)
					}
					require.Equal(t, when, time.Since(began))
					for _, err := range told {
						require.NoError(t, <-err)
						require.Equal(t, time.Minute+gatherFor, time.Since(began))
					}
					time.Sleep(gatherFor)
					synctest.Wait()
					switch asked := 3; {
					case when > gatherFor:
						require.Len(t, s.sent[0], asked)
					case len(leave) == asked:
						require.Empty(t, s.sent)
					default:
						require.Len(t, s.sent[0], asked-len(leave), "who has left asks for nothing")
					}
					require.Equal(t, len(leave) == 3 && when > gatherFor, s.forgotten)
				})
			})
		}
	}
}

// What is sent does not depend on who comes first.
func TestRenewalsDoNotDependOnTheirOrder(t *testing.T) {
	var parts []*part
	for n := range 40 {
		parts = append(parts, &part{unit: fmt.Sprint("u", n), keys: of(fmt.Sprint("k", n%30, "."), 1+n%4)})
	}
	units := func(parts []*part) (all [][]string) {
		for _, some := range pack(parts) {
			all = append(all, nil)
			for _, p := range some {
				all[len(all)-1] = append(all[len(all)-1], p.unit)
			}
		}
		return all
	}
	want := units(slices.Clone(parts))
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		require.Equal(t, want, units(slices.Clone(parts)))
	}
}
