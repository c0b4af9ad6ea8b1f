package lockrow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorthJoining(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		expected, left time.Duration
		worth          bool
	}{
		"next, with time":             {0, 100 * ms, true},
		"next, with little time":      {0, 99 * ms, false},
		"short turns before":          {25 * ms, 100 * ms, true},
		"a little longer ones":        {26 * ms, 100 * ms, false},
		"four times as long":          {250 * ms, time.Second, true},
		"not quite":                   {251 * ms, time.Second, false},
		"the time that it takes only": {time.Second, time.Second, false},
		"no time":                     {0, 0, false},
		"a deadline in the past":      {0, -time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.worth, WorthJoining(c.expected, c.left)) })
	}
}

func TestTurnsBefore(t *testing.T) {
	queue := []Waiter{"u1", "u2", "u3"}
	held := Row{Exists: true, Unit: "h"}
	free := Row{Exists: true, Released: true}
	for name, c := range map[string]struct {
		row    Row
		unit   string
		before int
	}{
		"absent":                {Row{}, "x", 0},
		"held":                  {held, "x", 1},
		"free":                  {free, "x", 0},
		"intents below":         {Row{Exists: true, Released: true, Below: []Entry{{}, {}}}, "x", 1},
		"held, behind three":    {Row{Exists: true, Unit: "h", Queue: queue}, "x", 4},
		"held, at the third":    {Row{Exists: true, Unit: "h", Queue: queue}, "u3", 3},
		"free, behind three":    {Row{Exists: true, Released: true, Queue: queue}, "x", 3},
		"free, head":            {Row{Exists: true, Released: true, Queue: queue}, "u1", 0},
		"held, and it is ahead": {Row{Exists: true, Unit: "h", Queue: queue}, "u1", 1},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.before, c.row.TurnsBefore(c.unit)) })
	}
}
