package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const firstPage = `# HELP holdall_unit_duration_seconds How long runs of units took.
# TYPE holdall_unit_duration_seconds histogram
holdall_unit_duration_seconds_bucket{holdall_outcome="committed",le="0.1"} 3
holdall_unit_duration_seconds_sum{holdall_outcome="committed",job="a b, \"c\" }"} 10
holdall_unit_duration_seconds_count{holdall_outcome="committed",job="a b, \"c\" }"} 100 1764000000000
holdall_unit_duration_seconds_count{holdall_outcome="in doubt"} 3
holdall_units_waiting{job="a"} 2
holdall_units_waiting{job="b"}1
  holdall_units_waiting { job="c" } 2
holdall_request_capacity_total 1e3 # {trace_id="x"} 0.5
holdall_sets_lost_total NaN
not a sample
holdall_sets_held{broken="x 4
`

// known are the figures that there are.
func known(rates []Rate) map[string]float64 {
	all := map[string]float64{}
	for _, r := range rates {
		if r.Known {
			all[r.Title] = r.Value
		}
	}
	return all
}

func TestRatesOfAPage(t *testing.T) {
	start := time.Now()
	first := samples{start, sumsOf(firstPage)}
	require.Equal(t, map[string]float64{"Units that wait now": 5}, known(ratesOf(samples{}, first)), "rates take two looks")
	second := samples{start.Add(10 * time.Second), sumsOf(strings.NewReplacer(
		"_sum{holdall_outcome=\"committed\",job=\"a b, \\\"c\\\" }\"} 10", "_sum 25",
		"\"c\\\" }\"} 100 1764000000000", "\"c\\\" }\"} 150", "1e3", "1250",
		`"in doubt"} 3`, `"in doubt"} 1`, // that process has begun anew
	).Replace(firstPage))}
	require.Equal(t, map[string]float64{
		"Units committed": 5, "Units in doubt": 0.1, "Time a unit takes": 15.0 / 48, "Capacity": 25, "Units that wait now": 5,
	}, known(ratesOf(first, second)))
	require.Equal(t, map[string]float64{"Units that wait now": 5, "Units committed": 0, "Units in doubt": 0, "Capacity": 0},
		known(ratesOf(first, samples{start.Add(time.Second), sumsOf(firstPage)})), "nothing has happened")
}

// The names are those that otelholdall has, as an exporter to Prometheus writes them.
func TestFiguresAreOfMetricsThatThereAre(t *testing.T) {
	source, err := os.ReadFile("../../../../otelholdall/internal/instruments/instruments.go")
	require.NoError(t, err)
	exported := map[string]bool{}
	for _, made := range regexp.MustCompile(`(\w+)\("(holdall\.[\w.]+)"`).FindAllStringSubmatch(string(source), -1) {
		name := strings.ReplaceAll(made[2], ".", "_")
		switch made[1] {
		case "duration":
			exported[name+"_seconds"] = true
		case "now", "observed":
			exported[name] = true
		default: // a counter
			exported[name+"_total"] = true
		}
	}
	for _, f := range figures {
		require.True(t, exported[strings.TrimSuffix(f.metric, "_count")], "%s: %s", f.title, f.metric)
	}
}

// prometheus answers each query by what it begins with.
func prometheus(t *testing.T, answer http.HandlerFunc) *Metrics {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	m, err := NewMetrics(server.URL + "/prefix/")
	require.NoError(t, err)
	return m
}

func TestRatesOfAPrometheus(t *testing.T) {
	var queries []string
	m := prometheus(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/prefix/api/v1/query", r.URL.Path)
		q := r.URL.Query().Get("query")
		queries = append(queries, q)
		result := []any{}
		switch {
		case strings.HasPrefix(q, "sum(rate(holdall_unit"):
			result = append(result, map[string]any{"metric": map[string]string{}, "value": []any{1764000000.0, "12.5"}})
		case strings.HasPrefix(q, "sum(rate(holdall_wait_duration_seconds_sum"):
			result = append(result, map[string]any{"value": []any{1764000000.0, "NaN"}})
		}
		w.Header().Set("Content-Type", "application/json")
		require.NoError(t, json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}}))
	})
	rates, err := m.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"Units committed": 12.5, "Units that fell back to locks": 12.5, "Units in doubt": 12.5, "Time a unit takes": 12.5}, known(rates))
	require.Len(t, rates, len(figures))
	require.Equal(t, `sum(rate(holdall_unit_duration_seconds_count{holdall_outcome="committed"}[5m]))`, queries[0])
	require.Contains(t, queries, "sum(rate(holdall_wait_duration_seconds_sum[5m])) / sum(rate(holdall_wait_duration_seconds_count[5m]))")
	require.Contains(t, queries, "sum(holdall_units_waiting)")
}

func TestRatesThatCannotBeRead(t *testing.T) {
	for says, answer := range map[string]http.HandlerFunc{
		"refuses a query: parse error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"status":"error","error":"parse error"}`))
		},
		"answers 404":            func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"its answer is not JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"EOF":                    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		_, err := prometheus(t, answer).Read(t.Context())
		require.ErrorContains(t, err, says)
	}
	m, err := NewMetrics("http://someone:secret@127.0.0.1:1/metrics")
	require.NoError(t, err)
	_, err = m.Read(t.Context())
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.NotContains(t, err.Error(), "secret")
	require.NotContains(t, err.Error(), "someone")
	for _, no := range []string{"", "localhost:9090", "ftp://x/metrics", "http://", "http://x:4318", "http://x:4317/", "https://x/v1/metrics", "http://%zz"} {
		_, err := NewMetrics(no)
		require.Error(t, err, no)
		require.NotContains(t, err.Error(), "%zz")
	}
	_, err = NewMetrics("http://x:4318/v1/metrics")
	require.ErrorContains(t, err, "cannot be asked")

	// Rows are shown without them.
	tables := town()
	h := serve(t, tables, func(c *Config) { c.Rates = m })
	page := bodyOf(t, browse(h, http.MethodGet, "/", nil))
	require.Contains(t, page, "They could not be read: 127.0.0.1:1")
	require.Contains(t, page, "host-1")
}
