package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// startTimeout is far above the 2 s DynamoDB Local needs on an idle machine:
// several packages' tests may be starting one at once.
const startTimeout = 90 * time.Second

// errPortLost reports that another process took the port between the moment
// the kernel named it free and the moment the engine wanted it.
var errPortLost = errors.New("another process took the port")

// Server is an engine's process.
type Server struct {
	Kind     Kind
	Endpoint string

	port   int
	dbPath string
	home   string

	pid    int
	exited chan struct{} // closed when the process is gone
	output *tail
}

// Start starts an engine on a free port of the loopback interface and returns
// when it answers. With a dbPath (dynoxide only) the tables are kept in that file.
// It is for programs; tests want [DynamoDBLocal] and [Dynoxide], which also stop it.
func Start(ctx context.Context, kind Kind, dbPath string) (*Server, error) {
	home, err := kind.Home()
	if err != nil {
		return nil, err
	}
	return startIn(ctx, kind, home, dbPath, freePort)
}

func startIn(ctx context.Context, kind Kind, home, dbPath string, port func() (int, error)) (*Server, error) {
	const attempts = 5
	var err error
	for range attempts {
		var n int
		if n, err = port(); err != nil {
			return nil, err
		}
		s := &Server{Kind: kind, home: home, dbPath: dbPath, port: n, Endpoint: "http://127.0.0.1:" + strconv.Itoa(n)}
		if err = s.launch(ctx); err == nil {
			return s, nil
		}
		if !errors.Is(err, errPortLost) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %d ports tried: %w", kind, attempts, err)
}

// freePort asks the kernel for a port nobody listens on. It is free only until
// somebody else asks: launch notices when it was lost.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// launch runs the process on s.port and waits until it, and no other process, answers there.
func (s *Server) launch(ctx context.Context) error {
	args, err := command(s.Kind, s.home, s.port, s.dbPath)
	if err != nil {
		return err
	}
	s.output, s.exited = new(tail), make(chan struct{})
	started := make(chan error, 1)
	go s.run(args, started)
	if err := <-started; err != nil {
		return fmt.Errorf("%s: %w", s.Kind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.awaitAnswer(ctx); err != nil {
		s.Kill()
		return fmt.Errorf("%s on port %d: %w; it wrote:\n%s", s.Kind, s.port, err, s.output)
	}
	return nil
}

// run starts the process and stays with it until it is gone. It keeps its
// thread: Linux ends a child with Pdeathsig when the thread that started it ends,
// not when the process does, and Go ends idle threads as it likes.
func (s *Server) run(args []string, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = s.output, s.output
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = attributes()
	defer close(s.exited)
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	s.pid = cmd.Process.Pid
	started <- nil
	_ = cmd.Wait() // Killed by us or gone by itself: whoever cares reads s.exited and s.output.
}

func (s *Server) awaitAnswer(ctx context.Context) error {
	client := Client(s.Endpoint)
	for {
		// The listener is looked at before anything is sent: a request to somebody
		// else's server would be answered, too.
		listener, err := listenerOf(s.port, s.pid)
		switch {
		case err != nil:
			return err
		case listener == foreign:
			return errPortLost
		case listener == own:
			attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, err := client.ListTables(attempt, &dynamodb.ListTablesInput{})
			cancel()
			if err == nil && s.Alive() {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", ctx.Err())
		case <-s.exited:
			if !portFree(s.port) {
				return errPortLost
			}
			return errors.New("the process ended before it answered")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func portFree(port int) bool {
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// Alive reports whether the process is still there.
func (s *Server) Alive() bool {
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Kill ends the process at once, as kill -9 does, and returns when it is gone.
func (s *Server) Kill() {
	if s.Alive() {
		terminate(s.pid)
	}
	<-s.exited
}

// Restart starts a killed engine again on the same port. Only what it kept in a
// database file is still there.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	return s.launch(ctx)
}

// Output is the last of what the process wrote.
func (s *Server) Output() string { return s.output.String() }

// tail keeps the last 64 KiB written to it: enough for a failed start's stack
// trace, and an engine that chatters for an hour costs no memory.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 64 << 10

func (w *tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, p...)
	if extra := len(w.kept) - tailSize; extra > 0 {
		w.kept = append(w.kept[:0], w.kept[extra:]...)
	}
	return len(p), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(bytes.TrimSpace(w.kept))
}
