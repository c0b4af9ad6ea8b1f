package web

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// samples are what a page of metrics has for the figures, as of one moment.
type samples struct {
	at     time.Time
	values map[series]float64 // sums
}

// series are all of a name that have a label, or all if there is none to have.
type series struct{ metric, label, is string }

// parts are the sums that a figure is made of.
func (f figure) parts() []series {
	if f.kind == mean {
		return []series{{f.metric + "_sum", f.label, f.is}, {f.metric + "_count", f.label, f.is}}
	}
	return []series{{f.metric, f.label, f.is}}
}

// ratesOf are the figures between two looks at a page, of which the first may be none.
func ratesOf(before, is samples) []Rate {
	rates := make([]Rate, len(figures))
	rise := func(s series) (float64, bool) {
		value, known := is.values[s]
		was := before.values[s]
		if value < was { // the process began anew
			was = 0
		}
		return value - was, known && !before.at.IsZero()
	}
	for n, f := range figures {
		r := Rate{Title: f.title, Unit: f.unit}
		switch parts := f.parts(); f.kind {
		case now:
			r.Value, r.Known = is.values[parts[0]]
		case mean:
			sum, known := rise(parts[0])
			count, alike := rise(parts[1])
			if known && alike && count > 0 {
				r.Value, r.Known = sum/count, true
			}
		default:
			if by, known := rise(parts[0]); known {
				r.Value, r.Known = by/is.at.Sub(before.at).Seconds(), true
			}
		}
		r.Known = r.Known && !isNone(r.Value)
		rates[n] = r
	}
	return rates
}

// sumsOf reads a page of metrics, in Prometheus's text format or OpenMetrics: what the figures need of it.
func sumsOf(page string) map[series]float64 {
	wanted := map[string][]series{}
	for _, f := range figures {
		for _, s := range f.parts() {
			if !slices.Contains(wanted[s.metric], s) {
				wanted[s.metric] = append(wanted[s.metric], s)
			}
		}
	}
	sums := map[series]float64{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		end := strings.IndexAny(line, "{ \t")
		if end < 0 || wanted[line[:end]] == nil {
			continue
		}
		m := sample.FindStringSubmatch(line[end:])
		if len(m) == 0 {
			continue
		}
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil || math.IsNaN(value) {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(m[1], -1) {
			labels[pair[1]] = unescaped.Replace(pair[2])
		}
		for _, s := range wanted[line[:end]] {
			if s.label == "" || labels[s.label] == s.is {
				sums[s] += value
			}
		}
	}
	return sums
}

var (
	// sample is a line without its name: labels in braces, a value, and what may follow that.
	sample    = regexp.MustCompile(`^\s*(?:\{((?:[,\s]*[^\s=,{}"]+\s*=\s*"(?:[^"\\]|\\.)*")*)[,\s]*\})?\s*(\S+)`)
	label     = regexp.MustCompile(`([^\s=,{}"]+)\s*=\s*"((?:[^"\\]|\\.)*)"`)
	unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)
