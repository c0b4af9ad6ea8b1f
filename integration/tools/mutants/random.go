package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdall/holdall/integration/tools/mutants/internal/switched"
	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
	"github.com/holdall/holdall/integration/tools/program"
)

// library has the packages that mutants are drawn from; each follows those that it
// imports.
var library = []string{
	"internal/next", "internal/oneline", "internal/recent", "internal/underway", "ordering", "internal/plans", "internal/nesting", "internal/expressions", "internal/requests", "fencing", "internal/tokens", "heartbeat",
	"internal/lockrow", "internal/footprint", "internal/lineup", "internal/actions", "internal/writeback", "internal/journal", "internal/locks", "lockset", "lockset/inspect", "unitofwork", "record", "holdalltest",
}

// modules has those beside the library, each in a module of its own.
var modules = []string{
	"cmd/holdall/internal/plain", "cmd/holdall/internal/costs", "cmd/holdall/internal/timeline", "cmd/holdall/internal/web", "cmd/holdall", "otelholdall/internal/instruments", "otelholdall",
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

// drawnByChance is a run over all of them.
func drawnByChance(n int, seed uint64) random {
	r := random{n: n, seed: seed, share: "1/1", wanted: regexp.MustCompile(""), from: slices.Concat(library, modules), but: unseens}
	for _, folder := range library {
		r.quick = append(r.quick, check{in: folder})
	}
	for _, folder := range modules {
		r.quick = append(r.quick, check{in: folder, args: []string{"-test.short"}})
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
	suites, err := l.suites(ctx, overlay, drawn, append(slices.Clone(r.quick), r.last...))
	if err != nil {
		return err
	}
	l.say("%d suites pass with all mutants asleep in them, in %.0f s", len(suites), time.Since(begun).Seconds())
	begun = time.Now()
	sum, late, left := tally{}, 0, []string(nil)
	from := make([]int, len(drawn)) // the first suite to run
	err = l.twice(ctx, len(drawn), func(ctx context.Context, i int, again bool) result {
		got, in := r.try(ctx, l, drawn[i], suites, from[i], again)
		from[i] = in
		return got
	}, func(i int, got result) {
		text := fmt.Sprintf("%s  %s", described(drawn[i]), got.verdict)
		if got.detail != "" {
			text += " (" + got.detail + ")"
		}
		l.say("%s  %.1f s", text, got.took.Seconds())
		sum[got.verdict]++
		switch got.verdict {
		case caught, endless:
			if r.isLast(suitesOf(path.Dir(drawn[i].File), suites)[from[i]]) {
				late++
			}
		case survived:
			left = append(left, described(drawn[i]))
		}
	})
	if err != nil {
		return err
	}
	l.say("%s: %.0f %%, in %.0f s; %d by the simulation alone", sum, sum.rate(), time.Since(begun).Seconds(), late)
	if len(left) > 0 {
		slices.Sort(left)
		l.say("these survived:\n  %s", strings.Join(left, "\n  "))
	}
	if sum[caught]+sum[endless]+sum[survived] > 0 && sum.rate() < r.least {
		return fmt.Errorf("%.0f %% are noticed, %.0f %% have to be", sum.rate(), r.least)
	}
	return nil
}

// try wakes one mutant in one suite after another, beginning with the one numbered from, until
// one does not pass. in is that one's number.
func (r random) try(ctx context.Context, l *laboratory, m switched.Mutant, suites []*suite, from int, again bool) (got result, in int) {
	if u := find(r.but, m.Change); u != nil {
		return result{verdict: u.kind, detail: u.why}, 0
	}
	got = result{verdict: survived}
	its := suitesOf(path.Dir(m.File), suites)
	for i := from; i < len(its); i++ {
		limit := its[i].limit
		if again {
			limit = l.long
		}
		took := got.took
		got = l.wake(ctx, its[i], m.Number, limit)
		got.took += took
		if got.verdict != survived {
			return got, i
		}
	}
	return got, len(its)
}

// isLast reports whether a suite runs only for what survives the others.
func (r random) isLast(s *suite) bool {
	return slices.ContainsFunc(r.last, func(c check) bool { return c.in == s.in })
}
