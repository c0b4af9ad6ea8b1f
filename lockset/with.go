package lockset

import (
	"context"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/misuse"
	"github.com/holdall/holdall/internal/oneline"
	"github.com/holdall/holdall/ordering"
)

// With acquires keys, calls fn while they are held, and releases them, also if fn panics.
// fn's context ends when ctx does, or when the keys are lost, with a *heartbeat.LostError as its
// cause, before anybody else can have them; it compares with the clock as [Set.Context] does. What fn
// writes elsewhere is protected by the token, if the store refuses one that is lower than the highest
// it has seen.
//
// The error is that of [Client.Acquire], and then fn was not called; or fn's own, joined
// with that of the release: with a *heartbeat.LostError if the keys were not held to the end.
// Releasing goes on for at most a lease after the end of ctx, the last of it in the background, as
// [Set.Release] says.
func (c *Client) With(ctx context.Context, keys []ordering.Key, fn func(context.Context, fencing.Token) error, options ...func(*Options)) (err error) {
	if fn == nil {
		misuse.Of("lockset", "Client.With", "nil function")
	}
	set, err := c.acquire(ctx, "With", keys, options)
	if err != nil {
		return err
	}
	defer func() { err = oneline.Join(err, set.Release(ctx)) }()
	held, end, _ := set.engine().Under(set.engine().Within(ctx))
	defer end(heartbeat.ErrReleased)
	return fn(held, set.Token())
}
