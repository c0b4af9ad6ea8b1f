package engines

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Virtual runs a test on an engine in virtual time: in a bubble of testing/synctest, whose clock
// stands still while a request is on its way to the engine, and jumps ahead when every goroutine waits
// for time to pass. A busy machine therefore cannot make a lease expire, and waiting until one expires
// takes no time. The clock starts at the present: an engine may delete rows that expired before then.
//
// The test gets an engine with a client of its own. Only that client may be used in the bubble.
func Virtual(t *testing.T, e *Engine, test func(*testing.T, *Engine)) {
	t.Helper()
	o := &outside{tickets: make(chan *ticket), done: make(chan struct{})}
	defer close(o.done)
	go o.run(e.Client.Options().HTTPClient)
	present := time.Now()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(EndOfAll)
		time.Sleep(time.Until(present))
		own := *e
		own.Client = dynamodb.New(e.Client.Options(), func(to *dynamodb.Options) { to.HTTPClient = o })
		test(t, &own)
	})
}

// RTT is how long a request takes in virtual time.
const RTT = 5 * time.Millisecond

// EndOfAll is the last cleanup of a test in a bubble: it waits until every goroutine has given up,
// those of dead processes too.
func EndOfAll() { time.Sleep(24 * time.Hour) }

// outside sends the requests of a bubble from outside it. The goroutines that an HTTP client keeps for
// its connections are then not in the bubble, whose clock would never advance because of them. While a
// goroutine of the bubble waits for an answer on a channel from outside, the clock does not advance.
type outside struct {
	tickets chan *ticket
	done    chan struct{} // closed when the bubble is gone
}

// ticket sends one request. It is made outside the bubble, as its channels have to be.
type ticket struct {
	ctx    context.Context
	cancel context.CancelFunc
	send   chan *http.Request
	got    chan reply
}

type reply struct {
	response *http.Response
	err      error
}

// run hands out tickets.
func (o *outside) run(client dynamodb.HTTPClient) {
	for {
		k := &ticket{send: make(chan *http.Request, 1), got: make(chan reply, 1)}
		k.ctx, k.cancel = context.WithCancel(context.Background())
		select {
		case o.tickets <- k:
			go k.serve(client)
		case <-o.done:
			k.cancel()
			return
		}
	}
}

func (k *ticket) serve(client dynamodb.HTTPClient) {
	defer k.cancel()
	r, ok := <-k.send
	if !ok {
		return
	}
	response, err := client.Do(r)
	if err != nil {
		k.got <- reply{err: err}
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	k.got <- reply{response, err}
}

// Do sends a request of the bubble. The answer's Date is the bubble's time, which is the only clock
// that the test knows.
func (o *outside) Do(r *http.Request) (*http.Response, error) {
	k := <-o.tickets
	defer close(k.send)
	own := r.Clone(k.ctx) // the caller's context has channels of the bubble
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		own.Body = io.NopCloser(bytes.NewReader(body))
	}
	k.send <- own
	select {
	case got := <-k.got:
		if got.err == nil && got.response.Header.Get("Date") != "" {
			got.response.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		}
		time.Sleep(RTT)
		return got.response, got.err
	case <-r.Context().Done():
		k.cancel()
		return nil, r.Context().Err()
	}
}
