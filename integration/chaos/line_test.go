package chaos

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is drawn for a request happens to it: whether the engine carries it out, and
// how often, and what its sender sees.
func TestFates(t *testing.T) {
	const said = `{"Item":{"key":{"S":"x"}}}`
	for f, want := range map[fate]struct {
		carriedOut int32
		answered   bool
	}{
		passed: {1, true}, delayed: {1, true}, doubled: {2, true},
		lost: {0, false}, partitioned: {0, false},
		answerLost: {1, false}, answerBroken: {1, false}, swallowed: {1, false}, held: {1, false},
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			var carriedOut atomic.Int32
			engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != "question" || r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.PutItem" {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				carriedOut.Add(1)
				_, _ = io.WriteString(w, said)
			}))
			defer engine.Close()
			n := newNetwork(engine.URL)
			l, err := newLine(n, weather{shares: map[fate]float64{f: 1}, lease: 20 * time.Millisecond}, 1, 1)
			require.NoError(t, err)
			defer l.close()
			l.setCut(f == partitioned)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if f == swallowed || f == held { // nothing comes back: the sender must lose patience
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL(), strings.NewReader("question"))
			require.NoError(t, err)
			r.Header.Set("X-Amz-Target", "DynamoDB_20120810.PutItem")
			answer, err := send(r)
			if want.answered {
				require.NoError(t, err)
				require.Equal(t, said, answer)
			} else {
				require.Error(t, err)
			}
			cancel()
			require.NoError(t, l.drain(t.Context()))
			n.late.Wait()
			require.Equal(t, want.carriedOut, carriedOut.Load())
			require.Equal(t, 1, n.counted()[f])
		})
	}
}

func send(r *http.Request) (string, error) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

// Writes that were carried out are sent again to an engine that was restarted; reads
// and what was refused are not.
func TestCopiesAfterARestart(t *testing.T) {
	var again atomic.Bool
	var copies atomic.Int32
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if again.Load() {
			copies.Add(1)
		}
		if again.Load() || r.Header.Get("X-Refuse") != "" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer engine.Close()
	n := newNetwork(engine.URL)
	for _, header := range []http.Header{
		{"X-Amz-Target": {"DynamoDB_20120810.TransactWriteItems"}}, {"X-Amz-Target": {"DynamoDB_20120810.UpdateItem"}},
		{"X-Amz-Target": {"DynamoDB_20120810.TransactGetItems"}}, {"X-Amz-Target": {"DynamoDB_20120810.UpdateItem"}, "X-Refuse": {"1"}},
	} {
		_, err := n.carryOut(request{header: header})
		require.NoError(t, err)
	}
	again.Store(true)
	n.copyRecent(time.Millisecond)
	n.late.Wait()
	require.EqualValues(t, 4, copies.Load(), "at once, and again")
	require.Equal(t, map[fate]int{copied: 4, refusedAsCopy: 4}, n.counted())
}

// What is late is another request to DynamoDB, which has forgotten its token.
func TestForgottenRequestTokens(t *testing.T) {
	r := forgotten(request{body: []byte(`{"ClientRequestToken":"abc.k2","TransactItems":[]}`)})
	require.JSONEq(t, `{"ClientRequestToken":"~abc.k2","TransactItems":[]}`, string(r.body))
}

func TestTheWeatherIsDrawnByShares(t *testing.T) {
	draws := rand.New(rand.NewPCG(1, 2))
	seen := map[fate]int{}
	for range 10_000 {
		f, late := storm(lost, time.Second).draw(draws)
		seen[f]++
		require.LessOrEqual(t, late, 2500*time.Millisecond)
		require.True(t, f != held || late >= time.Second)
	}
	require.InDelta(t, 2_000, seen[lost], 200)
	require.InDelta(t, 7_730, seen[passed], 200)
	for _, f := range fates {
		require.Positive(t, seen[f], f)
	}
}

// Who waits for the commit of a group is told of the next one, which goes no further before its
// sender is gone; and of nothing else.
func TestTheCommitOfAGroupIsMet(t *testing.T) {
	var carriedOut atomic.Int32
	engine := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { carriedOut.Add(1) }))
	defer engine.Close()
	l, err := newLine(newNetwork(engine.URL), weather{}, 1, 2)
	require.NoError(t, err)
	defer l.close()
	row := func(payment string) string { return `{"Put":{"Item":{"entry":{"S":"` + payment + `"}}}}` }
	of := func(ctx context.Context, op string, rows ...string) *http.Request {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.URL(), strings.NewReader(`{"TransactItems":[`+strings.Join(rows, ",")+`]}`))
		require.NoError(t, err)
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
		return r
	}
	met := l.nextGroup()
	for _, r := range []*http.Request{
		of(t.Context(), "TransactWriteItems", row("b-rush-1"), row("b-rush-1")), // both sides of one
		of(t.Context(), "TransactWriteItems", row("b-rush-1"), row("b-payment-2")),
		of(t.Context(), "TransactGetItems", row("b-rush-1"), row("b-rush-2")),
	} {
		_, err := send(r)
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, carriedOut.Load())
	select {
	case <-met:
		require.Fail(t, "none of them is of a group")
	default:
	}
	ctx, dies := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := send(of(ctx, "TransactWriteItems", row("b-rush-1"), row("b-rush-2")))
		gone <- err
	}()
	<-met
	require.EqualValues(t, 3, carriedOut.Load())
	dies()
	require.ErrorIs(t, <-gone, context.Canceled)
	_, err = send(of(t.Context(), "TransactWriteItems", row("b-rush-1"), row("b-rush-2")))
	require.NoError(t, err, "nobody waits for another")
}
