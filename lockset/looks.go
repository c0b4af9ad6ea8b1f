package lockset

import (
	"time"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/requests"
)

// looks paces the looks at a row: soon after a change, then more and more
// seldom. Each is jittered.
type looks struct {
	unit    string
	n       int // of all
	quiet   int // since the row has changed for the unit
	holder  string
	head    string
	waiting int
	below   int
	due     time.Time // when the first of the witnesses may count as dead; zero if none may
}

func newLooks(a *acquisition, r lockrow.Row) *looks {
	l := &looks{unit: a.unit.nonce}
	l.next(r)
	return l
}

// next counts a look that showed r.
func (l *looks) next(r lockrow.Row) {
	place, _ := r.Place(l.unit)
	head := ""
	if len(r.Queue) > 0 {
		head = r.Queue[0]
	}
	if r.Unit != l.holder || head != l.head || place != l.waiting || len(r.Below) != l.below {
		l.quiet = 0
	}
	l.holder, l.head, l.waiting, l.below = r.Unit, head, place, len(r.Below)
	l.n++
	l.quiet++
}

// atWitnesses reports whether this look is one at the witnesses, too. One of them alive is
// enough to keep the unit out, so they are looked at less often than the row, but in
// time.
func (l *looks) atWitnesses() bool {
	return l.n%witnessEvery == 1 || !l.due.IsZero() && !time.Now().Before(l.due)
}

// witnessEvery is how many looks at a row go by between two at its witnesses.
const witnessEvery = 5

// pause is how long it is to the next look, at such a place in the queue.
func (l *looks) pause(poll time.Duration, place int) time.Duration {
	most := poll * time.Duration(min(1+place, maxSlowdown))
	pause := min(most, minPause*time.Duration(1+place)<<min(l.quiet-1, 20))
	return pause - time.Duration(requests.Jitter(l.unit+"/wait", l.n)*float64(pause)/2)
}
