package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
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
		// One that would go on in the next line of the terminal could not be taken away again.
		line := []rune(plain.Line(fmt.Sprintf(text, args...)))
		fmt.Fprint(p.to, "\r\x1b[K"+string(line[:min(len(line), widthOf(p.to)-1)]))
		return
	}
	fmt.Fprintf(p.to, text+"\n", args...)
}

// widthOf is how many columns a terminal has; what does not say so has many.
func widthOf(to io.Writer) int {
	if file, ok := to.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return math.MaxInt
}

// listed says how far a list has come. A small table is listed at once.
func (p *progress) listed(pages, rows int, units float64) {
	if pages > 1 {
		p.say("%d rows looked at, %.0f read units taken", rows, units)
	}
}

// watched says of how many keys it is known who is alive.
func (p *progress) watched(known, of int) {
	p.say("watching for signs of life: %d of %s known", known, plain.Count(of, "key", "keys"))
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
