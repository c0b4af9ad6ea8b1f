package staff

import (
	"context"
	"sync"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Overtaking is work of two owners on the same records. One owner is paused when it is about to write
// a statement. It resumes when the other has done its jobs, for which it must take over the locks.
type Overtaking struct {
	Late      Job   // writes a statement
	Meanwhile []Job // one after the other
}

// tripwire pauses its owner at the first statement that is written through it: the owner sends nothing
// any more, not even heartbeats, until it resumes.
type tripwire struct {
	archiveLine
	once              *sync.Once
	tripped, resuming chan struct{}
}

func (w tripwire) Write(ctx context.Context, token fencing.Token, keys []ordering.Key, statements []books.Statement) error {
	w.once.Do(func() {
		w.owner.line.Pause()
		close(w.tripped)
		<-w.resuming
		w.owner.line.Resume()
	})
	return w.archiveLine.Write(ctx, token, keys, statements)
}

// overtakeAll pauses one owner after the other, each overtaken by the next, and then closes the desks.
func (r *shift) overtakeAll() {
	for n := 0; !r.desks[0].closed(); n++ {
		o, ok := r.s.cfg.Overtakings()
		if !ok {
			break
		}
		r.overtake(r.owners[n%len(r.owners)], r.owners[(n+1)%len(r.owners)], o)
	}
	for _, d := range r.desks {
		d.Close()
	}
}

func (r *shift) overtake(slow, quick *owner, o Overtaking) {
	wire := tripwire{archiveLine{slow, r.s.cfg.Archive}, &sync.Once{}, make(chan struct{}), make(chan struct{})}
	bank := *slow.bank
	bank.Archive = wire
	late := make(chan error, 1)
	go func() {
		late <- tries(func() error {
			select {
			case <-wire.tripped: // its late statement was rejected, as it must be
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
	case err := <-late: // it did not reach the archive
		r.tally.unexpected(o.Late.Kind, err)
		return
	}
	for _, job := range o.Meanwhile {
		if err := tries(func() error { return job.Do(quick.ctx, quick.bank) }); err != nil {
			r.tally.unexpected(job.Kind, err)
		}
	}
	if r.s.recording != nil {
		r.s.recording.Paused(slow.name, time.Since(paused))
	}
	close(wire.resuming)
	r.tally.Add(Paused, 1)
	if err := <-late; err != nil {
		r.tally.unexpected(o.Late.Kind, err)
	}
}

// tries repeats do until it succeeds, or fails with an error that will not pass.
func tries(do func() error) (err error) {
	for range maxTries {
		err = do()
		if next := lockset.NextOf(err); next != lockset.StartOver && next != lockset.TryLater && !again(err) {
			return err
		}
	}
	return err
}
