package engines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// listener says whose sockets listen on a port.
type listener int

const (
	nobody  listener = iota // nobody listens, yet
	own                     // the process asked about, and nobody else
	foreign                 // somebody else, perhaps beside it
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

	*Child
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
	if s.Child, err = StartChild(exec.Command(args[0], args[1:]...)); err != nil {
		return fmt.Errorf("%s: %w", s.Kind, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.awaitAnswer(ctx); err != nil {
		s.Kill()
		return fmt.Errorf("%s on port %d: %w; it wrote:\n%s", s.Kind, s.port, err, s.Output())
	}
	return nil
}

func (s *Server) awaitAnswer(ctx context.Context) error {
	client := Client(s.Endpoint)
	for {
		// The listener is looked at before anything is sent: a request to somebody
		// else's server would be answered, too.
		listener, err := listenerOf(s.port, s.Pid)
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
		case <-s.Exited():
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

// Restart starts a killed engine again on the same port. Only what it kept in a
// database file is still there.
func (s *Server) Restart(ctx context.Context) error {
	s.Kill()
	return s.launch(ctx)
}
