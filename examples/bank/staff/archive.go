package staff

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
)

// archiveLine is the owner's connection to the archive. A dead owner writes nothing.
type archiveLine struct {
	owner *owner
	to    books.Archive
}

// Write implements books.Archive.
func (a archiveLine) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	pauses := a.owner.shift.pauses
	if newer := pauses.begin(statements); newer != nil {
		a.owner.pause(newer, pauses.over)
	}
	if a.owner.dead() {
		return faults.ErrCrashed
	}
	err := a.to.Write(ctx, token, keys, statements)
	switch {
	case err == nil:
		a.owner.shift.tally.Add(Archived, len(statements))
		pauses.wrote(statements)
	case errors.Is(err, fencing.ErrStale):
		a.owner.shift.tally.Add(Stale, len(statements))
	}
	return err
}

// pauses are times when an owner is paused as it is about to write statements, until another owner has
// taken over its locks and written a newer statement of one of these accounts.
type pauses struct {
	over <-chan struct{} // closed when no more statements may come
	last func()          // called when the last pause ends

	mu    sync.Mutex
	left  int
	late  []books.Statement // of the owner that is paused
	newer chan struct{}     // closed when a newer one was written; nil if no owner is paused
}

// begin returns a channel to wait for, if the owner of these statements is to be paused.
func (p *pauses) begin(statements []books.Statement) (newer <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 || p.newer != nil {
		return nil
	}
	p.late, p.newer = statements, make(chan struct{})
	return p.newer
}

// wrote ends the pause if one of these statements is newer than a late one.
func (p *pauses) wrote(statements []books.Statement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	newer := func(s books.Statement) bool {
		return slices.ContainsFunc(p.late, func(late books.Statement) bool { return s.Account == late.Account && s.Changes > late.Changes })
	}
	if p.newer == nil || !slices.ContainsFunc(statements, newer) {
		return
	}
	close(p.newer)
	p.newer = nil
	if p.left--; p.left == 0 {
		p.last()
	}
}

// pause has the owner send nothing any more, not even heartbeats, until a newer statement was written.
func (o *owner) pause(newer, over <-chan struct{}) {
	start := time.Now()
	o.line.Pause()
	defer o.line.Resume()
	select {
	case <-newer:
		o.shift.tally.Add(Paused, 1)
	case <-over:
	}
	if recording := o.shift.s.recording; recording != nil {
		recording.Paused(o.name, time.Since(start))
	}
}
