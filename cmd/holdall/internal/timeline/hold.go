package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/ordering"
)

// waitStart notes behind whom a unit waits, and what it has meanwhile.
func (b *builder) waitStart(w *moment, span int32) {
	key := b.key(string(w.Key))
	if key == none {
		return
	}
	held := b.allKeys(w.Held)
	b.m.Waits = append(b.m.Waits, Wait{
		Span: span, Key: key, Holder: none, Name: b.text(w.Holder), Owner: b.text(w.Owner), Purpose: b.text(w.Purpose), Queue: int32(w.Queue), Held: held,
	})
	still := make(map[int32]bool, len(held))
	for _, k := range held {
		still[k] = true
	}
	for k, hold := range b.having[w.unit] { // what it has let go of
		if b.m.Holds[hold].Having == Taking && !still[k] {
			b.left(w.unit, k, w.at, Freed)
		}
	}
	for _, k := range held {
		b.has(w.unit, k, w.at, Taking)
	}
}

// has begins a hold, unless there is one.
func (b *builder) has(unit, key int32, at int64, how Having) {
	if _, has := b.having[unit][key]; has {
		return
	}
	if b.having[unit] == nil {
		b.having[unit] = map[int32]int32{}
	}
	b.having[unit][key] = int32(len(b.m.Holds))
	b.m.Holds = append(b.m.Holds, Hold{Key: key, Unit: unit, Start: at, End: at, Having: how, Left: StillHeld})
}

// left ends the hold of a key, if there is one.
func (b *builder) left(unit, key int32, at int64, how Left) {
	hold, has := b.having[unit][key]
	if !has {
		return
	}
	b.ended(hold, at, how)
	if delete(b.having[unit], key); len(b.having[unit]) == 0 {
		delete(b.having, unit)
	}
}

// letGo ends all holds of a unit.
func (b *builder) letGo(unit int32, at int64, how Left) {
	for _, hold := range b.having[unit] {
		b.ended(hold, at, how)
	}
	delete(b.having, unit)
}

func (b *builder) ended(hold int32, at int64, how Left) {
	h := &b.m.Holds[hold]
	h.End, h.Left = max(at, h.Start), how
}

// acquireEnd has a unit hold all its keys, or none.
func (b *builder) acquireEnd(w *moment, span int32) {
	keys := b.asked[span]
	delete(b.asked, span)
	b.letGo(w.unit, w.at, Freed) // what it was taking
	u := &b.m.Units[w.unit]
	if w.Err != "" {
		if u.Way == LockSet {
			u.End, u.Fate, u.Err, u.Outcome = w.at, Ended, b.text(w.Err), b.text("not acquired")
		}
		return
	}
	u.Token = b.text(tokenText(w.Token))
	for _, key := range keys {
		b.has(w.unit, key, w.at, Held)
	}
}

var markOf = map[string]MarkKind{
	"Started": Started, "Paused": Paused, "Note": Note, "Gone": Note, "Raised": Raised, "Lost": Lost, "Buried": Buried, "Cleaned": Cleaned,
	"Dropped": Dropped, "HandedOver": HandedOver, "Joined": Joined, "Unfinished": Unfinished, "Recovered": Recovered, "StartingOver": StartingOver,
	"Renewed": Renewed, "Released": Released, "Progress": Phase,
}

// tell is an event of its own.
func (b *builder) tell(w *moment) {
	kind, known := markOf[w.Name]
	if !known {
		return // of a later version
	}
	mark := Mark{At: w.at, Process: w.process, Unit: w.in.unit, Of: none, Key: b.key(string(w.Key)), Text: b.text(w.Text), Err: b.text(w.Err), Kind: kind}
	switch kind {
	case Renewed:
		mark.N, mark.Outof = int32(w.Failed), int32(w.Count)
		if w.Failed > 0 {
			mark.Kind = RenewFailed
		}
	case Phase:
		b.progress(w, mark)
		return
	case Raised:
		mark.Text = b.text(tokenText(w.Token))
		if w.unit != none {
			b.m.Units[w.unit].Token = mark.Text
		}
	case Paused:
		mark.N, mark.Text = int32(w.Took.Milliseconds()), b.text(w.Took.Round(time.Millisecond).String())
	case HandedOver:
		mark.Text = b.text(w.Holder)
	case Joined:
		mark.N = int32(w.Place)
	case StartingOver:
		mark.N = int32(w.N)
	case Recovered:
		mark.Text = b.text("not committed")
		if w.Outcome == hooks.Committed {
			mark.Text = b.text("committed")
		}
	default:
	}
	mark.Name = b.text(w.Unit)
	mark.Of = b.unitNamed(mark.Name)
	if mark.Unit == none && kind != Buried && kind != Cleaned && kind != Dropped && kind != Recovered {
		mark.Unit = mark.Of
	}
	b.m.Marks = append(b.m.Marks, mark)
	b.follows(w, &mark)
}

// follows is what a mark does to holds.
func (b *builder) follows(w *moment, mark *Mark) {
	if mark.Of == none {
		return
	}
	u := &b.m.Units[mark.Of]
	if dead := &b.deadFor[u.Process]; mark.Kind == Buried || mark.Kind == Recovered {
		*dead = max(*dead, w.at)
	}
	ended := func(outcome string) {
		if u.Way == LockSet && u.Fate != Ended {
			u.End, u.Fate, u.Err, u.Outcome = w.at, Ended, mark.Err, b.text(outcome)
		}
	}
	switch mark.Kind {
	case Released:
		b.letGo(mark.Of, w.at, Freed)
		ended("released")
	case Lost:
		b.letGo(mark.Of, w.at, WasLost)
		ended("lost")
	case HandedOver:
		if mark.Key != none {
			b.has(mark.Of, mark.Key, w.at, Taking)
		}
	case Buried:
		b.left(mark.Of, mark.Key, w.at, WasBuried)
	case Recovered:
		b.letGo(mark.Of, w.at, WasBuried)
	default:
	}
}

// progress has one mark for each phase of a unit with a journal, which says how far it came.
func (b *builder) progress(w *moment, mark Mark) {
	mark.Text, mark.N, mark.Outof = b.text(w.Phase), int32(w.Done), int32(w.Of)
	mark.Name = b.text(w.Unit)
	of := phase{mark.Name, mark.Text}
	n, known := b.phases[of]
	if !known {
		b.phases[of] = int32(len(b.m.Marks))
		b.m.Marks = append(b.m.Marks, mark)
		return
	}
	was := &b.m.Marks[n]
	was.N, was.Outof = max(was.N, mark.N), max(was.Outof, mark.Outof)
}

// spanText is what there is to say of a span beside its kind and its time, as far as it is known.
func spanText(w *moment, kind Kind) string {
	ended := strings.HasSuffix(w.Name, "End")
	switch kind {
	case Acquire:
		if !ended {
			return listed(w.Keys)
		}
		if w.Err != "" {
			return ""
		}
		return "token " + tokenText(w.Token)
	case WaitFor:
		if !ended {
			return string(w.Key)
		}
	case ReadRecords:
		return plain.Count(w.Records, "record", "records")
	case Commit:
		if !ended {
			return plain.Count(w.Rows, "row", "rows") + ", " + plain.Count(w.Writes, "write", "writes")
		}
	case Request:
		text := w.Op
		if w.N > 1 {
			text += fmt.Sprintf(", sending %d", w.N)
		}
		if w.Answer != "" && w.Answer != "done" {
			text += ", " + w.Answer
		}
		if w.Capacity != 0 {
			text += fmt.Sprintf(", capacity %g", w.Capacity)
		}
		return text
	default:
	}
	return ""
}

// listed has the keys of a set, or the first of a large one.
func listed(keys []ordering.Key) string {
	const most = 12
	var names []string
	for _, key := range keys[:min(len(keys), most)] {
		names = append(names, string(key))
	}
	if len(keys) > most {
		names = append(names, fmt.Sprintf("and %d more", len(keys)-most))
	}
	return strings.Join(names, "  ")
}

// tokenText is a token, or nothing.
func tokenText(t fencing.Token) string {
	if t == 0 {
		return ""
	}
	return t.String()
}
