package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdall/holdall/integration/tools/mutants/internal/switched"
	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
	"github.com/holdall/holdall/integration/tools/program"
)

// suite is a test binary that has all drawn mutants in it, and what is run of it.
type suite struct {
	in      string // the package's folder
	args    []string
	binary  string
	overlay string
	of      []string      // the folders of the packages that it tests
	limit   time.Duration // of the first run with a mutant
}

// suites builds the tests of these packages with the mutants in them, and runs each
// with all mutants asleep: so it has to pass, and so long it takes. It leaves out packages
// without tests, and those whose tests use no package that has mutants.
func (l *laboratory) suites(ctx context.Context, overlay string, drawn []switched.Mutant, of []check) ([]*suite, error) {
	built := make([]*suite, len(of))
	err := l.each(ctx, len(of), func(ctx context.Context, i int) (err error) {
		s := &suite{in: of[i].in, args: of[i].args, overlay: overlay, binary: filepath.Join(l.dir, fmt.Sprintf("suite%d.test", i))}
		if s.of, err = l.tested(ctx, s.in); err != nil {
			return err
		}
		if !slices.ContainsFunc(drawn, func(m switched.Mutant) bool { return slices.Contains(s.of, path.Dir(m.File)) }) {
			return nil
		}
		if of[i].test != "" {
			s.args = append([]string{"-test.run", "^" + of[i].test + "$"}, s.args...)
		}
		if output, err := l.build(ctx, s.in, s.binary, overlay); err != nil {
			return fmt.Errorf("./%s does not compile with all mutants asleep in it: %w\n%s", s.in, err, indented(output))
		}
		if _, err := os.Stat(s.binary); os.IsNotExist(err) {
			return nil
		}
		r := l.wake(ctx, s, 0, l.long)
		if ctx.Err() == nil && r.verdict != survived {
			return fmt.Errorf("%s does not pass with all mutants asleep in it\n%s", s.in, indented(r.detail))
		}
		s.limit = firstLimit(r.took, l.timeout)
		built[i] = s
		return context.Cause(ctx)
	})
	return slices.DeleteFunc(built, func(s *suite) bool { return s == nil }), err
}

// tested returns the folders of the packages that the tests of a package use. Those of the command
// and of exporters count for their own module only: with all that they import, they would run for
// nearly every mutant, and they are slow.
func (l *laboratory) tested(ctx context.Context, in string) (folders []string, err error) {
	module := tree.ModuleOf(l.root, in)
	output, _, err := program.Run(ctx, l.folder(module), nil, "go", "list", "-deps", "-test", "-f", "{{.Dir}}", tree.Pattern(module, in))
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, indented(output))
	}
	ownOnly := slices.ContainsFunc(modules, func(m string) bool { return tree.ModuleOf(l.root, m) == module })
	for _, dir := range strings.Fields(output) {
		folder, err := filepath.Rel(l.root, dir)
		if err != nil || !filepath.IsLocal(folder) {
			continue
		}
		if folder = filepath.ToSlash(folder); !ownOnly || tree.ModuleOf(l.root, folder) == module {
			folders = append(folders, folder)
		}
	}
	return folders, nil
}

// wake runs a suite with one mutant awake, also in the programs that its tests build.
// detail names what noticed the mutant, or is the output of a suite that should have passed.
func (l *laboratory) wake(ctx context.Context, s *suite, number int, limit time.Duration) result {
	begun := time.Now()
	// A mutant may keep a process from ending even itself.
	limited, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	args := append([]string{"-test.failfast", "-test.count", "1", "-test.timeout", limit.String()}, s.args...)
	env := []string{switched.Variable + "=" + strconv.Itoa(number), "GOFLAGS=-overlay=" + s.overlay}
	output, _, err := program.Run(limited, l.folder(s.in), env, s.binary, args...)
	r := result{verdict: survived, took: time.Since(begun)}
	switch {
	case limited.Err() != nil || strings.Contains(output, "panic: test timed out after"):
		r.verdict, r.detail = endless, s.in
	case err != nil && number == 0:
		r.verdict, r.detail = died, output
	case err != nil:
		r.verdict, r.detail = caught, s.in+" "+noticed(output)
	}
	return r
}

var (
	failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	fatal  = regexp.MustCompile(`(?m)^(panic|fatal error|\S+: flag|exit status).*$`)
)

// noticed is the test that failed first, or else what ended the run.
func noticed(output string) string {
	if found := failed.FindStringSubmatch(output); found != nil {
		return found[1]
	}
	return fatal.FindString(output)
}

// suitesOf returns those of the suites that test a package: its own first.
func suitesOf(folder string, suites []*suite) (some []*suite) {
	for _, s := range suites {
		switch {
		case s.in == folder:
			some = append([]*suite{s}, some...)
		case slices.Contains(s.of, folder):
			some = append(some, s)
		}
	}
	return some
}

// overlay writes the joined packages, and returns the name of the file that lays
// them over the tree.
func (l *laboratory) overlay(t *tree.Tree, drawn []switched.Mutant) (string, error) {
	replaced := map[string]string{}
	for _, m := range drawn {
		folder := path.Dir(m.File)
		if _, done := replaced[filepath.Join(l.root, filepath.FromSlash(m.File))]; done {
			continue
		}
		texts, err := switched.Join(t, t.Package(folder), in(folder, drawn))
		if err != nil {
			return "", err
		}
		for name, text := range texts {
			copied := filepath.Join(l.dir, "joined", filepath.FromSlash(name))
			replaced[filepath.Join(l.root, filepath.FromSlash(name))] = copied
			if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
				return "", err
			}
			if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
				return "", err
			}
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		return "", err
	}
	name := filepath.Join(l.dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}
