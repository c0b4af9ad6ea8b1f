// Package cost is the code of the guide beside it.
package cost

import (
	"context"
	"sync"

	"github.com/holdall/holdall/trace"
)

// Meter adds up what a client's requests consume, by operation.
type Meter struct {
	mu       sync.Mutex
	requests map[string]int
	units    map[string]float64
}

// Trace is for lockset.Config.Trace, or unitofwork.Config.Trace.
func (m *Meter) Trace() *trace.Trace {
	return &trace.Trace{
		Capacity: true, // DynamoDB is asked with every request
		End: func(_ context.Context, e trace.Event) {
			if e.Kind != trace.Request {
				return
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.requests == nil {
				m.requests, m.units = map[string]int{}, map[string]float64{}
			}
			m.requests[e.Op]++
			m.units[e.Op] += e.Capacity
		},
	}
}

// Of returns how many requests of an operation were sent, and the units that they consumed.
func (m *Meter) Of(operation string) (requests int, units float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[operation], m.units[operation]
}
