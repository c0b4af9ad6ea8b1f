// Command holdall operates holdall's tables: it makes and checks them, finishes what
// crashed processes left behind, says what became of a unit, and runs commands under locks.
//
// A subcommand is one file with one constructor, and one line in commands.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, handled()...)
	os.Exit(run(context.Background(), os.Args[1:], &environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, signals: signals,
	}))
}
