package simulation

import (
	"fmt"
	"slices"
	"strings"
)

// checkQueue returns what is wrong with how a row's queue has changed: nobody takes the row
// past its head, unless that has left it free for too long; whoever takes it leaves the queue in
// the write that takes it, with those before it; a unit that joins a queue is its last; and one
// at a time leaves (P1). late is whether those who wait have left it free for too long.
func checkQueue(before, now lockRow, late bool) (wrong []string) {
	takers := before.takers(now)
	queue := before.queue
	for _, unit := range takers {
		switch place := slices.Index(queue, unit); {
		case len(queue) == 0:
		case place == 0 || place > 0 && late:
			queue = queue[place+1:]
		case place < 0 && late:
			queue = nil
		default:
			wrong = append(wrong, fmt.Sprintf("unit %s took it past the head of its queue %v", unit, queue))
		}
	}
	if len(takers) > 0 && !slices.Equal(queue, now.queue) {
		wrong = append(wrong, fmt.Sprintf("its queue was %v when %v took it, and is %v", before.queue, takers, now.queue))
	}
	if len(takers) > 0 {
		return wrong
	}
	switch len(now.queue) - len(before.queue) {
	case 0:
		if !slices.Equal(before.queue, now.queue) {
			wrong = append(wrong, fmt.Sprintf("its queue was %v", before.queue))
		}
	case 1:
		if last := now.queue[len(now.queue)-1]; !slices.Equal(before.queue, now.queue[:len(before.queue)]) || slices.Contains(before.queue, last) {
			wrong = append(wrong, fmt.Sprintf("who joined its queue %v is not the last of %v", before.queue, now.queue))
		}
	case -1:
		i := 0
		for i < len(now.queue) && now.queue[i] == before.queue[i] {
			i++
		}
		if !slices.Equal(before.queue[i+1:], now.queue[i:]) {
			wrong = append(wrong, fmt.Sprintf("who was left in its queue %v changed places: %v", before.queue, now.queue))
		}
	default:
		if !late || len(now.queue) > 0 { // else a sweep
			wrong = append(wrong, fmt.Sprintf("its queue was %v, and is %v", before.queue, now.queue))
		}
	}
	return wrong
}

// checkLeft returns what is wrong with the queue of a row that an operator takes, past all: it
// stays as it is.
func checkLeft(before, now lockRow) (wrong []string) {
	if !slices.Equal(before.queue, now.queue) {
		wrong = append(wrong, fmt.Sprintf("its queue was %v before an operator took it", before.queue))
	}
	return wrong
}

// takers are the units that have the row now and did not before.
func (r lockRow) takers(now lockRow) (all []string) {
	if now.unit != "" && now.unit != r.unit {
		all = append(all, now.unit)
	}
	for _, entry := range now.below {
		if !slices.Contains(r.below, entry) {
			unit, _, _ := strings.Cut(entry, " ")
			all = append(all, unit)
		}
	}
	return all
}
