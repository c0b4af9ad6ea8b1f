package web

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
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
	was, is := before.Row.Holder, after.Row.Holder
	if was != nil && (is == nil || is.Unit != was.Unit) {
		if after.Row.CommittedBy == was.Unit {
			say("unit %s committed, and let go of it", was.Unit)
		} else {
			say("unit %s has it no more", was.Unit)
		}
	}
	switch {
	case is == nil:
	case was == nil || was.Unit != is.Unit:
		say("taken by %s, with token %d", plain.Unit(is.Unit, is.Owner, is.Purpose), after.Row.Fence)
	case !before.Row.Prepared() && after.Row.Prepared():
		say("unit %s is prepared: its journal decides", is.Unit)
	case before.Life.Life == "dead" && after.Life.Life == "alive":
		say("unit %s showed a sign of life", is.Unit)
	case before.Life.Life != "dead" && after.Life.Life == "dead":
		say("unit %s is dead: no sign of life for a lease", is.Unit)
	}
	if is != nil && after.Becomes != "" && (was == nil || was.Unit == is.Unit && before.Becomes != after.Becomes) {
		say("unit %s is %s", is.Unit, after.Becomes)
	}
	waits := func(unit string, in Story) bool {
		return slices.ContainsFunc(in.Row.Queue, func(w inspect.Waiter) bool { return w.Unit == unit })
	}
	for _, w := range before.Row.Queue {
		if !waits(w.Unit, after) && (is == nil || is.Unit != w.Unit) {
			say("%s waits no more", plain.Unit(w.Unit, w.Owner, w.Purpose))
		}
	}
	for n, w := range after.Row.Queue {
		if !waits(w.Unit, before) {
			say("%s waits, %d in the queue", plain.Unit(w.Unit, w.Owner, w.Purpose), n+1)
		}
	}
	return all
}
