//go:build unix

package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// free requires that a key can be had at once.
func (b *bed) free(t *testing.T, key ordering.Key) {
	t.Helper()
	set, err := b.client(t).Locks().TryAcquire(t.Context(), []ordering.Key{key})
	require.NoError(t, err)
	require.NoError(t, set.Release(t.Context()))
}

// start starts holdall exec of a shell script, and returns when that has said that it is ready. Its lines are
// what the command writes to $OUT, until nothing is left of it that has that open.
func (b *bed) start(t *testing.T, environ []string, script string, args ...string) *ongoing {
	t.Helper()
	stderr := &strings.Builder{}
	r := startTelling(t, stderr, environ, script, args...)
	r.stderr = stderr
	return r
}

// startTelling says on another stderr what goes wrong.
func startTelling(t *testing.T, stderr io.Writer, environ []string, script string, args ...string) *ongoing {
	t.Helper()
	args = append(append([]string{"exec"}, args...), "k", "--", "sh", "-c", `exec >"$OUT"; `+script)
	r := &ongoing{Cmd: exec.CommandContext(t.Context(), program, args...)}
	out := filepath.Join(t.TempDir(), "out")
	require.NoError(t, syscall.Mkfifo(out, 0o600))
	r.Env, r.Stderr, r.WaitDelay = slices.Concat(environ, []string{"OUT=" + out}), stderr, aLongTime
	require.NoError(t, r.Start())
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.Open(out) // when the command has it open
		opened <- f
	}()
	select {
	case f := <-opened:
		t.Cleanup(func() { f.Close() })
		r.lines = linesOf(f)
	case <-time.After(aLongTime):
		t.Fatalf("the command did not start: %s", stderr)
	}
	require.Equal(t, "ready", next(t, r.lines))
	return r
}

// goneForTheNext waits until somebody else has the key, and requires that nothing of the command is left then.
func (b *bed) goneForTheNext(t *testing.T, r *ongoing) {
	t.Helper()
	rival, err := lockset.New(b.Client, lockset.Config{Table: b.locks, Lease: b.lease})
	require.NoError(t, err)
	set, err := rival.Acquire(t.Context(), []ordering.Key{"k"})
	require.NoError(t, err)
	select {
	case line, more := <-r.lines:
		require.False(t, more, line)
	default:
		t.Fatal("somebody else has the key, and something of the command is still there")
	}
	require.NoError(t, set.Release(t.Context()))
}

// taken has an operator take a key from the unit that has it.
func (b *bed) taken(t *testing.T, key string) {
	t.Helper()
	require.NoError(t, b.inspector(t).Free(t.Context(), ordering.Key(key), b.row(t, key).Holder.Unit, inspect.Freeing{}))
}

func TestExecRunsACommandUnderLocks(t *testing.T) {
	engines.Each(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		r := b.run(t, "exec", "customer:42/address:7", "customer:41", "--", "sh", "-c", `printf '%s\n' "$HOLDALL_TOKEN" "$HOLDALL_UNIT" "$HOLDALL_KEYS"; echo oh >&2; exit 7`)
		require.Equal(t, 7, r.code, r)
		require.Equal(t, "oh\n", r.stderr)
		require.Regexp(t, `^\d{16}\n[A-Za-z0-9_-]{22}\ncustomer:41\ncustomer:42/address:7\n$`, r.stdout)
		b.free(t, "customer:42")

		r = b.run(t, "exec", "customer:42", "--", "sh", "-c", "kill -KILL $$")
		require.Equal(t, exitSignal+int(syscall.SIGKILL), r.code, r)
		require.Equal(t, ran{}, b.run(t, "exec", "customer:42", "--wait", "0s", "--", "true"))
	})
}

func TestExecOfKeysThatBeginWithADash(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	r := b.run(t, "exec", "--", "-k", "j", "--", "sh", "-c", `echo "$HOLDALL_KEYS"; exit $#`, "--", "--", "x")
	require.Equal(t, ran{code: 2, stdout: "-k\nj\n"}, r)
}

func TestExecPassesInputOn(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	cmd := b.command("exec", "k", "--", "cat")
	cmd.Stdin = strings.NewReader("a line\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "a line\n", string(out))
}

func TestExecWithoutTheLocks(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	mark := filepath.Join(t.TempDir(), "mark")
	set, err := b.client(t).Locks().Acquire(t.Context(), []ordering.Key{"k/below"})
	require.NoError(t, err)
	b.run(t, "exec", "k", "--wait", "0s", "--", "touch", mark).oneError(t, exitNotGot, `key "k/below" is held`)
	b.run(t, "exec", "k/below", "--wait", "50ms", "--", "touch", mark).oneError(t, exitNotGot, `"the test"`)
	require.NoFileExists(t, mark)
	require.NoError(t, set.Release(t.Context()))
	require.Equal(t, ran{}, b.run(t, "exec", "k", "--wait", "0s", "--", "touch", mark))
	require.FileExists(t, mark)
}

func TestExecOfWhatCannotRun(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("x"), 0o600))
	noFormat := filepath.Join(t.TempDir(), "no-format")
	require.NoError(t, os.WriteFile(noFormat, []byte("x"), 0o700))
	b.run(t, "exec", "k", "--", "there-is-no-such-command").oneError(t, exitNoCommand, "there-is-no-such-command")
	b.run(t, "exec", "k", "--", plain).oneError(t, exitCannotStart, "permission denied")
	b.run(t, "exec", "k", "--", noFormat).oneError(t, exitCannotStart, "exec format error")
	b.free(t, "k")
	for says, args := range map[string][]string{
		"then --":       {"k", "true"},
		"needs keys":    {"--", "true"},
		"a command":     {"k", "--"},
		"is empty":      {"", "--", "true"},
		"line break":    {"a\nb", "--", "true"},
		"--wait":        {"k", "--wait", "soon", "--", "true"},
		"at least 1s":   {"k", "--lease", "10ms", "--", "true"},
		"cannot be one": {"k", "--table", "cannot be one", "--", "true"},
	} {
		b.run(t, append([]string{"exec"}, args...)...).oneError(t, exitExec, says)
	}
}

func TestExecPassesSignalsOn(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	r := b.start(t, b.environ(), `trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done`)
	require.NoError(t, r.Process.Signal(syscall.SIGUSR1))
	r.ended(t, 9)
	r = b.start(t, b.environ(), `echo ready; sleep 1000`) // the whole group: sleep has $OUT open, too
	r.interrupted(t, syscall.SIGTERM)
	require.Empty(t, r.stderr.String())
	b.free(t, "k")
}

// A signal ends the wait; nothing is held then, and nobody is in a queue.
func TestExecIsInterruptedWhileItWaits(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	set, err := b.client(t).Locks().Acquire(t.Context(), []ordering.Key{"k"})
	require.NoError(t, err)
	waits := b.begin(t, "exec", "k", "--", "true")
	b.untilQueued(t, "k", 1)
	waits.interrupted(t, syscall.SIGTERM)
	require.Zero(t, b.queued(t, "k"))
	require.NoError(t, set.Release(t.Context()))
}

// deaf is a command that ignores SIGTERM, as does what it has started.
const deaf = `trap '' TERM; sleep 1000 & echo ready; wait`

// orphaning is one that ends at once, but not so what it has started.
const orphaning = `sh -c "trap '' TERM; echo ready; exec sleep 1000" & trap 'exit 0' TERM; wait`

func TestExecEndsACommandWhoseLocksAreLost(t *testing.T) {
	t.Parallel()
	b := newBed(t, engines.Dynoxide(t))
	r := b.start(t, b.environ(), `trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.01; done`, "--lease", b.lease.String())
	b.taken(t, "k")
	require.Equal(t, "told", next(t, r.lines))
	r.ended(t, exitLost)
	require.Contains(t, r.stderr.String(), "its row names another unit")
}

// Whoever gets the key next finds nothing of the command left, however deaf it is: if its
// row was taken from it, and if it is cut off from DynamoDB.
func TestExecKillsBeforeOthersHaveTheLocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		lose   func(t *testing.T, b *bed, cut func())
	}{
		"taken":           {deaf, func(t *testing.T, b *bed, _ func()) { b.taken(t, "k") }},
		"cut off":         {deaf, func(_ *testing.T, _ *bed, cut func()) { cut() }},
		"its leader gone": {orphaning, func(_ *testing.T, _ *bed, cut func()) { cut() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, engines.Dynoxide(t))
			endpoint, cut := b.line(t)
			r := b.start(t, append(b.environ(), "AWS_ENDPOINT_URL="+endpoint), c.script, "--lease", b.lease.String())
			c.lose(t, b, cut)
			b.goneForTheNext(t, r)
			r.ended(t, exitLost)
		})
	}
}

// Nothing of a command is left, either, where nobody can be told: stderr is a pipe whose reader is
// gone, or reads no more.
func TestExecKillsWhereNobodyListens(t *testing.T) {
	t.Parallel()
	for name, befalls := range map[string]func(t *testing.T, reads, writes *os.File){
		"the reader is gone": func(t *testing.T, reads, _ *os.File) { require.NoError(t, reads.Close()) },
		"the pipe is full": func(t *testing.T, _, writes *os.File) {
			require.NoError(t, writes.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
			_, err := writes.Write(make([]byte, 1<<20))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, engines.Dynoxide(t))
			reads, writes, err := os.Pipe()
			require.NoError(t, err)
			defer reads.Close()
			defer writes.Close()
			befalls(t, reads, writes)
			r := startTelling(t, writes, b.environ(), orphaning, "--lease", b.lease.String())
			b.taken(t, "k")
			b.goneForTheNext(t, r)
			reads.Close() // whoever has not said it yet need not
			r.ended(t, exitLost)
		})
	}
}

// line is a way to the engine that can be cut: then requests are lost, and so are answers.
func (b *bed) line(t *testing.T) (endpoint string, cut func()) {
	dead, cut := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cut)
	gone := func(http.ResponseWriter, request) bool {
		if dead.Err() != nil {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	return b.proxied(t, gone, nil), cut
}

// The command's time to end by itself, and the others' safety, for every lease.
func TestExecKeepsHalfOfItsMarginForClocks(t *testing.T) {
	for _, lease := range []time.Duration{locks.MinLease, 5 * time.Second, defaultLease, time.Hour} {
		locks, err := lockset.New(noDB{}, lockset.Config{Table: "locks", Lease: lease, Margin: marginOf(lease)})
		require.NoError(t, err)
		confirmed := time.Now()
		deadline := confirmed.Add(lease - locks.Config().Margin) // as docs/protocol.md has it
		kill := killAt(deadline, locks.Config().Margin)
		require.Equal(t, lease/10, kill.Sub(deadline))
		require.Equal(t, lease/10, confirmed.Add(lease).Sub(kill))
	}
	locks, err := lockset.New(noDB{}, lockset.Config{Table: "locks"})
	require.NoError(t, err)
	require.Equal(t, defaultLease, locks.Config().Lease)
}

// noDB is never asked.
type noDB struct{ lockset.DynamoDB }

// An exec under another that would wait for it ends, and says what to do; one that waits for others waits.
func TestExecUnderAnExecThatHoldsItsKey(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	for name, keys := range map[string][2]string{"the same": {"k", "k"}, "below": {"k", "k/1"}, "above": {"k/1", "k"}, "two levels above": {"k/1/2", "k"}} {
		t.Run(name, func(t *testing.T) {
			r := b.run(t, "exec", keys[0], "--", program, "exec", "other", "--", program, "exec", keys[1], "--", "true")
			require.Equal(t, exitExec, r.code, r)
			require.Contains(t, r.stderr, "has key \""+keys[0]+"\"")
			require.Contains(t, r.stderr, "name all keys in that one")
		})
	}
	require.Equal(t, ran{}, b.run(t, "exec", "k", "--", program, "exec", "l", "--", "true"))
	b.free(t, "k")
}
