package main

import (
	"bytes"
	"encoding/json"

	"github.com/holdall/holdall/otelholdall/internal/instruments"
)

// source is where panels get their data from: what is chosen at the top of the page.
var source = map[string]string{"type": "prometheus", "uid": "$source"}

// How wide a page is in Grafana, and a panel here.
const (
	pageWidth, panelWidth  = 24, 8
	panelHeight, rowHeight = 8, 1
)

// dashboard is the dashboard as Grafana reads it.
func dashboard() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(map[string]any{
		"title": "holdall", "uid": "holdall", "tags": []string{"holdall", "dynamodb"}, "schemaVersion": 38, "editable": true,
		"refresh": "30s", "time": map[string]string{"from": "now-1h", "to": "now"},
		"templating": map[string]any{"list": variables()}, "panels": shown(),
	})
	return b.Bytes(), err
}

// variables are what is chosen at the top of the page.
func variables() []map[string]any {
	values := func(name, label, query string) map[string]any {
		return map[string]any{
			"name": name, "label": label, "type": "query", "datasource": source, "query": query, "refresh": 2,
			"includeAll": true, "multi": true, "allValue": ".*", "current": map[string]any{"text": "All", "value": "$__all"},
		}
	}
	of := instruments.Units.Prometheus() + "_count"
	return []map[string]any{
		{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
		values("job", "Service", "label_values("+of+", job)"),
		values("instance", "Process", "label_values("+of+`{job=~"$job"}, instance)`),
	}
}

// shown are the panels, with their places.
func shown() (all []map[string]any) {
	y := 0
	add := func(p map[string]any, x, width, height int) {
		p["id"] = len(all) + 1
		p["gridPos"] = map[string]int{"x": x, "y": y, "w": width, "h": height}
		all = append(all, p)
	}
	for _, r := range rows {
		add(map[string]any{"type": "row", "title": r.title, "collapsed": false, "panels": []any{}}, 0, pageWidth, rowHeight)
		y += rowHeight
		for i, p := range r.panels {
			if i > 0 && i%(pageWidth/panelWidth) == 0 {
				y += panelHeight
			}
			add(graph(p), i%(pageWidth/panelWidth)*panelWidth, panelWidth, panelHeight)
		}
		y += panelHeight
	}
	return all
}

func graph(p panel) map[string]any {
	targets := make([]map[string]any, len(p.lines))
	for i, l := range p.lines {
		targets[i] = map[string]any{"refId": string(rune('A' + i)), "datasource": source, "expr": string(l.query), "legendFormat": l.legend}
	}
	return map[string]any{
		"type": "timeseries", "title": p.title, "description": p.about, "datasource": source, "targets": targets,
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
		"options":     map[string]any{"legend": map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": map[string]any{"mode": "multi"}},
	}
}
