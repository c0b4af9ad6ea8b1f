package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset/inspect"
)

// counter is a look that says how often it has read, and how many do so at once.
type counter struct {
	takes  time.Duration
	failed error // of every reading but the first

	mu                  sync.Mutex
	reads, atOnce, most int
	watched             time.Duration // last
}

// Read goes on when its context ends, as one may that has just got its answer.
func (c *counter) Read(context.Context) (int, error) {
	c.mu.Lock()
	c.atOnce++
	c.most = max(c.most, c.atOnce)
	c.mu.Unlock()
	time.Sleep(c.takes)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.atOnce--
	if c.reads++; c.reads > 1 {
		return c.reads, c.failed
	}
	return c.reads, nil
}

func (c *counter) Watch(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end, ok := ctx.Deadline(); ok {
		c.watched = time.Until(end)
	}
	return nil
}

// says how often it has read, at most so many at once.
func (c *counter) says(t *testing.T, reads, most int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, reads, c.reads)
	require.Equal(t, most, c.most)
}

// However many follow, it is read once per interval; and not while there is nobody.
func TestAFeedReadsOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{takes: time.Second}
		f := newFeed[int](t.Context(), c, 10*time.Second)
		ctx, leave := context.WithCancel(t.Context())
		var seen [50]atomic.Int64
		for n := range seen {
			go func() {
				for r := range f.Follow(ctx) {
					seen[n].Store(int64(r.Value))
				}
			}()
		}
		time.Sleep(time.Minute)
		c.says(t, 6, 1) // done at 1, 12, 23, 34, 45 and 56 s
		for n := range seen {
			require.EqualValues(t, 6, seen[n].Load())
		}
		require.Equal(t, 10*time.Second, c.watched)
		leave()
		time.Sleep(time.Hour)
		c.says(t, 6, 1) // nobody looks

		// What is old is not shown: who comes then waits for a reading.
		r, err := f.Latest(t.Context())
		require.NoError(t, err)
		require.Equal(t, 7, r.Value)
		r, err = f.Latest(t.Context()) // which is fresh
		require.NoError(t, err)
		require.Equal(t, 7, r.Value)
		time.Sleep(time.Hour)
		c.says(t, 7, 1)
	})
}

// Those who come and go all the time do not have it read more often, or twice at once.
func TestAFeedIsNotHurriedByThoseWhoComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counter{takes: 3 * time.Second}
		f := newFeed[int](t.Context(), c, 10*time.Second)
		for range 10 { // none waits for a reading
			ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
			_, err := f.Latest(ctx)
			require.Error(t, err)
			leave()
		}
		_, err := f.Latest(t.Context())
		require.NoError(t, err)
		for range 100 { // for five seconds
			_, err := f.Latest(t.Context())
			require.NoError(t, err)
			time.Sleep(50 * time.Millisecond)
		}
		c.says(t, 2, 1) // one that all gave up, and one for who waited
	})
}

func TestAFeedKeepsWhatItHadWhenAReadingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed[int](t.Context(), &counter{failed: errors.New("throttled")}, time.Second)
		var got []Reading[int]
		for r := range f.Follow(t.Context()) {
			if got = append(got, r); len(got) == 2 {
				break
			}
		}
		require.NoError(t, got[0].Err)
		require.EqualError(t, got[1].Err, "throttled")
		require.Equal(t, 1, got[1].Value)
		require.Equal(t, got[0].At, got[1].At)
	})
}

func TestAFeedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		f := newFeed[int](ctx, &counter{takes: time.Hour}, time.Second)
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		_, err := f.Latest(t.Context())
		require.EqualError(t, err, "interrupted")
		for range f.Follow(t.Context()) {
			t.Fatal("there is nothing to see")
		}
		time.Sleep(time.Hour) // for the reading that nobody waits for
	})
}

// lines are those of a stream, as they come.
func lines(t *testing.T, server, path string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+path, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	return bufio.NewScanner(answer.Body)
}

// event is the next event of a stream.
func event(t *testing.T, stream *bufio.Scanner) string {
	t.Helper()
	var data []string
	for stream.Scan() {
		switch text, is := strings.CutPrefix(stream.Text(), "data: "); {
		case is:
			data = append(data, text)
		case stream.Text() == "" && len(data) > 0:
			return strings.Join(data, "\n")
		}
	}
	require.NoError(t, stream.Err())
	t.Fatal("the stream ended")
	return ""
}

func TestStreamsShowWhatChanges(t *testing.T) {
	tables := town()
	server := httptest.NewServer(serve(t, tables, func(c *Config) { c.Every = 20 * time.Millisecond }))
	t.Cleanup(server.Close)
	list, story := lines(t, server.URL, "/events?q=HOST-1"), lines(t, server.URL, "/key/events?key=a")
	first := event(t, list)
	require.Contains(t, first, `data-key="a"`)
	require.NotContains(t, first, `data-key="dead"`)
	require.NotContains(t, first, "<html")
	require.Contains(t, event(t, story), "unit-a")
	tables.change(func() {
		row := held("new\rdata: <b>x", inspect.Holder{Unit: "u", Owner: "host-1"}, "", 0)
		tables.list.Rows = append(tables.list.Rows, row)
		tables.stories["a"] = Story{Row: inspect.Row{Key: "a", CommittedBy: "unit-a"}}
	})
	text := ""
	for !strings.Contains(text, "data: &lt;b&gt;x") {
		text = event(t, list)
	}
	require.NotContains(t, text, "<b>x")
	require.NotContains(t, text, "\r", "which ends a line of a stream")
	for !strings.Contains(event(t, story), "unit unit-a committed, and let go of it") {
	}
	tables.change(func() { tables.failed = errors.New("no more") })
	for !strings.Contains(text, "could not be read: no more; look it up") {
		text = event(t, list)
	}
	require.Contains(t, event(t, list), `data-key="a"`, "what is known is still shown")
}

// A browser gives a page up that does not come, and with it the reading: so it comes without, and the
// stream waits.
func TestAPageDoesNotWaitForALongReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables := town()
		tables.takes = 5 * time.Minute
		h := newServer(t.Context(), loopback, Config{Tables: tables, Every: time.Second, Host: "127.0.0.1"}).handler()
		began := time.Now()
		page := bodyOf(t, browse(h, http.MethodGet, "/", nil))
		require.Less(t, time.Since(began), slowest)
		require.Contains(t, page, "Nothing is known yet")
		require.NotContains(t, page, "No such keys")
		page = bodyOf(t, browse(h, http.MethodGet, "/free?key=a&unit=unit-a", nil))
		require.Less(t, time.Since(began), 2*slowest)
		require.Contains(t, page, "It loses all of its keys; it may have more than are known here.")

		ctx, leave := context.WithTimeout(t.Context(), 6*time.Minute)
		defer leave()
		events := browse(h, http.MethodGet, "/events", nil, func(r *http.Request) { *r = *r.WithContext(ctx) })
		require.Contains(t, bodyOf(t, events), `data-key="a"`)
		time.Sleep(time.Hour) // what was read is old by now, and is shown until there is another
		page = bodyOf(t, browse(h, http.MethodGet, "/", nil))
		require.Contains(t, page, `data-key="a"`)
	})
}

// A server ends with all who follow it.
func TestStreamsEndWithTheServer(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, Config{Tables: town(), Every: time.Hour, Host: "127.0.0.1"}) }()
	stream := lines(t, "http://"+listener.Addr().String(), "/events")
	event(t, stream)
	cancel(errors.New("interrupted"))
	for stream.Scan() {
	}
	require.NoError(t, stream.Err(), "it ends as streams do")
	require.EqualError(t, <-ended, "interrupted")
}

func TestOnlySoManyKeysAreFollowed(t *testing.T) {
	tables := town()
	server := newServer(t.Context(), loopback, Config{Tables: tables, Every: time.Hour})
	h := server.handler()
	for n := range 3 * mostStories { // those whom nobody follows are let go of
		require.Equal(t, http.StatusOK, browse(h, http.MethodGet, "/key?key=k"+strings.Repeat("x", n+1), nil).StatusCode)
	}
	require.Len(t, server.stories, mostStories)
	for _, f := range server.stories {
		f.join()
	}
	require.Equal(t, http.StatusServiceUnavailable, browse(h, http.MethodGet, "/key?key=one-more", nil).StatusCode)
	for _, f := range server.stories {
		f.leave()
	}
	require.Equal(t, http.StatusOK, browse(h, http.MethodGet, "/key?key=one-more", nil).StatusCode)
}

// Who asks for one key after the other has no more of them watched.
func TestOnlySoManyKeysAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables := town()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		h := newServer(ctx, loopback, Config{Tables: tables, Every: time.Hour, Host: "127.0.0.1"}).handler()
		for n := range 5 * mostStories {
			path := fmt.Sprintf("/key?key=k%d", n)
			require.Equal(t, http.StatusOK, browse(h, http.MethodGet, path, nil).StatusCode)
			if n%2 == 0 {
				following, leave := context.WithTimeout(ctx, time.Millisecond)
				browse(h, http.MethodGet, strings.Replace(path, "/key", "/key/events", 1), nil, func(r *http.Request) { *r = *r.WithContext(following) })
				leave()
			}
		}
		synctest.Wait()
		require.EqualValues(t, mostStories, tables.watching.Load())
		time.Sleep(2 * time.Hour)
		require.Zero(t, tables.watching.Load())
	})
}

// Pages that are loaded one after another, or streamed at once, read once.
func TestPagesReadOnceForAll(t *testing.T) {
	tables := town()
	h := serve(t, tables)
	require.Zero(t, tables.readsOf("rows"), "nobody looks")
	for range 20 {
		require.Equal(t, http.StatusOK, browse(h, http.MethodGet, "/?q=a", nil).StatusCode)
		require.Equal(t, http.StatusOK, browse(h, http.MethodGet, "/key?key=a", nil).StatusCode)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for range 5 {
		event(t, lines(t, server.URL, "/events"))
	}
	require.Equal(t, 1, tables.readsOf("rows"))
	require.Equal(t, 1, tables.readsOf("a"))
}
