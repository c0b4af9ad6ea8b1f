package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdall/holdall/cmd/holdall/internal/plain"
	"github.com/holdall/holdall/cmd/holdall/internal/web"
	"github.com/holdall/holdall/internal/hooks"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/ordering"
	"github.com/holdall/holdall/trace"
	"github.com/holdall/holdall/unitofwork"
)

// pages has what ls and show say for a browser. All of it looks with one inspector, which so
// remembers for all who is silent.
type pages struct {
	app       *app
	flags     webFlags
	inspector *inspect.Inspector

	mu      sync.Mutex
	spent   float64                       // capacity units
	lists   lives                         // what lists have last told, from which a key's page goes on
	clients map[string]*unitofwork.Client // by unit table
}

// spending are hooks that note what requests consume.
func (p *pages) spending() *trace.Trace {
	return trace.Join(&trace.Trace{Capacity: true}, hooks.On(trace.Request, func(_ context.Context, r trace.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.spent += r.Capacity
	}))
}

// units is a client of a unit table, which rows name.
func (p *pages) units(ctx context.Context, table string) (*unitofwork.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.clients[table]; c != nil {
		return c, nil
	}
	c, err := p.app.unitsClient(ctx, func(cfg *unitofwork.Config) { cfg.Table, cfg.Trace = table, p.spending() })
	if err == nil {
		p.clients[table] = c
	}
	return c, err
}

func (p *pages) Hint(err error) string { return p.app.hint(err) }

func (p *pages) Rows() web.Look[web.List] {
	return &rowsLook{look{pages: p}}
}

func (p *pages) Story(key ordering.Key) web.Look[web.Story] {
	return &storyLook{look{pages: p}, key}
}

func (p *pages) Free(ctx context.Context, key ordering.Key, unit, reason string) (string, error) {
	if err := p.inspector.Free(ctx, key, unit, inspect.Freeing{Reason: reason}); err != nil {
		return "", err
	}
	return fmt.Sprintf("Key %s was taken from unit %s: its commit and its renewals are refused, and others can have the key in a lease of the unit's. "+
		"%s Until then the key names as its holder a unit of %q%s.", key, unit, untilItKnows, p.inspector.Config().Owner, plain.For(reason)), nil
}

// look is what ls and show have in common when they look again and again.
type look struct {
	*pages
	lives lives
}

// Watch looks at those of whom lists have not shown whether they are alive.
func (l *look) Watch(ctx context.Context) error {
	seen, err := l.inspector.Watch(ctx, l.lives.doubtful(), nil)
	l.lives.note(seen, time.Now())
	return err
}

// rowsLook is ls, again and again.
type rowsLook struct{ look }

func (l *rowsLook) Read(ctx context.Context) (web.List, error) {
	var list web.List
	f := lsFlags{list: l.flags.list}
	f.list.Progress = func(_, rows int, units float64) { list.Looked, list.Cost = rows, units }
	var sightings []inspect.Sighting
	for r, err := range l.app.list(ctx, l.inspector, f) {
		if err != nil {
			return list, err
		}
		if sightings = append(sightings, inspect.Sighting{Row: r}); len(sightings) == 2*mostRows {
			sightings, list.More = hottest(sightings), list.More+mostRows
		}
	}
	list.More += max(len(sightings)-mostRows, 0)
	sightings = hottest(sightings)
	slices.SortFunc(sightings, func(x, y inspect.Sighting) int { return ordering.Compare(x.Row.Key, y.Row.Key) })
	l.lives = l.lives.see(sightings, time.Now())
	l.mu.Lock()
	l.lists = maps.Clone(l.lives)
	l.mu.Unlock()
	stuck, unasked := l.stuck(ctx, sightings)
	if ctx.Err() != nil {
		return list, context.Cause(ctx)
	}
	l.mu.Lock()
	list.Spent, list.Unasked = l.spent, plain.Error(unasked)
	l.mu.Unlock()
	for _, s := range sightings {
		list.Rows = append(list.Rows, web.Row{Sighting: s, Stuck: s.Row.Held() && stuck[s.Row.Holder.Unit]})
	}
	return list, nil
}

// hottest keeps those that somebody may have to do something about, and then those with the longest queues.
func hottest(sightings []inspect.Sighting) []inspect.Sighting {
	if len(sightings) <= mostRows {
		return sightings
	}
	heat := func(r inspect.Row) int {
		if r.Damage != "" || r.Prepared() {
			return math.MaxInt
		}
		return len(r.Queue)
	}
	slices.SortFunc(sightings, func(x, y inspect.Sighting) int {
		return cmp.Or(cmp.Compare(heat(y.Row), heat(x.Row)), ordering.Compare(x.Row.Key, y.Row.Key))
	})
	clear(sightings[mostRows:])
	return sightings[:mostRows]
}

// mostAsked is of how many units the journals are read for one list.
const mostAsked = 50

// stuck are the units that are committed and cannot be finished, by their journals: of the rows that wait
// for one. Its error is why that is not known of all.
func (l *rowsLook) stuck(ctx context.Context, sightings []inspect.Sighting) (stuck map[string]bool, failed error) {
	stuck, asked := map[string]bool{}, map[string]bool{}
	for _, s := range sightings {
		if !s.Row.Prepared() || asked[s.Row.Holder.Unit] {
			continue
		}
		if len(asked) == mostAsked {
			return stuck, fmt.Errorf("the journals of %d units were read, and there are more", mostAsked)
		}
		asked[s.Row.Holder.Unit] = true
		var state unitofwork.JournalState
		units, err := l.units(ctx, s.Row.Holder.Prepared)
		if err == nil {
			state, err = units.JournalOf(ctx, s.Row.Holder.Unit)
		}
		if err != nil {
			failed = err
		}
		stuck[s.Row.Holder.Unit] = state.Stuck()
	}
	return stuck, failed
}

// storyLook is show, again and again.
type storyLook struct {
	look
	key ordering.Key
}

func (l *storyLook) Read(ctx context.Context) (web.Story, error) {
	view, err := l.inspector.Look(ctx, l.key)
	if err != nil {
		return web.Story{}, err
	}
	s := shown{View: view, goesOn: true, lives: map[ordering.Key]inspect.Sighting{}}
	var sightings []inspect.Sighting
	for _, r := range s.around() {
		sightings = append(sightings, inspect.Sighting{Row: r})
	}
	if l.lives == nil {
		l.mu.Lock()
		l.lives = l.lists
		l.mu.Unlock()
	}
	l.lives = l.lives.see(sightings, time.Now())
	for _, sighting := range sightings {
		if sighting.Life != "" {
			s.lives[sighting.Row.Key] = sighting
		}
	}
	s.unasked = findJournal(ctx, &s, l.app.units, l.units)
	if ctx.Err() != nil {
		return web.Story{}, context.Cause(ctx)
	}
	s.now = time.Now()
	return s.story(), nil
}

// story is what show has found out, for a page.
func (s *shown) story() web.Story {
	story := web.Story{Row: s.Row, Life: s.lives[s.Row.Key]}
	add := func(text string, args ...any) {
		story.Words = append(story.Words, strings.TrimSpace(fmt.Sprintf(text, args...)))
	}
	if s.rowWords(add); s.Row.Damage == "" { // the queue has a place of its own
		s.aboveWords(add)
		s.lastWords(add)
	}
	for _, line := range s.picture() {
		story.Picture = append(story.Picture, plain.Line(line))
	}
	if s.journal != nil && s.journal.Outcome != unitofwork.Forgotten {
		story.Becomes = becomes(*s.journal)
	}
	for _, other := range s.around() {
		if other.Key != s.Row.Key && !other.Idle() {
			sighting := s.lives[other.Key]
			sighting.Row = other
			story.Around = append(story.Around, web.Row{Sighting: sighting})
		}
	}
	return story
}

// becomes is what is decided about a unit, in a few words.
func becomes(j unitofwork.JournalState) string {
	switch {
	case j.Stuck():
		return "committed, and stuck"
	case j.Outcome == unitofwork.Committed && j.Done:
		return "committed, and done"
	}
	return j.Outcome.String()
}
