package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/holdall/holdall/integration/engines"
)

// What has the locks may die at any time; the command dies with it.
func TestExecTakesTheCommandAlong(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	r := b.start(t, b.environ(), "echo ready; exec sleep 1000")
	require.NoError(t, r.Process.Kill())
	r.ended(t, -1)
}

// shellOnATerminal runs a script on a terminal of its own. until waits for a line, and wait for the end.
func (b *bed) shellOnATerminal(t *testing.T, script ...string) (master *os.File, until func(wants string), wait func()) {
	t.Helper()
	master, slave := terminal(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(script, "\n"))
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.environ(), slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	slave.Close()
	lines := linesOf(bufio.NewReader(master))
	until = func(wants string) {
		t.Helper()
		for !strings.HasSuffix(strings.TrimSpace(next(t, lines)), wants) { // behind what the terminal has echoed
		}
	}
	return master, until, func() { t.Helper(); require.NoError(t, cmd.Wait()) }
}

// On a terminal the command reads from it, Ctrl-C reaches it, and the shell has the
// terminal back afterwards.
func TestExecOnATerminal(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	master, until, wait := b.shellOnATerminal(t,
		`trap : INT`,
		program+` exec k -- sh -c 'echo ready; read line; echo "has $line"; exit 5'; echo "code $?"`,
		program+` exec k -- sh -c 'echo ready; exec sleep 1000'; echo "code $?"`,
		`read line; echo "shell has $line"`,
	)
	until("ready")
	fmt.Fprintln(master, "hello")
	until("has hello")
	until("code 5")
	until("ready")
	_, err := master.Write([]byte{3}) // Ctrl-C
	require.NoError(t, err)
	until("code 130")
	fmt.Fprintln(master, "again")
	until("shell has again")
	wait()
	b.free(t, "k")
}

// In a pipeline the command is not in the foreground of the terminal at first. It reads from there
// all the same, and is not stopped with its keys; and if something stops it, Ctrl-C ends it.
func TestExecInAPipelineOnATerminal(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	master, until, wait := b.shellOnATerminal(t,
		`trap : INT`,
		program+` exec k -- sh -c 'read line; echo "has $line"' | cat`,
		program+` exec k -- sh -c 'echo ready; kill -STOP $$' </dev/null | cat`,
		`read line; echo "shell has $line"`,
	)
	fmt.Fprintln(master, "hello")
	until("has hello")
	until("ready")
	_, err := master.Write([]byte{3}) // Ctrl-C
	require.NoError(t, err)
	fmt.Fprintln(master, "again")
	until("shell has again")
	wait()
	b.free(t, "k")
}

// Colours and the line of progress are for terminals.
func TestColoursAreForTerminals(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	advice := strings.TrimSpace(unprotected(b.locks))
	for _, c := range []struct {
		environ []string
		args    []string
		wants   string
	}{
		{nil, nil, "\x1b[33m" + advice + "\x1b[0m"},
		{[]string{"NO_COLOR=1"}, nil, advice},
		{[]string{"TERM=dumb"}, nil, advice},
		{nil, []string{"-o", "json"}, `{"ok":true,"findings":[{"table":"` + b.locks + `","problem":"is not protected from deletion, of which there would be no sign",` +
			`"do":"turn deletion protection on: holdall init does","advice":true}]}`},
	} {
		master, slave := terminal(t)
		cmd := exec.CommandContext(t.Context(), program, append([]string{"check", "--units", ""}, c.args...)...)
		cmd.Env, cmd.Stdout = append(b.environ(), c.environ...), slave
		require.NoError(t, cmd.Run())
		require.Equal(t, c.wants, strings.TrimRight(next(t, linesOf(master)), "\r\n"))
		slave.Close()
	}
	require.Equal(t, advice+"\n", b.run(t, "check", "--units", "").stdout)
}

// terminal is one, and who types and reads at it.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return master, slave
}
