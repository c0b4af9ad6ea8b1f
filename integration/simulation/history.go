package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/heartbeat"
	"github.com/holdall/holdall/internal/plans"
	"github.com/holdall/holdall/internal/requests"
	"github.com/holdall/holdall/internal/underway"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/unitofwork"
)

// history is what happened, as far as it is judged. What a goroutine notes of
// its own it notes without a lock; it is read when all have ended.
type history struct {
	w          *world
	units      map[string]*unit // by nonce
	mu         sync.Mutex
	jobs       []*job
	beliefs    []*belief
	burials    []burial
	deliveries []*delivery
	readings   []*reading
	byMarker   map[string]*try
	byUnit     map[string]*try
	tokens     map[string]fencing.Token // of lock sets, by unit
	turns      int
	problems   []string
	start      time.Time
}

// job is one piece of work that somebody wanted done.
type job struct {
	name  string
	p     *process
	id    string // under which it is done once
	keys  []ordering.Key
	tries []*try
	alone bool // it wanted locks alone
	finds bool // it names no keys: they are found below these
	// shares says that it may hold no locks, or share them with others that come along.
	shares bool

	impatient bool // it waits for others only so long
	wait      time.Duration
	began     time.Time

	finished bool // it had its locks, and its end was told
	over     bool
	told     bool
	toldAt   time.Time
	err      error // as told
	ref      string
	answers  []unitofwork.Outcome // to questions asked about ref
}

// finish notes that the job had its locks.
func (j *job) finish() { j.finished = !j.p.dead() }

// refused notes that it did not get them. Who leaves something behind has tried
// to undo it for a lease.
func (j *job) refused(ctx context.Context, err error) {
	if j.p.dead() {
		return
	}
	// Its own patience, a loss, the end of its wait or somebody silent may have made it begin
	// before the context ended.
	ended, any := ctx.Deadline()
	sooner := mindOf(ctx).letGo.Equal(time.Now()) || errors.Is(err, requests.ErrPatience) || errors.Is(err, lockset.ErrLost) ||
		errors.Is(err, lockset.ErrWaited) || strings.Contains(err.Error(), "too short to wait in turn")
	if any && ctx.Err() != nil && joined(err) && !errors.Is(err, underway.ErrBackground) && !sooner && time.Since(ended) < j.p.h.lease/2 {
		j.p.h.w.history.problem("%s gave up %v after its context ended, and left something behind: %v", j.name, time.Since(ended), err)
	}
	j.tell(err)
}

// recordWait is how long the job waits for others.
func (j *job) recordWait() lockset.Wait {
	if j.impatient {
		return lockset.For(j.wait)
	}
	return lockset.Forever()
}

// checkRefusal holds what a job was told of others who were in its way against
// what it wanted.
func (j *job) checkRefusal(err error) (wrong string) {
	var held *lockset.HeldError
	switch {
	case !errors.As(err, &held):
	case !slices.ContainsFunc(j.keys, held.Key.Covers) && !slices.ContainsFunc(j.keys, func(k ordering.Key) bool { return k.Covers(held.Key) }):
		return fmt.Sprintf("was told that %s is held, which it does not want", held.Key)
	case errors.Is(err, lockset.ErrWaited) && j.wait-time.Since(j.began) > shortWait(held):
		return fmt.Sprintf("was told after %v that its wait of %v is over", time.Since(j.began), j.wait)
	case errors.Is(err, lockset.ErrWaited) && !j.impatient:
		return "was told that its wait is over, and it has no end"
	case errors.Is(err, lockset.ErrWaited) && j.p.h.w.settings.Only == waitOver && j.fitsOneChunk() && len(j.tries) == 0 &&
		time.Since(j.began) > j.wait+requestsAfterAWait*2*j.p.h.w.plan.Latency:
		return fmt.Sprintf("was told after %v that its wait of %v is over, though all requests were answered", time.Since(j.began), j.wait)
	case errors.Is(err, lockset.ErrWaited):
		j.p.h.w.strikes(waitOver)
	}
	return ""
}

// shortWait is how much of a wait may be left when a unit is told that it is over: too little to
// wait in turn, as far as it is known how long turns take, or to look and take the key.
func shortWait(refused *lockset.HeldError) time.Duration {
	const lastLook, unknownTurn = 150 * time.Millisecond, 150 * time.Millisecond
	return max(lastLook, 4*refused.Expected, 4*time.Duration(refused.Queue+1)*unknownTurn)
}

// requestsAfterAWait is how many requests may follow a wait that is over, one after the
// other, before the caller is told.
const requestsAfterAWait = 5

// fitsOneChunk reports whether all rows of the job's keys are asked for at once.
func (j *job) fitsOneChunk() bool {
	plan, err := plans.New(j.keys...)
	return err == nil && plan.Rows() <= j.p.locks.Config().ChunkSize
}

// tell notes what somebody who still lives was told.
func (j *job) tell(err error) {
	w, what := j.p.h.w, "committed"
	if err != nil {
		what = err.Error()
	}
	j.told, j.err, j.toldAt = true, err, time.Now()
	w.story.tell(j.p.name, "%s is told: %s", j.name, what)
	for _, problem := range []string{unexpected(err), j.checkRefusal(err)} {
		if problem != "" {
			w.history.problem("%s: %s", j.name, problem)
		}
	}
}

// last is the job's last try.
func (j *job) last() *try { return j.tries[len(j.tries)-1] }

// try is one unit of work: an attempt to do a job.
type try struct {
	job     *job
	marker  string // what its commit puts into the log
	unit    string // its nonce
	token   fencing.Token
	belief  *belief // nil if its locks were lost before it began, or it ran without
	free    bool    // it ran without locks
	keys    []ordering.Key
	reads   []state
	turn    int       // when it had read all, in the order of all tries
	leader  string    // the unit that it came along with, if it was told
	safe    bool      // it held its locks still when it had read
	changes []change  // of what was read, in the same order
	done    time.Time // when its function returned
	landed  time.Time // when its commit did; zero if never
}

// belief is the time in which a unit believed that it held its keys.
type belief struct {
	who        string
	p          *process
	unit       string
	keys       []ordering.Key
	token      fencing.Token
	start, end time.Time
	cause      error // of its context's end; nil if its work was done before
	ctx        context.Context
	deadline   func() time.Time // nil if it was not told
	leader     string           // the unit that it came along with
	// passed says under which of its keys it has left its token; nil if under all.
	passed func(ordering.Key) bool
}

// group is what tells the units apart that are committed together, with one token.
func (b *belief) group() string { return cmp.Or(b.leader, b.unit) }

type burial struct {
	unit string
	key  ordering.Key
	at   time.Time
}

func (h *history) begin(name string, p *process) *job {
	j := &job{name: name, p: p}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs = append(h.jobs, j)
	return j
}

func (h *history) try(j *job, unit string) *try {
	t := &try{job: j, marker: fmt.Sprintf("%s#%d", j.name, len(j.tries)+1), unit: unit}
	j.tries = append(j.tries, t)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byMarker[t.marker], h.byUnit[unit] = t, t
	return t
}

// acquired notes the token of a lock set.
func (h *history) acquired(unit string, token fencing.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens[unit], h.units[unit].had = token, true
}

func (h *history) tokenOf(unit string) fencing.Token {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tokens[unit]
}

// nextTurn counts the tries that have read, in that order.
func (h *history) nextTurn() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turns++
	return h.turns
}

// cameAlong notes that a unit came along with another.
func (h *history) cameAlong(unit, leader string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.byUnit[unit]; t != nil {
		t.leader = leader
	}
}

// decided notes that a unit with a journal is committed, whenever its writes are
// carried out.
func (h *history) decided(unit string, at time.Time) {
	h.mu.Lock()
	t := h.byUnit[unit]
	first := t.landed.IsZero()
	if first {
		t.landed = at
	}
	h.mu.Unlock()
	if first {
		h.w.decisions.tell(t)
	}
}

// landed notes that a commit was carried out, with this token; a copy of it changes nothing.
func (h *history) landed(marker string, token fencing.Token, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.byMarker[marker]; t.landed.IsZero() {
		t.landed = at
		if t.free {
			t.token = token
		}
	}
}

// believe notes that a unit believes to hold its keys from now until ctx ends.
func (h *history) believe(ctx context.Context, j *job, unit string, keys []ordering.Key, token fencing.Token, deadline func() time.Time) *belief {
	if ctx.Err() != nil {
		return nil
	}
	b := &belief{who: j.name, p: j.p, unit: unit, keys: keys, token: token, start: time.Now(), ctx: ctx, deadline: deadline}
	story := &j.p.h.w.story
	story.tell(j.p.name, "%s holds %s as unit %s, token %v", j.name, list(keys), unit, token)
	for _, wrong := range compareKeys(j.keys, keys, j.finds) {
		h.problem("%s: %s", j.name, wrong)
	}
	h.mu.Lock()
	h.beliefs = append(h.beliefs, b)
	h.mu.Unlock()
	context.AfterFunc(ctx, func() { h.doubt(b) })
	return b
}

// doubt notes that a unit does not believe any more that it holds its keys: its
// context has ended, or it is about to commit, which is for the tables to decide.
func (h *history) doubt(b *belief) {
	if b == nil {
		return
	}
	h.mu.Lock()
	first := b.end.IsZero()
	if first {
		b.end, b.cause = time.Now(), context.Cause(b.ctx)
	}
	h.mu.Unlock()
	if !first || b.p.dead() {
		return
	}
	for _, wrong := range b.checkEnd() {
		h.problem("%s, unit %s: %s", b.who, b.unit, wrong)
	}
	if b.cause == nil {
		h.w.story.tell(b.p.name, "%s has done its work", b.who)
	} else {
		h.w.story.tell(b.p.name, "%s holds no more: %v", b.who, b.cause)
	}
}

// checkEnd holds the end of a belief against the table: the deadline counts from
// before the last sign of life was sent, so it is early by what the table has; a
// silent end comes at the deadline; and who is told that a row is another's is
// told the truth.
func (b *belief) checkEnd() (wrong []string) {
	rows := &b.p.h.w.rows
	for _, k := range b.keys {
		at, mine := rows.alive(k, b.unit)
		if latest := at.Add(b.p.h.lease - b.p.h.margin()); mine && b.deadline != nil && b.deadline().After(latest) {
			wrong = append(wrong, fmt.Sprintf("its deadline is %v, and may be %v at most: %s was last renewed then, less a margin",
				b.deadline().Sub(b.p.h.w.start), latest.Sub(b.p.h.w.start), k))
		}
	}
	var lost *heartbeat.LostError
	if !errors.As(b.cause, &lost) {
		return wrong
	}
	if strings.Contains(lost.Error(), "no renewal was confirmed in time") && b.deadline != nil && b.deadline().Sub(b.end).Abs() > time.Millisecond {
		wrong = append(wrong, fmt.Sprintf("it was lost for silence at %v, its deadline was %v", b.end.Sub(b.p.h.w.start), b.deadline().Sub(b.p.h.w.start)))
	}
	if errors.Is(lost, heartbeat.ErrNotOurs) {
		if _, mine := rows.alive(lost.Key, b.unit); mine {
			wrong = append(wrong, fmt.Sprintf("it was told that %s is not its own any more, and it is", lost.Key))
		}
	}
	return wrong
}

// compareKeys: every key wanted is held or covered, and nothing else is held; of keys that are
// found some may be held, and what is below them.
func compareKeys(wanted, held []ordering.Key, found bool) (wrong []string) {
	if found {
		for _, h := range held {
			if !slices.ContainsFunc(wanted, func(k ordering.Key) bool { return k.Covers(h) }) {
				wrong = append(wrong, fmt.Sprintf("holds %s, below nothing that was wanted", h))
			}
		}
		return wrong
	}
	for _, k := range wanted {
		if !slices.ContainsFunc(held, func(h ordering.Key) bool { return k == h || strings.HasPrefix(string(k), string(h)+"/") }) {
			wrong = append(wrong, fmt.Sprintf("wanted %s, and holds only %s", k, list(held)))
		}
	}
	for _, h := range held {
		if !slices.Contains(wanted, h) {
			wrong = append(wrong, fmt.Sprintf("holds %s, which nobody wanted", h))
		}
	}
	return wrong
}

func (h *history) buried(unit string, key ordering.Key, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.burials = append(h.burials, burial{unit, key, at})
}

// problem notes a promise that did not hold.
func (h *history) problem(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, fmt.Sprintf("[%v] ", time.Since(h.start))+fmt.Sprintf(format, args...))
}
