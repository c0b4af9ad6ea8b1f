package versions

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// before is the last commit whose units always take locks.
const before = "c18f97e64baa4490775ca20ca878db4a13318d44"

// program serves as teller.go does.
const program = `package main

import (
	"fmt"
	"os"

	"github.com/holdall/holdall/integration/versions"
)

func main() {
	if err := versions.Main(os.Args[1:], os.Stdin, os.NewFile(3, "answers")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`

// endingsBefore is endings.go with the hooks of that version.
const endingsBefore = `package versions

import (
	"context"

	"github.com/holdall/holdall/trace"
)

func endings(tell func(context.Context, string)) *trace.Trace {
	return &trace.Trace{UnitEnd: func(ctx context.Context, e trace.UnitEnd) { tell(ctx, string(e.Outcome)) }}
}
`

// earlier builds the program with the library as it was before. Where the history does not go
// back so far, as in a shallow clone, there is nothing to build it from.
func earlier(t *testing.T) string {
	t.Helper()
	root, err := engines.Root()
	require.NoError(t, err)
	if out, err := exec.Command("git", "-C", root, "cat-file", "-e", before+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("the earlier version is not tried: commit %s is not in the history here (in a shallow clone: git fetch --unshallow): %v %s", before[:7], err, out)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %q: %s", name, args, out)
	}
	run("git", "-C", root, "archive", "--format=tar", "-o", filepath.Join(dir, "before.tar"), before)
	run("tar", "-xf", "before.tar")
	mine, err := os.ReadFile("teller.go")
	require.NoError(t, err)
	for name, text := range map[string][]byte{"teller.go": mine, "endings.go": []byte(endingsBefore), "earlier/main.go": []byte(program)} {
		path := filepath.Join(dir, "integration", "versions", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	run("go", "build", "-trimpath", "-o", "earlier", "./integration/versions/earlier")
	return filepath.Join(dir, "earlier")
}

// process is a teller in a process of its own.
type process struct {
	child *engines.Child

	mu      sync.Mutex
	in      io.WriteCloser
	n       int
	waiting map[int]chan Answer
}

// start starts a process that ends when the test does.
func start(t *testing.T, program, endpoint string, tables Tables) *process {
	t.Helper()
	settings, err := json.Marshal(tables)
	require.NoError(t, err)
	cmd := exec.Command(program, string(settings), endpoint)
	p := &process{waiting: map[int]chan Answer{}}
	p.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	answers, theirs, err := os.Pipe()
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{theirs}
	p.child, err = engines.StartChild(cmd)
	require.NoError(t, err)
	require.NoError(t, theirs.Close())
	t.Cleanup(func() {
		p.child.Kill()
		_ = answers.Close()
	})
	go func() {
		for lines := bufio.NewScanner(answers); lines.Scan(); {
			var a Answer
			if json.Unmarshal(lines.Bytes(), &a) == nil {
				p.mu.Lock()
				p.waiting[a.N] <- a
				delete(p.waiting, a.N)
				p.mu.Unlock()
			}
		}
	}()
	return p
}

// gone is what is heard of a process that was killed.
const gone = "the process is gone"

// Answer asks the process.
func (p *process) Answer(ctx context.Context, r Request) Answer {
	answer := make(chan Answer, 1)
	p.mu.Lock()
	p.n++
	r.N = p.n
	p.waiting[r.N] = answer
	line, err := json.Marshal(r)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) { // it is gone, or about to be
		return Answer{Error: err.Error()}
	}
	select {
	case a := <-answer:
		return a
	case <-p.child.Exited():
		return Answer{Error: fmt.Sprint(gone, p.child.Output())}
	case <-ctx.Done():
		return Answer{Error: ctx.Err().Error()}
	}
}
