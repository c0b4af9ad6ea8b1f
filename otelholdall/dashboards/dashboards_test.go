package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
)

const folder = "../../docs/dashboards"

func TestTheFilesAreUpToDate(t *testing.T) {
	made, err := files(folder)
	require.NoError(t, err)
	for name, want := range made {
		is, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(is), "%s is out of date: make docs", name)
	}
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
func unknown(q query) (names []string) {
	all, text := series(), texts.ReplaceAllString(string(q), "")
	grouped := grouping.FindAllStringSubmatch(text, -1)
	text = grouping.ReplaceAllString(text, "")
	selected := selector.FindAllStringSubmatch(text, -1)
	if len(selected) == 0 {
		names = append(names, "no metric: "+string(q))
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
	for q, want := range map[query]string{
		"sum(holdall_keys_kept)": "holdall_keys_kept",
		`sum by (job) (rate(holdall_unit_duration_seconds_sum{holdall_way="x", db_operation_name="y"}[1m]))`: "holdall_unit_duration_seconds_sum/db_operation_name",
		`sum by (job, le) (holdall_sets_lost_total)`:                                                         "holdall_sets_lost_total/le",
		"up":                            "no metric: up",
		"holdall_unit_duration_seconds": "holdall_unit_duration_seconds",
	} {
		require.Contains(t, unknown(q), want)
	}
}

// Panels and alerts ask for what there is, and panels for all of it.
func TestQueriesNameWhatThereIs(t *testing.T) {
	shown := ""
	for _, r := range rows {
		for _, p := range r.panels {
			for _, l := range p.lines {
				require.Empty(t, unknown(l.query), "%s: %s", p.title, l.query)
				for _, choice := range chosen {
					require.Contains(t, string(l.query), choice, p.title)
				}
				for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(l.legend, -1) {
					require.Contains(t, string(l.query), label[1], p.title)
				}
				shown += string(l.query) + "\n"
			}
		}
	}
	for _, m := range instruments.All() {
		require.Regexp(t, m.Prometheus()+`(_bucket|_count)?\{`, shown, "no panel shows %s", m.Name)
	}
	for _, a := range alerts {
		require.Empty(t, unknown(a.when), a.name)
		for _, label := range regexp.MustCompile(`{{ \$labels\.(\w+)`).FindAllStringSubmatch(a.summary, -1) {
			require.Contains(t, string(a.when), label[1], a.name)
		}
	}
}

// The dashboard has all panels, none in the place of another, and each with a name of its own.
func TestTheDashboard(t *testing.T) {
	text, err := dashboard()
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	taken, titles, ids := map[[2]int]string{}, map[string]bool{}, map[int]bool{}
	for _, p := range board.Panels {
		require.False(t, titles[p.Title] || ids[p.ID], p.Title)
		titles[p.Title], ids[p.ID] = true, true
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, pageWidth, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], p.Title)
				taken[at] = p.Title
			}
		}
	}
	for _, r := range rows {
		require.True(t, titles[r.title])
		for _, p := range r.panels {
			require.True(t, titles[p.title])
		}
	}
}
