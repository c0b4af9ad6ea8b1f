package web

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Reading is what a feed has read last.
type Reading[T any] struct {
	Value T
	At    time.Time // when Value was read; zero if nothing was read yet
	Err   error     // of a later attempt; nil if Value is the last
	tried time.Time
}

// Feed reads for all who follow it: once per interval however many they are, and not while there
// is nobody.
type Feed[T any] struct {
	ctx   context.Context // ends all reading
	look  Look[T]
	every time.Duration // between the end of a reading and the next

	mu        sync.Mutex
	followers int
	running   bool               // a goroutine reads and watches
	retired   bool               // nobody comes for it any more: it ends with the last who follows
	reads     bool               // it reads now; else it watches, if it is running
	end       context.CancelFunc // ends that
	reading   Reading[T]
	current   bool          // reading was made for those who follow
	news      chan struct{} // closed when there is another reading
}

func newFeed[T any](ctx context.Context, look Look[T], every time.Duration) *Feed[T] {
	return &Feed[T]{ctx: ctx, look: look, every: every, end: func() {}, news: make(chan struct{})}
}

// Follow yields the last reading, if it is fresh, and then each one that is made, until ctx or the
// feed ends.
func (f *Feed[T]) Follow(ctx context.Context) iter.Seq[Reading[T]] {
	return func(yield func(Reading[T]) bool) {
		f.join()
		defer f.leave()
		for first := true; ; first = false {
			f.mu.Lock()
			reading, news, fresh := f.reading, f.news, f.isFresh()
			f.mu.Unlock()
			if (fresh || !first) && !yield(reading) {
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			case <-f.ctx.Done():
				return
			}
		}
	}
}

// Latest is a fresh reading: the last one, or else the next.
func (f *Feed[T]) Latest(ctx context.Context) (Reading[T], error) {
	f.mu.Lock()
	reading, fresh := f.reading, f.isFresh()
	f.mu.Unlock()
	if fresh {
		return reading, nil
	}
	for reading := range f.Follow(ctx) {
		return reading, nil
	}
	if ctx.Err() != nil {
		return Reading[T]{}, context.Cause(ctx)
	}
	return Reading[T]{}, context.Cause(f.ctx)
}

// LatestWithin is the latest reading, or after a while the last one, however old: empty if there is none.
func (f *Feed[T]) LatestWithin(ctx context.Context, patience time.Duration) (Reading[T], error) {
	short, cancel := context.WithTimeoutCause(ctx, patience, errSlow)
	defer cancel()
	reading, err := f.Latest(short)
	if errors.Is(err, errSlow) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.reading, nil
	}
	return reading, err
}

var errSlow = errors.New("the reading takes long")

// isFresh is called with mu held. A reading that is followed is as fresh as it gets, however long the
// next one takes.
func (f *Feed[T]) isFresh() bool {
	return !f.reading.tried.IsZero() && (f.current || time.Since(f.reading.tried) < f.every)
}

func (f *Feed[T]) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers++
	if !f.running {
		f.running = true
		go f.run()
	}
}

func (f *Feed[T]) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers--; f.followers == 0 {
		f.current = false
		f.endUnwanted()
	}
}

// retire ends it for good unless somebody follows it, and reports whether it has.
func (f *Feed[T]) retire() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retired = f.followers == 0
	f.endUnwanted()
	return f.retired
}

// endUnwanted is called with mu held.
func (f *Feed[T]) endUnwanted() {
	if f.followers == 0 && (f.reads || f.retired) {
		f.end()
	}
}

// run reads and watches in turn. It ends when a reading is due that nobody waits for: so it goes on watching
// for who loads a page again and again.
func (f *Feed[T]) run() {
	for {
		f.mu.Lock()
		next := f.reading.tried.Add(f.every)
		f.reads = !time.Now().Before(next)
		if f.ctx.Err() != nil || f.followers == 0 && (f.retired || f.reads) {
			f.running = false
			f.mu.Unlock()
			return
		}
		ctx, end := context.WithCancel(f.ctx)
		f.end = end
		reads := f.reads
		f.mu.Unlock()
		if reads {
			f.read(ctx)
		} else {
			f.watch(ctx, next)
		}
		end()
	}
}

// read reads, unless the last follower leaves meanwhile.
func (f *Feed[T]) read(ctx context.Context) {
	value, err := f.look.Read(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	f.reading.tried, f.reading.Err, f.current = time.Now(), err, f.followers > 0
	if err == nil {
		f.reading.Value, f.reading.At = value, f.reading.tried
	}
	close(f.news)
	f.news = make(chan struct{})
}

// watch watches until the next reading is due, or nobody wants it. What keeps a watch from going on
// keeps the reading, too, which then says so.
func (f *Feed[T]) watch(ctx context.Context, next time.Time) {
	ctx, end := context.WithDeadline(ctx, next)
	defer end()
	_ = f.look.Watch(ctx)
	<-ctx.Done()
}
