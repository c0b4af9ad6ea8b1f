package heartbeat

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdall/holdall/ordering"
)

// Config says how a [Group] renews. All fields but Longest and Renewed are required.
type Config struct {
	// Lease is how long others leave a silent holder alone.
	Lease time.Duration
	// Every is the time between rounds. A round comes earlier by up to an eighth of that, at
	// one of the moments that divide it into eighths, counted from Epoch.
	Every time.Duration
	// Epoch is any time. The rounds of groups with the same come at the same moments, so
	// that Renew can send them together; those of different processes should not.
	Epoch time.Time
	// Margin is how long before the end of its lease a key counts as lost.
	Margin time.Duration
	// Attempt bounds one call of Renew, unless Longest is set. A call that failed is repeated after a
	// fraction of it.
	Attempt time.Duration
	// Longest bounds one call of Renew if Renew bounds its own requests, which may take longer than
	// Attempt. Default: Attempt.
	Longest time.Duration
	// MaxAge is how long the group may live.
	MaxAge time.Duration
	// Batch is the most keys per call of Renew.
	Batch int
	// Renew sends one renewal of some keys and returns an error for each: nil
	// if confirmed, one that matches ErrNotOurs if the key is not ours any
	// more, any other if there is no telling, which is tried again. n is
	// different for every round of a group. Calls are concurrent.
	Renew func(ctx context.Context, keys []ordering.Key, n int) []error
	// Renewed is told of every round that is over: how many keys were to be renewed, how many of them
	// were not confirmed, and an error of one of those. It is called on a goroutine of the group that sends
	// no other before it returns. It may be nil.
	Renewed func(keys, failed int, err error)
	// Rand draws the jitter of what is sent again. Only the group uses it.
	Rand *rand.Rand
}

// missing names the first field that is not set.
func (c Config) missing() string {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Lease", c.Lease > 0}, {"Every", c.Every > 0}, {"Epoch", !c.Epoch.IsZero()}, {"Margin", c.Margin > 0}, {"Attempt", c.Attempt > 0},
		{"MaxAge", c.MaxAge > 0}, {"Batch", c.Batch > 0}, {"Renew", c.Renew != nil}, {"Rand", c.Rand != nil},
	} {
		if !field.set {
			return field.name
		}
	}
	return ""
}

// moments are those of a round: so many while Every goes by.
const moments = 8

// due is when a key that was confirmed then is renewed: at the last moment of a round
// before Every is over.
func (c Config) due(confirmed time.Time) time.Time {
	due, moment := confirmed.Add(c.Every), max(c.Every/moments, 1)
	since := due.Sub(c.Epoch) % moment
	if since < 0 {
		since += moment
	}
	return due.Add(-since)
}
