// Package program is what the programs under integration have in common.
package program

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Main runs a program until it has done, or is interrupted, and ends the process:
// with 2 if its flags were asked for, with 1 if it failed.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Run runs a command to its end, or until ctx ends: then it is interrupted, as the go
// command wants it to end its own children, and soon killed. env is added to that of
// this process; spent is the command's processor time.
func Run(ctx context.Context, dir string, env []string, name string, args ...string) (output string, spent time.Duration, err error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &out
	cmd.WaitDelay = 10 * time.Second
	cmd.Cancel = func() error {
		if cmd.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return cmd.Process.Kill()
	}
	err = cmd.Run()
	if cmd.ProcessState != nil {
		spent = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return out.String(), spent, err
}

// Share is the help of a flag that [Part] reads.
const Share = "only the `i/n`-th part of them: every n-th, from the i-th"

// Part returns every n-th of the work, from the i-th, of the share "i/n".
func Part[T any](of []T, share string) (some []T, err error) {
	var i, n int
	if _, err := fmt.Sscanf(share, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		return nil, fmt.Errorf("-part: %q is not one of 1/n to n/n", share)
	}
	for at := i - 1; at < len(of); at += n {
		some = append(some, of[at])
	}
	return some, nil
}

// Test is a test or a fuzz target: a function of a test file.
type Test struct {
	Folder, Name string // the folder from the root of the repository
}

var declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\)`)

// Tests finds all tests and fuzz targets of a repository, by folder.
func Tests(repository fs.FS) (all []Test, err error) {
	err = fs.WalkDir(repository, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(repository, p)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			all = append(all, Test{path.Dir(p), found[1]})
		}
		return err
	})
	return all, err
}
