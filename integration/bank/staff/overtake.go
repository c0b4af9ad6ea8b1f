package staff

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// Overtaking is work of two owners on the same records. One is paused when it is
// about to write a statement. It goes on when the other has done its part, for
// which it must have taken over the locks of the first.
type Overtaking struct {
	Late      Job   // writes a statement
	Meanwhile []Job // one after the other
}

// archiveLine is one owner's way to the archive: a paused owner sends nothing to
// any store, a dead one never does again.
type archiveLine struct {
	line  *connection
	to    books.Archive
	tally *Tally
	think time.Duration
}

func (a archiveLine) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	Think(ctx, a.think)
	if err := a.line.hold(ctx); err != nil {
		return err
	}
	if a.line.dead.Load() {
		return errCut
	}
	err := a.to.Write(ctx, token, keys, statements)
	switch {
	case err == nil:
		a.tally.Archived.Add(int64(len(statements)))
	case errors.Is(err, fencing.ErrStale):
		a.tally.Stale.Add(int64(len(statements)))
	}
	return err
}

// tripwire pauses an owner that is about to write its first statement through it.
type tripwire struct {
	archiveLine
	once    *sync.Once
	tripped chan struct{}
}

func (w tripwire) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	w.once.Do(func() {
		w.line.pause()
		close(w.tripped)
	})
	return w.archiveLine.Write(ctx, token, keys, statements)
}

// overtakings has one owner after the other paused, and overtaken by the next.
func (s *shift) overtakings() {
	defer s.desk.Close()
	for n := 0; !s.desk.quiet(); n++ {
		o, ok := s.cfg.Overtakings()
		if !ok {
			return
		}
		s.overtake(s.owners[n%len(s.owners)], s.owners[(n+1)%len(s.owners)], o)
	}
}

func (s *shift) overtake(slow, quick *owner, o Overtaking) {
	wire := tripwire{archiveLine{slow.line, s.cfg.Archive, s.tally, s.cfg.Think}, &sync.Once{}, make(chan struct{})}
	bank := *slow.bank
	bank.Archive = wire
	late := make(chan error, 1)
	go func() {
		late <- tries(func() error {
			select {
			case <-wire.tripped: // what it wrote late was refused: it is overtaken, and that is all
				return nil
			default:
				return o.Late.Do(slow.ctx, &bank)
			}
		})
	}()
	var paused time.Time
	select {
	case <-wire.tripped:
		paused = time.Now()
	case err := <-late: // it did not come so far
		s.tally.unexpected(o.Late.Kind, err)
		return
	}
	for _, job := range o.Meanwhile {
		if err := tries(func() error { return job.Do(quick.ctx, quick.bank) }); err != nil {
			s.tally.unexpected(job.Kind, err)
		}
	}
	if s.cfg.Recording != nil {
		s.cfg.Recording.Paused(slow.name, time.Since(paused))
	}
	slow.line.goOn()
	s.tally.Paused.Add(1)
	if err := <-late; err != nil {
		s.tally.unexpected(o.Late.Kind, err)
	}
}

// tries does something until it succeeds, or fails in a way that will not pass.
func tries(do func() error) (err error) {
	for range maxTries {
		switch err = do(); unitofwork.NextOf(err) {
		case unitofwork.StartOver, unitofwork.TryLater:
		default:
			if !again(err) {
				return err
			}
		}
	}
	return err
}
