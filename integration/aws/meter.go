package main

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
)

// usage is what a run has sent so far.
type usage struct {
	Requests    int64
	Write, Read float64        // capacity units, as estimated
	Codes       map[string]int // errors that were answered, by operation and code
	Tables      int            // made
}

// cost is in US dollars.
func (u usage) cost(o options) float64 {
	return (u.Write*o.WritePrice + u.Read*o.ReadPrice) / 1e6
}

// meter counts what is sent, and ends a run that sends too much.
type meter struct {
	requests int64   // at most
	units    float64 // the same
	over     func()  // called once when that is reached

	mu   sync.Mutex
	sent usage
	full bool
}

// tooLarge is how an answer is shown that has no code of DynamoDB's.
const tooLarge = "HTTP 413"

// take counts a request before it is sent, or refuses it.
func (m *meter) take() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	units := m.sent.Write + m.sent.Read
	if m.sent.Requests < m.requests && units < m.units {
		m.sent.Requests++
		return nil
	}
	if !m.full {
		m.full = true
		m.over()
	}
	return fmt.Errorf("the limit of this run is reached: %d requests of %d, about %.0f capacity units of %.0f", m.sent.Requests, m.requests, units, m.units)
}

// answered counts what a request came to; code is empty if it was carried out.
func (m *meter) answered(operation string, u usage, code string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !strings.HasSuffix(code, "ValidationException") && code != tooLarge { // which look at no item
		m.sent.Write += u.Write
		m.sent.Read += u.Read
	}
	if code != "" {
		if m.sent.Codes == nil {
			m.sent.Codes = map[string]int{}
		}
		m.sent.Codes[operation+" "+code]++
	} else if operation == "CreateTable" {
		m.sent.Tables++
	}
}

// usage is that so far.
func (m *meter) usage() usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.sent
	u.Codes = maps.Clone(u.Codes)
	return u
}

// estimate says how many capacity units a request takes, by its actions and the bytes that go
// to and fro: of JSON, which is longer than what is stored. An update of a large item takes
// more than that, for the item counts.
func estimate(operation string, actions, sent, received int) (u usage) {
	units := func(size, unit int) float64 { return math.Ceil(float64(size) / float64(unit)) }
	switch operations[operation] {
	case write:
		u.Write = float64(actions-1) + units(sent, 1<<10)
	case read:
		u.Read = float64(actions-1) + max(1, units(received, 4<<10))
	}
	if operation == "TransactWriteItems" || operation == "TransactGetItems" {
		u.Write, u.Read = 2*u.Write, 2*u.Read
	}
	return u
}
