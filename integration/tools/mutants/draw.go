package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"

	"github.com/holdall/holdall/integration/tools/mutants/internal/places"
	"github.com/holdall/holdall/integration/tools/mutants/internal/switched"
	"github.com/holdall/holdall/integration/tools/mutants/internal/tree"
)

// changes returns all changes of the packages in these folders.
func changes(t *tree.Tree, folders []string) (all []places.Change) {
	for _, folder := range folders {
		p := t.Package(folder)
		for _, f := range p.Files {
			all = append(all, places.Find(t.Fset, f.Name, f.Text, f.AST, p.Info)...)
		}
	}
	return all
}

// draw draws n mutants by a seed: all changes alike, but only one of each place. A
// change that does not compile together with those drawn before counts as none;
// left says how many there were.
func draw(ctx context.Context, t *tree.Tree, all []places.Change, n int, seed uint64) (drawn []switched.Mutant, left int, err error) {
	type place struct {
		file     string
		from, to int
	}
	taken := map[place]bool{}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
		at := place{all[i].File, all[i].From, all[i].To}
		switch {
		case len(drawn) == n:
			return drawn, left, nil
		case ctx.Err() != nil:
			return nil, 0, context.Cause(ctx)
		case taken[at]:
			continue
		}
		more := append(slices.Clone(drawn), switched.Mutant{Number: len(drawn) + 1, Change: all[i]})
		if compiles(t, more) != nil {
			left++
			continue
		}
		drawn, taken[at] = more, true
	}
	if len(drawn) < n {
		return nil, 0, fmt.Errorf("there are only %d mutants, not %d", len(drawn), n)
	}
	return drawn, left, nil
}

// compiles returns why the package of the last of these mutants is none with all
// those of it.
func compiles(t *tree.Tree, mutants []switched.Mutant) error {
	folder := path.Dir(mutants[len(mutants)-1].File)
	texts, err := switched.Join(t, t.Package(folder), in(folder, mutants))
	if err != nil {
		return err
	}
	return t.Compile(folder, texts)
}

// in returns the mutants of the package in a folder.
func in(folder string, mutants []switched.Mutant) (its []switched.Mutant) {
	for _, m := range mutants {
		if path.Dir(m.File) == folder {
			its = append(its, m)
		}
	}
	return its
}

// matching returns the drawn mutants that have a match in what is printed of them.
func matching(drawn []switched.Mutant, wanted *regexp.Regexp) (some []switched.Mutant) {
	for _, m := range drawn {
		if wanted.MatchString(described(m)) {
			some = append(some, m)
		}
	}
	return some
}

// described is a mutant in one line.
func described(m switched.Mutant) string {
	return fmt.Sprintf("%3d  %s:%d  %s  `%s` → `%s`", m.Number, m.File, m.Line, m.Operator, m.Old, m.New)
}
