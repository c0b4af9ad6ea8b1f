package unitofwork

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// unlockedRead is what a read without locks knows of its records: which lock rows tell
// whether a unit is applied to them by half. Whoever writes a record holds a key that
// covers its guard: the guard itself, or one above it.
type unlockedRead struct {
	records []Record
	guards  []ordering.Key // as far as known; "" if not
	shown   []parsed
	most    int // how many records one request has
}

func newUnlockedRead(records []Record) *unlockedRead {
	u := &unlockedRead{
		records: records, most: requests.MaxActions,
		guards: make([]ordering.Key, len(records)), shown: make([]parsed, len(records)),
	}
	for i, r := range records {
		// A guess, until the record is read: its guard may be of its content.
		if g, err := r.guards(); err == nil && g.guarded && !g.guessed && g.now.Validate() == nil {
			u.guards[i] = g.now
		}
	}
	return u
}

// inOrder are the indexes of all records, those of one family together.
func (g *unlockedRead) inOrder() []int {
	indexes := make([]int, len(g.records))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return ordering.Compare(g.guards[a], g.guards[b]) })
	return indexes
}

// rows are the lock rows of some records, each once, in order.
func (g *unlockedRead) rows(part []int) []ordering.Key {
	var rows []ordering.Key
	for _, i := range part {
		if guard := g.guards[i]; guard != "" {
			rows = append(append(rows, guard.Ancestors()...), guard)
		}
	}
	slices.SortFunc(rows, ordering.Compare)
	return slices.Compact(rows)
}

// some are the records with these indexes.
func (g *unlockedRead) some(part []int) []Record {
	records := make([]Record, len(part))
	for i, n := range part {
		records[i] = g.records[n]
	}
	return records
}

// parts cuts the records so that each part fits into one request with its lock rows. One
// record always does: a key has few segments.
func (g *unlockedRead) parts() (parts [][]int) {
	var open []int
	for _, i := range g.inOrder() {
		with := append(slices.Clone(open), i)
		if len(with) > g.most || len(g.rows(with))+len(with) > requests.MaxActions {
			parts, open = append(parts, open), nil
		}
		open = append(open, i)
	}
	if len(open) > 0 {
		parts = append(parts, open)
	}
	return parts
}

// halve has each request ask for half as many records: DynamoDB did not take what it
// was asked for. It is too large, or else the one that fails alone is at fault.
func (g *unlockedRead) halve() bool {
	if n := min(g.most, len(g.records)); n > 1 {
		g.most = (n + 1) / 2
		return true
	}
	return false
}

// learn notes what was read of a record. known is false if it was read without the
// rows of its guard, so that it may be by half.
func (g *unlockedRead) learn(i int, item map[string]types.AttributeValue) (known bool, err error) {
	p, err := parse(g.records[i], item, guardIsAKey)
	if err != nil {
		return false, err
	}
	g.shown[i] = p
	if p.guard == "" || p.guard.Covers(g.guards[i]) {
		return true, nil
	}
	g.guards[i] = p.guard
	return false, nil
}

// show lets the caller's references have what was read.
func (g *unlockedRead) show() {
	for _, p := range g.shown {
		p.show("")
	}
}
