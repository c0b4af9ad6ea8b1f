package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// file is written to its end, then put aside for another.
type file struct {
	path string
	max  int64
	keep int

	f    *os.File
	size int64
	torn bool // its last line is not whole
}

func (f *file) open() error {
	opened, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	f.f, f.size, f.torn = opened, info.Size(), false
	if err := f.endLine(); err != nil {
		return errors.Join(err, f.close())
	}
	return nil
}

// endLine ends a line that somebody has begun who was killed.
func (f *file) endLine() error {
	if f.size == 0 {
		return nil
	}
	read, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }() // nothing was written to it
	var last [1]byte
	if _, err := read.ReadAt(last[:], f.size-1); err != nil || last[0] == '\n' {
		return err
	}
	n, err := f.f.WriteString("\n")
	f.size += int64(n)
	return err
}

// Write implements [io.Writer]. If the file is full it is put aside first.
func (f *file) Write(lines []byte) (int, error) {
	if f.f == nil || f.size > 0 && f.size+int64(len(lines)) > f.max {
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	if f.torn {
		n, err := f.f.WriteString("\n")
		f.size += int64(n)
		if err != nil {
			return 0, err
		}
	}
	n, err := f.f.Write(lines)
	f.size += int64(n)
	f.torn = n > 0 && lines[n-1] != '\n'
	return n, err
}

// rotate puts the file aside. It is called again if it fails, for whatever is written next.
func (f *file) rotate() error {
	if f.f != nil {
		if err := f.close(); err != nil {
			return err
		}
		for n := f.keep; n >= 1; n-- {
			if err := os.Rename(f.aside(n-1), f.aside(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return f.open()
}

// aside is the name of the file that was put aside the nth time ago.
func (f *file) aside(n int) string {
	if n == 0 {
		return f.path
	}
	return fmt.Sprintf("%s.%d", f.path, n)
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
