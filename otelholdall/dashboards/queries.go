package main

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
	"github.com/holdall/holdall/trace"
)

// query is a query of Prometheus.
type query string

// selected are the points of a metric, or of a part of a histogram, that have these labels.
func selected(m instruments.Metric, part string, matchers ...string) query {
	name := m.Prometheus() + part
	if len(matchers) == 0 {
		return query(name)
	}
	return query(name + "{" + strings.Join(matchers, ", ") + "}")
}

// ended matches units that ended so.
func ended(outcome trace.Outcome) string {
	return fmt.Sprintf("%s=%q", instruments.Label(instruments.Outcome), outcome)
}

// apart matches units that did not come along with another.
func apart() string {
	return fmt.Sprintf("%s!=%q", instruments.Label(instruments.Way), instruments.Together)
}

// sum adds up, for each value of these attributes.
func sum(of query, by ...attribute.Key) query {
	if len(by) == 0 {
		return query("sum(" + string(of) + ")")
	}
	labels := make([]string, len(by))
	for i, key := range by {
		labels[i] = instruments.Label(key)
	}
	return query("sum by (" + strings.Join(labels, ", ") + ") (" + string(of) + ")")
}

// rate is per second.
func rate(of query, window string) query { return query("rate(" + string(of) + "[" + window + "])") }

// rise is by how much a counter has risen, counting from zero where it was not there before: a
// metric is first seen when there is something to count, and increase sees no rise in that.
func rise(of query, window string) query {
	return query(fmt.Sprintf("(%s unless %s offset %s) or increase(%s[%s])", of, of, window, of, window))
}

// quantile is that of a histogram, for each value of these attributes.
func quantile(q float64, of query, by ...attribute.Key) query {
	return query(fmt.Sprintf("histogram_quantile(%g, %s)", q, sum(of, append([]attribute.Key{"le"}, by...)...)))
}
