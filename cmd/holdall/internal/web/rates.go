package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Rate is a figure of what processes report of themselves.
type Rate struct {
	Title, Unit string
	Value       float64
	Known       bool // else there is no such metric, or nothing to tell of it yet
}

// figure says how a rate is made of metrics, by the names that Prometheus has for those of otelholdall.
type figure struct {
	title, unit string
	kind        figureKind
	metric      string
	label, is   string // only series with this label; empty: all
}

type figureKind int

const (
	perSecond figureKind = iota // how fast a counter rises
	mean                        // what a histogram has of a sum, by its count
	now                         // what a gauge shows
)

var figures = []figure{
	{"Units committed", "a second", perSecond, "holdall_unit_duration_seconds_count", "holdall_outcome", "committed"},
	{"Units that fell back to locks", "a second", perSecond, "holdall_unit_duration_seconds_count", "holdall_outcome", "fell back"},
	{"Units in doubt", "a second", perSecond, "holdall_unit_duration_seconds_count", "holdall_outcome", "in doubt"},
	{"Time a unit takes", "s on average", mean, "holdall_unit_duration_seconds", "", ""},
	{"Waits", "a second", perSecond, "holdall_wait_duration_seconds_count", "", ""},
	{"Time a wait takes", "s on average", mean, "holdall_wait_duration_seconds", "", ""},
	{"Time a set is held", "s on average", mean, "holdall_hold_duration_seconds", "", ""},
	{"Units that wait now", "", now, "holdall_units_waiting", "", ""},
	{"Sets held now", "", now, "holdall_sets_held", "", ""},
	{"Sets lost", "a second", perSecond, "holdall_sets_lost_total", "", ""},
	{"Requests", "a second", perSecond, "holdall_request_duration_seconds_count", "", ""},
	{"Capacity", "units a second", perSecond, "holdall_request_capacity_total", "", ""},
}

// Metrics is a place that can be asked for metrics.
type Metrics struct {
	base   *url.URL
	text   bool // it is a page of metrics, not a Prometheus
	client *http.Client

	last samples // of a page: rates take two
}

// How long it may take, how much it may say, and over which time a Prometheus takes rates: it scrapes once
// a minute, often.
const (
	metricsTimeout = 3 * time.Second
	largestMetrics = 16 << 20
	rateWindow     = "5m"
)

// NewMetrics says where metrics are: a URL of a Prometheus, or of a page in its text format, which ends in
// /metrics.
func NewMetrics(where string) (*Metrics, error) {
	u, err := url.Parse(where)
	switch {
	case err != nil:
		return nil, errors.New("it is no URL") // whose text may have a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("it is no URL of http or https")
	case u.Port() == "4317" || u.Port() == "4318" || strings.HasSuffix(u.Path, "/v1/metrics"):
		return nil, errors.New("OTLP takes metrics and cannot be asked for them: name the Prometheus that has them, or a page /metrics")
	}
	return &Metrics{base: u, text: strings.HasSuffix(u.Path, "/metrics"), client: &http.Client{Timeout: metricsTimeout}}, nil
}

// Read returns a figure each, known or not.
func (m *Metrics) Read(ctx context.Context) ([]Rate, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	if m.text {
		body, err := m.get(ctx, m.base)
		if err != nil {
			return nil, err
		}
		before := m.last
		m.last = samples{time.Now(), sumsOf(string(body))}
		return ratesOf(before, m.last), nil
	}
	rates := make([]Rate, len(figures))
	for n, f := range figures {
		value, known, err := m.query(ctx, f.promQL())
		if err != nil {
			return nil, err
		}
		rates[n] = Rate{f.title, f.unit, value, known}
	}
	return rates, nil
}

func (f figure) promQL() string {
	matching := ""
	if f.label != "" {
		matching = fmt.Sprintf("{%s=%q}", f.label, f.is)
	}
	if f.kind == now {
		return "sum(" + f.metric + matching + ")"
	}
	var rates []string
	for _, s := range f.parts() {
		rates = append(rates, fmt.Sprintf("sum(rate(%s%s[%s]))", s.metric, matching, rateWindow))
	}
	return strings.Join(rates, " / ")
}

// query asks a Prometheus for one value.
func (m *Metrics) query(ctx context.Context, promQL string) (value float64, known bool, err error) {
	u := m.base.JoinPath("api", "v1", "query")
	u.RawQuery = url.Values{"query": {promQL}}.Encode()
	body, err := m.get(ctx, u)
	if err != nil {
		return 0, false, err
	}
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, false, fmt.Errorf("%s is no Prometheus: its answer is not JSON", m.base.Host)
	}
	if answer.Status != "success" {
		return 0, false, fmt.Errorf("%s refuses a query: %s", m.base.Host, answer.Error)
	}
	if len(answer.Data.Result) == 0 {
		return 0, false, nil
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	value, err = strconv.ParseFloat(text, 64)
	return value, err == nil && !isNone(value), nil
}

func isNone(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }

func (m *Metrics) get(ctx context.Context, u *url.URL) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := m.client.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the URL, which may have a password
		}
		return nil, fmt.Errorf("%s: %w", m.base.Host, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, largestMetrics))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.base.Host, err)
	}
	// A Prometheus says in JSON what is wrong with a query.
	if answer.StatusCode != http.StatusOK && !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		return nil, fmt.Errorf("%s answers %s", m.base.Host, answer.Status)
	}
	return body, nil
}
