package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdall/holdall/unitofwork"
)

// checkOutcomes: what callers were told is true, also what they were told when
// they asked again (P5).
func (h *history) checkOutcomes() (problems []string) {
	for _, j := range h.jobs {
		var landed []*try
		for _, t := range j.tries {
			if !t.landed.IsZero() {
				landed = append(landed, t)
			}
		}
		if len(landed) > 1 {
			problems = append(problems, fmt.Sprintf("%s committed %d times", j.name, len(landed)))
		}
		if !j.told {
			continue
		}
		switch {
		case errors.Is(j.err, unitofwork.ErrInDoubt):
			problems = append(problems, j.checkAnswers()...)
		case j.err != nil && len(landed) > 0:
			problems = append(problems, fmt.Sprintf("%s was told that it is not committed, but it is: %v", j.name, j.err))
		case j.err == nil && len(landed) == 0 && !h.doneUnder(j):
			problems = append(problems, fmt.Sprintf("%s was told that it is committed, but it is not", j.name))
		case j.err == nil && len(landed) > 0 && landed[0].landed.After(j.toldAt):
			problems = append(problems, fmt.Sprintf("%s was told that it is committed before it was", j.name))
		}
	}
	return problems
}

// checkAnswers judges what a caller in doubt was told about its last unit.
func (j *job) checkAnswers() (problems []string) {
	if len(j.tries) == 0 {
		return []string{fmt.Sprintf("%s was told to be in doubt without a unit", j.name)}
	}
	last := j.last()
	for _, answer := range j.answers {
		switch {
		case answer == unitofwork.Committed && last.landed.IsZero():
			problems = append(problems, fmt.Sprintf("%s asked and was told that it is committed, but it is not", j.name))
		case answer == unitofwork.NotCommitted && !last.landed.IsZero():
			problems = append(problems, fmt.Sprintf("%s asked and was told that it is not committed, but it is", j.name))
		}
	}
	return problems
}

// doneUnder reports whether some unit had committed under the job's ID by the
// time it was told so.
func (h *history) doneUnder(j *job) bool {
	if j.id == "" {
		return false
	}
	for _, t := range h.committed() {
		if t.job.id == j.id && !t.landed.After(j.toldAt) {
			return true
		}
	}
	return false
}

// checkIDs: what has an ID is done once, for as long as IDs are remembered, and
// not begun again once it is done.
func (h *history) checkIDs(p *Plan) (problems []string) {
	last := map[string]*try{}
	remembered := p.idRetention() - 2*p.Skew - time.Second
	for _, t := range h.committed() {
		if t.job.id == "" {
			continue
		}
		if before := last[t.job.id]; before != nil && t.landed.Sub(before.landed) < remembered {
			problems = append(problems, fmt.Sprintf("%s was done twice: by %s at %v, and by %s at %v",
				t.job.id, before.marker, h.when(before.landed), t.marker, h.when(t.landed)))
		}
		last[t.job.id] = t
	}
	for _, t := range h.inTurn() {
		done := last[t.job.id]
		if t.job.id == "" || done == nil || done == t || t.belief == nil {
			continue
		}
		if since := t.belief.start.Sub(done.landed); since > 0 && since < remembered {
			problems = append(problems, fmt.Sprintf("%s began to work at %v, though %s was done at %v by %s",
				t.marker, h.when(t.belief.start), t.job.id, h.when(done.landed), done.marker))
		}
	}
	return problems
}

func (p *Plan) idRetention() time.Duration { return 2*p.Retention + time.Minute }
