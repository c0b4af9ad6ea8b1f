package main

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/holdall/holdall/tools/program"
)

// result is what a target did, as far as the go command tells.
type result struct {
	inputs      int // tried
	interesting int // of those, what ran code that no input had run before
	seconds     int
	goesOn      bool // it had tried more inputs when it was last heard of than the time before
	output      string
}

func (r result) rate() int { return r.inputs / max(r.seconds, 1) }

// progress is the line that the go command prints every three seconds:
//
//	fuzz: elapsed: 1m3s, execs: 2030 (611/sec), new interesting: 12 (total: 40)
var progress = regexp.MustCompile(`^fuzz: elapsed: ([^,]+), execs: (\d+) .*new interesting: (\d+) `)

// read reads what the go command printed, of which the last progress counts.
func read(output string) result {
	r := result{output: output}
	before := result{} // at least two seconds earlier
	last := result{}
	for line := range strings.Lines(output) {
		found := progress.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		elapsed, _ := time.ParseDuration(found[1])
		r.seconds = int(elapsed.Seconds())
		r.inputs, _ = strconv.Atoi(found[2])
		r.interesting, _ = strconv.Atoi(found[3])
		if r.seconds-last.seconds >= 2 {
			before = last
		}
		last = r
	}
	r.goesOn = r.inputs > before.inputs
	return r
}

// fuzz runs the target for some time, or until it fails, or ctx ends.
func (t target) fuzz(ctx context.Context, root string, each time.Duration) (result, error) {
	output, _, err := program.Run(ctx, root, nil, "go", "test", "./"+t.Folder,
		"-run", "^$", "-fuzz", "^"+t.Name+"$", "-fuzztime", each.String(), "-fuzzminimizetime", "500x")
	r := read(output)
	switch {
	case err != nil && r.goesOn && outOfTime.MatchString(r.output):
		err = nil
	// What the go command takes for a success:
	case err == nil && r.inputs == 0:
		err = errNothing
	case err == nil && !r.goesOn && r.seconds >= 4:
		err = errHangs
	}
	return r, err
}

var (
	errNothing = errors.New("it tried no input")
	errHangs   = errors.New("it did not come back from an input")
)

// outOfTime is all that the go command says, now and then, of a target that did not
// fail: its time was over in the midst of an input.
var outOfTime = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \(.*\)\n +context deadline exceeded\nFAIL$`)
