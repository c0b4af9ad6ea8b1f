//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// handled are the signals that end this process or are passed on, but for those that it was
// started to ignore, as by nohup.
func handled() (signals []os.Signal) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}

// surviveClosedPipes has this process live on when it writes to a stderr that nobody reads any
// more: it has a command to end yet. A command that it starts dies of that as any other.
func surviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// asGroup has a command be the leader of a process group. What is returned undoes what that
// changes of the terminal.
//
// Ctrl-Z would stop this process and not the command, or the other way round; so both ignore
// it.
func asGroup(cmd *exec.Cmd, terminal bool) (restore func()) {
	signal.Ignore(syscall.SIGTSTP)
	cmd.SysProcAttr = attributes()
	cmd.SysProcAttr.Setpgid = true
	tty, ok := cmd.Stdin.(*os.File)
	if !terminal || !ok {
		return func() {}
	}
	if foreground(tty) != unix.Getpgrp() {
		return func() {} // we are in the background ourselves
	}
	cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(tty.Fd())
	return func() { takeTerminal(tty) }
}

// foreground is the process group in the foreground of a terminal; 0 if that is none of ours.
func foreground(tty *os.File) int {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// takeTerminal puts this process in the foreground again.
func takeTerminal(tty *os.File) {
	signal.Ignore(syscall.SIGTTOU) // what a background process gets that asks for this
	_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
}

// help has a command go on that was stopped because it uses the terminal and is not in its
// foreground, as in a pipeline: it would hold the keys for ever. It gets the foreground if this
// process has it.
func (c *child) help() {
	tty, ok := c.stdin.(*os.File)
	if !ok || !isTerminal(tty) {
		return
	}
	if c.stopped = c.stopped || hasStopped(c.process.Pid); !c.stopped || foreground(tty) != unix.Getpgrp() {
		return
	}
	if unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, c.process.Pid) == nil {
		c.stopped = false
		c.signal(syscall.SIGCONT)
	}
}

// helped takes back what help has given.
func (c *child) helped() {
	if tty, ok := c.stdin.(*os.File); ok && isTerminal(tty) && foreground(tty) == c.process.Pid {
		takeTerminal(tty)
	}
}

// passOn passes a signal on; one that usually ends a process ends one that is stopped, too.
func (c *child) passOn(s os.Signal) {
	c.signal(s)
	if s != syscall.SIGUSR1 && s != syscall.SIGUSR2 {
		c.signal(syscall.SIGCONT)
	}
}

// signal passes a signal on to the whole group. One that is gone gets nothing.
func (c *child) signal(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-c.process.Pid, number)
	}
}

// terminate asks the group to end, also what of it is stopped.
func (c *child) terminate() {
	c.signal(syscall.SIGTERM)
	c.signal(syscall.SIGCONT)
}

func (c *child) kill() { c.signal(syscall.SIGKILL) }

// left reports whether anything of the group is there yet.
func (c *child) left() bool { return syscall.Kill(-c.process.Pid, 0) == nil }

func codeOfState(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	return state.ExitCode()
}
