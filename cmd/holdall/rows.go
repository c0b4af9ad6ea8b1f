package main

import (
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
)

// rowJSON is a row in JSON. Its names stay as they are.
type rowJSON struct {
	Key         string       `json:"key"`
	State       string       `json:"state"`
	Holder      *holderJSON  `json:"holder,omitempty"`
	Intents     []intentJSON `json:"intents,omitempty"`
	Queue       []waiterJSON `json:"queue,omitempty"`
	Fence       int64        `json:"fence,omitempty"`
	CommittedBy string       `json:"committedBy,omitempty"`
	LastOwner   string       `json:"lastOwner,omitempty"`
	LastPurpose string       `json:"lastPurpose,omitempty"`
	LastHeld    time.Time    `json:"lastHeld,omitzero"`
	ExpiresAt   time.Time    `json:"expiresAt,omitzero"`
	Damage      string       `json:"damage,omitempty"`
	Life        *lifeJSON    `json:"life,omitempty"` // if it was watched, and there is somebody to watch
}

type holderJSON struct {
	Unit         string    `json:"unit"`
	Owner        string    `json:"owner"`
	Purpose      string    `json:"purpose,omitempty"`
	Since        time.Time `json:"since,omitzero"`
	LeaseSeconds float64   `json:"leaseSeconds"`
	Prepared     string    `json:"prepared,omitempty"` // the unit table with its journal
}

type intentJSON struct {
	Unit    string       `json:"unit"`
	Witness ordering.Key `json:"witness"`
}

// waiterJSON has owner and purpose cut short, as the row has them.
type waiterJSON struct {
	Unit    string `json:"unit"`
	Owner   string `json:"owner,omitempty"`
	Purpose string `json:"purpose,omitempty"`
}

type lifeJSON struct {
	State         string  `json:"state"` // silent, alive, dead
	Unit          string  `json:"unit"`
	Head          bool    `json:"head,omitempty"` // of the queue, not the holder
	SilentSeconds float64 `json:"silentSeconds"`
	LimitSeconds  float64 `json:"limitSeconds"`
}

// jsonOf is a row with what is known of who is on it.
func jsonOf(r inspect.Row, s inspect.Sighting) rowJSON {
	j := rowJSON{
		Key: string(r.Key), State: plain.State(r), Fence: int64(r.Fence), CommittedBy: r.CommittedBy, LastOwner: r.LastOwner, LastPurpose: r.LastPurpose,
		LastHeld: r.LastHeld.UTC(), ExpiresAt: r.ExpiresAt.UTC(), Damage: r.Damage,
	}
	if h := r.Holder; h != nil {
		j.Holder = &holderJSON{Unit: h.Unit, Owner: h.Owner, Purpose: h.Purpose, Since: h.Since.UTC(), LeaseSeconds: h.Lease.Seconds(), Prepared: h.Prepared}
	}
	for _, in := range r.Intents {
		j.Intents = append(j.Intents, intentJSON(in))
	}
	for _, w := range r.Queue {
		j.Queue = append(j.Queue, waiterJSON(w))
	}
	if s.Life != "" {
		j.Life = &lifeJSON{
			State: s.Life, Unit: s.Unit, Head: s.Head, SilentSeconds: inSeconds(s.For), LimitSeconds: inSeconds(s.Limit),
		}
	}
	return j
}

// inSeconds is a time as people read it, to the millisecond.
func inSeconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}
