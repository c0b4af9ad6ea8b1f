package functions

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
)

// overHTTP is a client as an instance makes it, of a DynamoDB in memory.
func overHTTP(endpoint string) *dynamodb.Client { return sendingBy(lockset.HTTPClient(), endpoint) }

func sendingBy(client dynamodb.HTTPClient, endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "local", Credentials: aws.AnonymousCredentials{}, BaseEndpoint: &endpoint, HTTPClient: client})
}

// A client that is made once has the connection that Warm has opened for all events; one that is
// made for each event opens at least one for each. Go opens another where a request meets a
// connection that is not yet idle again, as on a busy machine.
func TestOneClientForEachInstance(t *testing.T) {
	var opened atomic.Int64
	db := memory(t, "alice", "bob")
	db.SetLatency(5 * time.Millisecond) // if an answer comes before a request is sent to its end, Go closes the connection
	server := httptest.NewUnstartedServer(db.Handler())
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	const events = 20
	pay := func(f *Function, id string) {
		require.NoError(t, handled(t.Context(), f, Payment{id, "alice", "bob", 1}))
	}

	one, err := New(overHTTP(server.URL), lease)
	require.NoError(t, err)
	require.NoError(t, one.Warm(t.Context()))
	for i := range events {
		pay(one, fmt.Sprint("one", i))
	}
	once := opened.Swap(0)
	for i := range events {
		f, err := New(overHTTP(server.URL), lease)
		require.NoError(t, err)
		pay(f, fmt.Sprint("each", i))
	}
	require.Less(t, once, int64(events)/2)
	require.GreaterOrEqual(t, opened.Load(), int64(events))
}

// While an instance was frozen, its connection has died, and nobody has told it: what is sent there
// is never answered. The payment is made all the same, by a second sending.
func TestAConnectionThatHasDied(t *testing.T) {
	server := httptest.NewServer(memory(t, "alice", "bob").Handler())
	t.Cleanup(server.Close)
	between := network(t, strings.TrimPrefix(server.URL, "http://"))
	f, err := New(overHTTP("http://"+between.Addr().String()), time.Second)
	require.NoError(t, err)
	require.NoError(t, f.Warm(t.Context()))
	require.Equal(t, 1, between.die())
	require.NoError(t, handled(t.Context(), f, Payment{"p1", "alice", "bob", 1}))
	require.Positive(t, between.die(), "it was not sent over another connection")
}

// relay is a network between a client and a server.
type relay struct {
	net.Listener

	mu    sync.Mutex
	conns []*pipe
}

// pipe is a connection, through which nothing goes any more once it is dead.
type pipe struct {
	client, server net.Conn
	dead           atomic.Bool
}

// Write is what the client sends.
func (p *pipe) Write(b []byte) (int, error) {
	if p.dead.Load() {
		return len(b), nil
	}
	return p.server.Write(b)
}

// die has all connections die, and returns how many were alive.
func (r *relay) die() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.conns {
		if !p.dead.Swap(true) {
			n++
		}
	}
	return n
}

func network(t *testing.T, server string) *relay {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{Listener: l}
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := (&net.Dialer{}).Dial("tcp4", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			p := &pipe{client: client, server: upstream}
			r.mu.Lock()
			r.conns = append(r.conns, p)
			r.mu.Unlock()
			relays.Go(func() { _, _ = io.Copy(p, client) })
			relays.Go(func() { _, _ = io.Copy(client, upstream) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		r.mu.Lock()
		for _, p := range r.conns {
			_ = p.client.Close()
			_ = p.server.Close()
		}
		r.mu.Unlock()
		relays.Wait()
	})
	return r
}
