package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdall/holdall/integration/engines"
)

// collector is what the OpenTelemetry collector is asked for by. No registry has its program, so it is
// built of its modules.
const collector = "collector"

func buildCollector(ctx context.Context) error {
	program, err := engines.Collector()
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err == nil {
		say("The OpenTelemetry collector is there.")
		return nil
	}
	root, err := engines.Root()
	if err != nil {
		return err
	}
	home := filepath.Dir(program)
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return err
	}
	say("Building the OpenTelemetry collector; this takes a minute or two.")
	if err := intoPlace(home, func(dir string) error {
		out := filepath.Join(dir, filepath.Base(program))
		if _, err := run(ctx, filepath.Join(root, engines.CollectorSource), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "."); err != nil {
			return err
		}
		_, err := run(ctx, dir, out, "components")
		return err
	}); err != nil {
		return fmt.Errorf("the OpenTelemetry collector cannot be built or does not run: %w", err)
	}
	say("The OpenTelemetry collector is built.")
	return nil
}
