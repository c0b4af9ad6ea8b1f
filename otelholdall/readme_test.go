package otelholdall

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
)

var update = flag.Bool("update", false, "write the table of metrics to the page")

// noting is a meter that lists what it is asked for.
type noting struct {
	noop.Meter
	made map[string]instruments.Kind
}

func (n noting) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	n.made[name] = instruments.Duration
	return n.Meter.Float64Histogram(name, o...)
}

func (n noting) Int64UpDownCounter(name string, o ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	n.made[name] = instruments.Now
	return n.Meter.Int64UpDownCounter(name, o...)
}

func (n noting) Int64Counter(name string, o ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	n.made[name] = instruments.Count
	return n.Meter.Int64Counter(name, o...)
}

func (n noting) Float64Counter(name string, o ...metric.Float64CounterOption) (metric.Float64Counter, error) {
	n.made[name] = instruments.Count
	return n.Meter.Float64Counter(name, o...)
}

func (n noting) Int64ObservableUpDownCounter(name string, o ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	n.made[name] = instruments.Now
	return n.Meter.Int64ObservableUpDownCounter(name, o...)
}

func (n noting) Float64ObservableGauge(name string, o ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	n.made[name] = instruments.Observed
	return n.Meter.Float64ObservableGauge(name, o...)
}

// What the list has is made, and nothing else.
func TestAllMetricsAreMade(t *testing.T) {
	made, listed := map[string]instruments.Kind{}, map[string]instruments.Kind{}
	newMetrics(noting{made: made})
	for _, m := range instruments.All() {
		listed[m.Name] = m.Kind
	}
	require.Equal(t, listed, made)
}

// The page has every metric, in the order of names.
func TestThePageHasAllMetrics(t *testing.T) {
	var table strings.Builder
	for _, m := range instruments.All() {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", m.Name, m.Unit, m.Description)
	}
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	const heading = "| metric | unit | |\n|---|---|---|\n"
	if *update {
		head, rest, _ := strings.Cut(string(page), heading)
		_, rest, _ = strings.Cut(rest, "\n\n")
		page = []byte(head + heading + table.String() + "\n" + rest)
		require.NoError(t, os.WriteFile("README.md", page, 0o600))
	}
	require.Contains(t, string(page), heading+table.String()+"\n")
}
