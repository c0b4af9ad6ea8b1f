package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
)

// mostEvents is how many events of a key are kept.
const mostEvents = 50

// chronicle is a look at a key that remembers what has happened to it.
type chronicle struct {
	Look[Story]
	last   *Story
	events []Event
}

// Read adds what is new since the last reading.
func (c *chronicle) Read(ctx context.Context) (Story, error) {
	story, err := c.Look.Read(ctx)
	if err != nil {
		return story, err
	}
	if c.last != nil {
		now := time.Now()
		for _, words := range changes(*c.last, story) {
			c.events = append([]Event{{now, words}}, c.events...)
		}
		c.events = c.events[:min(len(c.events), mostEvents)]
	}
	c.last = &story
	story.Events = slices.Clone(c.events)
	return story, nil
}

// changes says what has happened between two looks at a key, in order. What began and ended
// between them was not seen.
func changes(before, after Story) (all []string) {
	say := func(text string, args ...any) { all = append(all, fmt.Sprintf(text, args...)) }
	was, is := before.Holder, after.Holder
	if was != nil && (is == nil || is.Unit != was.Unit) {
		if after.CommittedBy == was.Unit {
			say("unit %s committed, and let go of it", was.Unit)
		} else {
			say("unit %s has it no more", was.Unit)
		}
	}
	switch {
	case is == nil:
	case was == nil || was.Unit != is.Unit:
		say("taken by %s, with token %d", plain.Unit(is.Unit, is.Owner, is.Purpose), after.Fence)
	case !was.Prepared && is.Prepared:
		say("unit %s is prepared: its journal decides", is.Unit)
	case was.Life.Dead && is.Life.Alive:
		say("unit %s showed a sign of life", is.Unit)
	case !was.Life.Dead && is.Life.Dead:
		say("unit %s is dead: no sign of life for a lease", is.Unit)
	}
	if is != nil && is.Becomes != "" && (was == nil || was.Unit == is.Unit && was.Becomes != is.Becomes) {
		say("unit %s is %s", is.Unit, is.Becomes)
	}
	for _, w := range before.Queue {
		if !slices.ContainsFunc(after.Queue, func(x Waiter) bool { return x.Unit == w.Unit }) && (is == nil || is.Unit != w.Unit) {
			say("%s waits no more", plain.Unit(w.Unit, w.Owner, w.Purpose))
		}
	}
	for n, w := range after.Queue {
		if !slices.ContainsFunc(before.Queue, func(x Waiter) bool { return x.Unit == w.Unit }) {
			say("%s waits, %d in the queue", plain.Unit(w.Unit, w.Owner, w.Purpose), n+1)
		}
	}
	return all
}
