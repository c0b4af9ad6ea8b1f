package unitofwork

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// merged is what units write one after another, as one transaction writes it. It sends
// nothing, and is not safe for concurrent use.
//
// Invariant: no record is written twice.
type merged struct {
	writes []write
	at     map[string]int // of a record's write, by identity
}

// add takes the writes of one more unit, all of them or none. Two units may write a record if
// both write it whole, or delete it, whatever is there: what the later one leaves is written.
func (m *merged) add(writes []write) bool {
	for _, w := range writes {
		i, written := m.at[w.identity]
		if w.identity == "" || written && !(isPlain(w) && isPlain(m.writes[i])) {
			return false
		}
	}
	if m.at == nil {
		m.at = map[string]int{}
	}
	for _, w := range writes {
		if i, written := m.at[w.identity]; written {
			m.writes[i] = w
			continue
		}
		m.at[w.identity] = len(m.writes)
		m.writes = append(m.writes, w)
	}
	return true
}

// clone is a copy that can be added to by itself.
func (m *merged) clone() merged { return merged{slices.Clone(m.writes), maps.Clone(m.at)} }

// isPlain reports whether a write leaves the same, whatever is there.
func isPlain(w write) bool {
	return !w.conditional && (w.item.Put != nil || w.item.Delete != nil)
}

// left is how the units so far leave a record: written if one of them writes it, and then
// known if it can be told how.
func (m *merged) left(identity string) (item map[string]types.AttributeValue, written, known bool) {
	i, written := m.at[identity]
	if !written {
		return nil, false, false
	}
	w := m.writes[i]
	if w.item.Put != nil {
		item = w.item.Put.Item
	}
	return item, true, isPlain(w)
}
