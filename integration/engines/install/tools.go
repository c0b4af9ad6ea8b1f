package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/holdall/holdall/integration/engines"
)

// packages says which Debian packages a tool takes.
var packages = map[string]string{
	"gcc":  "gcc libc6-dev",
	"java": "default-jre-headless",
	"mvn":  "maven",
	"npm":  "npm",
	"spin": "spin",

	"javac":        "default-jdk-headless",
	"redis-server": "redis-server",

	"PostgreSQL": "postgresql",
	"Chromium":   "chromium fonts-dejavu-core", // which has no font of its own
	"prometheus": "prometheus",                 // with promtool
}

// provideNamed is provide for tools that the caller names, and for the collector, which is built.
func provideNamed(ctx context.Context, tools []string) error {
	var others []string
	for _, tool := range tools {
		switch {
		case tool == collector:
		case packages[tool] == "":
			return fmt.Errorf("nothing is known of %q", tool)
		default:
			others = append(others, tool)
		}
	}
	if err := provide(ctx, others); err != nil || len(others) == len(tools) {
		return err
	}
	return buildCollector(ctx)
}

// provide makes sure that tools are there, and installs them where that can be
// done without asking anybody.
func provide(ctx context.Context, tools []string) error {
	missing := absent(tools)
	if len(missing) == 0 {
		return nil
	}
	_, err := exec.LookPath("apt-get")
	args, err := remedy(missing, os.Geteuid() == 0, err == nil)
	if err != nil {
		return err
	}
	say("Missing: %s. Running: %s", strings.Join(missing, ", "), strings.Join(args, " "))
	if _, err := run(ctx, "", args[0], args[1:]...); err != nil {
		say("That failed. Running: apt-get update, then the same once more.")
		if _, err := run(ctx, "", "apt-get", "update"); err != nil {
			return err
		}
		if _, err := run(ctx, "", args[0], args[1:]...); err != nil {
			return err
		}
	}
	if missing = absent(tools); len(missing) > 0 {
		return fmt.Errorf("still missing after apt-get: %s", strings.Join(missing, ", "))
	}
	return nil
}

// provideCompiler makes sure that there is a C compiler: the race detector, with
// which the tests run, takes one.
func provideCompiler(ctx context.Context) error {
	out, err := run(ctx, "", "go", "env", "CC")
	if err != nil {
		return err
	}
	if cc := strings.Fields(string(out)); len(cc) > 0 && len(absent(cc[:1])) == 0 {
		return nil
	}
	return provide(ctx, []string{"gcc"})
}

func absent(tools []string) []string {
	var missing []string
	for _, tool := range tools {
		var err error
		switch tool {
		case "PostgreSQL": // Debian does not put it on the PATH
			_, err = engines.PostgresBin()
		case "Chromium": // has several names
			_, err = engines.Chromium()
		default:
			_, err = exec.LookPath(tool)
		}
		if err != nil {
			missing = append(missing, tool)
		}
	}
	return missing
}

// remedy is the command that brings missing tools, or an error that says in one
// line what the user has to run.
func remedy(missing []string, root, apt bool) ([]string, error) {
	args := []string{"apt-get", "install", "-y", "--no-install-recommends"}
	for _, tool := range missing {
		args = append(args, strings.Fields(packages[tool])...)
	}
	switch {
	case root && apt:
		return args, nil
	case apt:
		return nil, errors.New("missing: " + strings.Join(missing, ", ") + "; run: sudo " + strings.Join(args, " "))
	}
	return nil, errors.New("missing: " + strings.Join(missing, ", ") + "; install it with your package manager and run: make engines")
}
