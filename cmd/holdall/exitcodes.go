package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// The codes that the command ends with. A pipeline depends on them: they do not change.
const (
	exitDone      = 0
	exitError     = 1
	exitUsage     = 2
	exitFound     = 3
	exitUndecided = 4
	exitForgotten = 5

	// Those of exec are where few commands have theirs, and the last three mean what
	// they mean to env, timeout and shells.
	exitLost        = 123
	exitNotGot      = 124
	exitExec        = 125
	exitCannotStart = 126
	exitNoCommand   = 127
	exitSignal      = 128
)

// exitCodes is their documentation, which --help shows.
var exitCodes = []struct {
	code    string
	meaning string
}{
	{"0", "done; check: nothing found but advice; outcome: committed"},
	{"1", "an error, which stderr says in one line"},
	{"2", "wrong usage"},
	{"3", "check: more than advice; outcome: not committed; free, sweep: a key is kept; mend: it is stuck"},
	{"4", "outcome: undecided, ask again"},
	{"5", "outcome: forgotten, nothing names the unit any more"},
	{"123", "exec: the locks were lost while the command ran"},
	{"124", "exec: the locks could not be had in time"},
	{"125", "exec: another error, or wrong usage; the command was not run"},
	{"126", "exec: the command could not be started"},
	{"127", "exec: there is no such command"},
	{"128+n", "ended by signal n; exec: the command was"},
	{"other", "exec: the command's own"},
}

func exitCodesText() string {
	var b strings.Builder
	for _, c := range exitCodes {
		fmt.Fprintf(&b, "  %-6s %s\n", c.code, c.meaning)
	}
	return b.String()
}

// exit ends the command with a code. Without an error, all was said before.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func wrongUsage(err error) error { return &exit{exitUsage, err} }

// interrupted is the cause of a context that a signal has ended.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "ended by a signal: " + i.signal.String() }

// code is what a shell says of a process that a signal has ended.
func (i interrupted) code() int {
	if s, ok := i.signal.(syscall.Signal); ok {
		return exitSignal + int(s)
	}
	return exitError
}

// codeOf is the code for what a command returned, and what there is to say about it.
func codeOf(err error) (code int, say error) {
	var e *exit
	var signal interrupted
	switch {
	case err == nil:
		return exitDone, nil
	case errors.As(err, &e):
		return e.code, e.err
	case errors.As(err, &signal):
		return signal.code(), err
	}
	return exitError, err
}
