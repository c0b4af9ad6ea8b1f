package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdall/holdall/tools/mutants/internal/switched"
	"github.com/holdall/holdall/tools/mutants/internal/tree"
	"github.com/holdall/holdall/tools/program"
)

// library has the packages that mutants are drawn from; each follows those that it
// imports.
var library = []string{
	"internal/next", "ordering", "internal/expressions", "internal/requests", "fencing", "heartbeat", "internal/lockrow", "internal/lineup", "internal/actions", "internal/writeback", "internal/journal", "lockset", "unitofwork",
}

// random is a run of mutants that are drawn.
type random struct {
	n      int
	seed   uint64
	least  float64        // percent of them that have to be caught
	wanted *regexp.Regexp // in the line of a mutant
	share  string
	list   bool

	from  []string // folders of the packages that they are drawn from
	quick []check  // all of them run, until one notices a mutant
	last  []check  // run for what survives the others
	but   []unseen
}

// drawnByChance is a run over the library.
func drawnByChance(n int, seed uint64) random {
	r := random{n: n, seed: seed, share: "1/1", wanted: regexp.MustCompile(""), from: library, but: unseens}
	for _, folder := range library {
		r.quick = append(r.quick, check{in: folder})
	}
	return r
}

// draw draws the mutants of a run, and says how.
func (r random) draw(ctx context.Context, l *laboratory) (*tree.Tree, []switched.Mutant, error) {
	t, err := tree.Load(ctx, l.root, r.from, switched.Imports...)
	if err != nil {
		return nil, nil, err
	}
	all := changes(t, r.from)
	drawn, left, err := draw(ctx, t, all, r.n, r.seed)
	if err != nil {
		return nil, nil, err
	}
	l.say("%d mutants drawn by seed %d from %d changes; %d others do not compile", r.n, r.seed, len(all), left)
	drawn, err = program.Part(matching(drawn, r.wanted), r.share)
	if err == nil && len(drawn) == 0 {
		err = errors.New("-run, -part: none of them is wanted")
	}
	return t, drawn, err
}

// tally counts the mutants of a run by what became of them.
type tally struct {
	verdicts map[verdict]int
	late     int // caught by what is run last
	survived []string
}

// examine draws mutants, runs the tests with each of them, and returns an error
// unless enough are caught.
func (r random) examine(ctx context.Context, l *laboratory) error {
	t, drawn, err := r.draw(ctx, l)
	if err != nil {
		return err
	}
	if r.list {
		for _, m := range drawn {
			l.say("%s", described(m))
		}
		return nil
	}
	begun := time.Now()
	overlay, err := l.overlay(t, drawn)
	if err != nil {
		return err
	}
	suites, err := l.suites(ctx, overlay, append(slices.Clone(r.quick), r.last...))
	if err != nil {
		return err
	}
	l.say("%d suites pass with all mutants asleep in them, in %.0f s", len(suites), time.Since(begun).Seconds())
	begun = time.Now()
	sum := tally{verdicts: map[verdict]int{}}
	var mu sync.Mutex // held while a line is written
	err = l.each(ctx, len(drawn), func(ctx context.Context, i int) error {
		m := drawn[i]
		got, late := r.try(ctx, l, m, suites)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		text := fmt.Sprintf("%s  %s", described(m), got.verdict)
		if got.detail != "" {
			text += " (" + got.detail + ")"
		}
		l.say("%s  %.1f s", text, got.took.Seconds())
		sum.verdicts[got.verdict]++
		if late {
			sum.late++
		}
		if got.verdict == survived {
			sum.survived = append(sum.survived, described(m))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return sum.judge(l, r.least, time.Since(begun))
}

// try wakes one mutant in one suite after another, until one notices; late says that
// only what is run last did.
func (r random) try(ctx context.Context, l *laboratory, m switched.Mutant, suites []*suite) (got result, late bool) {
	if u := find(r.but, m.Change); u != nil {
		return result{verdict: u.kind, detail: u.why}, false
	}
	got = result{verdict: survived}
	for _, s := range suitesOf(path.Dir(m.File), suites) {
		late = slices.ContainsFunc(r.last, func(c check) bool { return c.in == s.in })
		took := got.took
		got = l.wake(ctx, s, m.Number)
		got.took += took
		if got.verdict != survived {
			return got, late
		}
	}
	return got, false
}

// judge says what became of all, and returns an error if too few were caught.
func (s tally) judge(l *laboratory, least float64, took time.Duration) error {
	noticed := s.verdicts[caught] + s.verdicts[endless]
	all := noticed + s.verdicts[survived]
	rate := 100 * float64(noticed) / float64(max(all, 1))
	l.say("%d of %d mutants caught: %.0f %%, in %.0f s; %d of them by the simulation alone, %d because they did not end",
		noticed, all, rate, took.Seconds(), s.late, s.verdicts[endless])
	l.say("%d more are equivalent, %d change only what people read", s.verdicts[equivalent], s.verdicts[diagnostic])
	if len(s.survived) > 0 {
		slices.Sort(s.survived)
		l.say("these survived:\n  %s", strings.Join(s.survived, "\n  "))
	}
	if all > 0 && rate < least {
		return fmt.Errorf("%.0f %% are caught, %.0f %% have to be", rate, least)
	}
	return nil
}
