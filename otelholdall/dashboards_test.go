package otelholdall_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
)

// panel is one of the dashboard's, or a row of them, as Grafana has it.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("../docs/dashboards/holdall.json")
	require.NoError(t, err)
	var board struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(text, &board))
	require.NotEmpty(t, board.Panels)
	return board.Panels
}

// series are those of all metrics, each with the labels that it has.
func series() map[string][]string {
	all := map[string][]string{}
	for _, m := range instruments.All() {
		labels := []string{"job", "instance"}
		for _, key := range m.Attributes {
			labels = append(labels, instruments.Label(key))
		}
		if m.Kind != instruments.Duration {
			all[m.Prometheus()] = labels
			continue
		}
		all[m.Prometheus()+"_count"], all[m.Prometheus()+"_sum"] = labels, labels
		all[m.Prometheus()+"_bucket"] = append(slices.Clone(labels), "le")
	}
	return all
}

var (
	texts     = regexp.MustCompile(`"[^"]*"`)
	grouping  = regexp.MustCompile(`(?:by|on|without|ignoring) \(([^)]*)\)`)
	selector  = regexp.MustCompile(`(holdall_\w+)(?:\{([^}]*)\})?`)
	separator = regexp.MustCompile(`[^\w]+`)
)

// unknown are metrics and labels that a query names, and nothing has.
func unknown(query string) (names []string) {
	all, text := series(), texts.ReplaceAllString(query, "")
	grouped := grouping.FindAllStringSubmatch(text, -1)
	text = grouping.ReplaceAllString(text, "")
	selected := selector.FindAllStringSubmatch(text, -1)
	if len(selected) == 0 {
		names = append(names, "no metric: "+query)
	}
	for _, s := range selected {
		has, known := all[s[1]]
		if !known {
			names = append(names, s[1])
		}
		labels := separator.Split(s[2], -1)
		for _, g := range grouped {
			labels = append(labels, separator.Split(g[1], -1)...)
		}
		for _, label := range labels {
			if label != "" && !slices.Contains(has, label) {
				names = append(names, s[1]+"/"+label)
			}
		}
	}
	return names
}

func TestUnknownNamesAreSeen(t *testing.T) {
	for query, want := range map[string]string{
		"sum(holdall_keys_kept)": "holdall_keys_kept",
		`sum by (job) (rate(holdall_unit_duration_seconds_sum{holdall_way="x", db_operation_name="y"}[1m]))`: "holdall_unit_duration_seconds_sum/db_operation_name",
		`sum by (job, le) (holdall_sets_lost_total)`:                                                         "holdall_sets_lost_total/le",
		"up":                            "no metric: up",
		"holdall_unit_duration_seconds": "holdall_unit_duration_seconds",
	} {
		require.Contains(t, unknown(query), want)
	}
}

// Panels ask for what there is, and for all of it.
func TestPanelsShowWhatThereIs(t *testing.T) {
	var shown strings.Builder
	for _, p := range panels(t) {
		for _, line := range p.Targets {
			require.Empty(t, unknown(line.Expr), "%s: %s", p.Title, line.Expr)
			for _, choice := range []string{`job=~"$job"`, `instance=~"$instance"`} { // what is chosen at the top of the page
				require.Contains(t, line.Expr, choice, p.Title)
			}
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(line.LegendFormat, -1) {
				require.Contains(t, line.Expr, label[1], p.Title)
			}
			shown.WriteString(line.Expr + "\n")
		}
	}
	for _, m := range instruments.All() {
		require.Regexp(t, m.Prometheus()+`(_bucket|_count)?\{`, shown.String(), "no panel shows %s", m.Name)
	}
}

// Alerts ask for what there is, and name labels that they have.
func TestAlertsNameWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../docs/dashboards/alerts.yaml")
	require.NoError(t, err)
	alerts := strings.Split(string(text), "- alert: ")[1:]
	require.NotEmpty(t, alerts)
	for _, alert := range alerts {
		name, _, _ := strings.Cut(alert, "\n")
		var query string
		found := regexp.MustCompile(`(?m)^ +expr: (".*")$`).FindStringSubmatch(alert)
		require.Len(t, found, 2, name)
		require.NoError(t, json.Unmarshal([]byte(found[1]), &query), name)
		require.Empty(t, unknown(query), name)
		for _, label := range regexp.MustCompile(`{{ \$labels\.(\w+)`).FindAllStringSubmatch(alert, -1) {
			require.Contains(t, query, label[1], name)
		}
	}
}

// No panel is in the place of another, and each has a name of its own.
func TestTheDashboard(t *testing.T) {
	const width = 24 // of Grafana's grid
	taken, titles, ids := map[[2]int]string{}, map[string]bool{}, map[int]bool{}
	for _, p := range panels(t) {
		require.False(t, titles[p.Title] || ids[p.ID], p.Title)
		titles[p.Title], ids[p.ID] = true, true
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, width, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], p.Title)
				taken[at] = p.Title
			}
		}
	}
}
