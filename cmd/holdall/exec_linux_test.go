package main

import (
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

// shellOnATerminal runs a script on a terminal of its own.
func (b *bed) shellOnATerminal(t *testing.T, script ...string) *tty {
	t.Helper()
	cmd := exec.Command("sh", "-c", strings.Join(script, "\n"))
	cmd.Env = b.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return onTerminal(t, cmd)
}

const ctrlC = "\x03"

// On a terminal the command reads from it, Ctrl-C reaches it, and the shell has the
// terminal back afterwards.
func TestExecOnATerminal(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	x := b.shellOnATerminal(t,
		`trap : INT`,
		program+` exec k -- sh -c 'echo ready; read line; echo "has $line"; exit 5'; echo "code $?"`,
		program+` exec k -- sh -c 'echo sleeps; exec sleep 1000'; echo "code $?"`,
		`read line; echo "shell has $line"`,
	)
	x.shows(t, "ready")
	x.types(t, "hello")
	x.shows(t, "has hello")
	x.shows(t, "code 5")
	x.shows(t, "sleeps")
	_, err := x.keys.WriteString(ctrlC)
	require.NoError(t, err)
	x.shows(t, "code 130")
	x.types(t, "again")
	require.Contains(t, x.ends(t, exitDone), "shell has again")
	b.free(t, "k")
}

// In a pipeline the command is not in the foreground of the terminal at first. It reads from there
// all the same, and is not stopped with its keys; and if something stops it, Ctrl-C ends it.
func TestExecInAPipelineOnATerminal(t *testing.T) {
	b := newBed(t, engines.Dynoxide(t))
	x := b.shellOnATerminal(t,
		`trap : INT`,
		program+` exec k -- sh -c 'read line; echo "has $line"' | cat`,
		program+` exec k -- sh -c 'echo ready; kill -STOP $$' </dev/null | cat`,
		`read line; echo "shell has $line"`,
	)
	x.types(t, "hello")
	x.shows(t, "has hello")
	x.shows(t, "ready")
	_, err := x.keys.WriteString(ctrlC)
	require.NoError(t, err)
	x.types(t, "again")
	require.Contains(t, x.ends(t, exitDone), "shell has again")
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
		cmd := b.command(append([]string{"check", "--units", ""}, c.args...)...)
		cmd.Env = append(cmd.Env, c.environ...)
		x := onTerminal(t, cmd)
		x.ends(t, exitDone)
		require.Equal(t, c.wants, strings.TrimRight(x.written(), "\r\n"))
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
