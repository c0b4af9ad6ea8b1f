// Install fetches the engines that the tests run against into .engines/ at the
// root of the repository, and sees to the C compiler that the race detector
// takes. What is there already is only checked. With names of tools behind it, it
// sees to those alone.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/holdall/holdall/integration/engines"
	"github.com/holdall/holdall/integration/tools/program"
)

func main() {
	program.Main("install", func(ctx context.Context, tools []string) error {
		if len(tools) > 0 {
			return provideNamed(ctx, tools)
		}
		return install(ctx)
	})
}

func install(ctx context.Context) error {
	root, err := engines.Root()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, ".engines"), 0o755); err != nil {
		return err
	}
	if err := provideCompiler(ctx); err != nil {
		return err
	}
	if err := provide(ctx, []string{"PostgreSQL", "Chromium"}); err != nil {
		return err
	}
	for _, e := range []struct {
		kind   engines.Kind
		tools  []string // what fetching it takes
		needs  []string // what running it takes
		fetch  func(ctx context.Context, root, dir string) error
		verify func(ctx context.Context, dir string) error
	}{
		{engines.KindDynoxide, []string{"npm"}, nil, fetchDynoxide, verifyDynoxide},
		{engines.KindLocal, []string{"mvn"}, []string{"java"}, fetchLocal, verifyLocal},
	} {
		if err := provide(ctx, e.needs); err != nil {
			return err
		}
		home, err := e.kind.Home()
		if err != nil {
			return err
		}
		if _, err := os.Stat(home); err == nil {
			if err := e.verify(ctx, home); err != nil {
				return fmt.Errorf("%s in %s does not work: %w; remove that folder and run this again", e.kind, home, err)
			}
			say("%s is there.", e.kind)
			continue
		}
		if err := provide(ctx, e.tools); err != nil {
			return err
		}
		say("Fetching %s.", e.kind)
		if err := intoPlace(home, func(dir string) error {
			if err := e.fetch(ctx, root, dir); err != nil {
				return err
			}
			return e.verify(ctx, dir)
		}); err != nil {
			return fmt.Errorf("%s: %w", e.kind, err)
		}
		say("%s is installed.", e.kind)
	}
	return nil
}

// intoPlace fills a folder beside home and renames it when it is complete and
// verified: an installation that was interrupted is none.
func intoPlace(home string, fill func(dir string) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(home), "unfinished-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := fill(dir); err != nil {
		return err
	}
	if err := os.Rename(dir, home); err != nil {
		if _, there := os.Stat(home); there == nil {
			return nil // Somebody else installed the same version meanwhile.
		}
		return err
	}
	return nil
}

// run runs a command and returns what it printed; its complaints are part of the error.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%s: %w\n%s%s", cmd, err, complaints.Bytes(), out)
	}
	return out, nil
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }
