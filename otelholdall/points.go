package otelholdall

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// points keeps the attributes that every unit and request has, by what they are made of: to make them
// anew takes longer than to record. There are as few as there are outcomes, ways, operations and
// answers.
type points struct {
	mu    sync.RWMutex
	known map[[2]string]point
}

// point is attributes as instruments take them.
type point struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

func (p *points) of(values [2]string, attributes func() attribute.Set) point {
	p.mu.RLock()
	known, found := p.known[values]
	p.mu.RUnlock()
	if found {
		return known
	}
	with := metric.WithAttributeSet(attributes())
	made := point{[]metric.RecordOption{with}, []metric.AddOption{with}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[[2]string]point{}
	}
	p.known[values] = made
	return made
}
