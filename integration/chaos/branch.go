package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/record"
)

// branch is a process of the bank, and its successors of the same name.
type branch struct {
	process
	line    *line
	mishaps *record.Recording

	mu    sync.Mutex
	child *engines.Child
	stops []stop

	round sync.Mutex // held by the round that has claimed it
}

// stop is a time during which a branch was stopped.
type stop struct{ from, to time.Time }

// start starts a process, and returns after its first request. Before that a signal would end the
// process at once.
func (b *branch) start() error {
	asks := b.line.next()
	b.Endpoint = b.line.URL()
	text, err := json.Marshal(b.process)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processEnv+"="+string(text))
	child, err := engines.StartChild(cmd)
	if err != nil {
		return fmt.Errorf("branch %s: %w", b.Name, err)
	}
	b.mu.Lock()
	b.child = child
	b.mu.Unlock()
	select {
	case <-asks:
		return nil
	case <-child.Exited():
		return fmt.Errorf("branch %s: %w; it wrote:\n%s", b.Name, child.Wait(), child.Output())
	}
}

// kill kills the process with SIGKILL.
func (b *branch) kill() {
	b.child.Kill()
	b.mishaps.Gone(b.Name, "killed")
}

// freeze stops the process for a time.
func (b *branch) freeze(d time.Duration) error {
	if err := b.child.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s := stop{from: time.Now()}
	time.Sleep(d)
	s.to = time.Now()
	if err := b.child.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stops = append(b.stops, s)
	return nil
}

// end sends SIGTERM, and waits until the process has finished the work that it had begun.
func (b *branch) end(patience time.Duration) error {
	if err := b.child.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("branch %s: %w; it wrote:\n%s", b.Name, err, b.child.Output())
	}
	select {
	case <-b.child.Exited():
	case <-time.After(patience):
		_ = b.child.Signal(syscall.SIGQUIT) // it prints its goroutines
		select {
		case <-b.child.Exited():
		case <-time.After(10 * time.Second):
			b.child.Kill()
		}
		return fmt.Errorf("branch %s: did not end within %v; it wrote:\n%s", b.Name, patience, b.child.Output())
	}
	if err := b.child.Wait(); err != nil {
		return fmt.Errorf("branch %s: %w; it wrote:\n%s", b.Name, err, b.child.Output())
	}
	return nil
}

func diaryOf(dir, name string) string { return filepath.Join(dir, name+".diary") }

// recordingOf returns the name of a file for holdall timeline.
func recordingOf(dir, name string) string { return filepath.Join(dir, name+".jsonl") }
