package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress says on stderr how far long work has come: on a terminal in one line that
// changes, otherwise in a line now and then. It is safe for concurrent use.
type progress struct {
	to       io.Writer
	terminal bool

	mu    sync.Mutex
	last  time.Time
	shown bool // the line on the terminal is not empty
}

// How often it says something.
const (
	everyOnTerminal = 100 * time.Millisecond
	everyInLog      = 10 * time.Second
)

// newProgress begins now: work that is done soon says nothing in a log. It is to be
// cleared before anything else is written.
func newProgress(stderr io.Writer) *progress {
	p := &progress{to: stderr, terminal: isTerminal(stderr)}
	if !p.terminal {
		p.last = time.Now()
	}
	return p
}

// say says it unless something was said just now.
func (p *progress) say(text string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := everyInLog
	if p.terminal {
		every = everyOnTerminal
	}
	if time.Since(p.last) < every {
		return
	}
	p.last = time.Now()
	if p.terminal {
		p.shown = true
		fmt.Fprintf(p.to, "\r\x1b[K"+text, args...)
		return
	}
	fmt.Fprintf(p.to, text+"\n", args...)
}

// clear takes the line away. More may be said afterwards.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		p.shown, p.last = false, time.Time{}
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}
