package lockset_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
)

// Who waits for nobody is told within five requests' time, whatever of the set is free,
// and whatever is above or below it.
func TestWhoWaitsForNobodyIsToldAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ held, wanted []ordering.Key }{
		"one free, one held":                  {[]ordering.Key{"c"}, []ordering.Key{"a", "c"}},
		"one free, one held, above the other": {[]ordering.Key{"c"}, []ordering.Key{"a", "c/0"}},
		"one free, below one held":            {[]ordering.Key{"c"}, []ordering.Key{"a/0", "c/0/0"}},
		"one held from below":                 {[]ordering.Key{"c/1"}, []ordering.Key{"c"}},
		"one free, one held from below":       {[]ordering.Key{"c/1"}, []ordering.Key{"a", "c"}},
		"two free, one held from below":       {[]ordering.Key{"c/1"}, []ordering.Key{"a/1", "b/1", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBed(t, func(t *testing.T, b *bed) {
				b.free(b.take(b.owner("before", nil), c.wanted...)) // rows are there
				time.Sleep(time.Second)
				b.take(b.owner("holder", nil), c.held...)
				o := b.owner("asker", nil)
				began := time.Now()
				_, err := o.TryAcquire(t.Context(), c.wanted)
				require.ErrorAs(t, err, new(*lockset.HeldError))
				require.LessOrEqual(t, time.Since(began), 4*rtt)
				require.LessOrEqual(t, o.requests()["UpdateItem"]+o.requests()["TransactWriteItems"], 3, "asking, saying when the holder was alive, and burning")
			})
		})
	}
}

// Nor does it look ahead at what it will not wait for, once somebody was silent for long.
func TestWhoWaitsForNobodyDoesNotLookAhead(t *testing.T) {
	for _, wanted := range [][]ordering.Key{{"c"}, {"a", "c"}} {
		inBed(t, func(t *testing.T, b *bed) {
			b.crashed("c/1")
			o := b.owner("asker", nil)
			for _, pause := range []time.Duration{lease * 6 / 10, 0} {
				began := time.Now()
				_, err := o.TryAcquire(t.Context(), wanted)
				require.ErrorAs(t, err, new(*lockset.HeldError))
				require.LessOrEqual(t, time.Since(began), 5*rtt)
				time.Sleep(pause)
			}
		})
	}
}

// A remnant of the dead is removed on the way; while another lives it is not asked again.
func TestWhoWaitsForNobodyRemovesTheDeadBesideTheLiving(t *testing.T) {
	inBed(t, func(t *testing.T, b *bed) {
		_, _ = b.crashed("c/1")
		o := b.owner("asker", nil)
		_, err := o.TryAcquire(t.Context(), []ordering.Key{"c"})
		require.ErrorAs(t, err, new(*lockset.HeldError))
		time.Sleep(lease - time.Second)
		b.take(b.owner("living", nil), "c/2")
		time.Sleep(time.Second)
		o.requests()
		began := time.Now()
		_, err = o.TryAcquire(t.Context(), []ordering.Key{"c"})
		var held *lockset.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, ordering.Key("c/2"), held.Key)
		require.Equal(t, []ordering.Key{"c/1"}, o.buried)
		require.LessOrEqual(t, time.Since(began), 5*rtt)
		require.Equal(t, 3, o.requests()["UpdateItem"], "it asked once, and said of the living once since when it was seen, and once for how long it was silent")
	})
}
