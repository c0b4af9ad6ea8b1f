package record

import (
	"bytes"
	"cmp"
	"errors"
	"time"
)

const (
	// full is how much is written at once.
	full = 64 << 10
	// most is how much waits to be written.
	most = 8 << 20
	// soon is when a line is written at the latest. A process that is killed loses no more.
	soon = 100 * time.Millisecond
	// patience is for how long those wait who have more to tell than most while the file does not
	// take any of it. A heartbeat may be among them.
	patience = time.Second
)

var errSlow = errors.New("the file does not take what is written to it")

func (r *Recording) fail(err error) { r.err = cmp.Or(r.err, err) }

// add appends a line.
func (r *Recording) add(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		if !r.closed {
			r.wrote(l, func(lines []byte) (int, error) { return r.out.Write(lines) })
		}
		return
	}
	for !r.closed && len(r.buffer) >= most {
		if !r.wait() {
			r.lost++
			r.fail(errSlow)
			return
		}
	}
	if r.closed {
		return
	}
	had := len(r.buffer)
	r.buffer = append(r.buffer, l...)
	if len(r.buffer) < full {
		return
	}
	if had < full {
		r.gotOn = time.Now()
	}
	if !r.woken && r.timer.Stop() {
		r.woken = true
		r.timer.Reset(0)
	}
}

// wait waits until the buffer was taken, or some time has gone by. It returns false if that is no
// longer worth while.
func (r *Recording) wait() bool {
	left, taken := patience-time.Since(r.gotOn), r.taken
	if left <= 0 {
		return false
	}
	r.mu.Unlock()
	defer r.mu.Lock()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-taken:
	case <-timer.C:
	}
	return true
}

// watch writes now and then, and notices that it comes late.
func (r *Recording) watch() {
	in := soon
	if len(r.buffer) >= full {
		in = 0
	}
	due := time.Now().Add(in)
	r.timer = time.AfterFunc(in, func() {
		r.tellPause(time.Since(due))
		r.writing.Lock()
		defer r.writing.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.closed {
			r.writeBuffer()
			r.watch()
		}
	})
}

// writeBuffer writes what is in the buffer, and lets go of mu meanwhile.
func (r *Recording) writeBuffer() {
	lines := r.buffer
	r.buffer, r.spare, r.woken, r.gotOn = r.spare, nil, false, time.Now()
	close(r.taken)
	r.taken = make(chan struct{})
	for rest := lines; len(rest) > 0; {
		n := len(rest)
		if n > full {
			n = max(bytes.LastIndexByte(rest[:full], '\n'), bytes.IndexByte(rest, '\n')) + 1
		}
		r.wrote(rest[:n], func(lines []byte) (int, error) {
			r.mu.Unlock()
			defer r.mu.Lock()
			return r.file.Write(lines)
		})
		r.gotOn, rest = time.Now(), rest[n:]
	}
	if cap(lines) <= 16*full {
		r.spare = lines[:0]
	}
}

// wrote writes whole lines: those that are not written then are left out.
func (r *Recording) wrote(lines []byte, write func([]byte) (int, error)) {
	if n, err := write(lines); err != nil {
		r.fail(err)
		r.lost += bytes.Count(lines[n:], []byte("\n"))
	}
}
