package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// heldBy is a row as a list shows it.
func heldBy(key, unit, sign string) inspect.Sighting {
	return inspect.Sighting{Row: inspect.Row{Key: ordering.Key(key), Holder: &inspect.Holder{Unit: unit, RVN: sign, Lease: 10 * time.Second}}}
}

// lists show one row, with a sign of life, at times, and return what is known of it then.
func (l *lives) lists(start time.Time, at time.Duration, rows ...inspect.Sighting) []inspect.Sighting {
	*l = l.see(rows, start.Add(at))
	return rows
}

func TestListsTellWhoIsAlive(t *testing.T) {
	var l lives
	start := time.Now()
	one := func(at time.Duration, unit, sign string) (string, time.Duration) {
		s := l.lists(start, at, heldBy("k", unit, sign))[0]
		require.Equal(t, unit, s.Unit)
		return s.Life, s.For
	}
	says := func(life string, silent time.Duration) func(string, time.Duration) {
		return func(gotLife string, got time.Duration) {
			t.Helper()
			require.Equal(t, life, gotLife)
			require.Equal(t, silent, got)
		}
	}
	says("", 0)(one(0, "a", "1")) // nothing is known yet
	says("silent", 3*time.Second)(one(3*time.Second, "a", "1"))
	says("alive", 0)(one(6*time.Second, "a", "2"))
	says("alive", 4*time.Second)(one(10*time.Second, "a", "2")) // heartbeats are as far apart
	says("silent", 5*time.Second)(one(11*time.Second, "a", "2"))
	says("silent", 20*time.Second)(one(26*time.Second, "a", "2")) // lists alone call nobody dead
	says("", 0)(one(27*time.Second, "b", "3"))
	says("alive", 0)(one(50*time.Second, "b", "4")) // however long nobody looked
	require.Empty(t, l.lists(start, 51*time.Second)[:0])
	require.Empty(t, l, "it is free")
}

func TestOnlyWhoIsInDoubtIsWatched(t *testing.T) {
	var l lives
	start := time.Now().Add(-time.Minute)
	rows := func(sign string) []inspect.Sighting {
		return []inspect.Sighting{heldBy("moves", "a", sign), heldBy("still", "b", "1"), {Row: inspect.Row{Key: "head", Queue: []inspect.Waiter{{Unit: "w"}}}}, {Row: inspect.Row{Key: "free"}}}
	}
	l.lists(start, 0, rows("1")...)
	require.Equal(t, []ordering.Key{"head", "moves", "still"}, l.doubtful())
	l.lists(time.Now(), 0, rows("2")...)
	require.Equal(t, []ordering.Key{"head", "still"}, l.doubtful())

	// A watch finds the one dead, the other at work.
	dead, head := heldBy("still", "b", "1"), rows("2")[2]
	dead.Unit, dead.Life, dead.For, dead.Limit = "b", "dead", 11*time.Second, 10*time.Second
	head.Unit, head.Life, head.Head, head.Limit = "w", "silent", true, 4*time.Second
	gone := heldBy("moves", "another", "9")
	gone.Unit, gone.Life = "another", "dead"
	l.note([]inspect.Sighting{dead, head, gone}, time.Now())
	require.Equal(t, []ordering.Key{"head"}, l.doubtful(), "what is known of a unit says nothing of another")
	seen := l.lists(time.Now(), 0, rows("2")...)
	require.Equal(t, "alive", seen[0].Life)
	require.Equal(t, "dead", seen[1].Life)
	require.Equal(t, "silent", seen[2].Life)
	require.True(t, seen[2].Head)

	back := rows("2")
	back[1] = heldBy("still", "b", "2")
	require.Equal(t, "alive", l.lists(time.Now(), 0, back...)[1].Life, "the dead has shown a sign of life")
	alive := heldBy("still", "b", "3")
	alive.Unit, alive.Life, alive.Limit = "b", "alive", 10*time.Second
	l.note([]inspect.Sighting{alive}, time.Now())
	require.Equal(t, "3", l["still"].sign)

	var many []inspect.Sighting
	for n := range 2 * mostWatched {
		many = append(many, heldBy(fmt.Sprintf("k%04d", n), "a", "1"))
	}
	l.lists(time.Now(), 0, many...)
	require.Len(t, l.doubtful(), mostWatched)
}

// Of more rows than are kept, those are that somebody looks for: wherever a scan comes to them.
func TestTheHottestRowsAreKept(t *testing.T) {
	var rows []inspect.Sighting
	for n := range mostRows {
		rows = append(rows, heldBy(fmt.Sprintf("cold-%05d", n), "u", "1"))
	}
	require.Len(t, hottest(rows), mostRows)
	awaited, prepared, damaged := heldBy("awaited", "u", "1"), heldBy("prepared", "u", "1"), inspect.Sighting{Row: inspect.Row{Key: "damaged", Damage: "of another program"}}
	awaited.Row.Queue = []inspect.Waiter{{Unit: "w"}}
	prepared.Row.Holder.Prepared = "units"
	rows = hottest(append(rows, awaited, prepared, damaged))
	require.Len(t, rows, mostRows)
	var first []ordering.Key
	for _, s := range rows[:4] {
		first = append(first, s.Row.Key)
	}
	require.Equal(t, []ordering.Key{"damaged", "prepared", "awaited", "cold-00000"}, first)
}
