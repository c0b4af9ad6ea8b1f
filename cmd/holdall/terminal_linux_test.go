package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/holdall/holdall/integration/engines"
)

// tty is a terminal with a command on it.
type tty struct {
	command *exec.Cmd
	keys    *os.File // what is typed

	mu    sync.Mutex
	shown []byte        // all that was written so far
	over  chan struct{} // closed when nothing more is written
}

// onTerminal runs the command on a terminal of its own.
func (b *bed) onTerminal(t *testing.T, args ...string) *tty {
	t.Helper()
	return onTerminal(t, b.command(args...))
}

func onTerminal(t *testing.T, command *exec.Cmd) *tty {
	t.Helper()
	master, slave := terminal(t)
	x := &tty{command: command, keys: master, over: make(chan struct{})}
	x.command.Stdin, x.command.Stdout, x.command.Stderr = slave, slave, slave
	require.NoError(t, x.command.Start())
	require.NoError(t, slave.Close())
	go func() {
		defer close(x.over)
		some := make([]byte, 4096)
		for {
			n, err := master.Read(some)
			x.mu.Lock()
			x.shown = append(x.shown, some[:n]...)
			x.mu.Unlock()
			if err != nil { // the command has ended
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = x.command.Process.Kill()
		_ = x.command.Wait()
		<-x.over
	})
	return x
}

// written is all that the command has written so far.
func (x *tty) written() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.shown)
}

// shows waits until a text is on the screen.
func (x *tty) shows(t *testing.T, text string) {
	t.Helper()
	for start := time.Now(); !strings.Contains(screenOf(x.written()), text); time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(start), aLongTime, x.written())
	}
}

// types types a line.
func (x *tty) types(t *testing.T, line string) {
	t.Helper()
	_, err := x.keys.WriteString(line + "\n")
	require.NoError(t, err)
}

// ends waits for the end of the command, and returns what is on the screen then.
func (x *tty) ends(t *testing.T, code int) (screen string) {
	t.Helper()
	_ = x.command.Wait()
	<-x.over
	require.Equal(t, code, x.command.ProcessState.ExitCode(), x.written())
	return screenOf(x.written())
}

// screenOf is what a person sees of what was written, without colours.
func screenOf(written string) string {
	lines, at := []string{""}, 0 // the cursor is in the last line
	for len(written) > 0 {
		take := func(begin string) bool {
			rest, does := strings.CutPrefix(written, begin)
			if does {
				written = rest
			}
			return does
		}
		last := &lines[len(lines)-1]
		switch {
		case take("\x1b[H\x1b[2J"):
			lines, at = []string{""}, 0
		case take("\x1b[K"):
			*last = (*last)[:at]
		case strings.HasPrefix(written, "\x1b["):
			_, written, _ = strings.Cut(written, "m")
		case take("\n"):
			lines, at = append(lines, ""), 0
		case take("\r"):
			at = 0
		default:
			*last = (*last)[:at] + written[:1] + (*last)[min(at+1, len(*last)):]
			at++
			written = written[1:]
		}
	}
	return strings.Join(lines, "\n")
}

func TestScreenOf(t *testing.T) {
	require.Equal(t, "xbc\nd", screenOf("gone\x1b[H\x1b[2J\x1b[31mabc\x1b[0m\rx\r\nlong\r\x1b[Kd"))
}

// While ls --dead watches, a line says how far it is, and is gone in the end. The dead are red.
func TestLsOfTheDeadOnATerminal(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	b.actor(t, "holds", "holder", "k").ready(t).Kill()
	x := b.onTerminal(t, "ls", "--dead")
	x.shows(t, "watching for signs of life: 0 of 1 key known")
	screen := strings.Split(x.ends(t, exitDone), "\n")
	require.Len(t, screen, 3, screen)
	require.Equal(t, []string{"KEY", "STATE", "OWNER", "SINCE", "LIFE", "WAITING", "UNIT"}, strings.Fields(screen[0]))
	require.Regexp(t, `^k +held +holder for "payment" +\d+s +dead `, screen[1])
	require.Empty(t, screen[2])
	require.Contains(t, x.written(), "\x1b[31mk ")
}

// What the line says of how far it is stays in one line of a narrow terminal.
func TestProgressOnANarrowTerminal(t *testing.T) {
	master, slave := terminal(t)
	defer slave.Close()
	require.NoError(t, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 20}))
	p := newProgress(slave)
	p.say("watching for signs of life: %d", 1)
	p.clear()
	p.say("é\x1b")
	wants := "\r\x1b[Kwatching for signs \r\x1b[K\r\x1b[Ké\\x1b"
	got := make([]byte, len(wants))
	_, err := io.ReadFull(master, got)
	require.NoError(t, err)
	require.Equal(t, wants, string(got))
}

// A list of which a part could not be written is an error.
func TestTextThatCannotBeWritten(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	for _, format := range []string{"text", "json"} {
		var said strings.Builder
		cmd := b.command("check", "-o", format)
		cmd.Stdout, cmd.Stderr = full, &said
		require.Error(t, cmd.Run())
		require.Equal(t, exitError, cmd.ProcessState.ExitCode())
		require.Contains(t, said.String(), "no space left")
	}
}

// Each list of ls --watch is drawn from the top of an empty screen.
func TestLsWatchesOnATerminal(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	b.actor(t, "holds", "holder", "k").ready(t)
	x := b.onTerminal(t, "ls", "--watch", "--every", "200ms")
	x.shows(t, " alive ")
	require.NoError(t, x.command.Process.Signal(os.Interrupt))
	screen := x.ends(t, exitSignal+int(syscall.SIGINT))
	require.Regexp(t, `^table `+b.locks+`\n\d\d:\d\d:\d\d: 1 key\nKEY .*\nk +held +holder .*\nholdall: ended by a signal: interrupt\n$`, screen)
	require.Greater(t, strings.Count(x.written(), "\x1b[H\x1b[2J"), 1)
}

// free asks, and does nothing unless the answer is yes.
func TestFreeAsksOnATerminal(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	holder := b.actor(t, "holds", "holder", "k").ready(t)
	for answer, wants := range map[string]struct {
		code int
		says string
	}{"n": {exitError, "nothing was done"}, "y": {exitDone, "key k was taken from unit " + holder.nonce}} {
		t.Run(answer, func(t *testing.T) {
			x := b.onTerminal(t, "free", "k", "--unit", holder.nonce)
			x.shows(t, "[y/N] ")
			x.types(t, answer)
			require.Contains(t, x.ends(t, wants.code), wants.says)
		})
	}
}
