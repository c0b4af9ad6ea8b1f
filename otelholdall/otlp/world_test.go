// Package otlp_test has the example bank watched by what watches programs elsewhere: an OpenTelemetry
// collector, to which otelholdall exports over OTLP, and a Prometheus, which gets the metrics from
// there. Both really run; see make otlp.
package otlp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// patience bounds what takes less than a second where nothing else runs.
const patience = 2 * time.Minute

// world is a collector and a Prometheus.
type world struct {
	t          *testing.T
	otlp       string // where the collector takes what is exported
	spans      string // the file in which it writes spans
	collector  *engines.Child
	prometheus string // its URL
}

const collectorConfig = `
receivers:
  otlp:
    protocols:
      http:
        endpoint: %[1]s
exporters:
  file:
    path: %[2]s
  prometheus:
    endpoint: %[3]s
service:
  telemetry:
    metrics:
      level: none
    logs:
      level: warn
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [file]
    metrics:
      receivers: [otlp]
      exporters: [prometheus]
`

const prometheusConfig = `
global:
  scrape_interval: 2s # which bounds how long one may take, too
  evaluation_interval: 1s
rule_files: [%[2]s]
scrape_configs:
  - job_name: collector
    honor_labels: true
    static_configs:
      - targets: [%[1]q]
`

func start(t *testing.T) *world {
	program, err := engines.Collector()
	require.NoError(t, err)
	require.FileExists(t, program, "run: make otlp")
	w := &world{t: t}
	dir := t.TempDir()
	var offered string
	w.collector = w.serve(func() (*exec.Cmd, string) {
		w.otlp, offered = address(t), address(t)
		w.spans = filepath.Join(dir, "spans.json")
		config := filepath.Join(dir, "collector.yaml")
		require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, collectorConfig, w.otlp, w.spans, offered), 0o600))
		return exec.Command(program, "--config", config), "http://" + offered + "/metrics"
	})
	rules, err := filepath.Abs("../../docs/dashboards/alerts.yaml")
	require.NoError(t, err)
	w.serve(func() (*exec.Cmd, string) {
		at := address(t)
		w.prometheus = "http://" + at
		config := filepath.Join(dir, "prometheus.yaml")
		require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, offered, rules), 0o600))
		return exec.Command("prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "tsdb"), "--web.listen-address", at),
			w.prometheus + "/-/ready"
	})
	return w
}

// address is one of the loopback interface, which is free until somebody else takes it.
func address(t *testing.T) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// serve starts a server and returns when it answers. One whose port was taken meanwhile ends, and is
// started again on another.
func (w *world) serve(command func() (cmd *exec.Cmd, ready string)) *engines.Child {
	w.t.Helper()
	said := ""
	for range 3 {
		cmd, ready := command()
		child, err := engines.StartChild(cmd)
		require.NoError(w.t, err)
		w.t.Cleanup(child.Kill)
		for began := time.Now(); child.Alive() && time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
			if answer, err := http.Get(ready); err == nil {
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK && child.Alive() {
					return child
				}
			}
		}
		child.Kill()
		said = child.Output()
	}
	require.FailNow(w.t, "it does not answer", said)
	return nil
}

// stop ends the collector, which writes down what it has.
func (w *world) stop() {
	w.t.Helper()
	require.NoError(w.t, w.collector.Signal(syscall.SIGTERM))
	require.NoError(w.t, w.collector.Wait(), w.collector.Output())
}

// ask is a call of Prometheus's API.
func (w *world) ask(path string, values url.Values, into any) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.prometheus+"/api/v1/"+path+"?"+values.Encode(), http.NoBody)
	require.NoError(w.t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, answer.StatusCode, "%v: %s", values, body)
	require.NoError(w.t, json.Unmarshal(body, &struct{ Data any }{into}), "%s", body)
}

// sample is one of those that a query returns.
type sample struct {
	Metric map[string]string
	Value  [2]any // when, and a number as text
}

func (s sample) number(t *testing.T) float64 {
	n, err := strconv.ParseFloat(s.Value[1].(string), 64)
	require.NoError(t, err)
	return n
}

func (w *world) query(q string) []sample {
	w.t.Helper()
	var data struct{ Result []sample }
	w.ask("query", url.Values{"query": {q}}, &data)
	return data.Result
}
