// Package recent remembers values of the keys that were of interest last, in bounded memory.
package recent

import "github.com/holdall/holdall/ordering"

// Generation is how many keys a generation has: a Map has two.
const Generation = 4096

// Map remembers a value for each of the keys that were set last, in two generations: what
// is not set again is forgotten when the younger one is full. The zero value is empty. It
// is not safe for concurrent use.
type Map[V any] struct{ young, old map[ordering.Key]V }

// Get returns what is remembered of a key.
func (m *Map[V]) Get(key ordering.Key) (v V, known bool) {
	if v, known = m.young[key]; !known {
		v, known = m.old[key]
	}
	return v, known
}

// Set remembers v of a key.
func (m *Map[V]) Set(key ordering.Key, v V) {
	if len(m.young) >= Generation {
		m.young, m.old = nil, m.young
	}
	if m.young == nil {
		m.young = map[ordering.Key]V{}
	}
	m.young[key] = v
}

// Delete forgets a key.
func (m *Map[V]) Delete(key ordering.Key) {
	delete(m.young, key)
	delete(m.old, key)
}

// Size is how many values are kept: two of a key that both generations have.
func (m *Map[V]) Size() int { return len(m.young) + len(m.old) }
