package functions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

const (
	instanceEnv = "HOLDALL_GUIDES_INSTANCE" // makes this test binary an instance, and is the engine's endpoint
	shortLease  = time.Second               // keeps what waits for one short
	longTimeout = 30 * time.Second          // of a function whose process may be stopped for more than a lease
	keptKey     = ordering.Key("kept")      // of a lock set that an instance keeps, which it should not
	keptRecord  = "kept"                    // what that is about
)

func init() {
	if endpoint := os.Getenv(instanceEnv); endpoint != "" {
		insteadOfTests = func() {
			if err := instance(endpoint, os.Stdin, os.NewFile(3, "answers")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
}

// invocation is a line that an instance reads.
type invocation struct {
	Event    Event
	Deadline time.Time // when the process would be killed
	Lock     bool      // payments take their locks first
	StopAt   int       // the request at which the process stops itself; 0: none
	After    bool      // it stops when the answer is there, not before it sends
	Keep     string    // "take": it takes a lock set and keeps it; "write": it writes by that
}

// answer is a line that an instance writes.
type answer struct {
	Stopping bool // it stops itself, and goes on when it is told to
	Response Response
	Err      string
	Lost     bool // the lock set that it kept is known to be lost
	Stale    bool // what it wrote by that was refused
}

// instance is a process of the function: one invocation after another, as its platform sends them.
func instance(endpoint string, in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	stops := &stopper{next: lockset.HTTPClient(), tell: func() error { return answers.Encode(answer{Stopping: true}) }}
	db := sendingBy(stops, endpoint)
	f, err := New(db, shortLease)
	if err != nil {
		return err
	}
	var kept *lockset.Set
	for lines := json.NewDecoder(in); ; {
		var asked invocation
		if err := lines.Decode(&asked); err != nil {
			return nil //nolint:nilerr // nobody asks any more
		}
		ctx, cancel := context.WithDeadline(context.Background(), asked.Deadline)
		stops.at(asked.StopAt, asked.After)
		f.lock = asked.Lock
		var a answer
		switch asked.Keep {
		case "take":
			kept, err = f.units.Locks().Acquire(ctx, []ordering.Key{keptKey})
		case "write":
			a.Lost = errors.Is(context.Cause(kept.Context()), lockset.ErrLost)
			err = write(ctx, db, kept.Token(), "the one that was frozen")
			a.Stale = errors.Is(err, fencing.ErrStale)
		default:
			a.Response, err = f.Handle(ctx, asked.Event)
		}
		cancel()
		if err != nil {
			a.Err = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// write writes a record outside a unit, fenced by a token.
func write(ctx context.Context, db *dynamodb.Client, token fencing.Token, by string) error {
	fence := fencing.Fence{Token: token}
	in := &dynamodb.UpdateItemInput{
		TableName: &Accounts.Name, Key: itemKey(keptRecord),
		UpdateExpression: aws.String("SET writer = :by"), ExpressionAttributeValues: textValue(":by", by),
	}
	if err := fence.Update(in); err != nil {
		return err
	}
	_, err := db.UpdateItem(ctx, in)
	return fence.Stale(err)
}

// stopper has its process stop itself at one of its requests.
type stopper struct {
	next  aws.HTTPClient
	tell  func() error
	after bool

	mu   sync.Mutex
	left int             // requests until then
	sent map[string]bool // what counts once, however often it is sent
}

func (s *stopper) at(n int, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.after, s.sent = n, after, map[string]bool{}
}

// here reports whether this is the request.
func (s *stopper) here(r *http.Request) (bool, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent[string(body)] || strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".BatchExecuteStatement") {
		return false, nil // heartbeats come when they come
	}
	s.sent[string(body)] = true
	s.left--
	return s.left == 0, nil
}

func (s *stopper) Do(r *http.Request) (*http.Response, error) {
	here, err := s.here(r)
	if err != nil {
		return nil, err
	}
	if here && !s.after {
		if err := s.stop(); err != nil {
			return nil, err
		}
	}
	response, err := s.next.Do(r)
	if err != nil || !here || !s.after {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if err := response.Body.Close(); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, s.stop()
}

func (s *stopper) stop() error {
	if err := s.tell(); err != nil {
		return err
	}
	// Sent to the process, the signal may be another thread's, and this one may go on for a moment.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP)
}

// child is an instance, as its platform sees it.
type child struct {
	*os.Process
	t *testing.T

	in      *json.Encoder
	answers *json.Decoder
}

func start(t *testing.T, endpoint string) *child {
	t.Helper()
	readable, writable, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), instanceEnv+"="+endpoint)
	cmd.ExtraFiles = []*os.File{writable}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	require.NoError(t, writable.Close()) // the child has it
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		_ = cmd.Wait()
		require.NoError(t, readable.Close())
		if t.Failed() {
			t.Logf("the instance wrote: %s", said.String())
		}
	})
	return &child{Process: cmd.Process, t: t, in: json.NewEncoder(in), answers: json.NewDecoder(readable)}
}

// ask sends an invocation to an instance, thawed for it.
func (c *child) ask(asked invocation) {
	c.t.Helper()
	c.thaw()
	asked.Deadline = time.Now().Add(longTimeout)
	require.NoError(c.t, c.in.Encode(asked))
}

// answer is what the instance says next. When it has answered, it is frozen.
func (c *child) answer() (a answer) {
	c.t.Helper()
	require.NoError(c.t, c.answers.Decode(&a))
	if !a.Stopping { // it does that itself
		require.NoError(c.t, c.Signal(syscall.SIGSTOP))
	}
	require.Eventually(c.t, c.frozen, 20*time.Second, time.Millisecond)
	return a
}

func (c *child) thaw() {
	c.t.Helper()
	require.NoError(c.t, c.Signal(syscall.SIGCONT))
}

// frozen reports whether the kernel has stopped the process.
func (c *child) frozen() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Pid))
	_, state, found := strings.Cut(string(text), ") ")
	return err == nil && found && state[0] == 'T'
}
