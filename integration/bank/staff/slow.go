package staff

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/examples/bank/books"
	"github.com/holdall/holdall/unitofwork"
)

// slow runs units whose tellers take their time between what they read and what they
// write, with the locks held if the unit has any.
type slow struct {
	books.Runner
	atMost time.Duration
}

// Do calls the runner's Do.
func (s slow) Do(ctx context.Context, work unitofwork.Work, fn func(context.Context, books.Unit) error) error {
	return s.Runner.Do(ctx, work, func(ctx context.Context, u books.Unit) error {
		err := fn(ctx, u)
		Think(ctx, s.atMost)
		return err
	})
}

// Think takes some time, if ctx does not end meanwhile.
func Think(ctx context.Context, atMost time.Duration) {
	if atMost <= 0 {
		return
	}
	select {
	case <-time.After(rand.N(atMost)):
	case <-ctx.Done():
	}
}
