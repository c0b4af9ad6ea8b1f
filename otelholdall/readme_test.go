package otelholdall

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

var update = flag.Bool("update", false, "write the table of metrics to the page")

// noting is a meter that lists what it is asked for.
type noting struct {
	noop.Meter
	rows *[]string
}

func (n noting) note(name, unit, of string) {
	*n.rows = append(*n.rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", name, unit, of))
}

func (n noting) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	c := metric.NewFloat64HistogramConfig(o...)
	n.note(name, c.Unit(), c.Description())
	return n.Meter.Float64Histogram(name, o...)
}

func (n noting) Int64UpDownCounter(name string, o ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	c := metric.NewInt64UpDownCounterConfig(o...)
	n.note(name, c.Unit(), c.Description())
	return n.Meter.Int64UpDownCounter(name, o...)
}

func (n noting) Int64Counter(name string, o ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	c := metric.NewInt64CounterConfig(o...)
	n.note(name, c.Unit(), c.Description())
	return n.Meter.Int64Counter(name, o...)
}

func (n noting) Float64Counter(name string, o ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	c := metric.NewFloat64CounterConfig(o...)
	n.note(name, c.Unit(), c.Description())
	return n.Meter.Float64Counter(name, o...)
}

// The page has every metric, in the order of names.
func TestThePageHasAllMetrics(t *testing.T) {
	var rows []string
	newMetrics(noting{rows: &rows})
	slices.Sort(rows)
	table := strings.Join(rows, "")
	require.GreaterOrEqual(t, strings.Count(table, "\n"), 20)
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	if *update {
		head, rest, _ := strings.Cut(string(page), "| metric | unit | |\n|---|---|---|\n")
		_, rest, _ = strings.Cut(rest, "\n\n")
		page = []byte(head + "| metric | unit | |\n|---|---|---|\n" + table + "\n" + rest)
		require.NoError(t, os.WriteFile("README.md", page, 0o600))
	}
	require.Contains(t, string(page), "|---|---|---|\n"+table+"\n")
}
