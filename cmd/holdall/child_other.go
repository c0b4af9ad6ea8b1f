//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// Where there are no process groups, and no signals to speak of, the command itself is
// killed, and nothing that it has started.

func handled() []os.Signal { return []os.Signal{os.Interrupt} }

func surviveClosedPipes() {}

func asGroup(*exec.Cmd, bool) (restore func()) { return func() {} }

func (c *child) signal(s os.Signal) { _ = c.process.Signal(s) }

func (c *child) passOn(s os.Signal) { c.signal(s) }

func (c *child) help() {}

func (c *child) helped() {}

func (c *child) terminate() { c.kill() }

func (c *child) kill() { _ = c.process.Kill() }

func (c *child) left() bool { return false }

func codeOfState(state *os.ProcessState) int { return state.ExitCode() }
