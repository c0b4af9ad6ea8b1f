package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// inherit has a newcomer ask about every doubt and take every key there is,
// after everybody else has gone, in fair weather: nothing may be held by the
// dead for ever, no lock be left by a ghost, no intent stay behind.
func (w *world) inherit() {
	for _, item := range w.db.Items(lockTable) {
		for unit, waits := range asLockRow(item).units() {
			w.history.left(text(item["key"]), unit, waits)
		}
	}
	h := &host{w: w, name: "heir", lease: w.plan.Lease}
	p := h.boot("heir", func(faults.Call) (string, faults.Fault) { return "", faults.Pass() })
	ctx := p.as("w0")
	w.askAll(ctx, p)
	if w.plan.Seed%3 == 0 && w.may(swept) { // before anybody wants anything
		w.sweepAll(p)
	}
	if w.plan.Seed%2 == 0 { // else those who take the keys finish what the dead left
		p.recovers(ctx)
	}
	for depth := w.plan.Depth; depth > 0; depth-- {
		w.takeAll(ctx, p, w.level(depth))
	}
	for _, j := range w.askAll(ctx, p) {
		w.history.problem("%s has an ID and was asked about after everything was settled, in vain", j.name)
	}
	p.recovers(ctx)
	w.readAll(ctx, p)
	p.net.Wait() // a look that it gave up may still be on its way
	for _, row := range w.db.Items(lockTable) {
		w.checkFree(row)
	}
	for _, item := range w.db.Items(unitTable) {
		if _, expires := item["expiresAt"]; !expires {
			w.history.problem("the unit table still has %s of %s", text(item["part"]), text(item["unit"]))
		}
	}
}

// askAll asks what became of every unit in doubt. It returns the jobs with an ID
// that is still remembered of which there was no telling.
func (w *world) askAll(ctx context.Context, p *process) (untold []*job) {
	for _, j := range w.history.jobs {
		if j.ref == "" {
			continue
		}
		outcome, err := p.units.Outcome(ctx, j.ref)
		if err != nil {
			w.history.problem("%s: the heir asked what became of it: %v", j.name, err)
			continue
		}
		w.story.tell(p.name, "asks about %s and is told: %s", j.name, outcome)
		j.answers = append(j.answers, outcome)
		if told := j.last().couldBeTold(w); told != "" && outcome == unitofwork.Forgotten {
			w.history.problem("%s: the heir was told that it is forgotten, though %s", j.name, told)
		}
		definite := outcome == unitofwork.Committed || outcome == unitofwork.NotCommitted
		if j.id != "" && !definite && time.Since(j.toldAt) < w.plan.Retention-2*w.plan.Skew {
			untold = append(untold, j)
		}
	}
	return untold
}

// level lists all keys of so many segments.
func (w *world) level(depth int) []ordering.Key {
	var keys []ordering.Key
	for f := range w.plan.Families {
		keys = append(keys, ordering.Key(fmt.Sprintf("f%d", f)))
	}
	for range depth - 1 {
		var below []ordering.Key
		for _, k := range keys {
			for n := range w.plan.Fan {
				below = append(below, k+ordering.Key(fmt.Sprintf("/%d", n)))
			}
		}
		keys = below
	}
	return keys
}

// takeAll takes keys and lets them go. The dead of one set are met one after
// another, each watched for a lease, which may take longer than a set may grow
// old; but who was watched once need not be watched again.
func (w *world) takeAll(ctx context.Context, p *process, keys []ordering.Key) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(keys)+5)*3*w.plan.Lease)
	defer cancel()
	set, err := p.locks.Acquire(ctx, keys)
	for n := 0; n < len(keys) && err != nil && strings.Contains(err.Error(), "maximum age"); n++ {
		set, err = p.locks.Acquire(ctx, keys)
	}
	if err != nil {
		w.history.problem("the heir cannot have %s: %v", list(keys), err)
		return
	}
	if err := set.Release(ctx); err != nil {
		w.history.problem("the heir cannot let go of %s: %v", list(keys), err)
	}
}

// readAll reads every record there may be by the coarsest keys. Nothing is in the way.
func (w *world) readAll(ctx context.Context, p *process) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // there may be more than a thousand
	defer cancel()
	if err := p.read(ctx, "the heir", w.level(1), refsOf(w.allKeys())); err != nil {
		w.history.problem("the heir cannot read everything: %v", err)
	}
}

// checkFree: nothing is held, wanted or intended by anybody.
func (w *world) checkFree(row map[string]types.AttributeValue) {
	key := row["key"].(*types.AttributeValueMemberS).Value
	for _, left := range []string{"unit", "below", "pending"} {
		if v, there := row[left]; there {
			w.history.problem("row %s still has %s: %s", key, left, text(v))
		}
	}
	if queue := asLockRow(row).queue; len(queue) > 0 {
		w.history.problem("row %s still has units in its queue: %v", key, queue)
	}
	if _, released := row["isReleased"]; !released {
		w.history.problem("row %s is not released", key)
	}
}
