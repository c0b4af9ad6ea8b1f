package inspect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/lockrow"
)

// What is a sign of life on a row since it was seen first.
func TestWhatIsASignOfLife(t *testing.T) {
	held := lockrow.Row{Key: "a", Exists: true, Unit: "one", Owner: "o", Lease: time.Second, RVN: "1", Queue: []lockrow.Waiter{"w"}}
	renewed, others := held, held
	renewed.RVN = "2"
	others.Unit, others.RVN = "two", "3"
	freed := lockrow.Row{Key: "a", Exists: true, Released: true, RVN: "1", Queue: []lockrow.Waiter{"w"}}
	moved, had := freed, freed
	moved.Queue = []lockrow.Waiter{"x"}
	had.RVN = "3"
	free := lockrow.Row{Key: "a", Exists: true, Released: true, RVN: "1"}
	for name, c := range map[string]struct {
		seen  []lockrow.Row
		alive bool // as of the last
	}{
		"nothing is known of who is seen first": {[]lockrow.Row{held}, false},
		"the same again":                        {[]lockrow.Row{held, held}, false},
		"it was renewed":                        {[]lockrow.Row{held, renewed}, true},
		"another has it":                        {[]lockrow.Row{held, others}, true},
		"it was taken":                          {[]lockrow.Row{free, held}, true},
		"it was freed, and others wait":         {[]lockrow.Row{held, freed}, false},
		"and goes on to wait":                   {[]lockrow.Row{held, freed, freed}, false},
		"and that queue moves":                  {[]lockrow.Row{held, freed, moved}, true},
		"and somebody has had it":               {[]lockrow.Row{held, freed, had}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, alive := firsts{}, false
			for _, r := range c.seen {
				alive = f.alive(r)
			}
			require.Equal(t, c.alive, alive)
		})
	}
}
