package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// network is between all branches and their engine. It counts what happens there.
type network struct {
	engine string // URL
	client *http.Client

	mu     sync.Mutex
	counts map[fate]int
	late   sync.WaitGroup // requests that are still to be carried out
	down   bool           // the engine is
	downs  int            // how often it was
	recent []request      // writes that were carried out lately, oldest first
}

// request is one that can be sent again.
type request struct {
	header http.Header
	body   []byte
}

// keptForCopies is how many of the latest writes are sent again to an engine that
// was restarted.
const keptForCopies = 24

func newNetwork(engine string) *network {
	return &network{engine: engine, counts: map[fate]int{}, client: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{Proxy: nil, MaxIdleConns: 256, MaxIdleConnsPerHost: 256},
	}}
}

func (n *network) count(f fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[f]++
}

func (n *network) counted() map[fate]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.counts)
}

// answer is what the engine said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// carryOut has the engine carry out a request. No error says that it did not.
func (n *network) carryOut(r request) (answer, error) {
	out, err := http.NewRequestWithContext(context.Background(), http.MethodPost, n.engine, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	out.Header = r.header.Clone()
	resp, err := n.client.Do(out)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or of no use
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	if resp.StatusCode == http.StatusOK && isWrite(r) {
		n.remember(r)
	}
	return answer{resp.StatusCode, resp.Header, body}, nil
}

func isWrite(r request) bool {
	_, op, _ := strings.Cut(r.header.Get("X-Amz-Target"), ".")
	return op == "TransactWriteItems" || op == "UpdateItem" || op == "PutItem"
}

func (n *network) remember(r request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.recent = append(n.recent, r)
	if len(n.recent) > keptForCopies {
		n.recent = n.recent[1:]
	}
}

var requestToken = regexp.MustCompile(`"ClientRequestToken":"([^"]*)"`)

// forgotten is a request that is late by more than DynamoDB remembers a request
// token: to DynamoDB it is another one, and its conditions alone refuse it.
func forgotten(r request) request {
	return request{r.header, requestToken.ReplaceAll(r.body, []byte(`"ClientRequestToken":"~$1"`))}
}

// again carries a request out once more, of which nobody hears.
func (n *network) again(r request) {
	a, err := n.carryOut(r)
	if err == nil && a.status != http.StatusOK {
		n.count(refusedAsCopy)
	}
}

// later carries something out that is late, whatever has become of its sender.
func (n *network) later(after time.Duration, do func()) {
	n.late.Go(func() {
		time.Sleep(after)
		do()
	})
}

// copyRecent sends the latest writes again, in any order, at once and a while later.
// The engine has been restarted: it does not know their request tokens any more.
func (n *network) copyRecent(later time.Duration) {
	n.mu.Lock()
	recent := n.recent
	n.recent = nil
	n.mu.Unlock()
	send := func() {
		rand.Shuffle(len(recent), func(i, j int) { recent[i], recent[j] = recent[j], recent[i] })
		for _, r := range recent {
			n.count(copied)
			n.again(forgotten(r))
		}
	}
	send()
	n.later(later, send)
}

// setDown says that the engine is being restarted, or no longer is.
func (n *network) setDown(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	if down {
		n.downs++
	}
}

// restarts is how often the engine has gone down.
func (n *network) restarts() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.downs
}

func (n *network) isDown() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.down
}

// line is one branch's way to the engine. Its weather is its own.
type line struct {
	net      *network
	listener net.Listener
	server   *http.Server

	mu      sync.Mutex
	weather weather
	cut     bool // by a partition
	draws   *rand.Rand
	asked   chan struct{} // closed at the next request; nil if nobody waits for it
	group   chan struct{} // closed when the commit of a group is met; nil if nobody waits for it
}

func newLine(n *network, w weather, seed, who uint64) (*line, error) {
	l := &line{net: n, weather: w, draws: rand.New(rand.NewPCG(seed, who))}
	var err error
	if l.listener, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: time.Minute}
	go func() { _ = l.server.Serve(l.listener) }() // ends with close
	return l, nil
}

func (l *line) URL() string { return "http://" + l.listener.Addr().String() }

func (l *line) close() { _ = l.server.Close() }

// drain ends the line when all that was asked on it is answered, if it ever will be.
// What is late is still to come.
func (l *line) drain(ctx context.Context) error { return l.server.Shutdown(ctx) }

func (l *line) setWeather(w weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather = w
}

// setCut begins or ends a partition.
func (l *line) setCut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

// next is closed at the next request.
func (l *line) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = make(chan struct{})
	return l.asked
}

// nextGroup is closed when the commit of a group is met, which is held up then until its
// sender is gone, and carried out or not.
func (l *line) nextGroup() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group == nil {
		l.group = make(chan struct{})
	}
	return l.group
}

// noGroup says that nobody waits for the commit of a group any more.
func (l *line) noGroup() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.group = nil
}

// rushed is the ID of a payment of a rush, in a row of its history.
var rushed = regexp.MustCompile(`"entry":\{"S":"([^"]*-rush-[^"]*)"\}`)

// isOfGroup reports whether a request commits several units of a rush.
func isOfGroup(r request) bool {
	payments := map[string]bool{}
	for _, match := range rushed.FindAllSubmatch(r.body, -1) {
		payments[string(match[1])] = true
	}
	return len(payments) > 1
}

// ambushed reports whether somebody waits for the commit of a group and this is it; he is told.
func (l *line) ambushed(r request) bool {
	if !isWrite(r) || !isOfGroup(r) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	waited := l.group != nil
	if waited {
		close(l.group)
		l.group = nil
	}
	return waited
}

// untilGone is for how long the commit of a group is held up at most.
const untilGone = 5 * time.Second

// lastWord is what becomes of the last request of somebody who dies; that of one who is cut off
// is carried out: it has to be found out.
func (l *line) lastWord() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cut && l.draws.IntN(2) == 0 {
		return lost
	}
	return passed
}

func (l *line) draw() (fate, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked != nil {
		close(l.asked)
		l.asked = nil
	}
	f, late := l.weather.draw(l.draws)
	if l.cut {
		f = partitioned
	}
	return f, late
}

// ServeHTTP does to a request what is drawn for it.
func (l *line) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return // the sender is gone
	}
	r := request{in.Header, body}
	f, late := l.draw()
	if l.ambushed(r) {
		select {
		case <-in.Context().Done():
		case <-time.After(untilGone):
		}
		f = l.lastWord()
	}
	l.net.count(f)
	switch f {
	case lost, partitioned:
		hangUp(w)
		return
	case held:
		l.net.later(late, func() { l.net.again(forgotten(r)) })
		<-in.Context().Done() // nothing comes back
		return
	case delayed:
		time.Sleep(late)
	case doubled:
		l.net.later(late, func() { l.net.again(forgotten(r)) })
	}
	a, err := l.net.carryOut(r)
	if err != nil && l.net.isDown() {
		l.net.count(engineIsDown)
	}
	switch {
	case err != nil, f == answerLost:
		hangUp(w)
	case f == swallowed:
		<-in.Context().Done()
	case f == answerBroken:
		breakOff(w, a)
	default:
		a.write(w)
	}
}

func (a answer) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a sender that is gone does not hear it
}

// hangUp breaks the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// breakOff breaks it in the middle of one.
func breakOff(w http.ResponseWriter, a answer) {
	conn, out, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(out, "HTTP/1.1 %d %s\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %s\r\n\r\n%s",
		a.status, http.StatusText(a.status), strconv.Itoa(len(a.body)), a.body[:len(a.body)/2])
	_ = out.Flush()
	_ = conn.Close()
}
