package otlp_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
)

// settled returns when Prometheus has what the hooks have counted, and nothing is held any more but
// for one set of one key.
func (w *world) settled(watched *watched) {
	w.t.Helper()
	var missing []string
	for began := time.Now(); time.Since(began) < patience; time.Sleep(200 * time.Millisecond) {
		require.NoError(w.t, watched.meters.ForceFlush(w.t.Context()))
		if missing = w.missing(watched.tally); len(missing) == 0 {
			return
		}
	}
	require.Empty(w.t, missing, "Prometheus has something else than the hooks told; it asks the collector: %v", w.targets())
}

// targets is what Prometheus says of the collector.
func (w *world) targets() (said []string) {
	var data struct {
		ActiveTargets []struct{ Health, LastError string }
	}
	w.ask("targets", nil, &data)
	for _, t := range data.ActiveTargets {
		said = append(said, t.Health+" "+t.LastError)
	}
	return said
}

func (w *world) missing(of *tally) (missing []string) {
	counted, capacity := of.counted()
	expect := func(want float64, q string) {
		got := 0.0
		if samples := w.query(q); len(samples) > 0 {
			got = samples[0].number(w.t)
		}
		if math.Abs(got-want) > 1e-6*want {
			missing = append(missing, fmt.Sprintf("%s is %v, not %v", q, got, want))
		}
	}
	for name, n := range counted {
		kind, rest, _ := strings.Cut(name, " ")
		switch kind {
		case "unit":
			for _, way := range []string{instruments.Freely, instruments.Together, instruments.Locked} {
				if outcome, ends := strings.CutSuffix(rest, " "+way); ends {
					expect(float64(n), fmt.Sprintf("sum(holdall_unit_duration_seconds_count{holdall_outcome=%q, holdall_way=%q})", outcome, way))
				}
			}
		case "request":
			operation, answer, _ := strings.Cut(rest, " ")
			expect(float64(n), fmt.Sprintf("sum(holdall_request_duration_seconds_count{db_system_name=%q, db_operation_name=%q, holdall_answer=%q})", "aws.dynamodb", operation, answer))
		case "held":
			expect(float64(n-1), "sum(holdall_hold_duration_seconds_count)") // one is held still
		}
		for _, m := range instruments.All() {
			if m.Name == name {
				expect(float64(n), "sum("+m.Prometheus()+")")
			}
			if m.Name == name+".duration" {
				expect(float64(n), "sum("+m.Prometheus()+"_count)")
			}
		}
	}
	expect(capacity, "sum(holdall_request_capacity_total)")
	expect(1, "sum(holdall_sets_held)")
	expect(1, "sum(holdall_keys_held)")
	for _, none := range []instruments.Metric{instruments.Waiting, instruments.KeysHeldWaiting, instruments.Journals} {
		expect(0, "sum("+none.Prometheus()+")")
	}
	return missing
}

// names: Prometheus knows every metric under the name that the dashboard has for it, as what it is.
func (w *world) names() {
	w.t.Helper()
	types := map[instruments.Kind]string{
		instruments.Duration: "histogram", instruments.Count: "counter", instruments.Now: "gauge", instruments.Observed: "gauge",
	}
	known := map[string][]struct{ Type, Help string }{}
	w.ask("metadata", nil, &known)
	for _, m := range instruments.All() {
		about := known[m.Prometheus()]
		require.Len(w.t, about, 1, m.Prometheus())
		require.Equal(w.t, types[m.Kind], about[0].Type, m.Prometheus())
		require.Equal(w.t, m.Description, about[0].Help, m.Prometheus())
		delete(known, m.Prometheus())
	}
	for name := range known {
		require.False(w.t, strings.HasPrefix(name, "holdall_"), "%s is not in the list", name)
	}
	require.NotEmpty(w.t, w.query(fmt.Sprintf("holdall_sets_held{job=%q, instance=%q}", service, process)))
}

// heartbeats: of the set that is held, which is confirmed again and again.
func (w *world) heartbeats() {
	w.t.Helper()
	age, left := w.query("holdall_heartbeat_age_seconds"), w.query("holdall_heartbeat_left_seconds")
	require.Len(w.t, age, 1)
	require.Len(w.t, left, 1)
	require.Positive(w.t, age[0].number(w.t))
	require.Less(w.t, left[0].number(w.t), heldLease.Seconds())
	require.Positive(w.t, w.query("sum(holdall_heartbeat_rounds_total)")[0].number(w.t))
}

// panels: every query of the dashboard is one, and shows what the bank has done.
func (w *world) panels() {
	w.t.Helper()
	text, err := os.ReadFile("../../docs/dashboards/holdall.json")
	require.NoError(w.t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(w.t, json.Unmarshal(text, &board))
	chosen := strings.NewReplacer("$__rate_interval", "5m", "$job", service, "$instance", process)
	queries := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			queries++
			samples := w.query(chosen.Replace(target.Expr))
			// A rate takes two looks of Prometheus at what may have come with the last.
			for began := time.Now(); numbers(w.t, samples) == 0 && !strings.Contains(target.Expr, `"in doubt"`) && time.Since(began) < time.Minute; samples = w.query(chosen.Replace(target.Expr)) {
				time.Sleep(100 * time.Millisecond)
			}
			if strings.Contains(target.Expr, `"in doubt"`) && len(samples) == 0 {
				continue // nothing was, as it should be
			}
			require.Positive(w.t, numbers(w.t, samples), "%s: %s", p.Title, target.Expr)
		}
	}
	require.Greater(w.t, queries, len(instruments.All()))
}

// numbers is how many samples are numbers: a rate of nothing, divided by another, is none.
func numbers(t *testing.T, samples []sample) (n int) {
	t.Helper()
	for _, s := range samples {
		if !math.IsNaN(s.number(t)) {
			n++
		}
	}
	return n
}

// rules: Prometheus can evaluate all of them.
func (w *world) rules() {
	w.t.Helper()
	var loaded struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	w.ask("rules", url.Values{}, &loaded)
	require.Len(w.t, loaded.Groups, 1)
	require.NotEmpty(w.t, loaded.Groups[0].Rules)
	for _, rule := range loaded.Groups[0].Rules {
		require.Equal(w.t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
	}
}

// What the hooks tell arrives, as a whole, where a program's traces and metrics are looked at.
func TestTheBankIsWatched(t *testing.T) {
	w := start(t)
	watched := w.watch(t.Context())
	release := hold(t, watched.hooks)
	began := time.Now()
	bank(t, watched.hooks)
	t.Logf("the bank took %v", time.Since(began).Round(time.Second))
	w.settled(watched)
	t.Logf("all is there after %v", time.Since(began).Round(time.Second))
	w.names()
	w.heartbeats()
	bank(t, watched.hooks) // once more: what has come with the first look has no rate
	w.settled(watched)
	w.panels()
	w.rules()
	release()
	require.NoError(t, watched.tracers.Shutdown(t.Context()))
	require.NoError(t, watched.meters.Shutdown(t.Context()))
	counted, _ := watched.tally.counted()
	w.stop()
	all := written(t, w.spans)
	t.Logf("%d spans, %v", len(all), time.Since(began).Round(time.Second))
	wholeTraces(t, all, counted)
	wholeUnits(t, all)
}
