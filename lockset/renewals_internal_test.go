package lockset

import (
	"context"
	"errors"
	"fmt"
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
}

func (s *sending) send(ctx context.Context, statements []types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
	s.mu.Lock()
	s.sent = append(s.sent, statements)
	s.mu.Unlock()
	if err := requests.Sleep(ctx, s.took); err != nil {
		return nil, err
	}
	answers := make([]types.BatchStatementResponse, len(statements))
	for i, st := range statements {
		answers[i].TableName = st.Statement
	}
	return answers, s.err
}

// renews has a set renew keys, and returns what it is told.
func renews(ctx context.Context, r *renewals, s *sending, keys ...ordering.Key) <-chan error {
	told := make(chan error, 1)
	go func() {
		statements := make([]types.BatchStatementRequest, len(keys))
		for i, k := range keys {
			statements[i].Statement = aws.String(string(k))
		}
		answers, err := r.execute(ctx, keys, statements, s.send)
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
				r, s := &renewals{}, &sending{}
				var told []<-chan error
				for _, keys := range c.sets {
					told = append(told, renews(t.Context(), r, s, keys...))
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
				require.Nil(t, r.next)
			})
		})
	}
}

// What is due later goes with the next request: nobody waits for long.
func TestRenewalsAreNotGatheredForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &renewals{}, &sending{took: time.Minute}
		began := time.Now()
		first := renews(t.Context(), r, s, "a")
		time.Sleep(gatherFor + 1)
		second := renews(t.Context(), r, s, "b")
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
		r, s := &renewals{}, &sending{err: failed}
		a, b := renews(t.Context(), r, s, "a"), renews(t.Context(), r, s, "b")
		require.Equal(t, failed, <-a)
		require.Equal(t, failed, <-b)
	})
}

// Who waits no longer is told at once, or when the others are whose request it sends; a
// request for which nobody waits is forgotten.
func TestWhoWaitsNoLongerForARenewal(t *testing.T) {
	left := errors.New("left")
	for name, c := range map[string]struct {
		leave []int // of three, in this order
		took  time.Duration
		ended bool // the request
	}{
		"one that joined":  {[]int{1}, time.Minute, false},
		"who sends it":     {[]int{0}, time.Minute, false},
		"all but one":      {[]int{0, 2}, time.Minute, false},
		"all":              {[]int{1, 0, 2}, time.Second, true},
		"all, from behind": {[]int{2, 1, 0}, time.Second, true},
	} {
		for _, when := range []time.Duration{gatherFor / 2, time.Second} { // gathering, or under way
			t.Run(fmt.Sprint(name, ", ", when), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, s := &renewals{}, &sending{took: time.Minute}
					var told []<-chan error
					var leave []context.CancelCauseFunc
					began := time.Now()
					for n := range 3 {
						ctx, cancel := context.WithCancelCause(t.Context())
						told, leave = append(told, renews(ctx, r, s, ordering.Key(fmt.Sprint(n)))), append(leave, cancel)
						synctest.Wait()
					}
					time.Sleep(when)
					gone := map[int]bool{}
					for _, n := range c.leave {
						leave[n](left)
						gone[n] = true
						synctest.Wait()
						if n != 0 {
							require.Equal(t, left, <-told[n])
						}
					}
					for n, err := range told {
						switch {
						case !gone[n]:
							require.NoError(t, <-err)
						case n == 0 && c.ended:
							require.Error(t, <-err)
						case n == 0:
							<-err
						}
					}
					if c.ended {
						require.Less(t, time.Since(began), 2*time.Second)
					} else {
						require.GreaterOrEqual(t, time.Since(began), time.Minute)
					}
					require.Nil(t, r.next)
				})
			})
		}
	}
}

// A hook that panics on its way is its own set's trouble: the others are told.
func TestAPanicOfWhoSendsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &renewals{}
		panics := func(context.Context, []types.BatchStatementRequest) ([]types.BatchStatementResponse, error) {
			panic("a hook")
		}
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = r.execute(t.Context(), of("a", 1), make([]types.BatchStatementRequest, 1), panics)
		}()
		synctest.Wait()
		told := renews(t.Context(), r, &sending{}, "b")
		require.Equal(t, "a hook", <-panicked)
		require.Equal(t, errDidNotReturn, <-told)
	})
}
