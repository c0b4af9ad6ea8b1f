package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/faults"
	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/locks"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// rushes yields one rush after another, at the time when somebody is to begin there,
// with what it draws there: a function of the seed, the host, who it is and the rush
// alone.
func (p *process) rushes(purpose string, n int) iter.Seq2[int, *rand.Rand] {
	w := p.h.w
	rush := func() int { return int(time.Since(w.start) / w.plan.Rush) }
	return func(yield func(int, *rand.Rand) bool) {
		for k := rush() + 1; ; k = max(k+1, rush()) {
			r := draw(w.plan.Seed, purpose, p.h.name, n, k)
			begin := time.Duration(k)*w.plan.Rush + faults.UpTo(r, w.plan.Spread)
			// Who is late does not begin at the moment at which it has ended, and others with it: which
			// of them is first would be a matter of chance.
			late := 1 + faults.UpTo(draw(w.plan.Seed, purpose, "late", p.h.name, n, k), time.Millisecond)
			if begin >= w.until || !p.sleep(max(begin-time.Since(w.start), late)) || w.over() || !yield(k, r) {
				return
			}
		}
	}
}

// work is what a worker does: at every rush it wants something.
func (p *process) work(n int) {
	w := p.h.w
	ctx := p.as(fmt.Sprintf("w%d", n))
	for k, r := range p.rushes("work", n) {
		if draw(w.plan.Seed, "recovers", p.h.name, n, k).IntN(10) == 0 {
			p.recovers(ctx)
		}
		j := w.history.begin(fmt.Sprintf("%s/w%d/%d", p.name, n, k), p)
		w.event()
		p.do(ctx, r, j, k)
		j.over = true
	}
}

// recovers finishes what crashed units left, as a scheduled job would.
func (p *process) recovers(ctx context.Context) {
	w := p.h.w
	ctx, cancel := context.WithTimeout(ctx, 10*w.plan.Lease)
	defer cancel()
	found, err := p.units.Recover(ctx)
	if p.dead() {
		return
	}
	w.story.tell(p.name, "recovers: %d committed, %d aborted, %d alive, %v", len(found.Committed), len(found.Aborted), len(found.Alive), err)
	if w.settings.Only == nothing && len(found.Aborted) > 0 {
		w.history.problem("units were aborted, though nothing goes wrong: %v", found.Aborted)
	}
	w.history.checkUnfinished(p.name, err)
}

// checkUnfinished: what is not done may want for an answer, and for nothing else.
func (h *history) checkUnfinished(who string, err error) {
	if errors.As(err, new(*unitofwork.UnappliedError)) || errors.As(err, new(*lockset.TableError)) {
		h.problem("%s: %v", who, err)
	}
}

// do is one piece of work.
func (p *process) do(ctx context.Context, r *rand.Rand, j *job, rush int) {
	w := p.h.w
	j.keys = w.keys(r)
	patience := time.Duration(0) // for ever
	if w.may(givenUp) && r.IntN(3) > 0 {
		patience = faults.UpTo(r, 10*w.plan.Lease)
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		defer func() {
			if limited.Err() != nil && !p.dead() {
				w.strikes(givenUp)
			}
		}()
		ctx = limited
	}
	if w.may(waitOver) && r.IntN(5) == 0 {
		wait := time.Duration(0) // for nobody
		if r.IntN(2) == 0 {
			wait = faults.UpTo(r, 3*w.plan.Lease)
		}
		j.wait, j.impatient, j.began = wait, true, time.Now()
	}
	switch kind := r.IntN(6); {
	case w.plan.Quick && r.IntN(3) > 0:
		p.doAsOne(ctx, r, j, patience, rush)
	case kind == 0:
		p.holdForAWhile(ctx, r, j, patience)
	case kind == 1:
		p.beginAndCommit(ctx, r, j, patience)
	default:
		p.doAsOne(ctx, r, j, patience, rush)
	}
}

// holdForAWhile takes locks alone, for work that is elsewhere.
func (p *process) holdForAWhile(ctx context.Context, r *rand.Rand, j *job, patience time.Duration) {
	w := p.h.w
	j.alone = true
	w.story.tell(p.name, "%s wants the locks of %s", j.name, list(j.keys))
	watch := p.watch()
	set, err := p.locks.Acquire(ctx, j.keys, func(o *lockset.Options) { o.Wait = j.recordWait() })
	watch.within(j.name, "Acquire", patience, p.h.lease/10) // an attempt
	if err != nil {
		j.refused(ctx, err)
		return
	}
	w.history.believe(set.Context(), j, set.Nonce(), set.Keys(), set.Token(), set.Deadline)
	for d := range p.think(r) {
		select {
		case <-time.After(d):
		case <-set.Context().Done():
		}
	}
	p.deliver(set.Context(), r, j.name, set.Token(), set.Keys())
	watch = p.watch()
	err = set.Release(context.WithoutCancel(ctx))
	watch.within(j.name, "Release", time.Nanosecond, 4*p.h.lease)
	switch {
	case p.dead():
	case noAnswer(err):
		w.history.loose(set.Nonce())
	case err != nil && !errors.Is(err, lockset.ErrLost):
		w.history.problem("%s: release: %v", j.name, err)
	default:
		w.history.ended(set.Nonce())
	}
	j.finish()
}

// think yields how long work takes: not at all, a moment, or too long.
func (p *process) think(r *rand.Rand) func(func(time.Duration) bool) {
	w := p.h.w
	return func(yield func(time.Duration) bool) {
		switch {
		case w.plan.Quick && r.IntN(10) > 0:
		case w.plan.MaxAge < 10*time.Minute && w.happens(r, heldTooLong, 0.01):
			yield(w.plan.MaxAge + faults.UpTo(r, w.plan.Lease))
		case w.happens(r, fnSlow, 0.1):
			yield(w.plan.Lease + faults.UpTo(r, 3*w.plan.Lease))
		case r.IntN(10) < 7:
			yield(faults.UpTo(r, min(w.plan.Lease, 3*time.Second)))
		}
	}
}

// beginAndCommit is a unit of work by hand.
func (p *process) beginAndCommit(ctx context.Context, r *rand.Rand, j *job, patience time.Duration) {
	p.h.w.story.tell(p.name, "%s wants a unit under %s", j.name, list(j.keys))
	watch := p.watch()
	u, err := p.units.Begin(ctx, unitofwork.Work{Keys: j.keys, Wait: j.recordWait(), Purpose: j.name})
	watch.within(j.name, "Begin", patience, p.h.lease/10)
	if err != nil {
		j.refused(ctx, err)
		return
	}
	if err := p.inside(u.Context(), u, j, r, false); err != nil {
		watch = p.watch()
		_ = u.Rollback(ctx)                                            // others take over what it cannot release
		watch.within(j.name, "Rollback", time.Nanosecond, 4*p.h.lease) // as a Release
		j.finish()
		p.tell(ctx, j, err)
		return
	}
	watch = p.watch()
	err = u.Commit(ctx)
	watch.within(j.name, "Commit", time.Nanosecond, 4*p.h.lease)
	j.finish()
	p.tell(ctx, j, err)
}

// errPanicked stands for a panic of the unit's function.
var errPanicked = errors.New("the function panicked")

// doAsOne is a unit of work as most callers write it.
func (p *process) doAsOne(ctx context.Context, r *rand.Rand, j *job, patience time.Duration, rush int) {
	w := p.h.w
	work := unitofwork.Work{Attempts: 1 + r.IntN(3), Wait: j.recordWait(), Purpose: j.name}
	named := r.IntN(2) == 0
	if r.IntN(4) == 0 { // several want the same, and only one of them is to have it done
		work.ID = fmt.Sprintf("id-%d-%d", rush, r.IntN(3))
		same := draw(w.plan.Seed, "keys", work.ID)
		j.id, j.keys = work.ID, w.keys(same)
		named = same.IntN(2) == 0
	}
	work.Alone = r.IntN(10) == 0
	work.Lock = r.IntN(8) == 0 && (named || work.ID == "") // an ID goes with the keys that are named
	j.shares = !work.Lock
	if j.finds = !work.Lock && !named; !j.finds {
		work.Keys = j.keys
	}
	under := ""
	if j.id != "" {
		under = ", to be done once as " + j.id
	}
	w.story.tell(p.name, "%s wants a unit under %s%s", j.name, list(j.keys), under)
	watch := p.watch()
	var err error
	func() {
		defer func() {
			switch v := recover(); v {
			case nil:
			case errPanicked:
				err = errPanicked
			default:
				panic(v) // not the function's
			}
		}()
		err = p.units.Do(ctx, work, func(ctx context.Context, u *unitofwork.Unit) error {
			return p.inside(ctx, u, j, r, true)
		})
	}()
	watch.within(j.name, "Do", patience, 8*p.h.lease)
	if len(j.tries) > 0 || err == nil {
		j.finish()
	}
	p.tell(ctx, j, err)
}

// tell notes what the caller was told; one told to be in doubt asks at once.
func (p *process) tell(ctx context.Context, j *job, err error) {
	w := p.h.w
	if p.dead() {
		return
	}
	j.tell(err)
	var doubt *unitofwork.InDoubtError
	inDoubt := errors.As(err, &doubt)
	for i, t := range j.tries {
		if inDoubt && i == len(j.tries)-1 {
			w.history.loose(t.unit)
		} else {
			w.history.ended(t.unit)
		}
	}
	if !inDoubt {
		return
	}
	after := time.Since(j.last().done)
	if why := j.last().couldBeTold(w); why != "" && after < p.h.lease/2 {
		w.history.problem("%s is in doubt after no more than %v, though %s", j.name, after, why)
	}
	j.ref = doubt.Ref
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.plan.Lease)
	defer cancel()
	if outcome, err := p.units.Outcome(ctx, j.ref); err == nil && !p.dead() {
		w.story.tell(p.name, "%s asks and is told: %s", j.name, outcome)
		j.answers = append(j.answers, outcome)
	}
}

func noAnswer(err error) bool { return errors.As(err, new(*lockset.NoAnswerError)) }

// unexpected says what is wrong with an error that a caller who did nothing
// wrong was told.
func unexpected(err error) string {
	switch {
	case err == nil, errors.Is(err, errChangedItsMind), errors.Is(err, errPanicked):
		return ""
	case lockset.NextOf(err) == lockset.FixCall:
		return fmt.Sprintf("was told to fix the call: %v", err)
	case errors.Is(err, fencing.ErrStale):
		return fmt.Sprintf("nobody but units writes here, and yet: %v", err)
	case errors.As(err, new(*locks.ConfigError)), errors.As(err, new(*lockset.TableError)), errors.As(err, new(*lockrow.RowError)):
		return fmt.Sprintf("unexpected: %v", err)
	}
	return ""
}

// stopwatch measures a call, and what it cannot be blamed for.
type stopwatch struct {
	p       *process
	began   time.Time
	stalled time.Duration // how long the process had stalled, less what it still will
}

func (p *process) watch() stopwatch {
	rest := time.Duration(p.stalls.Load()) - time.Since(p.h.w.start)
	return stopwatch{p, time.Now(), time.Duration(p.stalled.Load()) - max(rest, 0)}
}

// within notes a call that took longer than the caller's patience and what the
// library may need to put things in order; 0 is a caller that waits for ever.
func (s stopwatch) within(who, what string, patience, order time.Duration) {
	if patience == 0 || s.p.dead() {
		return
	}
	took := time.Since(s.began)
	most := patience + order + s.p.h.lease/2 + time.Duration(s.p.stalled.Load()) - s.stalled
	if took > most {
		s.p.h.w.history.problem("%s: %s took %v, at most %v were expected", who, what, took, most)
	}
}

// keys draws the keys of a set.
func (w *world) keys(r *rand.Rand) []ordering.Key {
	n := 1 + r.IntN(4)
	switch {
	case w.plan.Quick:
		n = 1 + r.IntN(2)
	case r.IntN(10) == 0:
		n = 1 + r.IntN(40)
	case w.plan.Many && r.IntN(3) == 0:
		n = 40 + r.IntN(81)
	}
	hot := w.plan.Quick || r.IntN(3) == 0 && (!w.plan.Wide || r.IntN(4) == 0)
	keys := make([]ordering.Key, n)
	for i := range keys {
		family, depth := r.IntN(w.plan.Families), 1+r.IntN(w.plan.Depth)
		if hot {
			family = 0
		}
		if n > 40 { // a coarse key would cover most of them
			depth = w.plan.Depth
		}
		keys[i] = below(r, ordering.Key(fmt.Sprintf("f%d", family)), depth-1, w.plan.Fan)
	}
	return keys
}

// below draws a key so many levels below another.
func below(r *rand.Rand, k ordering.Key, levels, fan int) ordering.Key {
	for range levels {
		k += ordering.Key(fmt.Sprintf("/%d", r.IntN(fan)))
	}
	return k
}

// list lists some of many.
func list[S ~string](all []S) string {
	var b strings.Builder
	for i, s := range all {
		if i == 12 {
			fmt.Fprintf(&b, " and %d more", len(all)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(s))
	}
	return b.String()
}
