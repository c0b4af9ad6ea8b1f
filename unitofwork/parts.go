package unitofwork

// Pure: decides, does no I/O.

import (
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/ordering"
)

// piece is what a transaction does for one step of a journal: it writes some
// records and frees the step, or makes sure that it is not free yet.
type piece struct {
	step   ordering.Step
	writes []applied
	frees  bool // the step, with its last writes
}

// lockRow is what an action on the lock table comes to, with a row of common size and
// the longest of keys.
var lockRow = requests.Size{Actions: 1, Stored: 2 << 10, Sent: 4 << 10}

func (p piece) size() (size requests.Size) {
	rows := 1
	if p.frees {
		rows = p.step.Rows()
	}
	for range rows {
		size = size.Plus(lockRow)
	}
	for _, w := range p.writes {
		size = size.Plus(w.size)
	}
	return size
}

// part is one transaction of a journal's application.
type part []piece

// roomFor is how far a transaction of so many actions is filled.
func roomFor(actions int) requests.Size {
	room := requests.Room
	room.Actions = actions
	return room
}

// parts cuts a journal's application into transactions, in chains. Steps are
// freed in reverse order: an intent must outlive what is below it. So within a
// family a part is sent after the one before it was carried out; a chain is a run
// of parts that have a family in common, one with the next. Chains are independent
// of each other.
//
// A part has most actions at most, but for one of a single step and write.
func (j *journal) parts(most int) (chains [][]part) {
	b := binder{room: roomFor(most)}
	for end := len(j.plan); end > 0; {
		begin := end - 1
		for begin > 0 && j.plan[begin-1].Key.Family() == j.plan[end-1].Key.Family() {
			begin--
		}
		var family []piece
		for i := end - 1; i >= begin; i-- {
			family = append(family, pieces(j.plan[i], j.writes[i], b.room)...)
		}
		b.add(family)
		end = begin
	}
	b.close()
	return b.chains
}

// binder fills parts with the pieces of one family after the other.
type binder struct {
	room   requests.Size
	chains [][]part
	open   part
	size   requests.Size
	linked bool // the open part goes on with the family of the part before it
}

// A family that does not fit into what is left of a part begins a part of its own
// if little is lost by it, or the chain is long: chains are carried out at the same
// time, their parts one after the other.
const (
	littleLost = 10 // percent
	longChain  = 8
)

func (b *binder) add(family []piece) {
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

// close ends the open part.
func (b *binder) close() {
	switch {
	case len(b.open) == 0:
		return
	case b.linked:
		end := len(b.chains) - 1
		b.chains[end] = append(b.chains[end], b.open)
	default:
		b.chains = append(b.chains, []part{b.open})
	}
	b.open, b.size, b.linked = nil, requests.Size{}, false
}

// pieces cuts the writes of one step so that each piece fits into a transaction that
// frees the step, too.
func pieces(step ordering.Step, writes []applied, room requests.Size) (cut []piece) {
	rows := piece{step: step, frees: true}.size()
	for _, run := range requests.Cut(writes, room.Minus(rows), func(w applied) requests.Size { return w.size }) {
		cut = append(cut, piece{step: step, writes: run})
	}
	if len(cut) == 0 {
		cut = []piece{{step: step}}
	}
	cut[len(cut)-1].frees = true
	return cut
}

// halves cuts a part that DynamoDB does not take as it is; the first half is to
// be carried out before the second. ok is false if there is nothing to cut.
func (p part) halves() (first, second part, ok bool) {
	if len(p) > 1 {
		return p[:len(p)/2], p[len(p)/2:], true
	}
	if len(p[0].writes) < 2 {
		return nil, nil, false
	}
	whole, half := p[0], len(p[0].writes)/2
	return part{{step: whole.step, writes: whole.writes[:half]}},
		part{{step: whole.step, writes: whole.writes[half:], frees: whole.frees}}, true
}
