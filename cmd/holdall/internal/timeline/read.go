package timeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/holdall/holdall/record"
)

// Source is a recording.
type Source struct {
	Name   string
	Reader io.Reader
}

// Read makes a model of recordings, which are merged by time. Those whose names differ only in the
// number that a full file gets when it is put aside are parts of one. A line that is no event is
// counted and left out; any other error of a source is returned.
func Read(ctx context.Context, sources ...Source) (*Model, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := newBuilder()
	var heads []*stream
	for n, parts := range recordings(sources) {
		s := &stream{number: int32(n), lines: events(ctx, parts)}
		if err := s.next(ctx, b); err != nil {
			return nil, err
		}
		if !s.over {
			heads = append(heads, s)
		}
	}
	for len(heads) > 0 {
		// Of one time, the first of the recordings.
		s := slices.MinFunc(heads, func(x, y *stream) int { return x.head.At.Compare(y.head.At) })
		b.event(s.number, &s.head)
		if err := s.next(ctx, b); err != nil {
			return nil, err
		}
		if s.over {
			heads = slices.DeleteFunc(heads, func(head *stream) bool { return head == s })
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if b.m.Lines == 0 {
		return nil, fmt.Errorf("there is no event in %d lines", b.m.Bad)
	}
	for _, s := range sources {
		b.m.Sources = append(b.m.Sources, filepath.Base(s.Name))
	}
	return b.finish(), nil
}

// putAside is how the name of a file ends that was full.
var putAside = regexp.MustCompile(`^(.*)\.(\d+)$`)

// partOf is the recording of which a file is a part, and how many files were put aside after it.
func partOf(file string) (recording string, n int) {
	if m := putAside.FindStringSubmatch(file); m != nil {
		if n, err := strconv.Atoi(m[2]); err == nil {
			return m[1], n
		}
	}
	return file, 0
}

// recordings groups the sources that are parts of one recording, the oldest part first.
func recordings(sources []Source) (all [][]Source) {
	of := map[string]int{}
	for _, s := range sources {
		name, _ := partOf(s.Name)
		if _, known := of[name]; !known {
			of[name] = len(all)
			all = append(all, nil)
		}
		all[of[name]] = append(all[of[name]], s)
	}
	for _, parts := range all {
		slices.SortStableFunc(parts, func(x, y Source) int {
			_, m := partOf(x.Name)
			_, n := partOf(y.Name)
			return cmp.Compare(n, m)
		})
	}
	return all
}

// line is an event, or why there is none.
type line struct {
	record.Event
	err error
}

// events reads the parts of a recording in a goroutine of its own, which is ahead of whoever asks:
// most of the time goes into reading.
func events(ctx context.Context, parts []Source) <-chan line {
	read := make(chan line, 1024)
	go func() {
		defer close(read)
		for _, part := range parts {
			for e, err := range record.Read(part.Reader) {
				if err != nil {
					err = fmt.Errorf("%s: %w", part.Name, err)
				}
				select {
				case read <- line{e, err}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return read
}

// stream is a recording of which the next event is known.
type stream struct {
	number int32
	lines  <-chan line
	head   record.Event
	over   bool
}

// next goes on to the next line that is an event.
func (s *stream) next(ctx context.Context, b *builder) error {
	for {
		select {
		case l, more := <-s.lines:
			switch {
			case !more:
				s.over = true
				return nil
			case l.err == nil:
				s.head = l.Event
				b.m.Lines++
				return nil
			case !errors.As(l.err, new(*record.LineError)):
				return l.err
			}
			b.m.Bad++
		case <-ctx.Done(): // what is read may be a pipe that nobody writes to
			return context.Cause(ctx)
		}
	}
}
