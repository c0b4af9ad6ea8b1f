package unitofwork

// Pure: decides, does no I/O.

import "github.com/holdall/holdall/ordering"

// piece is what a transaction does for one step of a journal: it writes some
// records and frees the step, or makes sure that it is not free yet.
type piece struct {
	step   ordering.Step
	writes []applied
	frees  bool // the step, with its last writes
}

// rows is how many actions on the lock table it takes.
func (p piece) rows() int {
	if p.frees {
		return p.step.Rows()
	}
	return 1
}

func (p piece) actions() int { return p.rows() + len(p.writes) }

func (p piece) size() int {
	size := p.rows() * lockRowSize
	for _, w := range p.writes {
		size += actionSize(w.item)
	}
	return size
}

// part is one transaction of a journal's application.
type part []piece

// Limits of a transaction. What stands in a record that is updated, and in a lock
// row, counts as well, and cannot be known: a transaction that is too large all
// the same is halved.
const (
	maxSize     = 4<<20 - 256<<10
	lockRowSize = 2 << 10
)

// parts cuts a journal's application into transactions, in chains. Steps are
// freed in reverse order: an intent must outlive what is below it. So within a
// family a part is sent after the one before it was carried out; a chain is a run
// of parts that have a family in common, one with the next. Chains are independent
// of each other.
//
// A part has most actions at most, but for one of a single step and write.
func (j *journal) parts(most int) (chains [][]part) {
	b := binder{most: most}
	for end := len(j.plan); end > 0; {
		begin := end - 1
		for begin > 0 && j.plan[begin-1].Key.Family() == j.plan[end-1].Key.Family() {
			begin--
		}
		var family []piece
		for i := end - 1; i >= begin; i-- {
			family = append(family, pieces(j.plan[i], j.writes[i], most)...)
		}
		b.add(family)
		end = begin
	}
	b.close()
	return b.chains
}

// binder fills parts with the pieces of one family after the other.
type binder struct {
	most    int
	chains  [][]part
	open    part
	actions int
	size    int
	linked  bool // the open part goes on with the family of the part before it
}

// A family that does not fit into what is left of a part begins a part of its own
// if little is lost by it, or the chain is long: chains are carried out at the same
// time, their parts one after the other.
const (
	littleLost = 10 // percent
	longChain  = 8
)

func (b *binder) add(family []piece) {
	actions, size := 0, 0
	for _, p := range family {
		actions, size = actions+p.actions(), size+p.size()
	}
	fits := b.actions+actions <= b.most && b.size+size <= maxSize
	if !fits && ((b.most-b.actions)*100 <= littleLost*b.most || b.linked && len(b.chains[len(b.chains)-1]) >= longChain) {
		b.close()
	}
	for i, p := range family {
		if b.actions+p.actions() > b.most || b.size+p.size() > maxSize {
			b.close()
			b.linked = i > 0
		}
		b.open = append(b.open, p)
		b.actions, b.size = b.actions+p.actions(), b.size+p.size()
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
	b.open, b.actions, b.size, b.linked = nil, 0, 0, false
}

// pieces cuts the writes of one step so that each piece fits into a transaction.
func pieces(step ordering.Step, writes []applied, most int) (cut []piece) {
	p := piece{step: step, frees: true}
	size := p.size()
	for _, w := range writes {
		bytes := actionSize(w.item)
		if len(p.writes) > 0 && (step.Rows()+len(p.writes)+1 > most || size+bytes > maxSize) {
			p.frees = false
			cut = append(cut, p)
			p = piece{step: step, frees: true}
			size = p.size()
		}
		p.writes = append(p.writes, w)
		size += bytes
	}
	return append(cut, p)
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
