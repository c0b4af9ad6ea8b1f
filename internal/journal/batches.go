package journal

import (
	"slices"

	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// Slice is what a transaction does for one step of a journal: it writes some
// records and frees the step, or makes sure that it is not free yet.
type Slice struct {
	Step   plans.Step
	Writes []Write
	Frees  bool // the step, with its last writes
}

// lockRow is what an action on the lock table comes to, with a row of common size and
// the longest of keys.
var lockRow = requests.Size{Actions: 1, Stored: 2 << 10, Sent: 4 << 10}

func (p Slice) size() (size requests.Size) {
	rows := 1
	if p.Frees {
		rows = p.Step.Rows()
	}
	for range rows {
		size = size.Plus(lockRow)
	}
	for _, w := range p.Writes {
		size = size.Plus(w.size)
	}
	return size
}

// Batch is one transaction of a journal's application.
type Batch []Slice

// RoomFor is how far a transaction of so many actions is filled.
func RoomFor(actions int) requests.Size {
	room := requests.Room
	room.Actions = actions
	return room
}

// Batches cuts a journal's application into transactions, in chains. Steps are
// freed in reverse order: an intent must outlive what is below it. So within a
// family a batch is sent after the one before it was carried out; a chain is a run
// of batches that have a family in common, one with the next. Chains are independent
// of each other.
//
// A batch has most actions at most, but for one of a single step and write.
func (j *Journal) Batches(most int) (chains [][]Batch) {
	b := packer{room: RoomFor(most)}
	for end := len(j.Plan); end > 0; {
		begin := end - 1
		for begin > 0 && j.Plan[begin-1].Key.Root() == j.Plan[end-1].Key.Root() {
			begin--
		}
		var family []Slice
		for i := end - 1; i >= begin; i-- {
			family = append(family, slicesOf(j.Plan[i], j.Writes[i], b.room)...)
		}
		b.add(family)
		end = begin
	}
	b.close()
	return b.chains
}

// packer fills batches with the slices of one family after the other.
type packer struct {
	room   requests.Size
	chains [][]Batch
	open   Batch
	size   requests.Size
	linked bool // the open batch goes on with the family of the batch before it
}

// A family that does not fit into what is left of a batch begins a batch of its own
// if little is lost by it, or the chain is long: chains are carried out at the same
// time, their batches one after the other.
const (
	littleLost = 10 // percent
	longChain  = 8
)

func (b *packer) add(family []Slice) {
	whole, most := b.size, b.room.Actions
	for _, p := range family {
		whole = whole.Plus(p.size())
	}
	if !whole.Fits(b.room) && ((most-b.size.Actions)*100 <= littleLost*most || b.linked && len(b.chains[len(b.chains)-1]) >= longChain) {
		b.close()
	}
	for i, p := range family {
		size := p.size()
		if !b.size.Plus(size).Fits(b.room) {
			b.close()
			b.linked = i > 0
		}
		b.open, b.size = append(b.open, p), b.size.Plus(size)
	}
}

func (b *packer) close() {
	switch {
	case len(b.open) == 0:
		return
	case b.linked:
		end := len(b.chains) - 1
		b.chains[end] = append(b.chains[end], b.open)
	default:
		b.chains = append(b.chains, []Batch{b.open})
	}
	b.open, b.size, b.linked = nil, requests.Size{}, false
}

// slicesOf cuts the writes of one step so that each slice fits into a transaction that
// frees the step, too.
func slicesOf(step plans.Step, writes []Write, room requests.Size) (cut []Slice) {
	rows := Slice{Step: step, Frees: true}.size()
	for _, run := range requests.Cut(writes, room.Minus(rows), func(w Write) requests.Size { return w.size }) {
		cut = append(cut, Slice{Step: step, Writes: run})
	}
	if len(cut) == 0 {
		cut = []Slice{{Step: step}}
	}
	cut[len(cut)-1].Frees = true
	return cut
}

// Halves cuts a batch that DynamoDB does not take as it is; the first half is to
// be carried out before the second. ok is false if there is nothing to cut.
func (p Batch) Halves() (first, second Batch, ok bool) {
	if len(p) > 1 {
		return p[:len(p)/2], p[len(p)/2:], true
	}
	if len(p[0].Writes) < 2 {
		return nil, nil, false
	}
	whole, half := p[0], len(p[0].Writes)/2
	return Batch{{Step: whole.Step, Writes: whole.Writes[:half]}},
		Batch{{Step: whole.Step, Writes: whole.Writes[half:], Frees: whole.Frees}}, true
}

// Without leaves out what is of some families.
func (p Batch) Without(families map[ordering.Key]error) Batch {
	return slices.DeleteFunc(slices.Clone(p), func(slice Slice) bool { return families[slice.Step.Key.Root()] != nil })
}

// KeysFreed are the keys that a batch frees.
func (p Batch) KeysFreed() (keys []ordering.Key) {
	for _, slice := range p {
		if slice.Frees {
			keys = append(keys, slice.Step.Key)
		}
	}
	return keys
}
