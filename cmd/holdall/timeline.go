package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/cmd/holdall/internal/timeline"
)

func timelineCommand(a *app) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "timeline FILE... -o OUT",
		Short: "Draw a recording: who held and waited for what when",
		Long: "timeline draws what package record has recorded: a lane for each key, with who held it and who\n" +
			"waited behind whom, and one for each process, with its units and what became of them.\n\n" +
			"OUT ends in .html, then it is a page for a browser, which needs no network; or in .json, then it\n" +
			"is a trace for Perfetto (https://ui.perfetto.dev) or chrome://tracing.\n\n" +
			"Several files are merged by their times: those of several processes, and those that were put\n" +
			"aside when they were full (FILE.1 before FILE). - is what comes from stdin. It asks no table, and\n" +
			"needs neither account nor Region.",
		Example: "  holdall timeline holdall.jsonl* -o out.html\n  holdall timeline web-1.jsonl web-2.jsonl -o out.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.timeline(cmd.Context(), args, to)
		},
	}
	// It has the name of the shared flag, whose place it takes.
	cmd.Flags().StringVarP(&to, "output", "o", "", "`file` to write, whose name ends in .html or .json")
	_ = cmd.MarkFlagFilename("output", "html", "json")
	return cmd
}

var drawings = map[string]func(io.Writer, *timeline.Model) error{
	".html": timeline.WritePage,
	".json": timeline.WriteTrace,
}

func (a *app) timeline(ctx context.Context, files []string, to string) error {
	write, known := drawings[filepath.Ext(to)]
	if !known {
		return wrongUsage(fmt.Errorf("-o is %q: give it the name of a file that ends in .html or .json", to))
	}
	m, err := a.recorded(ctx, files, to)
	if err != nil {
		return err
	}
	if err := writeWhole(to, func(w io.Writer) error { return write(w, m) }); err != nil {
		return err
	}
	if m.Bad > 0 {
		fmt.Fprintf(a.stderr, "holdall: %s no event, and left out\n", plain.Count(m.Bad, "line is", "lines are"))
	}
	a.out.line("%s: %s of %s over %v; %s held or waited for", to, plain.Count(len(m.Units), "unit", "units"),
		plain.Count(len(m.Processes), "process", "processes"), time.Duration(m.End-m.Begin).Round(time.Millisecond), plain.Count(len(m.Keys), "key", "keys"))
	return nil
}

// recorded is the model of recordings, none of which may be what is written then.
func (a *app) recorded(ctx context.Context, files []string, to string) (*timeline.Model, error) {
	var sources []timeline.Source
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			_ = f.Close() // it was only read
		}
	}()
	stdin := false
	var infos []os.FileInfo
	out, _ := os.Stat(to) // or there is none
	for _, name := range files {
		if name == "-" {
			if !stdin {
				sources = append(sources, timeline.Source{Name: "stdin", Reader: a.stdin})
			}
			stdin = true
			continue
		}
		f, err := open(ctx, name)
		if err != nil {
			return nil, err
		}
		opened = append(opened, f)
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if out != nil && os.SameFile(info, out) {
			return nil, wrongUsage(fmt.Errorf("-o would overwrite %s, which is to be read", name))
		}
		if slices.ContainsFunc(infos, func(i os.FileInfo) bool { return os.SameFile(i, info) }) {
			continue // it is named twice, as by web.jsonl* web.jsonl
		}
		infos = append(infos, info)
		sources = append(sources, timeline.Source{Name: name, Reader: f})
	}
	return timeline.Read(ctx, sources...)
}

// open opens a file, which may be a pipe that nobody writes to.
func open(ctx context.Context, name string) (*os.File, error) {
	var f *os.File
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		f, err = os.Open(name) //nolint:gosec // it is the user who names it
	}()
	select {
	case <-opened:
		return f, err
	case <-ctx.Done():
		return nil, context.Cause(ctx) // and with it, the process ends
	}
}

// writeWhole writes a file that only the user may read, or leaves what was there.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.Rename(f.Name(), name)
}
